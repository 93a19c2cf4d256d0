//! One shape for everything a run can be asked for, and who may ask for it.
//!
//! Flags, JSON callers, groups, recipes and the extension fill a [`TaskSpec`];
//! [`TaskSpec::into_request`] makes the request of it. [`TASK_FIELDS`] has a row for each
//! field: its authority, its shape and the code of a wrong value.

use crate::task_shape::{
    AGENT_BUNDLE, AGENT_KINDS, BUDGET, COMPONENT, HOLD, LIMITS, MODEL, MOUNT, PARENT_TOOLS, Shape,
    member, required,
};
use crate::{
    Agent, AgentBundle, CommandCall, Component, DEFAULT_MAX_RUNS, ErrorCode, Hold, LimitsRequest,
    ModelEndpoint, MountRequest, OuterSandbox, ParentToolBridge, RunId, RunMode, RunPaths,
    RuntimePolicy, SandboxToolPolicy, SecretBinding, SiteId, StagedFile, TaskInput, Workflow,
    schema_id,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A task as it is asked for. Who may set a field is in [`TASK_FIELDS`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskSpec {
    /// What to do, in plain words.
    pub goal: String,
    /// What the task is about.
    pub target: Map<String, Value>,
    /// Tool ids the agent may use; empty: every tool that acts in the guest.
    pub allowed_tools: Vec<String>,
    /// Names of artifacts the caller hopes for.
    pub expected_artifacts: Vec<String>,
    /// Structured inputs, as given.
    pub structured_artifacts: Vec<Value>,
    /// Free context of the caller.
    pub context: Map<String, Value>,
    /// Slug of an installed plugin; a site resolves it into `mounts`.
    pub plugin: Option<String>,
    /// Slug of an installed theme; a site resolves it into `mounts`.
    pub theme: Option<String>,
    /// Directories to work on; their position is the mount index.
    pub mounts: Vec<MountRequest>,
    /// `git` of every mount without its own.
    pub git: Option<String>,
    /// Command line that does the work; resolved into `resolved_agent`.
    pub agent_command: Option<String>,
    /// Name of an agent or preset; resolved into `resolved_agent`.
    pub agent: Option<String>,
    /// Exit codes of `agent_command` that mean success; empty: 0.
    pub agent_success_codes: Vec<i32>,
    /// Further environment of `agent_command`.
    pub agent_env: BTreeMap<String, String>,
    /// Ability of the guest that does the work; resolved into `resolved_agent`.
    pub runtime_task: Map<String, Value>,
    /// Code that the guest's WordPress loads; a site resolves it into `components`.
    pub component_contracts: Vec<Value>,
    /// Plugins with a model provider; a site resolves them into `components`.
    pub provider_plugin_paths: Vec<String>,
    /// Bundles of agents that a component imports before the agent runs.
    pub agent_bundles: Vec<AgentBundle>,
    /// Names of secrets; resolved into `secrets`.
    pub secret_env: Vec<String>,
    /// Id of a model provider; resolved into `resolved_model`.
    pub provider: Option<String>,
    /// Name of a model; resolved into `resolved_model`.
    pub model: Option<String>,
    /// Address of the provider; resolved into `resolved_model`.
    pub base_url: Option<String>,
    /// The same as `budget.turns`; the smaller one holds.
    pub max_turns: Option<u32>,
    /// When the built-in agent stops.
    pub budget: TaskBudget,
    /// Which tools exist for the built-in agent.
    pub sandbox_tool_policy: Option<SandboxToolPolicy>,
    /// `allowed_tools` and `sandbox_tool_policy` in one document, for a site.
    pub tool_bridge: Map<String, Value>,
    /// Abilities of the parent; a site resolves them into `parent_tools`.
    pub parent_tool_bridge: Map<String, Value>,
    /// What a site resolves into model and secrets.
    pub inherit: Map<String, Value>,
    /// Command lines run after the agent in a fresh guest.
    pub checks: Vec<String>,
    /// Runtime policy; absent: the default one.
    pub policy: Option<RuntimePolicy>,
    /// The policy's `network`, given by itself.
    pub network: Option<Value>,
    /// Limits.
    pub limits: LimitsRequest,
    /// `limits.wall_clock_ms` in seconds; 0: not given.
    pub task_timeout_seconds: u64,
    /// Report renames as git renames.
    pub find_renames: bool,
    /// Whether an ability waits for the end.
    pub wait: Option<bool>,
    /// Free data of the caller for the bundle's provenance.
    pub metadata: Map<String, Value>,
    /// Id of an orchestrator; the caller gets it back and nothing stores it.
    pub sandbox_session_id: Option<String>,
    /// Id of an orchestrator; the caller gets it back and nothing stores it.
    pub session_id: Option<String>,
    /// Ids of an orchestrator; the caller gets them back and nothing stores them.
    pub orchestrator: Map<String, Value>,

    /// Partition of the state directory.
    pub site: String,
    /// Attached or detached.
    pub mode: RunMode,
    /// Directory whose WordPress core the guest gets.
    pub wordpress: String,
    /// See [`RunPaths::denied`].
    pub denied: Vec<String>,
    /// See [`RunPaths::code_roots`].
    pub code_roots: Vec<String>,
    /// See [`RunPaths::allowed_roots`].
    pub allowed_roots: Option<Vec<String>>,
    /// Runs of the site alive at once, if fewer than the operator allows.
    pub max_runs: Option<u64>,
    /// Who does the work.
    pub resolved_agent: Option<Agent>,
    /// The model and where it is.
    pub resolved_model: Option<ModelEndpoint>,
    /// Tools that the parent answers for.
    pub parent_tools: Option<ParentToolBridge>,
    /// Code of the host that the guest's WordPress loads.
    pub components: Vec<Component>,
    /// Secrets with their values.
    pub secrets: Vec<SecretBinding>,
    /// Host files that the guest may read.
    pub staged_files: Vec<StagedFile>,
    /// Registry commands, run before the agent.
    pub commands: Vec<CommandCall>,
    /// Keeps the guest when everything else has run.
    pub hold: Option<Hold>,
    /// Values that must not reach a log or bundle.
    pub redact: Vec<String>,
    /// Who asked, for the bundle.
    pub provenance: Map<String, Value>,

    /// Steps of a recipe.
    pub workflow: Option<Workflow>,
    /// A further sandbox around the launcher.
    pub outer_sandbox: OuterSandbox,
}

/// Budget of the built-in agent as a caller writes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskBudget {
    /// Answers of the model.
    pub turns: Option<u32>,
    /// Tokens sent, over all turns.
    pub input_tokens: Option<u64>,
    /// Tokens received, over all turns.
    pub output_tokens: Option<u64>,
    /// US dollars, by the prices of the provider.
    pub cost_usd: Option<f64>,
}

/// Who may set a field. Each may also set the fields of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskAuthority {
    /// Anybody who may run a task: users over REST, abilities, JSON files.
    Caller,
    /// The code of the site, by the second argument of the extension's `Run::start`.
    Host,
    /// The settings of the machine and the person at the command line.
    Operator,
}

