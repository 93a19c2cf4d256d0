//! What a builder is told: parts of an episode as they came, before anything is redacted.

use crate::bundle::ExecutionRecord;
use serde_json::{Map, Value};
use wp_codebox_contracts::{
    ActionRequest, BundleId, EpisodeExecution, ObservationType, RuntimeInfo, Sha256Hex,
    SnapshotSemantics, TraceRef,
};

/// A fresh runtime.
#[derive(Debug, Clone)]
pub struct EpisodeStart {
    /// It.
    pub runtime: RuntimeInfo,
    /// RFC 3339: when the episode began.
    pub created_at: String,
    /// What was seen of it.
    pub observations: Vec<ObservationInput>,
}

/// What was observed.
#[derive(Debug, Clone)]
pub struct ObservationInput {
    /// What was observed.
    pub kind: ObservationType,
    /// What was seen.
    pub data: Value,
    /// RFC 3339.
    pub observed_at: String,
    /// Files that hold the rest, each with its digest.
    pub artifact_refs: Vec<TraceRef>,
}

/// Whether something was observed after a step.
#[derive(Debug, Clone)]
pub enum StepObservation {
    /// Nothing.
    None,
    /// This.
    Seen(ObservationInput),
}

/// A step that was taken. An action whose command could not be executed is no step.
#[derive(Debug, Clone)]
pub struct StepInput {
    /// What was asked for.
    pub action: ActionRequest,
    /// What came of it.
    pub execution: EpisodeExecution,
    /// What was seen afterwards.
    pub observation: StepObservation,
}

/// A snapshot that was made.
#[derive(Debug, Clone)]
pub struct SnapshotInput {
    /// Its id, unique in the episode.
    pub id: String,
    /// RFC 3339.
    pub created_at: String,
    /// What it can be used for.
    pub semantics: SnapshotSemantics,
    /// What describes it.
    pub metadata: Map<String, Value>,
    /// Files that hold it, each with its digest.
    pub artifact_refs: Vec<TraceRef>,
}

/// The bundle of an episode.
#[derive(Debug, Clone)]
pub struct EpisodeArtifacts {
    /// Its id.
    pub id: BundleId,
    /// Its content digest.
    pub content: Sha256Hex,
    /// RFC 3339.
    pub created_at: String,
}

impl From<&ExecutionRecord> for EpisodeExecution {
    fn from(record: &ExecutionRecord) -> Self {
        Self {
            id: record.id.clone(),
            command: record.command.clone(),
            args: record.args.clone(),
            exit_code: record.exit_code,
            stdout: record.stdout.clone(),
            stderr: record.stderr.clone(),
            result: None,
            diagnostics: None,
            artifact_refs: Vec::new(),
            started_at: record.started_at.clone(),
            finished_at: record.finished_at.clone(),
        }
    }
}
