//! What a run collects for its bundle (the result directory), in addition to its events.

use super::TranscriptEntry;
use crate::journal::agent_log::AgentLog;
use crate::journal::inactive::Inactive;
use serde_json::Value;
use wp_codebox_artifacts::{ArtifactFile, EpisodeFiles, ExecutionRecord, PhpSyntax};
use wp_codebox_contracts::ModelUsage;
use wp_codebox_policy::DeniedHosts;

/// What was recorded while guests ran; the bundle is built from it.
#[derive(Default)]
pub(crate) struct RunEvidence {
    pub executions: Vec<ExecutionRecord>,
    pub transcript: Vec<TranscriptEntry>,
    pub observations: Vec<Value>,
    /// Network requests that reached the egress bridge, one row each.
    pub egress: Vec<Value>,
    /// Hosts that the policy does not allow and that a guest asked for.
    pub denied_hosts: DeniedHosts,
    /// Sentences that inform the caller, e.g. that output was truncated.
    pub notices: Vec<String>,
    /// Mounted plugins and themes that could not be activated in the guest of the work.
    pub inactive: Vec<Inactive>,
    /// The same in the guest of the checks, which has the change.
    pub inactive_at_check: Vec<Inactive>,
    /// Turns, tokens and cost that the built-in agent loop has used.
    pub model_usage: Option<ModelUsage>,
    /// Turns and tool calls of the built-in agent loop.
    pub agent: Option<AgentLog>,
    /// Final message of a command-line agent, redacted.
    pub final_message: Option<String>,
    /// Results of the recipe's steps, redacted.
    pub workflow: Option<Value>,
    /// Trace of a sandbox that was kept open for clients and has ended.
    pub episode_files: Option<EpisodeFiles>,
    /// Record of the preview (the guest's site on an address of the host).
    pub preview: Option<Value>,
    /// Syntax check of the changed PHP files.
    pub php_syntax: Option<PhpSyntax>,
    /// Servers that ran in the guests, one row for each service and guest.
    pub services: Vec<Value>,
    /// Files that commands added to the bundle.
    pub files: Vec<ArtifactFile>,
    /// Content of the files that a recipe collects, one row per file. Content that seems to contain
    /// a secret is left out.
    pub collected: Vec<Value>,
}
