//! Model arguments of `run`: endpoint and limits of the built-in agent's model.

use super::network::NetworkArgs;
use clap::Args;
use serde_json::Value;
use wp_codebox_contracts::{
    Agent, AgentBudget, ErrorBody, ErrorCode, ModelAgent, ModelApi, ModelEndpoint, ModelPrices,
    NetworkPolicy, SandboxToolPolicy, SecretBinding, TaskSpec, parse_json,
};
use wp_codebox_policy::{
    ModelBase, check_model, check_model_agent, check_secret_name, parse_tool_policy,
};

/// Network preset that lets programs in the guest call the model.
const GUEST_PRESET: &str = "model";
/// Flag that selects an agent by the name of its preset.
const PRESET_FLAG: &str = "--agent";
/// Maximum size of a file given to `--tool-policy`, in bytes.
const TOOL_POLICY_BYTES: u64 = 1024 * 1024;

/// Heading of these options in the help.
pub(crate) const HEADING: &str = "Model and built-in agent";

/// Arguments about the model of a run.
#[derive(Debug, Default, Args)]
pub(crate) struct ModelArgs {
    /// Model name as its provider defines it. Without --agent, --agent-command and --command the
    /// built-in agent uses the model: the host calls the model, and the agent's tools run in the
    /// guest.
    #[arg(long, value_name = "NAME", requires = "model_url", help_heading = HEADING)]
    pub model: Option<String>,
    /// Base URL of the model: https://HOST[:PORT][/PATH], or http:// for this host, and for the
    /// private network when the model needs no key.
    #[arg(long, value_name = "URL", requires = "model", help_heading = HEADING)]
    pub model_url: Option<String>,
    /// Protocol of the model: chat completions below --model-url, or messages below --model-url/v1.
    #[arg(
        long,
        value_name = "API",
        value_parser = ["openai-chat", "anthropic-messages"],
        default_value = "openai-chat",
        help_heading = HEADING
    )]
    pub model_api: String,
    /// Id of the provider, for the record. [default: the host of --model-url]
    #[arg(long, value_name = "ID", requires = "model", help_heading = HEADING)]
    pub provider: Option<String>,
    /// Environment variable of this command with the model's key. The key is sent to --model-url
    /// only and never enters the guest.
    #[arg(long, value_name = "VARIABLE", requires = "model", help_heading = HEADING)]
    pub model_key_env: Option<String>,
    /// Size of the model's context window in tokens. [default: 128000]
    #[arg(long, value_name = "N", requires = "model", help_heading = HEADING)]
    pub model_context_tokens: Option<u64>,
    /// Limit of tokens in one response. [default: 8192]
    #[arg(long, value_name = "N", requires = "model", help_heading = HEADING)]
    pub model_max_output_tokens: Option<u64>,
    /// Prices in US dollars per million input tokens, output tokens and cached input tokens, e.g.
    /// 2.50,10,1.25.
    #[arg(long, value_name = "IN,OUT[,CACHED]", requires = "model", help_heading = HEADING)]
    pub model_prices: Option<String>,
    /// Limit of model responses. [default: 60]
    #[arg(long, value_name = "N", requires = "model", help_heading = HEADING)]
    pub max_turns: Option<u32>,
    /// Limit of input tokens over all requests. [default: 4000000]
    #[arg(long, value_name = "N", requires = "model", help_heading = HEADING)]
    pub max_input_tokens: Option<u64>,
    /// Limit of output tokens over all responses. [default: 200000]
    #[arg(long, value_name = "N", requires = "model", help_heading = HEADING)]
    pub max_output_tokens: Option<u64>,
    /// Cost limit in US dollars. [default: no limit]
    #[arg(long, value_name = "USD", requires = "model_prices", help_heading = HEADING)]
    pub max_cost: Option<String>,
    /// Tool that the built-in agent may use, e.g. workspace.read; may be repeated. [default: all]
    #[arg(long = "allowed-tool", value_name = "ID", requires = "model", help_heading = HEADING)]
    pub allowed_tools: Vec<String>,
    /// Tool policy (sandbox-tool-policy/v1): a JSON file or JSON text.
    #[arg(long, value_name = "FILE|JSON", requires = "model", help_heading = HEADING)]
    pub tool_policy: Option<String>,
}

