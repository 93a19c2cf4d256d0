//! `run-registry-entry/v1`, `run-lifecycle/v1` and `run-cancellation-request/v1`.
//!
//! Every member is read off what is known: an entry holds no host path, and what was not
//! observed is absent rather than made up.

use super::{RunPhase, RunProgress, RunState};
use crate::{
    BundleId, CancelAnswer, ErrorBody, FileDigest, Outcome, RunCancellation, RunId, RunStatus,
    RunView, Sha256Hex, TraceRef, TraceRefKind, schema_id,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A cancellation that is known of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancellationNote {
    /// RFC 3339.
    pub requested_at: String,
    /// Why, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who asked, in a few words such as `cli`, redacted: recorded, never an authorisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
}

/// Whether somebody asked for the end of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SeenCancellation {
    /// Nobody that is known of.
    #[default]
    None,
    /// Somebody did.
    Requested(CancellationNote),
}

/// Whether the scratch directory of a run is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenScratch {
    /// It is, and the run is not settled: it may still be removed.
    Unsettled,
    /// It is, and the run is settled: it stays.
    Present,
    /// It is not.
    Gone,
}

/// What whoever looks at a run saw beside its view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSeen {
    /// How far its journal says it came.
    pub progress: RunProgress,
    /// Whether its scratch is there.
    pub scratch: SeenScratch,
    /// Whether somebody asked for its end.
    pub cancellation: SeenCancellation,
    /// RFC 3339: when this was seen. A supervisor that lives holds its locks, so for a
    /// running run this is its heartbeat.
    pub at: String,
}

/// How far the scratch of a run is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleCleanupStatus {
    /// There is nothing to remove yet.
    NotStarted,
    /// It is going on, or the next look at the state directory does it.
    Running,
    /// It is done.
    Succeeded,
    /// Something is left, or was kept because it is all there is of the work.
    Failed,
}

/// Cleanup of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleCleanup {
    /// How far it is.
    pub status: LifecycleCleanupStatus,
    /// How often it was begun, as far as the record tells.
    pub attempts: u32,
}

/// `wp-codebox/run-lifecycle/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunLifecycle {
    /// The schema id.
    pub schema: String,
    /// State.
    pub status: RunState,
    /// What it is a part of.
    pub phase: RunPhase,
    /// Whether nothing follows.
    pub terminal: bool,
    /// Whether a cancellation would do something.
    pub cancellable: bool,
    /// Whether somebody asked for the end, as far as is known.
    pub cancel_requested: bool,
    /// That, when it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<CancellationNote>,
    /// Whether it did what was asked for.
    pub successful: bool,
    /// Whether it failed, or ended without anything to say for itself.
    pub failed: bool,
    /// Whether it was told to stop and did.
    pub cancelled: bool,
    /// What it came to, in the words of the outcome table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Its scratch.
    pub cleanup: LifecycleCleanup,
}

impl RunLifecycle {
    /// What is known of a run, as a lifecycle.
    #[must_use]
    pub fn of(view: &RunView, seen: &RunSeen) -> Self {
        let status = match (view.status, view.outcome) {
            (RunStatus::Running, _) => seen.progress.state(),
            (RunStatus::Ended, Some(outcome)) => RunState::of_outcome(outcome),
            // Nobody could write what it came to: that is no success.
            (RunStatus::Ended, None) => RunState::Failed,
        };
        let cancellation = match &seen.cancellation {
            SeenCancellation::None => None,
            SeenCancellation::Requested(note) => Some(note.clone()),
        };
        Self {
            schema: schema_id::RUN_LIFECYCLE.to_owned(),
            status,
            phase: status.phase(),
            terminal: status.is_terminal(),
            cancellable: !status.is_terminal(),
            cancel_requested: cancellation.is_some() || status == RunState::Cancelled,
            cancellation,
            successful: status == RunState::Succeeded,
            failed: matches!(status, RunState::Failed | RunState::TimedOut),
            cancelled: status == RunState::Cancelled,
            outcome: view.outcome,
            cleanup: cleanup(view, seen),
        }
    }
}

fn cleanup(view: &RunView, seen: &RunSeen) -> LifecycleCleanup {
    use LifecycleCleanupStatus as C;
    let (status, attempts) = match (view.status, view.outcome, seen.scratch) {
        (RunStatus::Running, _, _) => match seen.progress {
            RunProgress::Booting | RunProgress::Running => (C::NotStarted, 0),
            RunProgress::Collecting => (C::Running, 1),
        },
        (RunStatus::Ended, _, SeenScratch::Gone) => (C::Succeeded, 1),
        (RunStatus::Ended, Some(_), SeenScratch::Present) => (C::Failed, 1),
        // The terminal record is written before the scratch is removed.
        (RunStatus::Ended, Some(_), SeenScratch::Unsettled) => (C::Running, 1),
        // Its supervisor died: the process that settles its record removes its scratch.
        (RunStatus::Ended, None, SeenScratch::Present | SeenScratch::Unsettled) => (C::Running, 1),
    };
    LifecycleCleanup { status, attempts }
}

