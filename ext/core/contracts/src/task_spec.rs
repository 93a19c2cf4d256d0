//! The fields of a run's task as one struct, and a table of the authority that a caller needs to
//! set each field.
//!
//! Command-line flags, JSON tasks, batches, fan-outs, recipes and the extension fill a
//! [`TaskSpec`]; [`TaskSpec::into_request`] converts it to a request. [`TASK_FIELDS`] has a row for
//! each field: its authority, its shape and the error code of a wrong value.

use crate::task_shape::{
    ACTIVATION, AGENT_BUNDLE, AGENT_KINDS, BUDGET, COMPONENT, FOLLOW_UP, HOLD, LIMITS, MODEL,
    MOUNT, PARENT_TOOLS, SEED, SERVICE, SHARE, Shape, member, required,
};
use crate::{
    Activation, Agent, AgentBundle, CommandCall, Component, DEFAULT_MAX_RUNS, ErrorCode, FollowUp,
    FollowUpOf, Hold, LimitsRequest, ModelEndpoint, MountRequest, OuterSandbox, ParentToolBridge,
    PlacementChoice, ResolvedSeed, RunId, RunMode, RunPaths, RunPlacement, RunRequest,
    RuntimePolicy, SandboxToolPolicy, SecretBinding, Service, ShareChoice, SiteId, StagedFile,
    TaskBudget, TaskInput, TaskTexts, Workflow, schema_id,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A task as requested. [`TASK_FIELDS`] lists the authority that is needed to set each field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskSpec {
    /// Texts that the record of the run, lists, answers and the bundle repeat.
    #[serde(flatten)]
    pub texts: TaskTexts,
    /// Object that the task is about: `kind`, `ref`, `path`, `url`.
    pub target: Map<String, Value>,
    /// Ids of the tools that the agent may use; empty: every tool that acts in the guest.
    pub allowed_tools: Vec<String>,
    /// Names of artifacts that the caller expects.
    pub expected_artifacts: Vec<String>,
    /// Structured inputs of the task, passed to the agent unchanged.
    pub structured_artifacts: Vec<Value>,
    /// Free-form context from the caller.
    pub context: Map<String, Value>,
    /// Earlier bundle whose change the run continues, with comments on it.
    pub follow_up_of: Option<FollowUpOf>,
    /// Slug of the installed plugin to work on; the host site adds its directory to `mounts`.
    pub plugin: Option<String>,
    /// Slug of the installed theme to work on; the host site adds its directory to `mounts`.
    pub theme: Option<String>,
    /// Directories that the agent works on; their position is the mount index.
    pub mounts: Vec<MountRequest>,
    /// Git repository in the guest for each mount whose row in `mounts` has no `git`.
    pub git: Option<String>,
    /// Command line of the agent; resolved into `resolved_agent`.
    pub agent_command: Option<String>,
    /// Name of an agent or preset; resolved into `resolved_agent`.
    pub agent: Option<String>,
    /// Exit codes of `agent_command` that mean success; empty: only 0.
    pub agent_success_codes: Vec<i32>,
    /// Additional environment variables of `agent_command`.
    pub agent_env: BTreeMap<String, String>,
    /// WordPress ability in the guest that does the work in place of an agent program; resolved
    /// into `resolved_agent`.
    pub runtime_task: Map<String, Value>,
    /// Components (host directories with code that the guest's WordPress loads beside the mounts),
    /// as the caller describes them; the host site converts them to `components`.
    pub component_contracts: Vec<Value>,
    /// Paths of plugins that provide a model provider; the host site adds them to `components`.
    pub provider_plugin_paths: Vec<String>,
    /// Agent bundles that a component imports before the agent runs.
    pub agent_bundles: Vec<AgentBundle>,
    /// Names of the secrets that the run may use; the host looks up their values for `secrets`.
    pub secret_env: Vec<String>,
    /// Id of a model provider; resolved into `resolved_model`.
    pub provider: Option<String>,
    /// Name of a model; resolved into `resolved_model`.
    pub model: Option<String>,
    /// Base URL of the provider; resolved into `resolved_model`.
    pub base_url: Option<String>,
    /// Maximum number of model responses, like `budget.turns`; the smaller one applies.
    pub max_turns: Option<u32>,
    /// Budget of the built-in agent.
    pub budget: TaskBudget,
    /// Tools that the built-in agent may have.
    pub sandbox_tool_policy: Option<SandboxToolPolicy>,
    /// `allowed_tools` and `sandbox_tool_policy` in one document; the host site splits it.
    pub tool_bridge: Map<String, Value>,
    /// Abilities of the parent site that the agent may call; the host site converts them to
    /// `parent_tools`.
    pub parent_tool_bridge: Map<String, Value>,
    /// Site settings from which the host site takes the model and the secrets.
    pub inherit: Map<String, Value>,
    /// Command lines that run after the agent in a fresh guest.
    pub checks: Vec<String>,
    /// Runtime policy of the run; absent: the default policy.
    pub policy: Option<RuntimePolicy>,
    /// Network access of the guest; replaces `network` of the policy. A value of the caller has no
    /// effect if the host sets the policy.
    pub network: Option<Value>,
    /// Requested resource limits of the run.
    pub limits: LimitsRequest,
    /// Same as `limits.wall_clock_ms`, in seconds; 0: not set.
    pub task_timeout_seconds: u64,
    /// Whether the patch shows moved files as git renames.
    pub find_renames: bool,
    /// Whether the call of the ability waits for the end of the run (default) or returns a handle
    /// at once.
    pub wait: Option<bool>,
    /// Where the run runs: `host` (default), or `cluster`, the cluster that the operator of the
    /// host has configured.
    pub placement: Option<String>,
    /// Servers, such as a database, that run in each guest.
    pub services: Vec<Service>,
    /// Content of the parent site to create in the guests; the host adds it in `resolved_seeds`.
    pub site_seeds: Vec<Value>,
    /// Free-form data from the caller, copied into the bundle's provenance.
    pub metadata: Map<String, Value>,
    /// Id that an orchestrator gave this call. The reply returns it as the session's `id`; it is
    /// not stored.
    pub sandbox_session_id: Option<String>,
    /// Id that an orchestrator gave the agent's conversation. The reply returns it as
    /// `agent_session_id`; it is not stored.
    pub session_id: Option<String>,
    /// Further ids from an orchestrator. The reply returns them unchanged; they are not stored.
    pub orchestrator: Map<String, Value>,

    /// Id of the requesting site; each site has its own partition of the state directory.
    pub site: String,
    /// Whether the run ends with its caller (attached) or continues without it (detached).
    pub mode: RunMode,
    /// Directory of the WordPress core that the guest gets.
    pub wordpress: String,
    /// Host directories that must not be mounted; see [`RunPaths::denied`].
    pub denied: Vec<String>,
    /// Host directories of plugins and themes, which may be mounted; see [`RunPaths::code_roots`].
    pub code_roots: Vec<String>,
    /// Host directories outside of which nothing may be mounted; see [`RunPaths::allowed_roots`].
    pub allowed_roots: Option<Vec<String>>,
    /// Maximum number of concurrent runs of the site. It can lower the operator's limit, not raise
    /// it.
    pub max_runs: Option<u64>,
    /// Share of the site that the requester of the run may have.
    pub share: ShareChoice,
    /// Agent that does the work: `agent`, `agent_command` or `runtime_task` in resolved form.
    pub resolved_agent: Option<Agent>,
    /// Model of the run and the address of its provider.
    pub resolved_model: Option<ModelEndpoint>,
    /// Tools that the parent process, which started the run, executes for the agent.
    pub parent_tools: Option<ParentToolBridge>,
    /// Components: host directories with code that the guest's WordPress loads.
    pub components: Vec<Component>,
    /// Secrets with their values.
    pub secrets: Vec<SecretBinding>,
    /// Host files that the guest may read.
    pub staged_files: Vec<StagedFile>,
    /// `site_seeds` with the content that they select.
    pub resolved_seeds: Vec<ResolvedSeed>,
    /// Mounted plugins and themes to activate in each guest, in this order.
    pub activate: Vec<Activation>,
    /// Calls of registry commands that run before the agent.
    pub commands: Vec<CommandCall>,
    /// Keeps the guest alive after all work is done, for further requests.
    pub hold: Option<Hold>,
    /// Values that must not reach a log or bundle.
    pub redact: Vec<String>,
    /// Requesting user or program, recorded in the bundle.
    pub provenance: Map<String, Value>,

    /// Steps of the recipe that the run executes.
    pub workflow: Option<Workflow>,
    /// Process wrapper, e.g. bubblewrap, in which the launcher of the guest runs.
    pub outer_sandbox: OuterSandbox,
}

/// Authority that is needed to set a field. Each level may also set the fields of the levels that
/// are listed before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskAuthority {
    /// Every caller who may run a task: users over REST, abilities, JSON files.
    Caller,
    /// PHP code of the site, through the second argument of the extension's `Run::start`.
    Host,
    /// Settings of the machine, and the user of the command line.
    Operator,
}

