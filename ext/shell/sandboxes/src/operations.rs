//! Operations on the sandboxes of one site, for `wp-codebox sandbox` and for the service
//! (`wp-codebox serve`) alike. They know nothing of a command line.

use crate::document::{self, POLL_INTERVAL, PROVENANCE};
use crate::shelf;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CancelDetails, CodedError, ErrorBody, ErrorCode, LiveRequest, RunId, RunStatus, SiteId,
    SnapshotRequest, schema_id,
};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runs::{cancel_run, live};
use wp_codebox_runtime::{
    FoundRun, ListFilter, OpenSnapshot, RegistryError, SnapshotScope, SnapshotStore, StateDir,
    StatusFilter, find, list, now_rfc3339, reap_dead, status, view,
};

/// Time limit for a request to a sandbox, enough for a snapshot of several gigabytes.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for a sandbox to write its bundle and end.
const END_TIMEOUT: Duration = Duration::from_secs(120);

/// The sandboxes of one site.
#[derive(Debug, Clone, Copy)]
pub struct Sandboxes<'a> {
    /// State directory that contains the site.
    pub state: &'a StateDir,
    /// The site.
    pub site: &'a SiteId,
}

impl Sandboxes<'_> {
    /// Finds a sandbox by its id or a unique prefix of the id.
    ///
    /// # Errors
    /// `wp_codebox_sandbox_not_found`, also for a run that is not a sandbox.
    pub fn find(self, reference: &str) -> Result<FoundRun, ErrorBody> {
        let sites = std::slice::from_ref(self.site);
        let run = find(self.state, sites, reference).map_err(|error| match error {
            RegistryError::NotFound { .. } => missing(reference),
            other => other.body(),
        })?;
        let view = view(self.state, &run)?;
        if view.facts.provenance.contains_key(PROVENANCE) {
            return Ok(run);
        }
        Err(missing(reference))
    }

    /// Returns the run with exactly this id, whether its directory exists or not.
    pub fn run(self, run_id: RunId) -> FoundRun {
        FoundRun {
            path: self
                .state
                .path()
                .join("sites")
                .join(self.site.as_str())
                .join("runs")
                .join(run_id.as_str()),
            site: self.site.clone(),
            run_id,
        }
    }

    /// Returns `sandbox/v1` of a sandbox in any state.
    pub fn document(self, run: &FoundRun) -> Result<Value, ErrorBody> {
        document::document(self.state, run)
    }

    /// Returns `sandbox-list/v1` of at most `limit` sandboxes, newest first. Runs that cannot be read
    /// are in its member `unreadable`.
    pub fn list(self, limit: usize) -> Result<Value, ErrorBody> {
        let filter = ListFilter {
            status: StatusFilter::Any,
            limit: usize::MAX,
            offset: 0,
        };
        let sites = std::slice::from_ref(self.site);
        let page = list(self.state, sites, filter)?;
        // It is unknown whether an unreadable run is a sandbox.
        let mut unreadable = page.unreadable;
        let all: Vec<FoundRun> = page
            .rows
            .into_iter()
            .filter(|(_, view)| view.facts.provenance.contains_key(PROVENANCE))
            .map(|(run, _)| run)
            .collect();
        let mut rows = Vec::new();
        for run in all.iter().take(limit) {
            match self.document(run) {
                Ok(document) => rows.push(document),
                // Another process removed the run after it was listed.
                Err(error) if error.code == ErrorCode::RunNotFound => {}
                Err(error) => unreadable.push(error),
            }
        }
        let mut document = json!({
            "schema": schema_id::SANDBOX_LIST, "success": true, "total": all.len(), "sandboxes": rows,
        });
        if !unreadable.is_empty() {
            document["unreadable"] = json!(unreadable);
        }
        Ok(document)
    }

    /// Sends a request to a sandbox; for an ended one, returns an error with the reason of its end.
    pub fn ask(
        self,
        run: &FoundRun,
        actor: &str,
        request: LiveRequest,
    ) -> Result<Value, ErrorBody> {
        self.check_running(run)?;
        live::ask(run, actor, request, ReplyTimeout::AtMost(REQUEST_TIMEOUT))
    }

    /// Returns an error with the reason of the end if a sandbox has ended.
    ///
    /// # Errors
    /// `wp_codebox_sandbox_not_held`.
    pub fn check_running(self, run: &FoundRun) -> Result<(), ErrorBody> {
        if status(self.state, run)? != RunStatus::Ended {
            return Ok(());
        }
        let document = self.document(run)?;
        let reason = document["tombstone"]["reason"].as_str().unwrap_or_default();
        let message = format!("sandbox {} has ended: {reason}", run.run_id);
        Err(ErrorBody::new(ErrorCode::SandboxNotHeld, message)
            .with("tombstone", document["tombstone"].clone()))
    }

    /// Sets the remaining lifetime of a sandbox, counted from now, and returns its document.
    pub fn extend_ttl(self, run: &FoundRun, actor: &str, ttl_ms: u64) -> Result<Value, ErrorBody> {
        self.ask(run, actor, LiveRequest::ExtendTtl { ttl_ms })?;
        self.document(run)
    }

    /// Stores the state of a sandbox. Without a name, the snapshot is named after the time.
    pub fn snapshot(
        self,
        run: &FoundRun,
        actor: &str,
        name: Option<&str>,
    ) -> Result<Value, ErrorBody> {
        let request = LiveRequest::Snapshot(SnapshotRequest {
            name: name.map_or_else(now_rfc3339, str::to_owned),
            metadata: Map::new(),
        });
        self.ask(run, actor, request)
    }

    /// Replaces the state of a sandbox by that of a snapshot.
    pub fn restore(self, run: &FoundRun, actor: &str, snapshot: &str) -> Result<Value, ErrorBody> {
        let id = snapshot.to_owned();
        self.ask(run, actor, LiveRequest::Restore { id })
    }

    /// Returns `sandbox-snapshot-list/v1`: all snapshots of the site, or those of one sandbox.
    pub fn snapshots(self, of: Option<&FoundRun>) -> Result<Value, ErrorBody> {
        shelf::snapshots(self.state, self.site, of)
    }

    /// Removes a snapshot and returns `sandbox-snapshot-removal/v1`. With a sandbox, the reference
    /// may also be the name of one of its snapshots.
    pub fn remove_snapshot(
        self,
        reference: &str,
        of: Option<&FoundRun>,
        actor: &str,
    ) -> Result<Value, ErrorBody> {
        shelf::remove((self.state, self.site), reference, of, actor)
    }

    /// Opens and verifies the snapshot that a sandbox starts from. The value locks the snapshot.
    pub fn starting_snapshot(self, reference: &str) -> Result<OpenSnapshot, ErrorBody> {
        let shelf = SnapshotStore::of_site(self.state, self.site)?;
        let id = shelf.by_id(reference)?;
        shelf.open(&id, SnapshotScope::Any).map_err(ErrorBody::from)
    }

    /// Ends a sandbox in any state and waits for its end. Has no effect on an ended sandbox.
    pub fn end(self, run: &FoundRun, actor: &str, reason: &str) -> Result<(), ErrorBody> {
        let ended = || {
            status(self.state, run)
                .map(|s| s == RunStatus::Ended)
                .map_err(ErrorBody::from)
        };
        if !ended()? {
            let close = LiveRequest::Close {
                reason: reason.to_owned(),
            };
            // Ask the sandbox to close, unless it is not ready yet. If it was not asked or did not
            // answer, cancel its run; a cancelled run also saves its changes.
            let heard = document::is_held(run)
                && !document::is_being_made(run)
                && live::ask(run, actor, close, ReplyTimeout::AtMost(END_TIMEOUT)).is_ok();
            if !heard && !ended()? {
                let wish = CancelDetails {
                    actor: Some(actor.to_owned()),
                    reason: Some(reason.to_owned()),
                };
                cancel_run(self.state, run, &wish)?;
            }
        }
        let until = Instant::now() + END_TIMEOUT;
        // The supervisor removes the control socket after it has written the final record, also when
        // the sandbox ended by itself. If it died in between, `reap_dead` removes the socket.
        loop {
            let is_ended = ended()?;
            if is_ended && !document::is_held(run) {
                return Ok(());
            }
            if is_ended {
                reap_dead(self.state, self.site)?;
            }
            if Instant::now() > until {
                let message = format!("sandbox {} has not ended within the time limit", run.run_id);
                return Err(ErrorBody::new(ErrorCode::RunnerUnavailable, message)
                    .hint("run the command again: it waits for the end and changes nothing else"));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn missing(reference: &str) -> ErrorBody {
    let message =
        format!("there is no sandbox {reference:?}; `wp-codebox sandbox list` shows all of them");
    ErrorBody::new(ErrorCode::SandboxNotFound, message)
}