impl ModelArgs {
    /// Copies the flags that describe the task into `task`; a flag replaces the field of the task.
    /// Protocol, key and prices are not copied: they are settings of this host.
    pub(super) fn fill(&self, task: &mut TaskSpec) -> Result<(), ErrorBody> {
        fn set<T: Clone>(field: &mut Option<T>, flag: &Option<T>) {
            if flag.is_some() {
                field.clone_from(flag);
            }
        }
        set(&mut task.model, &self.model);
        set(&mut task.base_url, &self.model_url);
        set(&mut task.provider, &self.provider);
        set(&mut task.max_turns, &self.max_turns);
        set(&mut task.budget.input_tokens, &self.max_input_tokens);
        set(&mut task.budget.output_tokens, &self.max_output_tokens);
        if !self.allowed_tools.is_empty() {
            task.allowed_tools.clone_from(&self.allowed_tools);
        }
        let tools = self.tool_policy.as_deref().map(tool_policy).transpose()?;
        set(&mut task.sandbox_tool_policy, &tools);
        Ok(())
    }
}

/// Parts of a run request that follow from the model of a task.
#[derive(Debug, Default)]
pub(super) struct ModelPart {
    /// The built-in agent (the agent loop on the host), if it does the work of the task.
    pub agent: Option<Agent>,
    pub endpoint: Option<ModelEndpoint>,
    /// Key of the model, which becomes one of the run's secrets.
    pub key: Option<SecretBinding>,
}

/// What does the work of a task: the built-in agent or a guest program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worker {
    BuiltIn,
    /// A program in the guest; the value is the flag that selects it.
    Guest(&'static str),
}

impl Worker {
    fn of(task: &TaskSpec) -> Self {
        if task.agent_command.is_some() {
            Self::Guest("--agent-command")
        } else if task.agent.is_some() {
            Self::Guest(PRESET_FLAG)
        } else if !task.runtime_task.is_empty() {
            Self::Guest("runtime_task")
        } else if !task.commands.is_empty() {
            Self::Guest("--command")
        } else {
            Self::BuiltIn
        }
    }
}

/// Determines the endpoint, agent and key for the model of a task; all are absent without a model.
pub(super) fn read(
    task: &TaskSpec,
    host: &ModelArgs,
    network: &NetworkArgs,
) -> Result<ModelPart, ErrorBody> {
    let (Some(name), Some(url)) = (&task.model, &task.base_url) else {
        return Ok(ModelPart::default());
    };
    let endpoint = endpoint(task, host, name, url)?;
    let key = host.model_key_env.as_deref().map(key).transpose()?;
    let hint = |error: ErrorBody| {
        error.hint("these values come from --model, --model-url, --provider, --model-… and --max-…")
    };
    let agent = match Worker::of(task) {
        Worker::BuiltIn => {
            if task.goal.is_empty() {
                let message = "--goal is missing: say what the built-in agent should do";
                return Err(ErrorBody::new(ErrorCode::TaskMissing, message));
            }
            let agent = ModelAgent {
                budget: budget(task, host)?,
                instructions: None,
            };
            check_model_agent(&agent, Some(&endpoint)).map_err(|e| hint(e.body()))?;
            Some(Agent::Model(agent))
        }
        Worker::Guest(flag) => {
            refuse_loop_fields(task, host, flag)?;
            // Do not check this for `--agent`: an agent preset adds its network rules itself, or
            // reports which ones an explicit policy lacks.
            if flag != PRESET_FLAG && !guest_may_ask(task, network) {
                return Err(input(format!(
                    "{flag} runs in the guest, which cannot reach the model: add --network-preset model, or remove {flag} to use the built-in agent"
                )));
            }
            check_model(&endpoint).map_err(|e| hint(e.body()))?;
            None
        }
    };
    Ok(ModelPart {
        agent,
        endpoint: Some(endpoint),
        key,
    })
}