/// One row of [`TASK_FIELDS`].
#[derive(Debug, Clone, Copy)]
pub struct TaskField {
    /// Its name in JSON.
    pub name: &'static str,
    /// Who may set it.
    pub authority: TaskAuthority,
    /// What it looks like.
    pub shape: Shape,
    /// Code of a member that is wrong.
    pub code: ErrorCode,
}

const fn caller(name: &'static str, shape: Shape) -> TaskField {
    field(name, TaskAuthority::Caller, shape, ErrorCode::InputInvalid)
}

const fn host(name: &'static str, shape: Shape) -> TaskField {
    field(name, TaskAuthority::Host, shape, ErrorCode::InputInvalid)
}

const fn field(
    name: &'static str,
    authority: TaskAuthority,
    shape: Shape,
    code: ErrorCode,
) -> TaskField {
    TaskField {
        name,
        authority,
        shape,
        code,
    }
}

/// Every field of a task. The order is that of [`TaskSpec`].
pub const TASK_FIELDS: &[TaskField] = &[
    caller("goal", Shape::Text),
    caller("target", Shape::Free),
    caller("allowed_tools", Shape::Texts),
    caller("expected_artifacts", Shape::Texts),
    caller("structured_artifacts", Shape::FreeList),
    caller("context", Shape::Free),
    caller("plugin", Shape::Text),
    caller("theme", Shape::Text),
    field(
        "mounts",
        TaskAuthority::Caller,
        Shape::Rows(MOUNT),
        ErrorCode::MountInvalid,
    ),
    caller("git", Shape::Text),
    caller("agent_command", Shape::Text),
    caller("agent", Shape::Text),
    caller("agent_success_codes", Shape::ExitCodes),
    caller("agent_env", Shape::Environment),
    caller("runtime_task", Shape::Free),
    caller("component_contracts", Shape::FreeList),
    caller("provider_plugin_paths", Shape::Texts),
    caller("agent_bundles", Shape::Rows(AGENT_BUNDLE)),
    caller("secret_env", Shape::Texts),
    caller("provider", Shape::Text),
    caller("model", Shape::Text),
    caller("base_url", Shape::Text),
    caller("max_turns", Shape::SmallCount),
    caller("budget", Shape::Object(BUDGET)),
    caller("sandbox_tool_policy", Shape::ToolPolicy),
    caller("tool_bridge", Shape::Free),
    caller("parent_tool_bridge", Shape::Free),
    caller("inherit", Shape::Free),
    caller("checks", Shape::Lines),
    caller("policy", Shape::Policy),
    caller("network", Shape::Network),
    field(
        "limits",
        TaskAuthority::Caller,
        Shape::Object(LIMITS),
        ErrorCode::LimitInvalid,
    ),
    caller("task_timeout_seconds", Shape::Count),
    caller("find_renames", Shape::Flag),
    caller("wait", Shape::Flag),
    caller("metadata", Shape::Free),
    caller("sandbox_session_id", Shape::Text),
    caller("session_id", Shape::Text),
    caller("orchestrator", Shape::Free),
    host("site", Shape::Name),
    host("mode", Shape::OneOf(&["attached", "detached"])),
    host("wordpress", Shape::Name),
    host("denied", Shape::Texts),
    host("code_roots", Shape::Texts),
    host("allowed_roots", Shape::Texts),
    host("max_runs", Shape::Count),
    host("resolved_agent", Shape::Kinds(AGENT_KINDS)),
    field(
        "resolved_model",
        TaskAuthority::Host,
        Shape::Object(MODEL),
        ErrorCode::ModelInvalid,
    ),
    field(
        "parent_tools",
        TaskAuthority::Host,
        Shape::Object(PARENT_TOOLS),
        ErrorCode::SandboxToolPolicyInvalid,
    ),
    host("components", Shape::Rows(COMPONENT)),
    field(
        "secrets",
        TaskAuthority::Host,
        Shape::Rows(&[
            required("env", Shape::Name),
            required("value", Shape::Name),
            member("hosts", Shape::Texts),
        ]),
        ErrorCode::SecretInvalid,
    ),
    field(
        "staged_files",
        TaskAuthority::Host,
        Shape::Rows(&[
            required("source", Shape::Name),
            required("target", Shape::Name),
        ]),
        ErrorCode::MountInvalid,
    ),
    host(
        "commands",
        Shape::Rows(&[
            required("command", Shape::Name),
            member("args", Shape::Texts),
        ]),
    ),
    host("hold", Shape::Object(HOLD)),
    host("redact", Shape::Texts),
    host("provenance", Shape::Free),
    field(
        "workflow",
        TaskAuthority::Operator,
        Shape::Typed,
        ErrorCode::InputInvalid,
    ),
    field(
        "outer_sandbox",
        TaskAuthority::Operator,
        Shape::Typed,
        ErrorCode::InputInvalid,
    ),
];

