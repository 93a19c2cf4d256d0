//! What a run collects for its bundle in addition to its events.

use super::TranscriptEntry;
use crate::run::agent_log::AgentLog;
use serde_json::Value;
use wp_codebox_artifacts::{ArtifactFile, EpisodeFiles, ExecutionRecord};
use wp_codebox_contracts::ModelUsage;

/// Evidence that fills while guests run and that the bundle writer reads.
#[derive(Default)]
pub(in crate::run) struct RunEvidence {
    pub executions: Vec<ExecutionRecord>,
    pub transcript: Vec<TranscriptEntry>,
    pub observations: Vec<Value>,
    /// Requests that reached the egress bridge.
    pub egress: Vec<Value>,
    /// Notices for the caller, one sentence each.
    pub notices: Vec<String>,
    /// Model usage of the built-in loop.
    pub model_usage: Option<ModelUsage>,
    /// Turns and calls of the built-in loop.
    pub agent: Option<AgentLog>,
    /// Final result text of a command-line agent, redacted.
    pub final_message: Option<String>,
    /// Results of the recipe's steps, redacted.
    pub workflow: Option<Value>,
    /// Trace of a held sandbox that has ended.
    pub episode_files: Option<EpisodeFiles>,
    /// Record of the run's preview.
    pub preview: Option<Value>,
    /// Files that commands added to the bundle.
    pub files: Vec<ArtifactFile>,
    /// Content of the files that a recipe declares, one row per file. Content in which a secret was
    /// detected is left out.
    pub collected: Vec<Value>,
}
