//! Model of a run: its endpoint, its key, and the limits of the built-in agent.

use crate::environment::Environment;
use crate::network::NetworkOptions;
use serde_json::Value;
use wp_codebox_contracts::{
    Agent, AgentBudget, CodedError, ErrorBody, ErrorCode, ModelAgent, ModelApi, ModelEndpoint,
    ModelPrices, NetworkPolicy, SandboxToolPolicy, SecretBinding, TaskSpec, parse_json,
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

/// Model of a run, and limits of the built-in agent, as the operator of this host gives them. An error
/// names the option of the command line.
#[derive(Debug, Default)]
pub struct ModelOptions {
    /// Name of the model, as its provider defines it.
    pub model: Option<String>,
    /// Base URL of the model.
    pub model_url: Option<String>,
    /// Protocol of the model.
    pub model_api: String,
    /// Id of the provider; without it, the host of the base URL.
    pub provider: Option<String>,
    /// Environment variable with the model's key.
    pub model_key_env: Option<String>,
    /// Size of the model's context window in tokens.
    pub model_context_tokens: Option<u64>,
    /// Limit of tokens in one response.
    pub model_max_output_tokens: Option<u64>,
    /// Prices in US dollars per million input tokens, output tokens and cached input tokens.
    pub model_prices: Option<String>,
    /// Limit of model responses.
    pub max_turns: Option<u32>,
    /// Limit of input tokens over all requests.
    pub max_input_tokens: Option<u64>,
    /// Limit of output tokens over all responses.
    pub max_output_tokens: Option<u64>,
    /// Cost limit in US dollars.
    pub max_cost: Option<String>,
    /// Tools that the built-in agent may use; empty for all.
    pub allowed_tools: Vec<String>,
    /// Tool policy: a JSON file or JSON text.
    pub tool_policy: Option<String>,
}

impl ModelOptions {
    /// Copies the flags that describe the task into `task`; a flag replaces the field of the task.
    /// Protocol, key and prices are not copied: they are settings of this host.
    pub fn fill(&self, task: &mut TaskSpec) -> Result<(), ErrorBody> {
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
pub struct ModelPart {
    /// The built-in agent (the agent loop on the host), if it does the work of the task.
    pub agent: Option<Agent>,
    /// Endpoint of the model.
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
pub fn model(
    task: &TaskSpec,
    host: &ModelOptions,
    network: &NetworkOptions,
    environment: Environment,
) -> Result<ModelPart, ErrorBody> {
    let (Some(name), Some(url)) = (&task.model, &task.base_url) else {
        return Ok(ModelPart::default());
    };
    let endpoint = endpoint(task, host, name, url)?;
    let key = host.model_key_env.as_deref();
    let key = key.map(|name| key_of(name, environment)).transpose()?;
    let hint = |error: ErrorBody| {
        error.hint("these values come from --model, --model-url, --provider, --model-… and --max-…")
    };
    let agent = match Worker::of(task) {
        Worker::BuiltIn => {
            if task.texts.goal.is_empty() {
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
    given: &ModelOptions,
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

fn budget(task: &TaskSpec, host: &ModelOptions) -> Result<AgentBudget, ErrorBody> {
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
fn refuse_loop_fields(task: &TaskSpec, host: &ModelOptions, worker: &str) -> Result<(), ErrorBody> {
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

fn guest_may_ask(task: &TaskSpec, network: &NetworkOptions) -> bool {
    let presets = match task.policy.as_ref().map(|policy| &policy.network) {
        Some(NetworkPolicy::Rules(rules)) => &rules.presets,
        Some(NetworkPolicy::Posture(_)) => return false,
        None => &network.network_preset,
    };
    presets.iter().any(|preset| preset == GUEST_PRESET)
}

/// Reads the model's key from an environment variable of the command.
fn key_of(variable: &str, environment: Environment) -> Result<SecretBinding, ErrorBody> {
    let invalid = |what: String| ErrorBody::new(ErrorCode::SecretInvalid, what);
    check_secret_name(variable).map_err(|why| {
        invalid(format!(
            "--model-key-env needs the name of an environment variable, not the key itself: {why}"
        ))
    })?;
    let value = environment(variable).ok_or_else(|| {
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
    parse_tool_policy(&document).map_err(ErrorBody::from)
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