fn input(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

fn endpoint(
    task: &TaskSpec,
    given: &ModelArgs,
    name: &str,
    url: &str,
) -> Result<ModelEndpoint, ErrorBody> {
    let api: ModelApi =
        serde_json::from_value(Value::from(given.model_api.as_str())).map_err(|_| {
            input(format!(
                "--model-api {:?} must be openai-chat or anthropic-messages",
                given.model_api
            ))
        })?;
    let provider = task.provider.clone().unwrap_or_else(|| {
        // For an invalid address use any name: the validation that follows reports the address.
        ModelBase::parse(url).map_or_else(|_| "unknown".to_owned(), |base| base.host().to_owned())
    });
    Ok(ModelEndpoint {
        provider,
        model: name.to_owned(),
        api,
        base_url: url.to_owned(),
        secret: given.model_key_env.clone(),
        // The user of this command is the operator of the host, so private addresses are permitted.
        private: true,
        context_tokens: given.model_context_tokens,
        max_output_tokens: given.model_max_output_tokens,
        prices: given.model_prices.as_deref().map(prices).transpose()?,
    })
}

fn budget(task: &TaskSpec, host: &ModelArgs) -> Result<AgentBudget, ErrorBody> {
    let default = AgentBudget::default();
    // A task can limit turns in two fields; the smaller limit applies.
    let turns = [task.max_turns, task.budget.turns];
    Ok(AgentBudget {
        turns: turns.into_iter().flatten().min().unwrap_or(default.turns),
        input_tokens: task.budget.input_tokens.unwrap_or(default.input_tokens),
        output_tokens: task.budget.output_tokens.unwrap_or(default.output_tokens),
        cost_microusd: host
            .max_cost
            .as_deref()
            .map(|text| dollars("--max-cost", text))
            .transpose()?,
    })
}

/// Rejects flags that affect only the built-in agent when a guest program does the work.
fn refuse_loop_fields(task: &TaskSpec, host: &ModelArgs, worker: &str) -> Result<(), ErrorBody> {
    let turns = task.max_turns.or(task.budget.turns);
    let flags = [
        ("--max-turns", turns.is_some()),
        ("--max-input-tokens", task.budget.input_tokens.is_some()),
        ("--max-output-tokens", task.budget.output_tokens.is_some()),
        ("--max-cost", host.max_cost.is_some()),
        ("--allowed-tool", !task.allowed_tools.is_empty()),
        ("--tool-policy", task.sandbox_tool_policy.is_some()),
    ];
    match flags.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(input(format!(
            "{flag} is for the built-in agent, but {worker} does the work: remove one of them"
        ))),
    }
}

fn guest_may_ask(task: &TaskSpec, network: &NetworkArgs) -> bool {
    let presets = match task.policy.as_ref().map(|policy| &policy.network) {
        Some(NetworkPolicy::Rules(rules)) => &rules.presets,
        Some(NetworkPolicy::Posture(_)) => return false,
        None => &network.network_preset,
    };
    presets.iter().any(|preset| preset == GUEST_PRESET)
}

/// Reads the model's key from an environment variable of this process.
fn key(variable: &str) -> Result<SecretBinding, ErrorBody> {
    let invalid = |what: String| ErrorBody::new(ErrorCode::SecretInvalid, what);
    check_secret_name(variable).map_err(|why| {
        invalid(format!(
            "--model-key-env needs the name of an environment variable, not the key itself: {why}"
        ))
    })?;
    let value = std::env::var(variable).map_err(|_| {
        invalid(format!(
            "--model-key-env {variable}: this environment variable is not set or not valid UTF-8; export it first"
        ))
    })?;
    Ok(SecretBinding {
        env: variable.to_owned(),
        value,
        hosts: Vec::new(),
    })
}

