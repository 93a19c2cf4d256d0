//! The state of the working guest: kept, brought back, thrown away.
//!
//! State is what the captured mounts and `wp-content` (with the database) hold; `/tmp` and the
//! home directory are no part of it. A guest with a state begins on kept layers that lie directly
//! on its mounts' sources, so what a run changed is still told against those.
//!
//! Order matters: a state is verified before the guest that is there is given up, and the guest
//! that takes its place is alive before that one ends. Whatever fails, one of them goes on.

mod base;
mod checkpoints;
mod continued;
mod facts;
mod quiet;

pub(super) use base::Base;
pub(super) use continued::continued;

use super::context::RunContext;
use super::recorder::Recorder;
use super::session::Session;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use wp_codebox_artifacts::Durability;
use wp_codebox_backend_native::WP_CONTENT_LAYER;
use wp_codebox_contracts::{
    CommandStatus, ErrorBody, ErrorCode, EventType, IsolationLevel, LiveRequest, SandboxSnapshot,
    SnapshotRequest, schema_id,
};
use wp_codebox_runtime::{LayerSource, Left, Runtime, Shelf, SnapshotOf, Stop};

/// Snapshots one sandbox may make.
const MOST: usize = 64;
/// Longest name, bytes.
const NAME: usize = 128;
/// Largest free data, bytes of JSON.
const METADATA: usize = 64 * 1024;

/// The stored state that the request wants to begin on.
pub(super) fn asked(context: &RunContext<'_>) -> Result<Option<Arc<Base>>, ErrorBody> {
    let prepared = context.prepared;
    let hold = prepared.request.hold.as_ref();
    let Some(reference) = hold.and_then(|hold| hold.snapshot.as_deref()) else {
        return Ok(None);
    };
    keepable(context)?;
    let shelf = Shelf::of_site(&prepared.state, &prepared.request.site).map_err(|e| e.body())?;
    let id = shelf.by_id(reference).map_err(|e| e.body())?;
    Base::open(context, &shelf, &id).map(|base| Some(Arc::new(base)))
}

/// Says that a session began on a stored state.
pub(super) fn began(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    snapshot: &SandboxSnapshot,
) -> Result<(), ErrorBody> {
    let hold = context.prepared.request.hold.as_ref();
    let identity = hold.and_then(|hold| hold.identity.as_ref());
    let actor = identity.map_or("run", |identity| identity.actor.as_str());
    let data = event(snapshot, actor);
    recorder.event(EventType::SnapshotRestored, None, data)
}

/// Components that could not be loaded make a guest useless.
pub(super) fn ready(stop: Option<Stop>) -> Result<(), ErrorBody> {
    match stop {
        None => Ok(()),
        Some(
            Stop::Failed(error)
            | Stop::Partial(error)
            | Stop::Blocked(error)
            | Stop::Uncaptured(error),
        ) => Err(error),
        Some(Stop::Timeout | Stop::Cancelled) => Err(ErrorBody::new(
            ErrorCode::SandboxStartFailed,
            "the run ended before the new guest was ready",
        )),
    }
}

fn event(snapshot: &SandboxSnapshot, actor: &str) -> Value {
    json!({
        "id": snapshot.id, "name": snapshot.name, "actor": actor,
        "digest": snapshot.digest, "bytes": snapshot.total_bytes,
    })
}

/// The upper directories of a guest, by layer index.
pub(super) type Uppers = BTreeMap<u32, OwnedFd>;

/// The upper directories of a guest that was just started. They stay what they are while it lives.
pub(super) fn uppers(runtime: &dyn Runtime) -> Result<Uppers, ErrorBody> {
    match runtime.look()? {
        Left::Layers(layers) => Ok(layers),
        // Nothing of it can be kept, and `keep` says so.
        Left::Trees(_) => Ok(Uppers::new()),
    }
}