/// Everything the runner needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// `wp-codebox/run-request/v1`.
    pub schema: String,
    /// Made by the caller, so that it can be found even if the runner dies at once.
    pub run_id: RunId,
    /// Partition of the state directory.
    pub site: SiteId,
    /// Attached or detached.
    #[serde(default)]
    pub mode: RunMode,
    /// Runs of this site that may be alive at once; the host's setting, never the caller's.
    #[serde(default = "RunRequest::default_max_runs")]
    pub max_runs: u32,
    /// Host paths.
    pub paths: RunPaths,
    /// The task; absent for `wp-codebox run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskInput>,
    /// Policy; absent: the default policy with the commands this request needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<RuntimePolicy>,
    /// Mounts, in order; their position is the mount index.
    #[serde(default)]
    pub mounts: Vec<MountRequest>,
    /// Commands run before the agent, or instead of one.
    #[serde(default)]
    pub commands: Vec<CommandCall>,
    /// Steps of a recipe, run after the commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Workflow>,
    /// Keeps the working guest when everything else has run; absent: it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// The model: of the built-in loop, or of programs in the guest whose policy has the
    /// network preset `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelEndpoint>,
    /// Tools of the built-in loop; absent: what `task.allowed_tools` names, else every tool
    /// that acts in the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_policy: Option<SandboxToolPolicy>,
    /// Tools that the parent answers for; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tools: Option<ParentToolBridge>,
    /// Code of the host that the guest's WordPress loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,
    /// Bundles of agents that a component imports before the agent runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_bundles: Vec<AgentBundle>,
    /// Command lines run after the agent in a fresh sandbox; split like a shell would, run without one.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Limits.
    #[serde(default)]
    pub limits: LimitsRequest,
    /// Report renames as git renames.
    #[serde(default)]
    pub find_renames: bool,
    /// Secrets that the run may use without seeing them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretBinding>,
    /// A further sandbox around the launcher.
    #[serde(default)]
    pub outer_sandbox: OuterSandbox,
    /// Values that must not reach a log or bundle; the runner keeps them in memory only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// Free data for the bundle's provenance, e.g. who asked. No secrets, no host paths.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provenance: Map<String, Value>,
}

