//! The agent of a request, and what it is given: model, tools, components.

use super::rows::{absolute_rule, bounded};
use crate::fields::Fields;
use crate::ini::is_absolute;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    Agent, AgentBudget, AgentCommand, Component, ComponentLoad, ErrorBody, ErrorCode, ModelAgent,
    ModelApi, ModelEndpoint, ModelPrices, ParentTool, ParentToolBridge, PresetAgent,
    ReadinessProbe, RuntimeTask, SandboxToolPolicy,
};
use wp_codebox_policy as policy;

/// Longest instructions of a host to the built-in loop, bytes.
const MAX_INSTRUCTIONS: usize = 64 * 1024;

/// Who does the work.
pub(super) fn agent(fields: &mut Fields) -> Result<Option<Agent>, ErrorBody> {
    let Some(given) = fields.object("agent")? else {
        return Ok(None);
    };
    let agent = match given.get("kind").unwrap_or(&Value::Null) {
        Value::Null => Agent::Command(command(given)?),
        Value::String(kind) => match kind.as_str() {
            "command" => Agent::Command(command(given)?),
            "preset" => Agent::Preset(preset(given)?),
            "model" => Agent::Model(model_agent(given)?),
            "ability" => Agent::Ability(ability(given)?),
            _ => return Err(fields.refuse("agent.kind", "command, preset, model or ability")),
        },
        _ => return Err(fields.refuse("agent.kind", "command, preset, model or ability")),
    };
    Ok(Some(agent))
}

fn command(given: Map<String, Value>) -> Result<AgentCommand, ErrorBody> {
    const KNOWN: &[&str] = &["kind", "argv", "success_codes", "env"];
    let mut agent = Fields::new(given, "agent", KNOWN, ErrorCode::InputInvalid)?;
    let argv = agent.texts("argv")?;
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        return Err(agent.refuse("argv", "a list that starts with the program"));
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err(agent.refuse("argv", "free of NUL bytes"));
    }
    let mut success_codes = Vec::new();
    for (index, code) in agent
        .list("success_codes")?
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        match code.as_u64().and_then(|code| u8::try_from(code).ok()) {
            Some(code) => success_codes.push(i32::from(code)),
            None => {
                let name = format!("success_codes[{index}]");
                return Err(agent.refuse(&name, "a whole number from 0 to 255"));
            }
        }
    }
    if success_codes.is_empty() {
        success_codes.push(0);
    }
    let mut env = BTreeMap::new();
    for (name, value) in agent.object("env")?.unwrap_or_default() {
        policy::check_env_name(&name).map_err(|e| e.body(&name))?;
        match value {
            Value::String(value) if !value.contains('\0') => env.insert(name, value),
            _ => {
                let name = format!("env.{name}");
                return Err(agent.refuse(&name, "a string without NUL bytes"));
            }
        };
    }
    Ok(AgentCommand {
        argv,
        success_codes,
        env,
        preset: None,
    })
}

fn preset(given: Map<String, Value>) -> Result<PresetAgent, ErrorBody> {
    let mut agent = Fields::new(given, "agent", &["kind", "name"], ErrorCode::InputInvalid)?;
    let name = agent.required_text("name")?;
    policy::check_preset_name(&name).map_err(|e| e.body())?;
    Ok(PresetAgent { name })
}

fn model_agent(given: Map<String, Value>) -> Result<ModelAgent, ErrorBody> {
    const KNOWN: &[&str] = &["kind", "budget", "instructions"];
    const BUDGET: &[&str] = &["turns", "input_tokens", "output_tokens", "cost_microusd"];
    let mut agent = Fields::new(given, "agent", KNOWN, ErrorCode::InputInvalid)?;
    let given = agent.object("budget")?.unwrap_or_default();
    let mut row = Fields::new(given, "agent.budget", BUDGET, ErrorCode::BudgetInvalid)?;
    let mut budget = AgentBudget::default();
    if let Some(turns) = row.count("turns")? {
        budget.turns = u32::try_from(turns).unwrap_or(u32::MAX);
    }
    budget.input_tokens = row.count("input_tokens")?.unwrap_or(budget.input_tokens);
    budget.output_tokens = row.count("output_tokens")?.unwrap_or(budget.output_tokens);
    budget.cost_microusd = row.count("cost_microusd")?;
    let instructions = agent.text("instructions")?;
    if instructions
        .as_ref()
        .is_some_and(|text| text.len() > MAX_INSTRUCTIONS)
    {
        let rule = format!("at most {MAX_INSTRUCTIONS} bytes long");
        return Err(agent.refuse("instructions", &rule));
    }
    Ok(ModelAgent {
        budget,
        instructions,
    })
}

fn ability(given: Map<String, Value>) -> Result<RuntimeTask, ErrorBody> {
    const KNOWN: &[&str] = &["kind", "ability", "input"];
    let code = ErrorCode::RuntimeTaskRequestInvalid;
    let mut task = Fields::new(given, "agent", KNOWN, code)?;
    let task = RuntimeTask {
        ability: task.required_text("ability")?,
        input: task.object("input")?.unwrap_or_default(),
    };
    policy::check_runtime_task(&task).map_err(|e| {
        let field = match e {
            policy::ComponentError::Document { .. } => "agent.input",
            _ => "agent.ability",
        };
        e.body().with("field", field)
    })?;
    Ok(task)
}