impl Session<'_, '_> {
    /// A request about the state, from whoever may ask. `running` names what runs in the guest.
    pub(super) fn state_request(
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
                "this request is not about the state",
            )),
        }
    }

    /// Keeps the present state in the site's store, for this sandbox and later ones. `running`
    /// names what runs in the guest; the caller pauses what it may pause, such as a preview.
    pub(super) fn snapshot(
        &mut self,
        request: &SnapshotRequest,
        actor: &str,
        running: &[String],
    ) -> Result<SandboxSnapshot, ErrorBody> {
        let shelf = self.shelf()?;
        let made = shelf.list(SnapshotOf::Run(&self.context.prepared.request.run_id));
        check_room(&made, &request.name)?;
        let snapshot = self.keep(&shelf, request, actor, running, Durability::Synced)?;
        self.told(EventType::SnapshotCreated, &snapshot, actor)?;
        Ok(snapshot)
    }

    /// The snapshots of this sandbox, oldest first.
    pub(super) fn snapshots(&self) -> Result<Vec<SandboxSnapshot>, ErrorBody> {
        let run_id = &self.context.prepared.request.run_id;
        Ok(self.shelf()?.list(SnapshotOf::Run(run_id)))
    }

    /// Replaces the guest by one with the state of a snapshot: of this sandbox by its name, of any
    /// of the site by its id.
    pub(super) fn restore(
        &mut self,
        reference: &str,
        actor: &str,
        running: &[String],
    ) -> Result<SandboxSnapshot, ErrorBody> {
        free(running)?;
        keepable(self.context)?;
        let shelf = self.shelf()?;
        let run_id = &self.context.prepared.request.run_id;
        let named = shelf.find(reference, SnapshotOf::Run(run_id));
        let id = named
            .or_else(|_| shelf.by_id(reference))
            .map_err(|e| e.body())?;
        let base = Base::open(self.context, &shelf, &id)?;
        let snapshot = base.snapshot().clone();
        self.replace(Some(Arc::new(base)))?;
        self.told(EventType::SnapshotRestored, &snapshot, actor)?;
        Ok(snapshot)
    }

    /// Replaces the guest by a fresh one, set up as the sandbox's profile says.
    pub(super) fn reset(&mut self, actor: &str, running: &[String]) -> Result<(), ErrorBody> {
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
                    format!("the guest is fresh, but {command} of its setup failed{why}"),
                ));
            }
        }
        Ok(())
    }

    fn shelf(&self) -> Result<Shelf, ErrorBody> {
        let prepared = self.context.prepared;
        Shelf::of_site(&prepared.state, &prepared.request.site).map_err(|e| e.body())
    }

    fn keep(
        &mut self,
        shelf: &Shelf,
        request: &SnapshotRequest,
        actor: &str,
        running: &[String],
        durability: Durability,
    ) -> Result<SandboxSnapshot, ErrorBody> {
        check_request(request)?;
        free(running)?;
        keepable(self.context)?;
        // It comes back when somebody looks at the site again.
        self.stop_site_server();
        let deadline = self.deadline();
        quiet::settle(self.guest.runtime.as_mut(), deadline)?;
        let base = self.guest.base.as_deref();
        let sources: Vec<LayerSource<'_>> = self
            .guest
            .uppers
            .iter()
            .map(|(index, upper)| LayerSource {
                name: layer_name(*index),
                upper: upper.as_fd(),
                below: base.and_then(|base| base.layer(*index)),
            })
            .collect();
        let facts = facts::of(self.context, request, actor)?;
        shelf
            .keep(facts, &sources, durability)
            .map_err(|e| e.body())
    }

    fn told(
        &mut self,
        kind: EventType,
        snapshot: &SandboxSnapshot,
        actor: &str,
    ) -> Result<(), ErrorBody> {
        self.recorder.event(kind, None, event(snapshot, actor))
    }
}

/// Name of a kept layer.
fn layer_name(index: u32) -> String {
    if index == WP_CONTENT_LAYER {
        "content".to_owned()
    } else {
        format!("mount-{index}")
    }
}

fn check_request(request: &SnapshotRequest) -> Result<(), ErrorBody> {
    let refused = |what: &str| Err(ErrorBody::new(ErrorCode::InputInvalid, what));
    let name = request.name.as_str();
    if name.is_empty() || name.len() > NAME || name.chars().any(char::is_control) {
        return refused("the name of a snapshot is 1 to 128 bytes without control characters");
    }
    // A reference that looks like an id means one, also after that snapshot is gone.
    if name.starts_with("snap_") {
        return refused(
            "the name of a snapshot does not begin with snap_, as ids do; give another name",
        );
    }
    let metadata = serde_json::to_string(&request.metadata).unwrap_or_default();
    if metadata.len() > METADATA {
        return refused("the metadata of a snapshot is at most 64 KiB of JSON");
    }
    Ok(())
}

fn check_room(made: &[SandboxSnapshot], name: &str) -> Result<(), ErrorBody> {
    if made.iter().any(|snapshot| snapshot.name == name) {
        let message = format!("this sandbox has a snapshot {name:?} already; give another name");
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    if made.len() >= MOST {
        let message = format!("this sandbox has {MOST} snapshots already, which is the most");
        return Err(ErrorBody::new(ErrorCode::LimitInvalid, message));
    }
    Ok(())
}

/// Refuses when a program runs.
fn free(running: &[String]) -> Result<(), ErrorBody> {
    if running.is_empty() {
        return Ok(());
    }
    let names = running.join(", ");
    let message =
        format!("programs run in the sandbox: {names}; wait until they have ended, or stop them");
    Err(ErrorBody::new(ErrorCode::SandboxInUse, message).with("running", running.to_vec()))
}

/// Refuses where there are no layers to keep.
fn keepable(context: &RunContext<'_>) -> Result<(), ErrorBody> {
    match context.level {
        IsolationLevel::Full => Ok(()),
        IsolationLevel::Reduced | IsolationLevel::None => Err(ErrorBody::new(
            ErrorCode::CommandUnsupported,
            "states are kept at isolation level full only: at reduced a guest works in plain copies",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    #[test]
    fn names_and_data_are_bounded() {
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
    fn a_program_that_runs_is_named() {
        free(&[]).unwrap();
        let error = free(&["exec-3 (sleep)".to_owned()]).unwrap_err();
        assert_eq!(error.code, ErrorCode::SandboxInUse);
        assert!(error.message.contains("exec-3 (sleep)"));
    }
}
