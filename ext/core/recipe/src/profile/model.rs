//! A sandbox profile after parsing, and the problems of an invalid one.

use serde::Serialize;
use wp_codebox_contracts::{
    CommandCall, GitChoice, IsolationClass, IsolationLevel, LimitsRequest, MountAccess,
    NetworkNeed, NetworkPolicy, RoutePolicy, RouteRequest, SandboxNeeds, SandboxScope, Sha256Hex,
};

/// Schema id of a sandbox profile.
pub const PROFILE_SCHEMA: &str = "wp-codebox/sandbox-profile/v1";

/// A rule that a profile violates, with the position and a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileIssue {
    /// Path of the field, e.g. `$`, `$.ttl.max` or `$.network.egress[2]`.
    pub path: String,
    /// Sentence that states the problem and what is accepted.
    pub message: String,
}

/// Where a sandbox gets the files of its workspace from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceMode {
    /// From a host directory, whose files the sandbox may change only in a copy.
    Mirror,
    /// Files that the sandbox fetches or creates itself; it sees no host directory.
    RemoteCanonical,
}

/// The directory of a sandbox in which a task is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// Where the files of the workspace come from.
    pub mode: WorkspaceMode,
    /// Whether the sandbox may write to the workspace, a copy-on-write view of the host directory;
    /// `None` if the sandbox sees no host directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<MountAccess>,
    /// Host directory; `None` if the caller names it when it creates the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Guest path of the workspace.
    pub target: String,
    /// Which git repository the sandbox sees in the workspace.
    #[serde(skip_serializing_if = "GitChoice::is_auto")]
    pub git: GitChoice,
}

/// How long a sandbox exists, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ttl {
    /// Lifetime if the caller requests none, counted from the time at which the sandbox is ready.
    pub default_ms: u64,
    /// Maximum lifetime including extensions.
    pub max_ms: u64,
    /// Time without a request or a running program after which the sandbox ends; `None` for no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
}

/// A secret that a sandbox may use. The profile has only its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretRef {
    /// Name of the environment variable: the process that creates the sandbox reads the secret from
    /// this variable, and programs in the sandbox find the secret's placeholder in it.
    pub name: String,
    /// Hosts to which the secret's value may be sent.
    pub hosts: Vec<String>,
}

/// Initial setup, run once before the sandbox is ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Setup {
    /// Text for the agent that uses the sandbox. It is never executed.
    pub instructions: String,
    /// Registry commands to execute in the sandbox, in this order.
    pub commands: Vec<CommandCall>,
    /// Secrets that the sandbox may use.
    pub secret_refs: Vec<SecretRef>,
}

/// What clients may do with a running sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reachability {
    /// Whether clients may execute programs in the sandbox.
    pub exec: bool,
    /// Whether clients may open a preview of the sandbox's site.
    pub preview: bool,
}

/// Descriptive data by which clients choose a profile. It has no effect on sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// Kind of cost that a sandbox causes, as a word, e.g. `self-hosted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_class: Option<String>,
    /// How fast a sandbox is available, as a word, e.g. `standard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_class: Option<String>,
}

/// A sandbox profile that follows all rules.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// Schema id, always [`PROFILE_SCHEMA`].
    pub schema: &'static str,
    /// Name by which clients select the profile.
    pub id: String,
    /// Semantic version of the profile, e.g. `1.2.0`.
    pub version: String,
    /// What sandboxes with this profile are for, as text for clients.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Extension that starts the sandboxes, hosts that run them, and how both are selected.
    #[serde(flatten)]
    pub routing: RoutePolicy,
    /// Isolation level that a native sandbox must have at least.
    pub isolation: IsolationLevel,
    /// Hosts to which a sandbox may connect.
    pub network: NetworkPolicy,
    /// The directory of a sandbox in which a task is done.
    pub workspace: Workspace,
    /// Scope of a sandbox if the caller requests none: for one session, one agent, or shared.
    pub scope_default: SandboxScope,
    /// How long a sandbox exists.
    pub ttl: Ttl,
    /// Limits of memory, processes and other resources of a sandbox.
    pub resources: LimitsRequest,
    /// What is done in a new sandbox before it is ready.
    pub setup: Setup,
    /// What clients may do with a running sandbox.
    pub reachability: Reachability,
    /// Descriptive data by which clients choose a profile.
    pub metadata: Metadata,
    /// SHA-256 of the profile document as it was passed in.
    pub sha256: Sha256Hex,
}

impl Profile {
    /// Returns the request to select a host and an extension that can run sandboxes of the profile.
    #[must_use]
    pub fn route_request(&self) -> RouteRequest {
        let isolation = IsolationClass::of_level(self.isolation);
        let mut needs = SandboxNeeds::new(isolation.unwrap_or(IsolationClass::Container));
        needs.network = NetworkNeed::of(&self.network);
        RouteRequest {
            policy: self.routing.clone(),
            needs,
        }
    }
}