impl RunRequest {
    /// [`DEFAULT_MAX_RUNS`], for requests that do not say.
    #[must_use]
    pub const fn default_max_runs() -> u32 {
        DEFAULT_MAX_RUNS
    }
}

impl TaskSpec {
    /// The request of this task. Fields that were resolved into others, and the ids of
    /// orchestrators, stay behind.
    #[must_use]
    pub fn into_request(self, run_id: RunId, site: SiteId, paths: RunPaths) -> RunRequest {
        let task = (!self.goal.is_empty()).then(|| TaskInput {
            target: self.target,
            allowed_tools: self.allowed_tools,
            expected_artifacts: self.expected_artifacts,
            structured_artifacts: self.structured_artifacts,
            staged_files: self.staged_files,
            context: self.context,
            ..TaskInput::new(self.goal)
        });
        let mut provenance = self.provenance;
        if !self.metadata.is_empty() {
            provenance.insert("metadata".to_owned(), Value::Object(self.metadata));
        }
        RunRequest {
            schema: schema_id::RUN_REQUEST.to_owned(),
            run_id,
            site,
            mode: self.mode,
            max_runs: self
                .max_runs
                .and_then(|runs| u32::try_from(runs).ok())
                .unwrap_or(DEFAULT_MAX_RUNS),
            paths,
            task,
            policy: self.policy,
            mounts: self.mounts,
            commands: self.commands,
            workflow: self.workflow,
            hold: self.hold,
            agent: self.resolved_agent,
            model: self.resolved_model,
            tool_policy: self.sandbox_tool_policy,
            parent_tools: self.parent_tools,
            components: self.components,
            agent_bundles: self.agent_bundles,
            checks: self.checks,
            limits: self.limits,
            find_renames: self.find_renames,
            secrets: self.secrets,
            outer_sandbox: self.outer_sandbox,
            redact: self.redact,
            provenance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_of_the_struct_has_a_row_and_every_row_a_field() {
        let spec = serde_json::to_value(TaskSpec::default()).unwrap();
        let fields: Vec<&String> = spec.as_object().unwrap().keys().collect();
        let rows: Vec<&str> = TASK_FIELDS.iter().map(|row| row.name).collect();
        assert_eq!(fields, rows, "add the field to TASK_FIELDS");
    }

    #[test]
    fn unknown_fields_are_refused() {
        assert!(serde_json::from_value::<TaskSpec>(json!({"goal": "g"})).is_ok());
        assert!(serde_json::from_value::<TaskSpec>(json!({"gaol": "g"})).is_err());
    }

    #[test]
    fn ids_of_orchestrators_stay_out_of_the_request() {
        let spec: TaskSpec = serde_json::from_value(json!({
            "goal": "g", "metadata": {"ticket": "kept-1"}, "sandbox_session_id": "echo-1",
            "session_id": "echo-2", "orchestrator": {"id": "echo-3"}
        }))
        .unwrap();
        let paths = json!({"state_dir": "/s", "share_dir": "/h", "launcher": "/l",
            "php_binary": "/p", "wordpress": "/w"});
        let request = spec.into_request(
            RunId::new(format!("run_{}", "0".repeat(32))).unwrap(),
            SiteId::new("site-1").unwrap(),
            serde_json::from_value(paths).unwrap(),
        );
        let frame = serde_json::to_string(&request).unwrap();
        assert!(frame.contains("kept-1"), "{frame}");
        assert!(!frame.contains("echo-"), "{frame}");
    }
}
