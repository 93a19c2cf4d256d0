//! `run-registry-entry/v1`, `run-lifecycle/v1` and `run-cancellation-request/v1`.
//!
//! Entries are computed from a run's stored state. They contain no host path, and members
//! without a known value are absent.

use super::{RunPhase, RunProgress, RunState};
use crate::{
    BundleId, CancelEffect, ErrorBody, FileDigest, Outcome, RunCancellation, RunId, RunStatus,
    RunView, Sha256Hex, TraceRef, TraceRefKind, schema_id,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Time, reason and actor of a recorded cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancellationNote {
    /// RFC 3339 timestamp of the cancellation.
    pub requested_at: String,
    /// Reason, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of the actor, e.g. `cli`, redacted; recorded, never used for authorisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
}

/// Whether a cancellation of the run is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RecordedCancellation {
    /// No cancellation is recorded.
    #[default]
    None,
    /// A cancellation is recorded.
    Requested(CancellationNote),
}

/// State of a run's scratch directory, which holds the run's temporary files and, until the bundle
/// is written, its captured changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScratchState {
    /// The directory exists, but the supervisor or a later scan of the state directory may still
    /// remove it.
    Unsettled,
    /// The directory exists, and no process will remove it.
    Present,
    /// The directory does not exist.
    Gone,
}

/// What was observed about a run in addition to its stored state ([`RunView`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunObservations {
    /// Progress of the run according to its journal.
    pub progress: RunProgress,
    /// State of the run's scratch directory.
    pub scratch: ScratchState,
    /// Whether a cancellation is recorded.
    pub cancellation: RecordedCancellation,
    /// RFC 3339 timestamp of the observation. A run counts as running only while its supervisor
    /// holds the run's lock, so a running run was alive at this time.
    pub at: String,
}

/// Progress of the removal of a run's scratch directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleCleanupStatus {
    /// The run needs no cleanup yet.
    NotStarted,
    /// Cleanup is in progress, or the next scan of the state directory will do it.
    Running,
    /// Cleanup is complete.
    Succeeded,
    /// Files remain, or were preserved because they are the only copy of the changes.
    Failed,
}

/// Removal of a run's scratch directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleCleanup {
    /// Progress of the removal.
    pub status: LifecycleCleanupStatus,
    /// 1 if the removal was attempted or is in progress, otherwise 0. Retries are not counted.
    pub attempts: u32,
}

/// `wp-codebox/run-lifecycle/v1`: state of a run, its cancellation and its cleanup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunLifecycle {
    /// Schema id of the document.
    pub schema: String,
    /// State of the run.
    pub status: RunState,
    /// Phase of the run's lifecycle to which `status` belongs.
    pub phase: RunPhase,
    /// Whether the state is final.
    pub terminal: bool,
    /// Whether a cancellation would have an effect.
    pub cancellable: bool,
    /// Whether a cancellation is recorded or the run ended as cancelled.
    pub cancel_requested: bool,
    /// Time, reason and actor of the recorded cancellation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<CancellationNote>,
    /// Whether the run succeeded.
    pub successful: bool,
    /// Whether the run failed, reached its deadline or ended without an outcome.
    pub failed: bool,
    /// Whether the run ended because of a cancellation.
    pub cancelled: bool,
    /// Outcome of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Removal of the scratch directory.
    pub cleanup: LifecycleCleanup,
}