/// `wp-codebox/runtime-run-result/v1`: what a run came to, without host paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuntimeRunResult {
    /// The schema id.
    pub schema: String,
    /// State it ended in.
    pub status: RunState,
    /// What it came to.
    pub outcome: Outcome,
    /// That in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Its bundle.
    pub artifacts: Vec<TraceRef>,
}

/// `wp-codebox/run-registry-entry/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRegistryEntry {
    /// The schema id.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// State, as in the lifecycle.
    pub status: RunState,
    /// All of it.
    pub lifecycle: RunLifecycle,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// RFC 3339: when it was last known to be alive, or to have ended.
    pub heartbeat_at: String,
    /// Who asked and for what, redacted.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RuntimeRunResult>,
    /// Its bundle.
    pub artifact_refs: Vec<TraceRef>,
    /// Why it is not what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

impl RunRegistryEntry {
    /// What is known of a run, as an entry of the registry.
    #[must_use]
    pub fn of(view: &RunView, seen: &RunSeen) -> Self {
        let lifecycle = RunLifecycle::of(view, seen);
        let artifact_refs: Vec<TraceRef> = view.bundle_id.iter().map(|id| bundle_ref(id)).collect();
        let result = match (view.status, view.outcome) {
            (RunStatus::Ended, Some(outcome)) => Some(RuntimeRunResult {
                schema: schema_id::RUNTIME_RUN_RESULT.to_owned(),
                status: lifecycle.status,
                outcome,
                summary: view.summary.clone(),
                artifacts: artifact_refs.clone(),
            }),
            (RunStatus::Ended, None) | (RunStatus::Running, _) => None,
        };
        let mut metadata = Map::new();
        if let Some(goal) = &view.goal {
            metadata.insert("goal".to_owned(), goal.as_str().into());
        }
        if !view.provenance.is_empty() {
            let provenance = Value::Object(view.provenance.clone());
            metadata.insert("provenance".to_owned(), provenance);
        }
        if view.salvaged {
            metadata.insert("salvaged".to_owned(), true.into());
        }
        Self {
            schema: schema_id::RUN_REGISTRY_ENTRY.to_owned(),
            run_id: view.run_id.clone(),
            status: lifecycle.status,
            created_at: view.created_at.clone(),
            updated_at: view.updated_at.clone(),
            heartbeat_at: match view.status {
                RunStatus::Running => seen.at.clone(),
                RunStatus::Ended => view.updated_at.clone(),
            },
            metadata,
            result,
            artifact_refs,
            error: view.error.clone(),
            lifecycle,
        }
    }
}

/// The digest is the id's own; an id of another kind has none.
fn bundle_ref(id: &str) -> TraceRef {
    let digest = BundleId::new(id)
        .ok()
        .and_then(|_| id.rsplit('-').next())
        .and_then(|hex| Sha256Hex::new(hex).ok())
        .map(FileDigest::sha256);
    TraceRef {
        kind: TraceRefKind::ArtifactBundle,
        id: id.to_owned(),
        digest,
        artifact_id: None,
        path: None,
        source_path: None,
        content_type: None,
    }
}

/// `wp-codebox/run-cancellation-request/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCancellationRequest {
    /// The schema id.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// State after the request, as far as can be told now.
    pub status: RunState,
    /// Whether its supervisor was told by this request.
    pub cancellation_requested: bool,
    /// Whether somebody had asked before.
    pub already_requested: bool,
    /// Whether the run was over, so that there was nothing to cancel.
    pub terminal: bool,
    /// The run.
    pub record: RunRegistryEntry,
}

impl RunCancellationRequest {
    /// What a cancellation met. `before` is what was seen before it was sent, `record` the run
    /// after it.
    #[must_use]
    pub fn of(
        answer: &RunCancellation,
        before: &SeenCancellation,
        record: RunRegistryEntry,
    ) -> Self {
        Self {
            schema: schema_id::RUN_CANCELLATION_REQUEST.to_owned(),
            run_id: answer.run_id.clone(),
            status: record.status,
            cancellation_requested: answer.answer == CancelAnswer::Requested,
            already_requested: matches!(before, SeenCancellation::Requested(_)),
            terminal: record.lifecycle.terminal,
            record,
        }
    }
}

#[cfg(test)]
mod tests;