fn tool_policy(given: &str) -> Result<SandboxToolPolicy, ErrorBody> {
    use std::io::Read;
    let code = ErrorCode::SandboxToolPolicyInvalid;
    let invalid = |what: String| ErrorBody::new(code, format!("--tool-policy: {what}"));
    let json = if given.trim_start().starts_with('{') {
        given.to_owned()
    } else {
        let unread = |e: std::io::Error| invalid(format!("{given}: {e}"));
        let file = std::fs::File::open(given).map_err(unread)?;
        let mut text = String::new();
        file.take(TOOL_POLICY_BYTES)
            .read_to_string(&mut text)
            .map_err(unread)?;
        text
    };
    let document: Value = parse_json(json.as_bytes()).map_err(|e| {
        invalid(format!(
            "not valid JSON (line {}, column {})",
            e.line(),
            e.column()
        ))
    })?;
    parse_tool_policy(&document).map_err(|e| e.body())
}

fn prices(given: &str) -> Result<ModelPrices, ErrorBody> {
    let parts = given
        .split(',')
        .map(|text| dollars("--model-prices", text.trim()))
        .collect::<Result<Vec<_>, _>>()?;
    let (input_price, output, cached_input) = match parts[..] {
        [input_price, output] => (input_price, output, None),
        [input_price, output, cached] => (input_price, output, Some(cached)),
        _ => {
            return Err(input(format!(
                "--model-prices {given:?} must be IN,OUT or IN,OUT,CACHED, US dollars per million tokens"
            )));
        }
    };
    Ok(ModelPrices {
        input: input_price,
        cached_input,
        output,
    })
}