/// One row of [`TASK_FIELDS`]: a field of a task.
#[derive(Debug, Clone, Copy)]
pub struct TaskField {
    /// Name of the field in JSON.
    pub name: &'static str,
    /// Authority that is needed to set the field.
    pub authority: TaskAuthority,
    /// Shape of the field's value.
    pub shape: Shape,
    /// Error code that a wrong value of the field causes.
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

/// Every field of a task, in the order of [`TaskSpec`].
pub const TASK_FIELDS: &[TaskField] = &[
    caller("goal", Shape::Text),
    caller("target", Shape::Free),
    caller("allowed_tools", Shape::Texts),
    caller("expected_artifacts", Shape::Texts),
    caller("structured_artifacts", Shape::FreeList),
    caller("context", Shape::Free),
    caller("follow_up_of", Shape::Object(FOLLOW_UP)),
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
    caller("placement", Shape::OneOf(&["host", "cluster"])),
    caller("services", Shape::Rows(SERVICE)),
    caller("site_seeds", Shape::FreeList),
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
    host("share", Shape::Object(SHARE)),
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
    field(
        "resolved_seeds",
        TaskAuthority::Host,
        Shape::Rows(SEED),
        ErrorCode::SiteSeedInvalid,
    ),
    host("activate", Shape::Rows(ACTIVATION)),
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

impl TaskSpec {
    /// Converts the task to a request. Drops the orchestrator's ids, and each field that the host
    /// has already converted into another field, e.g. `agent` into `resolved_agent`. The request has
    /// no share: the extension adds it, because only the extension knows the operator's bounds.
    #[must_use]
    pub fn into_request(self, run_id: RunId, site: SiteId, paths: RunPaths) -> RunRequest {
        let task = (!self.texts.goal.is_empty()).then(|| TaskInput {
            texts: self.texts,
            target: self.target,
            allowed_tools: self.allowed_tools,
            expected_artifacts: self.expected_artifacts,
            structured_artifacts: self.structured_artifacts,
            staged_files: self.staged_files,
            tool_bridge: self.tool_bridge,
            parent_tool_bridge: self.parent_tool_bridge,
            sandbox_tool_policy: crate::task::members(self.sandbox_tool_policy.as_ref()),
            policy: crate::task::members(self.policy.as_ref()),
            context: self.context,
            ..TaskInput::new("")
        });
        let follow_up = self.follow_up_of.map(|of| FollowUp {
            of,
            budget: TaskBudget {
                turns: self.max_turns.into_iter().chain(self.budget.turns).min(),
                ..self.budget
            },
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
            share: None,
            paths,
            task,
            follow_up,
            policy: self.policy,
            mounts: self.mounts,
            seeds: self.resolved_seeds,
            activate: self.activate,
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
            services: self
                .services
                .into_iter()
                .map(Service::with_usual_outputs)
                .collect(),
            find_renames: self.find_renames,
            secrets: self.secrets,
            outer_sandbox: self.outer_sandbox,
            placement: match self.placement.as_deref() {
                Some("cluster") => Some(RunPlacement::Configured(PlacementChoice::default())),
                Some(_) | None => None,
            },
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
    fn task_fields_table_lists_exactly_the_fields_of_task_spec() {
        let texts = TaskTexts::NAMES.iter().map(|name| (*name).to_owned());
        let spec = TaskSpec {
            texts: serde_json::from_value(texts.map(|name| (name, "text")).collect()).unwrap(),
            ..TaskSpec::default()
        };
        let spec = serde_json::to_value(spec).unwrap();
        let fields: Vec<&String> = spec.as_object().unwrap().keys().collect();
        let rows: Vec<&str> = TASK_FIELDS.iter().map(|row| row.name).collect();
        assert_eq!(fields, rows, "add the field to TASK_FIELDS");
    }

    #[test]
    fn follow_up_has_only_the_budget_limits_that_its_task_sets_and_the_smaller_turn_limit() {
        let request = |task: Value| {
            let spec: TaskSpec = serde_json::from_value(task).unwrap();
            let paths = json!({"state_dir": "/s", "share_dir": "/h", "launcher": "/l",
                "php_binary": "/p", "wordpress": "/w"});
            spec.into_request(
                RunId::new(format!("run_{}", "0".repeat(32))).unwrap(),
                SiteId::new("site-1").unwrap(),
                serde_json::from_value(paths).unwrap(),
            )
        };
        let of = json!({"artifact_id": "run_1", "comments": [{"body": "rename it"}]});
        let follow_up = request(json!({"goal": "g", "follow_up_of": of, "max_turns": 9,
            "budget": {"turns": 7, "cost_usd": 0.5}}))
        .follow_up
        .unwrap();
        let budget = TaskBudget {
            turns: Some(7),
            cost_usd: Some(0.5),
            ..TaskBudget::default()
        };
        assert_eq!(follow_up.budget, budget);
        assert_eq!(follow_up.of.comments[0].body, "rename it");
        assert_eq!(
            request(json!({"goal": "g", "max_turns": 9})).follow_up,
            None
        );
    }

    #[test]
    fn task_spec_with_unknown_field_is_refused() {
        assert!(serde_json::from_value::<TaskSpec>(json!({"goal": "g"})).is_ok());
        assert!(serde_json::from_value::<TaskSpec>(json!({"gaol": "g"})).is_err());
    }

    #[test]
    fn run_request_omits_the_session_ids_and_the_orchestrator_of_its_task() {
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
