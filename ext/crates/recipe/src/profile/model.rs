//! Parsed profile and profile issues.

use serde::Serialize;
use wp_codebox_contracts::{
    CommandCall, GitChoice, IsolationLevel, LimitsRequest, MountAccess, NetworkPolicy,
    SandboxScope, Sha256Hex,
};

/// Schema id.
pub const PROFILE_SCHEMA: &str = "wp-codebox/sandbox-profile/v1";

/// One problem of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileIssue {
    /// Path: `$`, `$.ttl.max`, `$.network.egress[2]`.
    pub path: String,
    /// Sentence that states the problem and what is accepted.
    pub message: String,
}

/// Source of a sandbox's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceMode {
    /// A host directory, copied on write.
    Mirror,
    /// Files that the sandbox fetches or creates itself; it sees no host directory.
    RemoteCanonical,
}

/// Workspace of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// Source of the files.
    pub mode: WorkspaceMode,
    /// Access of the sandbox; `None` hides the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<MountAccess>,
    /// Host directory; `None` when the caller names it on creation of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Guest path of the workspace.
    pub target: String,
    /// Git repository in the sandbox.
    #[serde(skip_serializing_if = "GitChoice::is_auto")]
    pub git: GitChoice,
}

/// Lifetime of a sandbox, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ttl {
    /// Default lifetime from the time the sandbox is ready.
    pub default_ms: u64,
    /// Maximum lifetime including extensions.
    pub max_ms: u64,
    /// Maximum time without use; `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
}

/// A secret by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretRef {
    /// Environment variable name, both in the process that creates the sandbox and in the sandbox.
    pub name: String,
    /// Hosts that may receive the value.
    pub hosts: Vec<String>,
}

/// Initial setup, run once before the sandbox is ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Setup {
    /// Text for the agent; never executed.
    pub instructions: String,
    /// Registry commands in order.
    pub commands: Vec<CommandCall>,
    /// Secrets.
    pub secret_refs: Vec<SecretRef>,
}

/// Permitted access to a running sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reachability {
    /// Whether programs may be executed in it.
    pub exec: bool,
    /// Whether its site may be previewed.
    pub preview: bool,
}

/// Descriptive data for choosing a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// Cost class, e.g. `self-hosted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_class: Option<String>,
    /// Latency class, e.g. `standard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_class: Option<String>,
}

/// A valid profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// Schema id.
    pub schema: &'static str,
    /// Profile name.
    pub id: String,
    /// Semantic version.
    pub version: String,
    /// Purpose of the profile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Backend.
    pub extension: &'static str,
    /// Minimum isolation level.
    pub isolation: IsolationLevel,
    /// Network policy.
    pub network: NetworkPolicy,
    /// Workspace.
    pub workspace: Workspace,
    /// Default owner scope of a sandbox.
    pub scope_default: SandboxScope,
    /// Lifetime.
    pub ttl: Ttl,
    /// Resource limits.
    pub resources: LimitsRequest,
    /// Initial setup.
    pub setup: Setup,
    /// Permitted access.
    pub reachability: Reachability,
    /// Descriptive data.
    pub metadata: Metadata,
    /// SHA-256 of the profile's text.
    pub sha256: Sha256Hex,
}
