//! Lifecycle events: one vocabulary for the journal, the stream and the bundle.

use crate::{ExecutionId, words};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

words! {
    /// Type of a lifecycle event.
    pub enum EventType {
        /// The runtime exists.
        Created = "runtime.created",
        /// A mount became visible in the guest.
        Mounted = "runtime.mounted",
        /// An execution started.
        CommandStarted = "runtime.command.started",
        /// An execution printed something.
        CommandOutput = "runtime.command.output",
        /// An execution ended.
        CommandFinished = "runtime.command.finished",
        /// Something was observed.
        Observed = "runtime.observed",
        /// A snapshot was made.
        SnapshotCreated = "runtime.snapshot.created",
        /// The guest was replaced by one with the state of a snapshot.
        SnapshotRestored = "runtime.snapshot.restored",
        /// A checkpoint was made.
        CheckpointCreated = "runtime.checkpoint.created",
        /// The guest was replaced by one with the state of a checkpoint.
        CheckpointRestored = "runtime.checkpoint.restored",
        /// Files went into the guest or were read from it.
        FilesSynced = "runtime.files.synced",
        /// A browser command came a step further.
        BrowserProgress = "runtime.browser-command-progress",
        /// The sandbox entered another state of its lifecycle, or its times changed.
        StateChanged = "runtime.state.changed",
        /// The bundle was written.
        ArtifactsCollected = "runtime.artifacts.collected",
        /// The runtime is gone.
        Destroyed = "runtime.destroyed",
    }
}

/// Which stream an output event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One event. `data` depends on the type:
/// `command.started` {command, args}; `command.output` {stream, text | base64, truncated?, shown?: what people read instead};
/// `command.finished` {exitCode, signal?, durationMs}; `mounted` {index, target, mode, view};
/// `observed` {id, type, level?, network?}; `artifacts.collected` {id}; `destroyed` {reason};
/// `snapshot.*` and `checkpoint.*` {id, name, actor}; `files.synced`, one per file,
/// {direction: in | out, path, sha256? (absent: deleted), actor}; `state.changed` {from, to, actor, reason?, expiresAt?}.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LifecycleEvent {
    /// `evt-<seq>`, unique within a journal.
    pub id: String,
    /// Position in the journal, from 1.
    pub seq: u64,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// RFC 3339, UTC, milliseconds.
    pub timestamp: String,
    /// The execution it belongs to.
    #[serde(
        rename = "executionId",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub execution_id: Option<ExecutionId>,
    /// Detail, see above.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
}
