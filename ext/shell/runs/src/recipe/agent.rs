//! The agent of a recipe: reads the task of the step that runs it, and looks up its model and key on
//! this host.
//!
//! The task is read like the JSON of `wp-codebox agent-sandbox-run`.

use super::Host;
use crate::model::{ModelOptions, model};
use crate::network::NetworkOptions;
use crate::paths::text;
use crate::{request, task as json_task};
use serde_json::{Map, Value};
use wp_codebox_contracts::{Agent, ErrorBody, ErrorCode, RuntimePolicy, RuntimeTask, TaskSpec};

/// Fields of a task that describe the agent that `--agent-command` replaces.
const REPLACED: [&str; 6] = [
    "agent",
    "runtime_task",
    "provider",
    "model",
    "max_turns",
    "sandbox_tool_policy",
];

/// Agent of a recipe as the command gives it. An error names the option of the command line.
#[derive(Debug, Default)]
pub struct AgentOptions {
    /// Agent program with arguments for the recipe's agent step, in place of the agent and the model
    /// that the step names.
    pub agent_command: Option<String>,
    /// Model of the recipe's agent step.
    pub model: ModelOptions,
}

impl AgentOptions {
    /// Returns the first option that only an agent step uses.
    fn given(&self) -> Option<&'static str> {
        match (&self.agent_command, &self.model.model) {
            (Some(_), _) => Some("--agent-command"),
            (None, Some(_)) => Some("--model"),
            (None, None) => None,
        }
    }
}

fn invalid(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

/// Returns the task of a recipe without an agent step. Options for an agent are refused, because
/// they would have no effect.
pub(super) fn no_task(args: &AgentOptions) -> Result<TaskSpec, ErrorBody> {
    match args.given() {
        None => Ok(TaskSpec::default()),
        Some(flag) => Err(invalid(format!(
            "{flag} is for the step wp-codebox.agent-sandbox-run, which this recipe does not have: remove it"
        ))),
    }
}

/// Reads the task of a recipe's agent step; `policy` is that of the run.
pub(super) fn task(
    input: &Map<String, Value>,
    args: &AgentOptions,
    policy: &RuntimePolicy,
    host: &Host,
) -> Result<TaskSpec, ErrorBody> {
    let mut task = json_task::read(chosen(input, args)?, &args.model)?;
    for bundle in &mut task.agent_bundles {
        if let Some(source) = &mut bundle.source {
            *source = text(&host.resolve(source))?;
        }
    }
    task.policy = Some(policy.clone());
    let network = NetworkOptions::default();
    let model = model(&task, &args.model, &network, host.environment()).map_err(|error| {
        error.hint(
            "recipe runs have no --network-preset: put the preset into the policy of --policy",
        )
    })?;
    let ability = ability(&task.runtime_task)?;
    task.resolved_agent = ability.or(request::agent(&task)?).or(model.agent);
    task.resolved_model = model.endpoint;
    task.secrets.extend(model.key);
    if task.resolved_agent.is_none() {
        return Err(ErrorBody::new(
            ErrorCode::AgentMissing,
            "the step wp-codebox.agent-sandbox-run names no agent, and there is no model: add --model NAME --model-url URL, or --agent-command",
        ));
    }
    Ok(task)
}

/// Returns the input of the task without the fields that an option replaces.
fn chosen(
    input: &Map<String, Value>,
    args: &AgentOptions,
) -> Result<Map<String, Value>, ErrorBody> {
    let mut input = input.clone();
    if let Some(line) = &args.agent_command {
        for name in REPLACED {
            input.shift_remove(name);
        }
        input.insert("agent_command".to_owned(), line.as_str().into());
    }
    // The author of a recipe must not choose where a model's key is sent: a recipe that names a
    // model needs the caller's `--model`, too.
    let named = ["model", "provider"]
        .iter()
        .find(|name| input.contains_key(**name));
    match (named, &args.model.model) {
        (Some(name), None) => {
            let value = input.get(*name).and_then(Value::as_str).unwrap_or_default();
            Err(ErrorBody::new(
                ErrorCode::ModelMissing,
                format!(
                    "the recipe names the {name} {value:?}, but its address comes from this command: add --model NAME --model-url URL, and --model-key-env for a key"
                ),
            ))
        }
        (Some(_) | None, _) => Ok(input),
    }
}

fn ability(given: &Map<String, Value>) -> Result<Option<Agent>, ErrorBody> {
    if given.is_empty() {
        return Ok(None);
    }
    let task: RuntimeTask = serde_json::from_value(given.clone().into())
        .map_err(|_| invalid("runtime-task-json must be {ability, input}"))?;
    Ok(Some(Agent::Ability(task)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn input(members: Value) -> Map<String, Value> {
        members.as_object().unwrap().clone()
    }

    #[test]
    fn agent_command_replaces_agent_and_model_of_the_step() {
        let step = input(
            json!({"goal": "g", "agent": "codex", "model": "m", "provider": "p",
            "max_turns": 3, "context": {"mode": "x"}}),
        );
        let args = AgentOptions {
            agent_command: Some("sh fix.sh".to_owned()),
            ..AgentOptions::default()
        };
        let wanted =
            input(json!({"goal": "g", "context": {"mode": "x"}, "agent_command": "sh fix.sh"}));
        assert_eq!(chosen(&step, &args).unwrap(), wanted);
    }

    #[test]
    fn model_that_a_recipe_names_is_refused_without_model_options_on_the_command_line() {
        let step = input(json!({"goal": "g", "model": "m", "provider": "p"}));
        let error = chosen(&step, &AgentOptions::default()).unwrap_err();
        assert_eq!(error.code, ErrorCode::ModelMissing);
        assert!(error.message.contains("\"m\""), "{}", error.message);
        let args = AgentOptions {
            model: ModelOptions {
                model: Some("n".to_owned()),
                ..ModelOptions::default()
            },
            ..AgentOptions::default()
        };
        assert_eq!(chosen(&step, &args).unwrap(), step);
    }

    #[test]
    fn options_for_an_agent_are_refused_without_an_agent_step() {
        assert!(no_task(&AgentOptions::default()).is_ok());
        let args = AgentOptions {
            agent_command: Some("true".to_owned()),
            ..AgentOptions::default()
        };
        let error = no_task(&args).unwrap_err();
        assert!(error.message.starts_with("--agent-command"), "{error}");
    }
}