impl RunLifecycle {
    /// Computes the lifecycle of a run from its stored state `view` and the observations `seen`.
    #[must_use]
    pub fn of(view: &RunView, seen: &RunObservations) -> Self {
        let status = match (view.status, view.outcome) {
            (RunStatus::Running, _) => seen.progress.state(),
            (RunStatus::Ended, Some(outcome)) => RunState::of_outcome(outcome),
            // The supervisor died before it could write an outcome, so the run did not succeed.
            (RunStatus::Ended, None) => RunState::Failed,
        };
        let cancellation = match &seen.cancellation {
            RecordedCancellation::None => None,
            RecordedCancellation::Requested(note) => Some(note.clone()),
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

fn cleanup(view: &RunView, seen: &RunObservations) -> LifecycleCleanup {
    use LifecycleCleanupStatus as C;
    let (status, attempts) = match (view.status, view.outcome, seen.scratch) {
        (RunStatus::Running, _, _) => match seen.progress {
            RunProgress::Queued | RunProgress::Booting | RunProgress::Running => (C::NotStarted, 0),
            RunProgress::Collecting => (C::Running, 1),
        },
        (RunStatus::Ended, _, ScratchState::Gone) => (C::Succeeded, 1),
        (RunStatus::Ended, Some(_), ScratchState::Present) => (C::Failed, 1),
        // The supervisor stores the final state of the run before it removes the scratch directory.
        (RunStatus::Ended, Some(_), ScratchState::Unsettled) => (C::Running, 1),
        // The supervisor died: the process that then completes the run's stored state also removes
        // its scratch directory.
        (RunStatus::Ended, None, ScratchState::Present | ScratchState::Unsettled) => {
            (C::Running, 1)
        }
    };
    LifecycleCleanup { status, attempts }
}

/// `wp-codebox/runtime-run-result/v1`: result of a run, without host paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuntimeRunResult {
    /// Schema id of the document.
    pub schema: String,
    /// Final state of the run.
    pub status: RunState,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// The outcome in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// References to the run's bundle; empty without one.
    pub artifacts: Vec<TraceRef>,
}

/// `wp-codebox/run-registry-entry/v1`: one run in the format of the run registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRegistryEntry {
    /// Schema id of the document.
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// State of the run, as in the lifecycle.
    pub status: RunState,
    /// Lifecycle of the run.
    pub lifecycle: RunLifecycle,
    /// RFC 3339 timestamp of the run's start.
    pub created_at: String,
    /// RFC 3339 timestamp of the last change of the run's stored state.
    pub updated_at: String,
    /// RFC 3339 timestamp at which a running run was last seen alive, or at which the stored state
    /// of an ended run last changed.
    pub heartbeat_at: String,
    /// The requesting user or program and the goal, redacted, and whether the bundle is a recovery
    /// bundle (`salvaged`).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Result of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RuntimeRunResult>,
    /// References to the run's bundle; empty without one.
    pub artifact_refs: Vec<TraceRef>,
    /// Error of a run that did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

impl RunRegistryEntry {
    /// Computes the registry entry of a run from its stored state `view` and the observations
    /// `seen`.
    #[must_use]
    pub fn of(view: &RunView, seen: &RunObservations) -> Self {
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
        let mut metadata = crate::task::members(Some(&view.facts));
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

/// Creates a reference to a bundle, with the digest that the bundle id contains. The reference to
/// a malformed id has no digest.
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

/// `wp-codebox/run-cancellation-request/v1`: what a cancellation caused, and the run after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCancellationRequest {
    /// Schema id of the document.
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// State of the run after the cancellation, as last observed.
    pub status: RunState,
    /// Whether this request reached the supervisor.
    pub cancellation_requested: bool,
    /// Whether a cancellation was recorded before this request.
    pub already_requested: bool,
    /// Whether the run has ended, as last observed.
    pub terminal: bool,
    /// Registry entry of the run.
    pub record: RunRegistryEntry,
}

impl RunCancellationRequest {
    /// Creates the reply to a cancellation. `before` was observed before the cancellation was
    /// sent, `record` describes the run after it.
    #[must_use]
    pub fn of(
        answer: &RunCancellation,
        before: &RecordedCancellation,
        record: RunRegistryEntry,
    ) -> Self {
        Self {
            schema: schema_id::RUN_CANCELLATION_REQUEST.to_owned(),
            run_id: answer.run_id.clone(),
            status: record.status,
            cancellation_requested: answer.answer == CancelEffect::Requested,
            already_requested: matches!(before, RecordedCancellation::Requested(_)),
            terminal: record.lifecycle.terminal,
            record,
        }
    }
}

#[cfg(test)]
mod tests;
