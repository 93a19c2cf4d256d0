//! What can be known of runs by whoever did not start them, or no longer waits.
//!
//! The same shapes answer the command line, the extension and the abilities. They hold
//! host paths (in `result`) and never enter a bundle.

use crate::{ErrorBody, LifecycleEvent, Outcome, RunId, RunMode, RunSummary};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Its supervisor is alive.
    Running,
    /// It came to an end, whatever that was.
    Ended,
}

/// A run that goes on: a process handle, not a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHandle {
    /// `wp-codebox/run-handle/v1`.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// Always `running` when the handle is made.
    pub status: RunStatus,
    /// RFC 3339.
    pub created_at: String,
    /// Where its events go on for this caller: pass it to list-run-events.
    pub cursor: u64,
}

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// `wp-codebox/run/v1`.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// Whether it goes on.
    pub status: RunStatus,
    /// As it was started, or `detached` since its caller left it.
    pub mode: RunMode,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339: when the record was last written.
    pub updated_at: String,
    /// Goal of the task, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What it came to, when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The outcome in one sentence, when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The sentence as data, for screens in other languages. Absent when the sentence is the
    /// message of an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_detail: Option<RunSummary>,
    /// Why it came to no outcome of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Bundle id, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<String>,
    /// Whether the bundle was saved from a run whose supervisor died: its change is whole, its
    /// checks did not run, and it cannot be approved.
    #[serde(default)]
    pub salvaged: bool,
    /// Sequence number of the last event.
    pub last_event: u64,
    /// `provenance` of the request: who asked.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provenance: Map<String, Value>,
    /// `wp-codebox/run-result/v1`, when the run came to one. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// Runs of a site, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunList {
    /// `wp-codebox/run-list/v1`.
    pub schema: String,
    /// How many match, whatever the page.
    pub total: u64,
    /// One page.
    pub runs: Vec<RunView>,
}

/// A page of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvents {
    /// `wp-codebox/run-events/v1`.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// Events after the cursor that was given, in order, whole.
    pub events: Vec<LifecycleEvent>,
    /// Cursor of the next page: `seq` of the last event here, or the one that was given.
    pub cursor: u64,
    /// Whether there are further events already.
    pub more: bool,
    /// Whether the run goes on; after `ended` and no `more` nothing follows.
    pub status: RunStatus,
}

/// Who wants the end of a run and why: beside the type of a cancel frame, each may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelWish {
    /// In a few words such as `cli`: recorded, never an authorisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// One sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a cancellation met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelAnswer {
    /// The supervisor was told; the run salvages and ends.
    Requested,
    /// It had ended already.
    AlreadyEnded,
}

/// Answer to a cancellation; cancelling again answers the same or `already_ended`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCancellation {
    /// `wp-codebox/run-cancellation/v1`.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// What the cancellation met.
    pub answer: CancelAnswer,
    /// Whether the run goes on, as far as can be told now.
    pub status: RunStatus,
}
