//! The trace of an episode and its compact form, one record per line.

use super::{EpisodeAction, EpisodeObservation, EpisodeSnapshot, SnapshotSemantics, TraceRef};
use crate::{FileDigest, RuntimeInfo};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `version` of a trace.
pub const TRACE_VERSION: u32 = 1;

/// What came of an action. Its digest covers all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeExecution {
    /// Execution id, as in the journal.
    pub id: String,
    /// Registry command id.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Exit code; null when it came to none.
    pub exit_code: Option<i32>,
    /// Standard output, redacted.
    pub stdout: String,
    /// Standard error, redacted.
    pub stderr: String,
    /// `wp-codebox/runtime-command-result/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// What the backend has to say of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Value>,
    /// Files it left for the bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifact_refs: Vec<TraceRef>,
    /// RFC 3339.
    pub started_at: String,
    /// RFC 3339.
    pub finished_at: String,
}

/// How an episode began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeReset {
    /// `<runtimeId>:reset:<count>`, counted from 0.
    pub id: String,
    /// The fresh runtime.
    pub runtime: RuntimeInfo,
    /// What was seen of it before the first step.
    pub observations: Vec<EpisodeObservation>,
    /// One for each of them, in their order.
    pub observation_refs: Vec<TraceRef>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeStep {
    /// `<executionId>:step:<index>`.
    pub id: String,
    /// Position among the steps, from 0.
    pub index: usize,
    /// What was asked for.
    pub action: EpisodeAction,
    /// It.
    pub action_ref: TraceRef,
    /// What came of it.
    pub execution: EpisodeExecution,
    /// It.
    pub execution_ref: TraceRef,
    /// What was seen afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<EpisodeObservation>,
    /// It.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation_ref: Option<TraceRef>,
}

/// `wp-codebox/runtime-episode-trace/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpisodeTrace {
    /// The schema id.
    pub schema: String,
    /// [`TRACE_VERSION`].
    pub version: u32,
    /// `trace-<runtimeId>`.
    pub id: String,
    /// RFC 3339.
    pub created_at: String,
    /// The runtime as it was last known.
    pub runtime: RuntimeInfo,
    /// How it began.
    pub reset: EpisodeReset,
    /// Steps in order.
    pub steps: Vec<EpisodeStep>,
    /// Snapshots in order.
    pub snapshots: Vec<EpisodeSnapshot>,
    /// What is said of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Value>,
    /// The bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_ref: Option<TraceRef>,
}

/// One line of `files/runtime-episode.jsonl`: ids and digests, no contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[allow(clippy::large_enum_variant)] // Written one by one, never kept in numbers.
pub enum EpisodeRecord {
    /// The runtime was made, or made anew.
    #[serde(rename = "episode.reset")]
    Reset {
        /// Of the reset.
        id: String,
        /// The fresh runtime.
        runtime: RuntimeInfo,
        /// What was seen of it.
        observations: Vec<TraceRef>,
    },
    /// A step was taken.
    #[serde(rename = "episode.step", rename_all = "camelCase")]
    Step {
        /// Of the step.
        id: String,
        /// Its position.
        index: usize,
        /// What was asked for.
        action_ref: TraceRef,
        /// What came of it.
        execution_ref: TraceRef,
        /// What was seen afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        observation_ref: Option<TraceRef>,
    },
    /// A snapshot was made.
    #[serde(rename = "episode.snapshot", rename_all = "camelCase")]
    Snapshot {
        /// Of the snapshot.
        id: String,
        /// RFC 3339.
        created_at: String,
        /// What it can be used for.
        semantics: SnapshotSemantics,
        /// Files that hold it.
        artifact_refs: Vec<TraceRef>,
        /// As in the trace.
        digest: FileDigest,
    },
    /// A bundle was written.
    #[serde(rename = "episode.artifacts", rename_all = "camelCase")]
    Artifacts {
        /// Of the bundle.
        id: String,
        /// The bundle.
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
    fn records_are_told_apart_by_their_type() {
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
