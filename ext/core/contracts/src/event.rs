//! Lifecycle events, with the same names in the journal, the frame stream and the bundle.

use crate::{ExecutionId, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

string_enum! {
    /// Type of a lifecycle event.
    pub enum EventType {
        /// The run requested a guest. No program can run in it yet.
        Created = "runtime.created",
        /// A mount became visible in the guest.
        Mounted = "runtime.mounted",
        /// An execution started.
        CommandStarted = "runtime.command.started",
        /// An execution printed output.
        CommandOutput = "runtime.command.output",
        /// An execution ended.
        CommandFinished = "runtime.command.finished",
        /// A part of the guest's state was observed and recorded.
        Observed = "runtime.observed",
        /// A snapshot was created.
        SnapshotCreated = "runtime.snapshot.created",
        /// A guest with the state of a snapshot replaced the previous guest.
        SnapshotRestored = "runtime.snapshot.restored",
        /// A checkpoint was created.
        CheckpointCreated = "runtime.checkpoint.created",
        /// A guest with the state of a checkpoint replaced the previous guest.
        CheckpointRestored = "runtime.checkpoint.restored",
        /// Files were copied into the guest or read from it.
        FilesSynced = "runtime.files.synced",
        /// A browser command made progress.
        BrowserProgress = "runtime.browser-command-progress",
        /// The sandbox entered another lifecycle state, or its expiry time changed.
        StateChanged = "runtime.state.changed",
        /// The bundle was written.
        ArtifactsCollected = "runtime.artifacts.collected",
        /// All guests of the run have ended.
        Destroyed = "runtime.destroyed",
    }
}

/// Output stream of an output event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One event. The main members of `data` depend on the type: `command.started` {command, args,
/// phase}; `command.output` {stream, text | base64, truncated?, shown?: text to display instead};
/// `command.finished` {command, end, exitCode?, durationMs}; `mounted` {index, target, mode, view};
/// `observed` {id, type, level?, network?}; `artifacts.collected` {id}; `destroyed` {reason};
/// `snapshot.*` and `checkpoint.*` {id, name, actor}; `files.synced`, one per file, {direction:
/// in | out, path, sha256? (absent: deleted), actor}; `state.changed` {from, to, actor,
/// reason?, expiresAt?}.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LifecycleEvent {
    /// Event id `evt-<seq>`, unique within a journal.
    pub id: String,
    /// Sequence number in the journal, from 1.
    pub seq: u64,
    /// Type of the event.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// RFC 3339 timestamp, UTC, with milliseconds.
    pub timestamp: String,
    /// Execution that the event belongs to.
    #[serde(
        rename = "executionId",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub execution_id: Option<ExecutionId>,
    /// Detail; its members depend on the type of the event.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
}
