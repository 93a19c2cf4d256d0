//! A profile as it was read, and what is wrong with one.

use serde::Serialize;
use wp_codebox_contracts::{
    CommandCall, GitChoice, IsolationLevel, LimitsRequest, MountAccess, NetworkPolicy,
    SandboxScope, Sha256Hex,
};

/// Schema id.
pub const PROFILE_SCHEMA: &str = "wp-codebox/sandbox-profile/v1";

/// One thing wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileIssue {
    /// Where: `$`, `$.ttl.max`, `$.network.egress[2]`.
    pub path: String,
    /// What is wrong and what is accepted.
    pub message: String,
}

/// Where a sandbox's files come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceMode {
    /// A directory of the host, copied on write.
    Mirror,
    /// What the sandbox fetches or makes itself; nothing of the host is shown.
    RemoteCanonical,
}

/// The workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// Where its files come from.
    pub mode: WorkspaceMode,
    /// What the sandbox may do with them; absent: it does not see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<MountAccess>,
    /// Directory of the host; absent: named when a sandbox is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Where the sandbox sees it.
    pub target: String,
    /// Which git repository the sandbox has of it.
    #[serde(skip_serializing_if = "GitChoice::is_auto")]
    pub git: GitChoice,
}

/// How long a sandbox lives, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ttl {
    /// From when it is ready, unless something else is asked for.
    pub default_ms: u64,
    /// With all extensions.
    pub max_ms: u64,
    /// Without being used; absent: it may be idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
}

/// A secret by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretRef {
    /// Name in the environment of whoever makes the sandbox, and in the sandbox.
    pub name: String,
    /// Where its value may go.
    pub hosts: Vec<String>,
}

/// What happens once, before a sandbox is ready for others.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Setup {
    /// Text for the agent; never run.
    pub instructions: String,
    /// Registry commands, in order.
    pub commands: Vec<CommandCall>,
    /// Secrets.
    pub secret_refs: Vec<SecretRef>,
}

/// Ways in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reachability {
    /// Programs may be run in it.
    pub exec: bool,
    /// Its site can be looked at.
    pub preview: bool,
}

/// Words for whoever chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// E.g. `self-hosted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_class: Option<String>,
    /// E.g. `standard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_class: Option<String>,
}

/// A profile that holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// The schema id.
    pub schema: &'static str,
    /// Name.
    pub id: String,
    /// Version, as semantic versioning has it.
    pub version: String,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Backend.
    pub extension: &'static str,
    /// Lowest isolation level.
    pub isolation: IsolationLevel,
    /// What may leave the sandbox.
    pub network: NetworkPolicy,
    /// Workspace.
    pub workspace: Workspace,
    /// Whom a sandbox is for, unless something else is said.
    pub scope_default: SandboxScope,
    /// Times.
    pub ttl: Ttl,
    /// Limits.
    pub resources: LimitsRequest,
    /// Setup.
    pub setup: Setup,
    /// Ways in.
    pub reachability: Reachability,
    /// For whoever chooses.
    pub metadata: Metadata,
    /// sha256 of the text it was read from.
    pub sha256: Sha256Hex,
}
