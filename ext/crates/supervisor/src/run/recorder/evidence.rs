//! What a run leaves for its bundle beside its events.

use super::TranscriptEntry;
use crate::run::agent_log::AgentLog;
use serde_json::Value;
use wp_codebox_artifacts::{ArtifactFile, EpisodeFiles, ExecutionRecord};
use wp_codebox_contracts::ModelUsage;

/// Filled while guests work and check, then read by whoever writes a bundle.
#[derive(Default)]
pub(in crate::run) struct RunEvidence {
    pub executions: Vec<ExecutionRecord>,
    pub transcript: Vec<TranscriptEntry>,
    pub observations: Vec<Value>,
    /// Requests that reached the egress bridge.
    pub egress: Vec<Value>,
    /// Things the caller should see, each one sentence.
    pub notices: Vec<String>,
    /// What the built-in loop used of its model.
    pub model_usage: Option<ModelUsage>,
    /// Turns and calls of the built-in loop.
    pub agent: Option<AgentLog>,
    /// The last word of a command-line agent, redacted.
    pub final_message: Option<String>,
    /// What the steps of a recipe came to, redacted.
    pub workflow: Option<Value>,
    /// The trace of a held sandbox, once it ended.
    pub episode_files: Option<EpisodeFiles>,
    /// What became of the run's preview.
    pub preview: Option<Value>,
    /// What commands left for the bundle.
    pub files: Vec<ArtifactFile>,
    /// Content of files that a recipe names, one row each; none of them looks like a secret.
    pub collected: Vec<Value>,
}
