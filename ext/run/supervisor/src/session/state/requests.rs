//! Handles requests of clients to create and restore snapshots of the guest.

use super::base::Base;
use super::begin::{event, require_layers};
use super::facts::{self, layer_name};
use super::quiet;
use crate::session::Session;
use serde_json::{Value, json};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use wp_codebox_artifacts::Durability;
use wp_codebox_contracts::{
    CommandStatus, ErrorBody, ErrorCode, EventType, GuestPhase, LiveRequest, SandboxSnapshot,
    SnapshotRequest, schema_id,
};
use wp_codebox_runtime::{LayerSource, SnapshotScope, SnapshotStore};

/// Maximum number of snapshots of one sandbox.
const MOST: usize = 64;
/// Maximum length of a snapshot's name, in bytes.
const NAME: usize = 128;
/// Maximum size of the metadata that a client adds to a snapshot, in bytes of JSON.
const METADATA: usize = 64 * 1024;

impl Session<'_, '_> {
    /// Handles a snapshot request of a client. `running` lists the programs that run in the guest.
    pub(crate) fn state_request(
        &mut self,
        request: &LiveRequest,
        running: &[String],
    ) -> Result<Value, ErrorBody> {
        let actor = self.recorder.actor.clone().unwrap_or_default();
        match request {
            LiveRequest::Snapshot(wanted) => self
                .snapshot(wanted, &actor, running)
                .map(|kept| json!(kept)),
            LiveRequest::Restore { id } => {
                self.restore(id, &actor, running).map(|kept| json!(kept))
            }
            LiveRequest::Reset {} => {
                self.reset(&actor, running)?;
                Ok(
                    json!({"schema": schema_id::SANDBOX, "id": self.context.prepared.request.run_id, "reset": true}),
                )
            }
            LiveRequest::Snapshots {} => {
                let all = self.snapshots()?;
                Ok(
                    json!({"schema": schema_id::SANDBOX_SNAPSHOT_LIST, "total": all.len(), "snapshots": all}),
                )
            }
            _ => Err(ErrorBody::new(
                ErrorCode::Internal,
                "this request is not a snapshot request",
            )),
        }
    }

    /// Stores the state of the guest in the site's snapshot store, for this sandbox and later ones.
    /// Fails if `running`, the programs of clients in the guest, is not empty.
    pub(crate) fn snapshot(
        &mut self,
        request: &SnapshotRequest,
        actor: &str,
        running: &[String],
    ) -> Result<SandboxSnapshot, ErrorBody> {
        let shelf = self.shelf()?;
        let made = shelf.list(SnapshotScope::Run(&self.context.prepared.request.run_id));
        check_room(&made, &request.name)?;
        let snapshot = self.keep(&shelf, request, actor, running, Durability::Synced)?;
        self.told(EventType::SnapshotCreated, &snapshot, actor)?;
        Ok(snapshot)
    }

    /// Returns the snapshots that were created in this sandbox, oldest first.
    pub(crate) fn snapshots(&self) -> Result<Vec<SandboxSnapshot>, ErrorBody> {
        let run_id = &self.context.prepared.request.run_id;
        Ok(self.shelf()?.list(SnapshotScope::Run(run_id)))
    }

    /// Replaces the guest by one with the state of a snapshot. `reference` is the name or id of a
    /// snapshot of this sandbox, or the id of any snapshot of the site.
    pub(crate) fn restore(
        &mut self,
        reference: &str,
        actor: &str,
        running: &[String],
    ) -> Result<SandboxSnapshot, ErrorBody> {
        free(running)?;
        require_layers(self.context.level)?;
        let shelf = self.shelf()?;
        let run_id = &self.context.prepared.request.run_id;
        let named = shelf.find(reference, SnapshotScope::Run(run_id));
        let id = named.or_else(|_| shelf.by_id(reference))?;
        let base = Base::open(self.context, &shelf, &id)?;
        let snapshot = base.snapshot().clone();
        self.replace(Some(Arc::new(base)))?;
        self.told(EventType::SnapshotRestored, &snapshot, actor)?;
        Ok(snapshot)
    }

    /// Replaces the guest by a fresh one. If the sandbox has an identity (profile and owner), the
    /// commands of the run request prepare the guest, so they are run again in the fresh guest.
    pub(crate) fn reset(&mut self, actor: &str, running: &[String]) -> Result<(), ErrorBody> {
        free(running)?;
        self.replace(None)?;
        self.recorder.event(
            EventType::StateChanged,
            None,
            json!({"from": "active", "to": "active", "actor": actor, "reason": "reset"}),
        )?;
        let request = &self.context.prepared.request;
        let profile = request
            .hold
            .as_ref()
            .and_then(|hold| hold.identity.as_ref());
        let setup = profile.map_or(&[][..], |_| request.commands.as_slice());
        for call in setup {
            let done = self.command(call, Duration::MAX)?;
            if let (CommandStatus::Error, error) = (done.result.status, done.result.error) {
                let why = error.map_or_else(String::new, |error| format!(": {}", error.message));
                let command = &call.command;
                return Err(ErrorBody::new(
                    ErrorCode::CommandFailed,
                    format!("the guest was reset, but the setup command {command} failed{why}"),
                ));
            }
        }
        Ok(())
    }

