//! Converts a task to a run request: looks up the model, mounts, secrets and policy that the task
//! names on this host.

use crate::environment::Environment;
use crate::model::{ModelOptions, model};
use crate::network::{self, NetworkOptions};
use crate::paths::{input, named_paths};
use crate::recipe;
use serde_json::Value;
use std::path::Path;
use wp_codebox_contracts::{
    Agent, AgentCommand, ErrorBody, ErrorCode, PresetAgent, RunRequest, RuntimePolicy, SiteId,
    TaskSpec, parse_json,
};
use wp_codebox_control::new_run_id;
use wp_codebox_policy::command_words;
use wp_codebox_settings::Settings;

/// Options and facts about this host from which a run request is built in addition to the task.
pub struct Beside<'a> {
    /// Partition of the state directory.
    pub site: &'a str,
    /// Model of the run.
    pub model: &'a ModelOptions,
    /// Network access of the guest.
    pub network: &'a NetworkOptions,
    /// Environment of the command.
    pub environment: Environment,
    /// Settings of this host, which name the paths of the run.
    pub settings: &'a Settings,
}

/// Builds the run request of a task. Looks up its model, mounts, secrets and policy on this host.
pub fn resolve(mut task: TaskSpec, beside: &Beside<'_>) -> Result<RunRequest, ErrorBody> {
    let who = task.agent_command.is_some() || task.agent.is_some() || task.model.is_some();
    if task.commands.is_empty() && !who && task.hold.is_none() {
        return Err(input(
            "nothing to run: add --model for the built-in agent, --agent, --agent-command or --command",
        ));
    }
    let model = model(&task, beside.model, beside.network, beside.environment)?;
    if task.texts.goal.is_empty() && !task.staged_files.is_empty() {
        "Run a command".clone_into(&mut task.texts.goal);
    }
    task.secrets = network::secrets(&task.secret_env, beside.environment)?;
    // If the guest also gets the model's key as a secret, add the key only once.
    let key = model.key;
    let key = key.filter(|key| task.secrets.iter().all(|s| s.env != key.env));
    task.secrets.extend(key);
    task.resolved_agent = agent(&task)?.or(model.agent);
    task.resolved_model = model.endpoint;
    task.provenance
        .insert("requester".to_owned(), Value::from("command-line"));
    let mut request = request(task, beside.site, beside.settings)?;
    if request.policy.is_none() {
        request.policy = network::policy(beside.network, &request)?;
    }
    Ok(request)
}

/// Creates a request with a new id from a resolved task.
pub fn request(task: TaskSpec, site: &str, settings: &Settings) -> Result<RunRequest, ErrorBody> {
    let site = SiteId::new(site).map_err(|e| input(format!("--site: {e}")))?;
    let paths = named_paths(settings)?;
    let mut task = task;
    task.resolved_seeds = recipe::seeds(&paths, &task.site_seeds)?;
    Ok(task.into_request(new_run_id()?, site, paths))
}

/// Returns the real path of an existing regular file.
pub fn real_file(path: &str) -> Option<String> {
    let real = Path::new(path).canonicalize().ok()?;
    real.is_file().then(|| real.to_str().map(str::to_owned))?
}

/// Returns the agent that the task names by its command line or by the name of a preset.
pub(crate) fn agent(task: &TaskSpec) -> Result<Option<Agent>, ErrorBody> {
    let Some(line) = &task.agent_command else {
        if !task.agent_env.is_empty() || !task.agent_success_codes.is_empty() {
            return Err(input(
                "agent_env and agent_success_codes belong to an agent that is given by its command line; leave them out",
            ));
        }
        let name = task.agent.clone();
        return Ok(name.map(|name| Agent::Preset(PresetAgent { name })));
    };
    let argv = command_words(line)?;
    if argv.is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::AgentMissing,
            "--agent-command is empty: set it to a program with its arguments",
        ));
    }
    let success_codes = match &task.agent_success_codes[..] {
        [] => vec![0],
        codes => codes.to_vec(),
    };
    Ok(Some(Agent::Command(AgentCommand {
        argv,
        success_codes,
        env: task.agent_env.clone(),
        preset: None,
    })))
}

/// Reads and parses a policy from an argument: the name of a file, or JSON text.
pub fn policy(given: &str) -> Result<RuntimePolicy, ErrorBody> {
    wp_codebox_policy::parse(&policy_document(given)?).map_err(ErrorBody::from)
}

/// Returns whether an argument is JSON text and not the name of a file.
pub fn is_json_text(given: &str) -> bool {
    given.trim_start().starts_with('{')
}

/// Reads a policy from an argument: the name of a file, or JSON text.
pub fn policy_document(given: &str) -> Result<Value, ErrorBody> {
    let invalid =
        |what: String| ErrorBody::new(ErrorCode::PolicyInvalid, format!("--policy: {what}"));
    let json = if is_json_text(given) {
        given.to_owned()
    } else {
        std::fs::read_to_string(given).map_err(|e| invalid(format!("{given}: {e}")))?
    };
    parse_json(json.as_bytes()).map_err(|e| {
        invalid(format!(
            "not valid JSON (line {}, column {})",
            e.line(),
            e.column()
        ))
    })
}
