//! Inputs of the episode builder. They may contain secrets, which the builder redacts.

use crate::bundle::ExecutionRecord;
use serde_json::{Map, Value};
use wp_codebox_contracts::{
    ActionRequest, BundleId, EpisodeExecution, ObservationType, RuntimeInfo, Sha256Hex,
    SnapshotSemantics, TraceRef,
};

/// Facts about a new runtime, with which an episode starts.
#[derive(Debug, Clone)]
pub struct EpisodeStart {
    /// Backend and environment of the new runtime.
    pub runtime: RuntimeInfo,
    /// Time at which the runtime was created, in RFC 3339.
    pub created_at: String,
    /// Observations of the new runtime before the first step.
    pub observations: Vec<ObservationInput>,
}

/// One observation of the runtime, e.g. of its files.
#[derive(Debug, Clone)]
pub struct ObservationInput {
    /// What was observed, e.g. `files` or `http-response`.
    pub kind: ObservationType,
    /// Observed data, as JSON.
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
    /// Action that the step carried out.
    pub action: ActionRequest,
    /// Result of the command that carried out the action.
    pub execution: EpisodeExecution,
    /// Observation of the runtime after the action.
    pub observation: StepObservation,
}

/// A snapshot of the runtime during the episode.
#[derive(Debug, Clone)]
pub struct SnapshotInput {
    /// Snapshot id, unique in the episode.
    pub id: String,
    /// Time at which the snapshot was made, in RFC 3339.
    pub created_at: String,
    /// How the snapshot can be used: as a mark in time, for a replay, or to restore the state.
    pub semantics: SnapshotSemantics,
    /// Further data about the snapshot, from the caller.
    pub metadata: Map<String, Value>,
    /// References to the files of the snapshot, each with its digest.
    pub artifact_refs: Vec<TraceRef>,
}

/// The bundle to which the trace of an episode refers.
#[derive(Debug, Clone)]
pub struct EpisodeArtifacts {
    /// Id of the bundle.
    pub id: BundleId,
    /// Content digest of the bundle.
    pub content: Sha256Hex,
    /// Time at which the bundle was made, in RFC 3339.
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
