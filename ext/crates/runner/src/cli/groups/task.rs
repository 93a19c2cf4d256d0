//! From the fields of a task to a run request.
//!
//! What `run` takes as flags goes through `run`'s own reading, so that both refuse the same; the
//! rest is laid into the request.

use super::args::TaskArgs;
use crate::cli::args::{Cli, Command};
use crate::cli::{Settings, request};
use clap::Parser;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    Agent, ErrorBody, ErrorCode, LimitsRequest, MountAccess, RunRequest, TaskInput,
};

/// Fields that only a WordPress site can resolve.
const SITE_ONLY: &[&str] = &[
    "plugin",
    "theme",
    "runtime_task",
    "component_contracts",
    "provider_plugin_paths",
    "agent_bundles",
    "tool_bridge",
    "parent_tool_bridge",
    "inherit",
    "wait",
];

/// The fields of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    goal: String,
    target: Map<String, Value>,
    allowed_tools: Vec<String>,
    expected_artifacts: Vec<String>,
    structured_artifacts: Vec<Value>,
    context: Map<String, Value>,
    mounts: Vec<MountFields>,
    agent_command: Option<String>,
    agent: Option<String>,
    agent_success_codes: Vec<i32>,
    agent_env: BTreeMap<String, String>,
    model: Option<String>,
    base_url: Option<String>,
    provider: Option<String>,
    max_turns: Option<u32>,
    budget: BudgetFields,
    sandbox_tool_policy: Option<Value>,
    secret_env: Vec<String>,
    checks: Vec<String>,
    policy: Option<Value>,
    network: Option<Value>,
    limits: LimitsRequest,
    task_timeout_seconds: u64,
    find_renames: bool,
    metadata: Map<String, Value>,
    // Echoed by the answer.
    #[serde(rename = "sandbox_session_id")]
    _sandbox_session_id: Option<Value>,
    #[serde(rename = "session_id")]
    _session_id: Option<Value>,
    #[serde(rename = "orchestrator")]
    _orchestrator: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MountFields {
    source: String,
    target: String,
    mode: MountAccess,
    exclude: Vec<String>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BudgetFields {
    turns: Option<u32>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

fn invalid(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

/// The request of one task.
pub(super) fn request(
    input: &Map<String, Value>,
    args: &TaskArgs,
    settings: &Settings,
) -> Result<RunRequest, ErrorBody> {
    for name in ["code", "code_file"] {
        if input.contains_key(name) {
            let message = format!("{name} was given, but raw code never enters through a task");
            return Err(ErrorBody::new(ErrorCode::RawCodeForbidden, message));
        }
    }
    if let Some(name) = SITE_ONLY.iter().find(|name| input.contains_key(**name)) {
        return Err(invalid(format!(
            "{name} needs a WordPress site to resolve it; leave it out, or name directories in mounts"
        )));
    }
    let fields: Fields = serde_json::from_value(Value::Object(input.clone()))
        .map_err(|e| invalid(format!("the task cannot be read: {e}")))?;
    if fields.goal.trim().is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::TaskMissing,
            "no goal was given; say in goal what the agent should do",
        ));
    }
    let flags = flags(&fields, args)?;
    let cli = Cli::try_parse_from(&flags).map_err(|e| {
        let text = e.render().to_string();
        let first = text.lines().next().unwrap_or("wrong input");
        invalid(first.trim_start_matches("error: "))
    })?;
    let Command::Run(run) = cli.command else {
        return Err(ErrorBody::new(ErrorCode::Internal, "the task is no run"));
    };
    let mut request = request::build(&run, settings)?;
    complete(&mut request, fields, args)?;
    Ok(request)
}

