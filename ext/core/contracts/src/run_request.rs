//! The request to a supervisor, into which every caller's task is converted.

use crate::{
    Activation, Agent, AgentBundle, CommandCall, Component, DEFAULT_MAX_RUNS, FollowUp, Hold,
    LimitsRequest, ModelEndpoint, MountRequest, OuterSandbox, ParentToolBridge, RequesterShare,
    ResolvedSeed, RunFacts, RunId, RunMode, RunPaths, RunPlacement, RuntimePolicy,
    SandboxToolPolicy, SecretBinding, Service, SiteId, TaskInput, Workflow,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A complete request to the supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// Schema id, `wp-codebox/run-request/v1`.
    pub schema: String,
    /// Run id, chosen by the caller, so that the run can be found even if the supervisor dies at
    /// once.
    pub run_id: RunId,
    /// Id of the requesting site, which has its own partition of the state directory.
    pub site: SiteId,
    /// Whether the run ends with its caller (attached) or continues without it (detached).
    #[serde(default)]
    pub mode: RunMode,
    /// Maximum number of concurrent runs of this site; set by the host, never by the caller.
    #[serde(default = "RunRequest::default_max_runs")]
    pub max_runs: u32,
    /// Share of the site that the requester may have; absent: the whole site, as for runs of
    /// `wp-codebox`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<RequesterShare>,
    /// Host paths and host settings of the run.
    pub paths: RunPaths,
    /// The task; absent if the caller gave no goal, e.g. for `wp-codebox run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskInput>,
    /// Earlier bundle that the run continues; absent: the run starts from the mounts' sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<FollowUp>,
    /// Runtime policy; absent: the default policy, which then allows the commands of this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<RuntimePolicy>,
    /// Host directories to mount, in order; their position is the mount index.
    #[serde(default)]
    pub mounts: Vec<MountRequest>,
    /// Content of the parent site that each guest gets before other programs run in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<ResolvedSeed>,
    /// Mounted plugins and themes to activate in each guest, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activate: Vec<Activation>,
    /// Calls of registry commands that run before the agent, or without an agent.
    #[serde(default)]
    pub commands: Vec<CommandCall>,
    /// Steps of the recipe, executed after the commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Workflow>,
    /// Keeps the work guest alive after all work is done; absent: the guest ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Agent that does the work; absent: the run only executes commands and steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// Model that the built-in loop uses. Programs in the guest can use it too if the policy has
    /// the network preset `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelEndpoint>,
    /// Tool policy of the built-in loop; absent: the tools in `task.allowed_tools`, or every
    /// tool that acts in the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_policy: Option<SandboxToolPolicy>,
    /// Tools that the parent process serves; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tools: Option<ParentToolBridge>,
    /// Components: host directories with code that the guest's WordPress loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,
    /// Agent bundles that a component imports before the agent runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_bundles: Vec<AgentBundle>,
    /// Command lines that run after the agent in a fresh sandbox; split with shell quoting
    /// rules, run without a shell.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Requested resource limits of the run.
    #[serde(default)]
    pub limits: LimitsRequest,
    /// Servers, such as a database, that run in each guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Whether the patch shows moved files as git renames.
    #[serde(default)]
    pub find_renames: bool,
    /// Secrets that the run may use. The guest gets placeholders, except for secrets whose values
    /// the policy exposes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretBinding>,
    /// Process wrapper, e.g. bubblewrap, in which the launcher of the guest runs.
    #[serde(default)]
    pub outer_sandbox: OuterSandbox,
    /// Where the run runs; absent: on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<RunPlacement>,
    /// Values that must not reach a log or bundle; the supervisor keeps them in memory only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// Free-form data for the bundle's provenance, e.g. the requesting user. No secrets, no
    /// host paths.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provenance: Map<String, Value>,
}

impl RunRequest {
    /// Returns [`DEFAULT_MAX_RUNS`], the serde default of `max_runs`.
    #[must_use]
    pub const fn default_max_runs() -> u32 {
        DEFAULT_MAX_RUNS
    }

    /// Returns the facts that the record of the run gets.
    #[must_use]
    pub fn facts(&self) -> RunFacts {
        let texts = self.task.as_ref().map(|task| task.texts.clone());
        RunFacts::new(texts.unwrap_or_default(), self.provenance.clone())
    }
}