    fn shelf(&self) -> Result<SnapshotStore, ErrorBody> {
        let prepared = self.context.prepared;
        SnapshotStore::of_site(&prepared.state, &prepared.request.site).map_err(ErrorBody::from)
    }

    pub(super) fn keep(
        &mut self,
        shelf: &SnapshotStore,
        request: &SnapshotRequest,
        actor: &str,
        running: &[String],
        durability: Durability,
    ) -> Result<SandboxSnapshot, ErrorBody> {
        check_request(request)?;
        free(running)?;
        require_layers(self.context.level)?;
        // The web server is started again with the next request to the site.
        self.stop_site_server();
        let (deadline, phase) = (self.deadline(), GuestPhase::Work);
        self.guest.services.check()?;
        let runtime = self.guest.runtime.as_mut();
        self.guest.services.stop(runtime, deadline)?;
        let kept = self.store(shelf, request, actor, durability);
        let runtime = self.guest.runtime.as_mut();
        let services = &mut self.guest.services;
        services.start_again(self.context, runtime, self.recorder, (phase, deadline))?;
        kept
    }

    /// Stores the state of a guest in which no program runs.
    fn store(
        &mut self,
        shelf: &SnapshotStore,
        request: &SnapshotRequest,
        actor: &str,
        durability: Durability,
    ) -> Result<SandboxSnapshot, ErrorBody> {
        let deadline = self.deadline();
        quiet::settle(self.guest.runtime.as_mut(), deadline)?;
        let below = self.guest.below.as_ref();
        let sources: Vec<LayerSource<'_>> = self
            .guest
            .uppers
            .iter()
            .map(|(index, upper)| LayerSource {
                name: layer_name(*index),
                upper: upper.as_fd(),
                below: below.and_then(|below| below.layer(*index)),
            })
            .collect();
        let facts = facts::of(self.context, request, actor)?;
        shelf
            .keep(facts, &sources, durability)
            .map_err(ErrorBody::from)
    }

    pub(super) fn told(
        &mut self,
        kind: EventType,
        snapshot: &SandboxSnapshot,
        actor: &str,
    ) -> Result<(), ErrorBody> {
        self.recorder.event(kind, None, event(snapshot, actor))
    }
}

fn check_room(made: &[SandboxSnapshot], name: &str) -> Result<(), ErrorBody> {
    if made.iter().any(|snapshot| snapshot.name == name) {
        let message = format!("this sandbox already has a snapshot {name:?}; use another name");
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    if made.len() >= MOST {
        let message = format!(
            "this sandbox already has {MOST} snapshots, which is the limit; remove one (`wp-codebox sandbox remove-snapshot`)"
        );
        return Err(ErrorBody::new(ErrorCode::LimitInvalid, message));
    }
    Ok(())
}

/// Fails if a program of a client runs in the guest: it could change the guest during a snapshot,
/// and would be lost with a replaced guest.
fn free(running: &[String]) -> Result<(), ErrorBody> {
    if running.is_empty() {
        return Ok(());
    }
    let names = running.join(", ");
    let message = format!(
        "programs are running in the sandbox: {names}; end them or wait until they have ended"
    );
    Err(ErrorBody::new(ErrorCode::SandboxInUse, message).with("running", running.to_vec()))
}

pub(super) fn check_request(request: &SnapshotRequest) -> Result<(), ErrorBody> {
    let refused = |what: &str| Err(ErrorBody::new(ErrorCode::InputInvalid, what));
    let name = request.name.as_str();
    if name.is_empty() || name.len() > NAME || name.chars().any(char::is_control) {
        return refused(
            "the name of a snapshot must have 1 to 128 bytes and no control characters",
        );
    }
    // A name that begins like an id would make a reference ambiguous: it could mean this name, or
    // the id of another snapshot.
    if name.starts_with("snap_") {
        return refused(
            "a snapshot name must not begin with snap_, the prefix of snapshot ids; use another name",
        );
    }
    let metadata = serde_json::to_string(&request.metadata).unwrap_or_default();
    if metadata.len() > METADATA {
        return refused("the metadata of a snapshot must have at most 64 KiB of JSON");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    #[test]
    fn invalid_snapshot_name_and_oversized_metadata_are_rejected() {
        let request = |name: &str| SnapshotRequest {
            name: name.to_owned(),
            metadata: Map::new(),
        };
        check_request(&request("before the update")).unwrap();
        for name in ["", "a\nb", "a\u{9b}2J", "snap_1f", &"x".repeat(NAME + 1)] {
            let error = check_request(&request(name)).unwrap_err();
            assert_eq!(error.code, ErrorCode::InputInvalid);
        }
        let mut large = request("a");
        large
            .metadata
            .insert("k".to_owned(), json!("x".repeat(METADATA)));
        assert!(check_request(&large).is_err());
    }

    #[test]
    fn snapshot_while_programs_run_is_rejected_and_the_error_names_them() {
        free(&[]).unwrap();
        let error = free(&["exec-3 (sleep)".to_owned()]).unwrap_err();
        assert_eq!(error.code, ErrorCode::SandboxInUse);
        assert!(error.message.contains("exec-3 (sleep)"));
    }
}