/// What is not said by flags.
fn complete(request: &mut RunRequest, fields: Fields, args: &TaskArgs) -> Result<(), ErrorBody> {
    let mut task = request
        .task
        .take()
        .unwrap_or_else(|| TaskInput::new(&*fields.goal));
    task.target = fields.target;
    task.expected_artifacts = fields.expected_artifacts;
    task.structured_artifacts = fields.structured_artifacts;
    task.context = fields.context;
    if task.allowed_tools.is_empty() {
        task.allowed_tools = fields.allowed_tools;
    }
    request.task = Some(task);
    for (mount, given) in request.mounts.iter_mut().zip(fields.mounts) {
        mount.exclude = given.exclude;
        mount.metadata = given.metadata;
    }
    match &mut request.agent {
        Some(Agent::Command(agent)) => agent.env = fields.agent_env,
        Some(Agent::Preset(_) | Agent::Model(_) | Agent::Ability(_)) | None => {
            if !fields.agent_env.is_empty() || !fields.agent_success_codes.is_empty() {
                return Err(invalid(
                    "agent_env and agent_success_codes belong to an agent that is given by its command line; leave them out",
                ));
            }
        }
    }
    request.limits = fields.limits;
    if fields.task_timeout_seconds > 0 && request.limits.wall_clock_ms.is_none() {
        request.limits.wall_clock_ms = Some(fields.task_timeout_seconds.saturating_mul(1000));
    }
    request.max_runs = args.max_runs;
    if !fields.metadata.is_empty() {
        let metadata = Value::Object(fields.metadata);
        request.provenance.insert("metadata".to_owned(), metadata);
    }
    Ok(())
}

/// The task as `run` is told it.
fn flags(fields: &Fields, args: &TaskArgs) -> Result<Vec<String>, ErrorBody> {
    let mut flags = vec!["wp-codebox".to_owned(), "run".to_owned()];
    let mut flag = |name: &str, value: &str| flags.push(format!("--{name}={value}"));
    flag("goal", &fields.goal);
    flag("site", &args.store.site);
    for mount in &fields.mounts {
        if !mount.source.starts_with('/') || mount.target.is_empty() {
            return Err(ErrorBody::new(
                ErrorCode::MountInvalid,
                "a mount needs source, an absolute path of this host, and target, a path of the guest",
            ));
        }
        let mode = match mount.mode {
            MountAccess::Readonly => "readonly",
            MountAccess::Readwrite => "readwrite",
        };
        flag(
            "mount",
            &format!("{}:{}:{mode}", mount.source, mount.target),
        );
    }
    let texts = [
        ("agent-command", &fields.agent_command),
        ("agent", &fields.agent),
        ("model", &fields.model),
        ("model-url", &fields.base_url),
        ("provider", &fields.provider),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            flag(name, value);
        }
    }
    if fields.model.is_some() {
        for (name, value) in [
            ("model-key-env", &args.model_key_env),
            ("model-api", &args.model_api),
        ] {
            if let Some(value) = value {
                flag(name, value);
            }
        }
        for tool in &fields.allowed_tools {
            flag("allowed-tool", tool);
        }
    }
    // The smaller one holds: both are upper bounds.
    let turns = [fields.max_turns, fields.budget.turns];
    let numbers = [
        (
            "max-turns",
            turns.into_iter().flatten().min().map(u64::from),
        ),
        ("max-input-tokens", fields.budget.input_tokens),
        ("max-output-tokens", fields.budget.output_tokens),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            flag(name, &value.to_string());
        }
    }
    if !fields.agent_success_codes.is_empty() {
        let codes: Vec<String> = fields
            .agent_success_codes
            .iter()
            .map(i32::to_string)
            .collect();
        flag("agent-success-codes", &codes.join(","));
    }
    if let Some(policy) = &fields.sandbox_tool_policy {
        flag("tool-policy", &policy.to_string());
    }
    for secret in &fields.secret_env {
        flag("secret-env", secret);
    }
    for check in &fields.checks {
        flag("check", check);
    }
    if let Some(policy) = policy(fields)? {
        flag("policy", &policy.to_string());
    }
    if fields.find_renames {
        flags.push("--find-renames".to_owned());
    }
    Ok(flags)
}

/// The policy given, with the network of the task in it.
fn policy(fields: &Fields) -> Result<Option<Value>, ErrorBody> {
    let Some(network) = &fields.network else {
        return Ok(fields.policy.clone());
    };
    let mut policy = match &fields.policy {
        Some(policy) => policy.clone(),
        None => serde_json::to_value(wp_codebox_policy::defaults(vec![
            "command-agent-run".to_owned(),
        ]))
        .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?,
    };
    if let Value::Object(members) = &mut policy {
        members.insert("network".to_owned(), network.clone());
    }
    Ok(Some(policy))
}