/// Parses US dollars to millionths without a float, which could change a price.
fn dollars(flag: &str, given: &str) -> Result<u64, ErrorBody> {
    let parsed = || {
        let (whole, part) = given.split_once('.').unwrap_or((given, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 6 {
            return None;
        }
        let millionths: u64 = format!("{part:0<6}").parse().ok()?;
        whole
            .parse::<u64>()
            .ok()?
            .checked_mul(1_000_000)?
            .checked_add(millionths)
    };
    parsed().ok_or_else(|| {
        input(format!(
            "{flag} {given:?} must be a number of US dollars, e.g. 2.50, with at most six decimals"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::run_args::RunArgs;
    use clap::Parser;
    use serde_json::json;

    const MODEL: &[&str] = &[
        "--model",
        "m-large",
        "--model-url",
        "https://api.example.org/v1",
    ];

    fn parse(rest: &[&str]) -> Result<RunArgs, String> {
        let all = ["wp-codebox", "run"].iter().chain(rest);
        match Cli::<crate::HandedOver>::try_parse_from(all)
            .map_err(|e| e.to_string())?
            .command
        {
            Command::Run(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    fn task(args: &RunArgs) -> Result<TaskSpec, ErrorBody> {
        crate::run_args::task(args)
    }

    fn part(rest: &[&str]) -> Result<ModelPart, ErrorBody> {
        let args = parse(&[MODEL, rest].concat()).unwrap();
        read(&task(&args)?, &args.model, &args.network)
    }

    fn why(rest: &[&str]) -> (ErrorCode, String) {
        let error = part(rest).unwrap_err();
        (error.code, error.message)
    }

    #[test]
    fn model_without_agent_selects_the_built_in_agent() {
        let read = part(&["--goal", "Fix it"]).unwrap();
        assert_eq!(read.agent, Some(Agent::Model(ModelAgent::default())));
        let endpoint = read.endpoint.unwrap();
        assert_eq!(endpoint.provider, "api.example.org");
        assert_eq!(endpoint.api, ModelApi::OpenaiChat);
        assert_eq!((endpoint.secret, endpoint.prices), (None, None));

        let tools = json!({
            "schema": "wp-codebox/sandbox-tool-policy/v1", "version": 1, "tools": [],
        })
        .to_string();
        let all = part(&[
            "--goal",
            "Fix it",
            "--model-api",
            "anthropic-messages",
            "--provider",
            "example",
            "--model-context-tokens",
            "200000",
            "--model-max-output-tokens",
            "4096",
            "--model-prices",
            "3,15.5,0.300001",
            "--max-turns",
            "7",
            "--max-input-tokens",
            "1000",
            "--max-output-tokens",
            "2000",
            "--max-cost",
            "1.5",
            "--allowed-tool",
            "workspace.read",
            "--tool-policy",
            &tools,
        ])
        .unwrap();
        let Some(Agent::Model(agent)) = all.agent else {
            panic!("{:?}", all.agent)
        };
        assert_eq!(
            agent.budget,
            AgentBudget {
                turns: 7,
                input_tokens: 1000,
                output_tokens: 2000,
                cost_microusd: Some(1_500_000),
            }
        );
        let endpoint = all.endpoint.unwrap();
        assert_eq!(endpoint.api, ModelApi::AnthropicMessages);
        assert_eq!(endpoint.context_tokens, Some(200_000));
        assert_eq!(
            endpoint.prices,
            Some(ModelPrices {
                input: 3_000_000,
                output: 15_500_000,
                cached_input: Some(300_001),
            })
        );
    }

    #[test]
    fn incomplete_model_flags_are_refused_and_a_run_without_model_flags_has_no_model() {
        let args = parse(&["--goal", "x", "--agent-command", "true"]).unwrap();
        let read = read(&task(&args).unwrap(), &args.model, &args.network).unwrap();
        assert!(read.agent.is_none() && read.endpoint.is_none());
        for alone in [
            &["--model", "m"][..],
            &["--model-url", "https://a.example"],
            &["--max-turns", "1"],
            &["--allowed-tool", "workspace.read"],
            &["--model-key-env", "MODEL_KEY"],
        ] {
            let said = parse(alone).unwrap_err();
            assert!(said.contains("required"), "{said}");
        }
    }

    /// A worker does the task: the built-in agent, an agent command or a command.
    #[test]
    fn model_flags_are_refused_without_a_goal_with_an_agent_command_and_with_invalid_values() {
        let goal = ["--goal", "Fix it"];
        let (code, _) = why(&[]);
        assert_eq!(code, ErrorCode::TaskMissing);
        for worker in [
            ["--agent-command", "true"],
            ["--command", "wordpress.wp-cli"],
        ] {
            let (code, message) = why(&worker);
            assert_eq!(code, ErrorCode::InputInvalid);
            assert!(message.contains("--network-preset model"), "{message}");
            let open = [&worker[..], &["--network-preset", "model"]].concat();
            assert!(part(&open).unwrap().agent.is_none());
            let mixed = [&open[..], &["--max-turns", "3"]].concat();
            let (_, message) = why(&mixed);
            assert!(
                message.starts_with("--max-turns is for the built-in agent"),
                "{message}"
            );
        }
        for (bad, code) in [
            (["--model-prices", "1"], ErrorCode::InputInvalid),
            (["--model-prices", "1,-2"], ErrorCode::InputInvalid),
            (["--model-prices", "1,0.0000001"], ErrorCode::InputInvalid),
            (["--max-turns", "0"], ErrorCode::BudgetInvalid),
            (["--model-context-tokens", "1"], ErrorCode::ModelInvalid),
            (["--tool-policy", "{"], ErrorCode::SandboxToolPolicyInvalid),
            (["--tool-policy", "{}"], ErrorCode::SandboxToolPolicyInvalid),
            (
                ["--tool-policy", "/nonexistent"],
                ErrorCode::SandboxToolPolicyInvalid,
            ),
        ] {
            let (found, message) = why(&[&goal[..], &bad].concat());
            assert_eq!(found, code, "{bad:?}: {message}");
        }
    }

    #[test]
    fn model_key_env_that_is_a_key_or_an_unset_variable_is_refused_and_the_key_is_not_printed() {
        let goal = ["--goal", "Fix it"];
        for (given, part) in [
            ("sk-correct-horse", "not the key itself"),
            ("TEST_UNSET_KEY", "export it first"),
        ] {
            let (code, message) = why(&[&goal[..], &["--model-key-env", given]].concat());
            assert_eq!(code, ErrorCode::SecretInvalid);
            assert!(message.contains(part), "{message}");
            assert!(!message.contains("horse"), "{message}");
        }
    }
}
