//! The trace of an episode, and its compact form with one JSON record per line.

use super::{EpisodeAction, EpisodeObservation, EpisodeSnapshot, SnapshotSemantics, TraceRef};
use crate::{FileDigest, RuntimeInfo};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the trace format, the member `version` of a trace.
pub const TRACE_VERSION: u32 = 1;

/// Result of an action as the trace records it. Its digest covers all members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeExecution {
    /// Execution id, as in the journal.
    pub id: String,
    /// Id of the registry command.
    pub command: String,
    /// Arguments of the command.
    pub args: Vec<String>,
    /// Exit code; null when the program did not exit.
    pub exit_code: Option<i32>,
    /// Standard output, redacted.
    pub stdout: String,
    /// Standard error, redacted.
    pub stderr: String,
    /// Result document of the command, `wp-codebox/runtime-command-result/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Diagnostic data about the execution from the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Value>,
    /// Bundle files that the execution produced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifact_refs: Vec<TraceRef>,
    /// RFC 3339 timestamp of the start.
    pub started_at: String,
    /// RFC 3339 timestamp of the end.
    pub finished_at: String,
}

/// Start of an episode with a fresh guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeReset {
    /// Id of the reset, `<runtimeId>:reset:<count>`, counted from 0.
    pub id: String,
    /// The fresh guest.
    pub runtime: RuntimeInfo,
    /// Observations before the first step.
    pub observations: Vec<EpisodeObservation>,
    /// References to the entries of `observations`, in the same order.
    pub observation_refs: Vec<TraceRef>,
}

/// One step of an episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeStep {
    /// Id of the step, `<executionId>:step:<index>`.
    pub id: String,
    /// Index of the step, from 0.
    pub index: usize,
    /// Action of the step.
    pub action: EpisodeAction,
    /// Reference to the action.
    pub action_ref: TraceRef,
    /// Result of the action.
    pub execution: EpisodeExecution,
    /// Reference to the execution.
    pub execution_ref: TraceRef,
    /// Observation after the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<EpisodeObservation>,
    /// Reference to the observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation_ref: Option<TraceRef>,
}

/// `wp-codebox/runtime-episode-trace/v1`: everything that one episode recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeTrace {
    /// Schema id of the document.
    pub schema: String,
    /// Version of the trace format, [`TRACE_VERSION`].
    pub version: u32,
    /// Id of the trace, `trace-<runtimeId>`.
    pub id: String,
    /// RFC 3339 timestamp of the trace's creation.
    pub created_at: String,
    /// Last known state of the guest.
    pub runtime: RuntimeInfo,
    /// Start of the episode.
    pub reset: EpisodeReset,
    /// Steps in order.
    pub steps: Vec<EpisodeStep>,
    /// Snapshots in order.
    pub snapshots: Vec<EpisodeSnapshot>,
    /// Description of the bundle that the episode's run wrote, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Value>,
    /// Reference to the bundle that the episode's run wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_ref: Option<TraceRef>,
}

/// One line of `files/runtime-episode.jsonl`: ids and digests, no contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[allow(clippy::large_enum_variant)] // Records are written one at a time, not stored in a list.
pub enum EpisodeRecord {
    /// The episode started with a fresh guest.
    #[serde(rename = "episode.reset")]
    Reset {
        /// Id of the reset.
        id: String,
        /// The fresh guest.
        runtime: RuntimeInfo,
        /// References to the observations after the reset.
        observations: Vec<TraceRef>,
    },
    /// A step was executed.
    #[serde(rename = "episode.step", rename_all = "camelCase")]
    Step {
        /// Id of the step.
        id: String,
        /// Index of the step.
        index: usize,
        /// Reference to the action.
        action_ref: TraceRef,
        /// Reference to the execution.
        execution_ref: TraceRef,
        /// Reference to the observation after the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        observation_ref: Option<TraceRef>,
    },
    /// A snapshot was created.
    #[serde(rename = "episode.snapshot", rename_all = "camelCase")]
    Snapshot {
        /// Id of the snapshot.
        id: String,
        /// RFC 3339 timestamp of the snapshot.
        created_at: String,
        /// What a reader of the trace can do with the snapshot.
        semantics: SnapshotSemantics,
        /// References to the files that hold the snapshot.
        artifact_refs: Vec<TraceRef>,
        /// Digest of the snapshot, as in the trace.
        digest: FileDigest,
    },
    /// A bundle was written.
    #[serde(rename = "episode.artifacts", rename_all = "camelCase")]
    Artifacts {
        /// Id of the bundle.
        id: String,
        /// Reference to the bundle.
        artifact_ref: TraceRef,
    },
}

impl From<&EpisodeReset> for EpisodeRecord {
    fn from(reset: &EpisodeReset) -> Self {
        Self::Reset {
            id: reset.id.clone(),
            runtime: reset.runtime.clone(),
            observations: reset.observation_refs.clone(),
        }
    }
}

impl From<&EpisodeStep> for EpisodeRecord {
    fn from(step: &EpisodeStep) -> Self {
        Self::Step {
            id: step.id.clone(),
            index: step.index,
            action_ref: step.action_ref.clone(),
            execution_ref: step.execution_ref.clone(),
            observation_ref: step.observation_ref.clone(),
        }
    }
}

impl From<&EpisodeSnapshot> for EpisodeRecord {
    fn from(snapshot: &EpisodeSnapshot) -> Self {
        Self::Snapshot {
            id: snapshot.id.clone(),
            created_at: snapshot.created_at.clone(),
            semantics: snapshot.semantics,
            artifact_refs: snapshot.artifact_refs.clone(),
            digest: snapshot.digest.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn episode_records_round_trip_by_type_and_unknown_type_is_refused() {
        let digest = json!({"algorithm": "sha256", "value": "a".repeat(64)});
        let reference = json!({"kind": "action", "id": "a", "digest": digest});
        let runtime = json!({"id": "r", "backend": "native", "environment": {"kind": "wordpress"},
            "createdAt": "t", "status": "created"});
        for line in [
            json!({"type": "episode.reset", "id": "r:reset:0", "runtime": runtime, "observations": [reference]}),
            json!({"type": "episode.step", "id": "e:step:0", "index": 0, "actionRef": reference, "executionRef": reference}),
            json!({"type": "episode.snapshot", "id": "s", "createdAt": "t", "semantics": "metadata-only",
                "artifactRefs": [], "digest": digest}),
            json!({"type": "episode.artifacts", "id": "b", "artifactRef": reference}),
        ] {
            let read: EpisodeRecord = serde_json::from_value(line.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), line);
        }
        assert!(serde_json::from_value::<EpisodeRecord>(json!({"type": "episode.score"})).is_err());
    }
}
