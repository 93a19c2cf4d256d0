//! Inputs of the episode builder: parts of an episode before redaction.

use crate::bundle::ExecutionRecord;
use serde_json::{Map, Value};
use wp_codebox_contracts::{
    ActionRequest, BundleId, EpisodeExecution, ObservationType, RuntimeInfo, Sha256Hex,
    SnapshotSemantics, TraceRef,
};

/// Start of an episode with a new runtime.
#[derive(Debug, Clone)]
pub struct EpisodeStart {
    /// Description of the runtime.
    pub runtime: RuntimeInfo,
    /// Start time of the episode in RFC 3339.
    pub created_at: String,
    /// Observations of the new runtime.
    pub observations: Vec<ObservationInput>,
}

/// One observation.
#[derive(Debug, Clone)]
pub struct ObservationInput {
    /// Kind of the observed object.
    pub kind: ObservationType,
    /// Observed data.
    pub data: Value,
    /// Time of the observation in RFC 3339.
    pub observed_at: String,
    /// References to files with further data, each with its digest.
    pub artifact_refs: Vec<TraceRef>,
}

/// Observation made after a step, if any.
#[derive(Debug, Clone)]
pub enum StepObservation {
    /// No observation was made.
    None,
    /// One observation was made.
    Seen(ObservationInput),
}

/// A completed step. An action whose command could not be executed is not a step.
#[derive(Debug, Clone)]
pub struct StepInput {
    /// Requested action.
    pub action: ActionRequest,
    /// Result of executing the action.
    pub execution: EpisodeExecution,
    /// Observation made after the execution.
    pub observation: StepObservation,
}

/// A snapshot of the runtime.
#[derive(Debug, Clone)]
pub struct SnapshotInput {
    /// Snapshot id, unique in the episode.
    pub id: String,
    /// Creation time in RFC 3339.
    pub created_at: String,
    /// Intended use of the snapshot.
    pub semantics: SnapshotSemantics,
    /// Metadata that describes the snapshot.
    pub metadata: Map<String, Value>,
    /// References to the files of the snapshot, each with its digest.
    pub artifact_refs: Vec<TraceRef>,
}

/// The bundle of an episode.
#[derive(Debug, Clone)]
pub struct EpisodeArtifacts {
    /// Id of the bundle.
    pub id: BundleId,
    /// Content digest of the bundle.
    pub content: Sha256Hex,
    /// Creation time in RFC 3339.
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
