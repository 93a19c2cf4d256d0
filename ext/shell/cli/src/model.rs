//! Model arguments of `run`: endpoint and limits of the built-in agent's model.

use clap::Args;
use wp_codebox_runs::ModelOptions;

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
    /// Returns the options that the arguments give.
    pub(super) fn options(&self) -> ModelOptions {
        ModelOptions {
            model: self.model.clone(),
            model_url: self.model_url.clone(),
            model_api: self.model_api.clone(),
            provider: self.provider.clone(),
            model_key_env: self.model_key_env.clone(),
            model_context_tokens: self.model_context_tokens,
            model_max_output_tokens: self.model_max_output_tokens,
            model_prices: self.model_prices.clone(),
            max_turns: self.max_turns,
            max_input_tokens: self.max_input_tokens,
            max_output_tokens: self.max_output_tokens,
            max_cost: self.max_cost.clone(),
            allowed_tools: self.allowed_tools.clone(),
            tool_policy: self.tool_policy.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Command};
    use crate::request::environment;
    use crate::run_args::RunArgs;
    use clap::Parser;
    use serde_json::json;
    use wp_codebox_contracts::{
        Agent, AgentBudget, ErrorBody, ErrorCode, ModelAgent, ModelApi, ModelPrices, TaskSpec,
    };
    use wp_codebox_runs::{ModelPart, model};

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
        model(
            &task(&args)?,
            &args.model.options(),
            &args.network.options(),
            environment,
        )
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
        let task = task(&args).unwrap();
        let read = model(
            &task,
            &args.model.options(),
            &args.network.options(),
            environment,
        )
        .unwrap();
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