/// The model and where it is.
pub(super) fn model(fields: &mut Fields) -> Result<Option<ModelEndpoint>, ErrorBody> {
    const KNOWN: &[&str] = &[
        "provider",
        "model",
        "api",
        "base_url",
        "secret",
        "private",
        "context_tokens",
        "max_output_tokens",
        "prices",
    ];
    let Some(given) = fields.object("model")? else {
        return Ok(None);
    };
    let code = ErrorCode::ModelInvalid;
    let mut row = Fields::new(given, "model", KNOWN, code)?;
    let api = match row.required_text("api")?.as_str() {
        "openai-chat" => ModelApi::OpenaiChat,
        "anthropic-messages" => ModelApi::AnthropicMessages,
        _ => return Err(row.refuse("api", "openai-chat or anthropic-messages")),
    };
    let prices = match row.object("prices")? {
        None => None,
        Some(given) => {
            const PRICES: &[&str] = &["input", "cached_input", "output"];
            let mut prices = Fields::new(given, "model.prices", PRICES, code)?;
            Some(ModelPrices {
                input: prices.count("input")?.unwrap_or_default(),
                cached_input: prices.count("cached_input")?,
                output: prices.count("output")?.unwrap_or_default(),
            })
        }
    };
    let model = ModelEndpoint {
        provider: row.required_text("provider")?,
        model: row.required_text("model")?,
        api,
        base_url: row.required_text("base_url")?,
        secret: row.text("secret")?,
        private: row.flag("private")?,
        context_tokens: row.count("context_tokens")?,
        max_output_tokens: row.count("max_output_tokens")?,
        prices,
    };
    Ok(Some(model))
}

/// Which tools exist.
pub(super) fn tool_policy(fields: &mut Fields) -> Result<Option<SandboxToolPolicy>, ErrorBody> {
    let Some(given) = fields.object("tool_policy")? else {
        return Ok(None);
    };
    policy::parse_tool_policy(&Value::Object(given))
        .map(Some)
        .map_err(|e| e.body().with("field", "tool_policy"))
}

/// The model, and what the built-in loop may use of it. The runner checks both again.
pub(super) fn check_model(
    agent: Option<&Agent>,
    model: Option<&ModelEndpoint>,
) -> Result<(), ErrorBody> {
    let checked = match (agent, model) {
        (Some(Agent::Model(agent)), model) => policy::check_model_agent(agent, model),
        (_, Some(model)) => policy::check_model(model),
        (_, None) => return Ok(()),
    };
    checked.map(|_| ()).map_err(|e| e.body())
}

/// Tools that the parent answers for.
pub(super) fn parent_tools(fields: &mut Fields) -> Result<Option<ParentToolBridge>, ErrorBody> {
    let Some(given) = fields.object("parent_tools")? else {
        return Ok(None);
    };
    let code = ErrorCode::SandboxToolPolicyInvalid;
    let mut bridge = Fields::new(given, "parent_tools", &["tools", "timeout_ms"], code)?;
    let rows = bridge.rows("tools", &["id", "description", "input_schema"], code)?;
    bounded(&bridge, "tools", rows.len())?;
    let mut tools = Vec::with_capacity(rows.len());
    for mut row in rows {
        tools.push(ParentTool {
            id: row.required_text("id")?,
            description: row.required_text("description")?,
            input_schema: row.object("input_schema")?.unwrap_or_default(),
        });
    }
    Ok(Some(ParentToolBridge {
        tools,
        timeout_ms: bridge.count("timeout_ms")?,
    }))
}

/// Code of the host that the guest's WordPress loads.
pub(super) fn components(fields: &mut Fields) -> Result<Vec<Component>, ErrorBody> {
    const KNOWN: &[&str] = &[
        "slug",
        "source",
        "load_as",
        "entry",
        "activate",
        "required",
        "readiness_probe",
    ];
    let code = ErrorCode::InputInvalid;
    let rows = fields.rows("components", KNOWN, code)?;
    bounded(fields, "components", rows.len())?;
    let mut components = Vec::with_capacity(rows.len());
    for mut row in rows {
        let source = row.required_text("source")?;
        if !is_absolute(&source) {
            return Err(row.refuse("source", absolute_rule()));
        }
        let load_as = match row.text("load_as")?.as_deref() {
            None | Some("plugin") => ComponentLoad::Plugin,
            Some("mu-plugin") => ComponentLoad::MuPlugin,
            Some(_) => return Err(row.refuse("load_as", "plugin or mu-plugin")),
        };
        let readiness_probe = match row.object("readiness_probe")? {
            None => None,
            Some(given) => Some(probe(given, &row)?),
        };
        components.push(Component {
            slug: row.required_text("slug")?,
            source,
            load_as,
            entry: row.text("entry")?,
            activate: row.flag("activate")?,
            required: row.flag("required")?,
            readiness_probe,
        });
    }
    Ok(components)
}

fn probe(given: Map<String, Value>, row: &Fields) -> Result<ReadinessProbe, ErrorBody> {
    let code = ErrorCode::InputInvalid;
    let mut probe = Fields::new(given, "readiness_probe", &["type", "name"], code)?;
    let kind = probe.required_text("type")?;
    let name = probe.required_text("name")?;
    match kind.as_str() {
        "ability" => Ok(ReadinessProbe::Ability { name }),
        "filter" => Ok(ReadinessProbe::Filter { name }),
        _ => Err(row.refuse("readiness_probe.type", "ability or filter")),
    }
}
