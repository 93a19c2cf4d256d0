//! Lifecycle events: one vocabulary for the journal, the stream and the bundle.

use crate::ExecutionId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Type of a lifecycle event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventType {
    /// The runtime exists.
    #[serde(rename = "runtime.created")]
    Created,
    /// A mount became visible in the guest.
    #[serde(rename = "runtime.mounted")]
    Mounted,
    /// An execution started.
    #[serde(rename = "runtime.command.started")]
    CommandStarted,
    /// An execution printed something.
    #[serde(rename = "runtime.command.output")]
    CommandOutput,
    /// An execution ended.
    #[serde(rename = "runtime.command.finished")]
    CommandFinished,
    /// Something was observed.
    #[serde(rename = "runtime.observed")]
    Observed,
    /// A snapshot was made.
    #[serde(rename = "runtime.snapshot.created")]
    SnapshotCreated,
    /// The guest was replaced by one with the state of a snapshot.
    #[serde(rename = "runtime.snapshot.restored")]
    SnapshotRestored,
    /// A checkpoint was made.
    #[serde(rename = "runtime.checkpoint.created")]
    CheckpointCreated,
    /// The guest was replaced by one with the state of a checkpoint.
    #[serde(rename = "runtime.checkpoint.restored")]
    CheckpointRestored,
    /// Files went into the guest or were read from it.
    #[serde(rename = "runtime.files.synced")]
    FilesSynced,
    /// A browser command came a step further.
    #[serde(rename = "runtime.browser-command-progress")]
    BrowserProgress,
    /// The sandbox entered another state of its lifecycle, or its times changed.
    #[serde(rename = "runtime.state.changed")]
    StateChanged,
    /// The bundle was written.
    #[serde(rename = "runtime.artifacts.collected")]
    ArtifactsCollected,
    /// The runtime is gone.
    #[serde(rename = "runtime.destroyed")]
    Destroyed,
}

impl EventType {
    /// Every type.
    pub const ALL: &'static [EventType] = &[
        EventType::Created,
        EventType::Mounted,
        EventType::CommandStarted,
        EventType::CommandOutput,
        EventType::CommandFinished,
        EventType::Observed,
        EventType::SnapshotCreated,
        EventType::SnapshotRestored,
        EventType::CheckpointCreated,
        EventType::CheckpointRestored,
        EventType::FilesSynced,
        EventType::BrowserProgress,
        EventType::StateChanged,
        EventType::ArtifactsCollected,
        EventType::Destroyed,
    ];

    /// The stable text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EventType::Created => "runtime.created",
            EventType::Mounted => "runtime.mounted",
            EventType::CommandStarted => "runtime.command.started",
            EventType::CommandOutput => "runtime.command.output",
            EventType::CommandFinished => "runtime.command.finished",
            EventType::Observed => "runtime.observed",
            EventType::SnapshotCreated => "runtime.snapshot.created",
            EventType::SnapshotRestored => "runtime.snapshot.restored",
            EventType::CheckpointCreated => "runtime.checkpoint.created",
            EventType::CheckpointRestored => "runtime.checkpoint.restored",
            EventType::FilesSynced => "runtime.files.synced",
            EventType::BrowserProgress => "runtime.browser-command-progress",
            EventType::StateChanged => "runtime.state.changed",
            EventType::ArtifactsCollected => "runtime.artifacts.collected",
            EventType::Destroyed => "runtime.destroyed",
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_their_texts() {
        for kind in EventType::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
