//! Views of runs for processes that did not start them or no longer wait for them.
//!
//! The command line, the extension and the abilities return these shapes. They contain host
//! paths (in `result`) and never enter a bundle.

use crate::{ErrorBody, LifecycleEvent, Outcome, RunFacts, RunId, RunMode, RunSummary};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whether a run is still in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// The run's supervisor process is alive.
    Running,
    /// The run has ended, with any outcome.
    Ended,
}

/// Handle of a run in progress: it refers to a process, not to a queued job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHandle {
    /// Schema id, `wp-codebox/run-handle/v1`.
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// Always `running` when the handle is created.
    pub status: RunStatus,
    /// RFC 3339 timestamp of the run's start.
    pub created_at: String,
    /// Sequence number of the last event that the caller has received, 0 if none. As input `after`
    /// of list-run-events it selects the events that the caller has not received.
    pub cursor: u64,
}

/// Stored state of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// Schema id, `wp-codebox/run/v1`.
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// Whether the run is in progress.
    pub status: RunStatus,
    /// Mode at the start, or `detached` after the caller detached.
    pub mode: RunMode,
    /// RFC 3339 timestamp of the run's start.
    pub created_at: String,
    /// RFC 3339 timestamp of the last change of the run's stored state.
    pub updated_at: String,
    /// What the request says about the run, redacted.
    #[serde(flatten)]
    pub facts: RunFacts,
    /// Outcome, if the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The outcome in one sentence, if the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// `summary` as code and arguments, for user interfaces in other languages. Absent when
    /// `summary` is an error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_detail: Option<RunSummary>,
    /// Error of a run that did not succeed, e.g. because its supervisor died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Bundle id, if the run has a bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<String>,
    /// Whether the bundle is a recovery bundle of a run whose supervisor died. It has no check
    /// results and cannot be approved.
    #[serde(default)]
    pub salvaged: bool,
    /// Sequence number of the last event.
    pub last_event: u64,
    /// `wp-codebox/run-result/v1`, if the run has a result. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// Runs of a site, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunList {
    /// Schema id, `wp-codebox/run-list/v1`.
    pub schema: String,
    /// Number of matching runs on all pages.
    pub total: u64,
    /// Runs on this page.
    pub runs: Vec<RunView>,
    /// One error for each run that cannot be read, with its id in `data.run_id`. Such a run is in no
    /// page; it stays as it is until it can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<ErrorBody>,
}

/// One page of a run's event journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvents {
    /// Schema id, `wp-codebox/run-events/v1`.
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// All events after the given cursor that fit on the page, in order.
    pub events: Vec<LifecycleEvent>,
    /// Cursor of the next page: `seq` of the last event on this page, or the given cursor if the
    /// page is empty.
    pub cursor: u64,
    /// Whether the journal already has events after this page.
    pub more: bool,
    /// Whether the run is in progress. If this is `ended` and `more` is false, no further events
    /// follow.
    pub status: RunStatus,
}

/// Actor and reason of a cancellation: the members that a cancel frame may have beside `type`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelDetails {
    /// Name of the actor, e.g. `cli`; recorded, never used for authorisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Reason for the cancellation, one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a cancellation caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelEffect {
    /// The supervisor received the cancellation; the run writes a recovery bundle and ends.
    Requested,
    /// The run had already ended.
    AlreadyEnded,
}

/// Reply to a cancellation. A repeated cancellation gets `requested` again, or `already_ended` if
/// the run has ended since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCancellation {
    /// Schema id, `wp-codebox/run-cancellation/v1`.
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// What the cancellation caused.
    pub answer: CancelEffect,
    /// Whether the run is in progress, as last observed.
    pub status: RunStatus,
}
