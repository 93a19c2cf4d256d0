//! Converts the JSON of a task to a run request.

use crate::environment::Environment;
use crate::model::ModelOptions;
use crate::network::NetworkOptions;
use crate::paths::absolute;
use crate::request::{self, Beside};
use serde_json::{Map, Value};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunRequest, TaskSpec};
use wp_codebox_policy::{normalise_task, read_task};
use wp_codebox_settings::Settings;

/// Fields of a task that this program refuses: only a WordPress site knows what they refer to.
const SITE_ONLY: &[&str] = &[
    "plugin",
    "theme",
    "git",
    "runtime_task",
    "component_contracts",
    "provider_plugin_paths",
    "agent_bundles",
    "tool_bridge",
    "parent_tool_bridge",
    "inherit",
    "wait",
];

fn invalid(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

/// Reads the input of a task. The flags replace its fields about the model.
pub(crate) fn read(input: Map<String, Value>, flags: &ModelOptions) -> Result<TaskSpec, ErrorBody> {
    let mut task = read_task(input, Map::new())?;
    if task.texts.goal.trim().is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::TaskMissing,
            "the task has no goal; describe in goal what the agent should do",
        ));
    }
    flags.fill(&mut task)?;
    check_combinations(&task)?;
    Ok(task)
}

/// What a command adds to the JSON of a task.
pub struct TaskOptions<'a> {
    /// Partition of the state directory.
    pub site: &'a str,
    /// Limit of running sandboxes of this partition.
    pub max_runs: u32,
    /// Environment variable with the API key of the model that the task uses.
    pub model_key_env: Option<&'a str>,
    /// Protocol of the task's model.
    pub model_api: Option<&'a str>,
    /// Environment of the command.
    pub environment: Environment,
    /// Settings of this host, which name the paths of the run.
    pub settings: &'a Settings,
    /// Sets whether the request runs on this host or in a cluster.
    pub place: &'a dyn Fn(&mut RunRequest) -> Result<(), ErrorBody>,
}

/// Converts the input of one task to a run request.
pub fn task_request(
    input: &Map<String, Value>,
    options: &TaskOptions<'_>,
) -> Result<RunRequest, ErrorBody> {
    let input = normalise_task(input.clone())?;
    if let Some(name) = SITE_ONLY.iter().find(|name| input.contains_key(**name)) {
        return Err(invalid(format!(
            "{name} can only be resolved by a WordPress site; remove it, or list directories in mounts"
        )));
    }
    let mut task = read(input, &ModelOptions::default())?;
    for mount in &mut task.mounts {
        if !mount.source.starts_with('/') {
            return Err(ErrorBody::new(
                ErrorCode::MountInvalid,
                "a mount needs source, an absolute path of this host, and target, a path of the guest",
            ));
        }
        mount.source = absolute(&mount.source)?;
    }
    task.max_runs = Some(options.max_runs.into());
    let model = ModelOptions {
        model_key_env: options
            .model_key_env
            .map(str::to_owned)
            .filter(|_| task.model.is_some()),
        model_api: options.model_api.unwrap_or("openai-chat").to_owned(),
        ..ModelOptions::default()
    };
    let beside = Beside {
        site: options.site,
        model: &model,
        network: &NetworkOptions::default(),
        environment: options.environment,
        settings: options.settings,
    };
    let mut request = request::resolve(task, &beside)?;
    (options.place)(&mut request)?;
    Ok(request)
}

/// Checks fields that require or exclude each other, by the same rules as the flags of `run`.
fn check_combinations(task: &TaskSpec) -> Result<(), ErrorBody> {
    if task.agent.is_some() && task.agent_command.is_some() {
        return Err(invalid("agent and agent_command cannot be given together"));
    }
    if task.budget.cost_usd.is_some() {
        return Err(invalid(
            "budget.cost_usd needs the prices of a WordPress site's provider; remove it",
        ));
    }
    if task.model.is_some() != task.base_url.is_some() {
        return Err(invalid(
            "model and base_url must be used together; set both or neither",
        ));
    }
    let budget = &task.budget;
    let needs_model = [
        ("provider", task.provider.is_some()),
        ("max_turns", task.max_turns.is_some()),
        ("budget.turns", budget.turns.is_some()),
        ("budget.input_tokens", budget.input_tokens.is_some()),
        ("budget.output_tokens", budget.output_tokens.is_some()),
        ("sandbox_tool_policy", task.sandbox_tool_policy.is_some()),
    ];
    match needs_model.into_iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) if task.model.is_none() => Err(invalid(format!(
            "{name} needs model; remove it or set model"
        ))),
        _ => Ok(()),
    }
}
