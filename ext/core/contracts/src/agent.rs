//! The agent of a run and its inputs: model, tools, components and agent bundles.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Agent that does the work of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Agent {
    /// A program in the guest.
    Command(AgentCommand),
    /// A well-known program, started as its preset file describes. The supervisor replaces this
    /// variant by an [`AgentCommand`] before it makes any other decision about the run.
    Preset(PresetAgent),
    /// The built-in agent loop: model requests are sent from outside the guest, tools run
    /// inside it.
    Model(ModelAgent),
    /// An ability that a component registers in the guest's WordPress.
    Ability(RuntimeTask),
}

impl Agent {
    /// Returns the command of [`Agent::Command`], or `None` for every other kind of agent.
    #[must_use]
    pub const fn command(&self) -> Option<&AgentCommand> {
        match self {
            Self::Command(command) => Some(command),
            Self::Preset(_) | Self::Model(_) | Self::Ability(_) => None,
        }
    }

    /// Returns true if the agent runs in the guest, so that its model requests come from there.
    /// Returns false for the built-in loop, which sends its model requests from outside the guest.
    #[must_use]
    pub const fn uses_model_in_guest(&self) -> bool {
        match self {
            Self::Command(_) | Self::Preset(_) | Self::Ability(_) => true,
            Self::Model(_) => false,
        }
    }
}

/// A well-known program, by the name of its preset (see [`crate::AgentPreset`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetAgent {
    /// Name of the preset: lower-case letters, digits and `-`.
    pub name: String,
}

/// A program in the guest that does the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCommand {
    /// Program and arguments, run without a shell.
    pub argv: Vec<String>,
    /// Exit codes that mean success; default `[0]`.
    #[serde(default = "AgentCommand::default_success")]
    pub success_codes: Vec<i32>,
    /// Additional environment variables; names match `[A-Z_][A-Z0-9_]*`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Name of the preset from which the supervisor made this command; only recorded in the bundle.
    /// Absent: the caller gave the command itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
}

impl AgentCommand {
    fn default_success() -> Vec<i32> {
        vec![0]
    }
}

/// The built-in agent loop. The run request holds its model; the tool policy lists its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelAgent {
    /// Limits at which the loop stops.
    #[serde(default)]
    pub budget: AgentBudget,
    /// Additional system instructions from the host, not from the author of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// Budget of the built-in agent loop. It has no time limit: the wall clock limit of the run
/// applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentBudget {
    /// Maximum number of model responses.
    pub turns: u32,
    /// Maximum number of input tokens over all turns.
    pub input_tokens: u64,
    /// Maximum number of output tokens over all turns.
    pub output_tokens: u64,
    /// Maximum cost in millionths of a US dollar, computed from the model's prices. Absent: no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_microusd: Option<u64>,
}

impl Default for AgentBudget {
    fn default() -> Self {
        Self {
            turns: 60,
            input_tokens: 4_000_000,
            output_tokens: 200_000,
            cost_microusd: None,
        }
    }
}

/// An ability of the guest's WordPress that does the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeTask {
    /// Name of the ability, `namespace/name`.
    pub ability: String,
    /// Input of the ability.
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// HTTP APIs of model providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelApi {
    /// `POST {base_url}/chat/completions`; the base usually ends in `/v1`.
    OpenaiChat,
    /// `POST {base_url}/v1/messages`.
    AnthropicMessages,
}

/// Model of a run and address of its provider. The host chooses both; the guest cannot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEndpoint {
    /// Id of the provider, e.g. the id of its connector. The bundle records it, and agent presets
    /// can use it; `base_url` alone decides where requests go.
    pub provider: String,
    /// Model name as the provider's API expects it.
    pub model: String,
    /// HTTP API of the provider.
    pub api: ModelApi,
    /// Base URL of the provider: `https://…`, or `http://…` when this host or its private
    /// network serves the model. No query, no user, no trailing slash.
    pub base_url: String,
    /// Name of the secret that holds the API key; one of `secrets` of the run request. Absent: the
    /// provider needs no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Whether the provider may have a loopback or private address; only the operator can allow
    /// this. Absent: every address that the host name resolves to must be public.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Size of the context window in tokens; default 128,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Maximum tokens of one response; default 8,192.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Price table of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<ModelPrices>,
}

/// Prices in millionths of a US dollar per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrices {
    /// Price of input tokens.
    #[serde(default)]
    pub input: u64,
    /// Price of input tokens that the provider served from its cache; default: same as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
    /// Price of output tokens.
    #[serde(default)]
    pub output: u64,
}

/// `wp-codebox/sandbox-tool-policy/v1`: the tools that an agent may have, one rule each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxToolPolicy {
    /// Schema id, always `wp-codebox/sandbox-tool-policy/v1`.
    pub schema: String,
    /// Version of the document, always 1.
    pub version: u32,
    /// One rule per tool; an empty list allows no tool.
    pub tools: Vec<ToolRule>,
    /// Free-form data from the author of the policy.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Rule of a tool policy for one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// Id of the tool, e.g. `workspace.read`.
    pub id: String,
    /// Id of the tool in the form that model APIs accept: letters, digits and `_`.
    pub runtime_tool_id: String,
    /// Alternative names of the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Whether the tool runs in the guest or in the parent process.
    pub execution_location: ToolLocation,
    /// Whether the agent, the parent process, both or neither see the tool.
    pub transport_visibility: ToolVisibility,
    /// Whether calls of the tool are allowed.
    pub allowed: bool,
    /// Where the tool runs, and which systems it may affect.
    pub runtime: ToolRuntime,
    /// Risk of the tool, in free text from the author of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// What the tool does, in free text from the author of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Free-form data. If it has a list `aliases`, the names in that list count as aliases of the
    /// tool.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Whether a tool runs in the guest or in the parent process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolLocation {
    /// The tool runs in the guest.
    Sandbox,
    /// The tool runs in the parent process, which started the run and checks permission again for
    /// each call.
    Parent,
}

/// Whether the agent, the parent process, both or neither see a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolVisibility {
    /// Only the agent sees the tool.
    Sandbox,
    /// Only the parent process sees the tool.
    Parent,
    /// The agent and the parent process see the tool.
    Both,
    /// Neither side sees the tool.
    Hidden,
}

/// Where a tool runs, and which systems it may affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRuntime {
    /// Environment in which the tool runs.
    pub environment: ToolScope,
    /// Systems that the tool may affect.
    pub capability_scope: ToolScope,
}

/// Place where a tool runs, or the only place that its effects may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolScope {
    /// Inside the guest.
    RuntimeLocal,
    /// In the parent process, outside the guest.
    ControlPlane,
}

/// Tools that the parent process, which started the run, serves to the agent; a part of
/// `wp-codebox/parent-tool-bridge/v1`. The supervisor never sends the parent process a request for a
/// tool that is not in this list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentToolBridge {
    /// The tools, each with its id and the description that the model gets.
    #[serde(default)]
    pub tools: Vec<ParentTool>,
    /// Timeout of one tool call in milliseconds; default 60,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A tool that the parent process serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentTool {
    /// Id of the tool, e.g. `host.read-ticket`.
    pub id: String,
    /// Description of the tool for the model, one sentence.
    pub description: String,
    /// JSON Schema of the tool's input; its type is `object`.
    #[serde(default)]
    pub input_schema: Map<String, Value>,
}

/// How the guest's WordPress loads a component.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComponentLoad {
    #[default]
    /// As a plugin, at `/wordpress/wp-content/plugins/<slug>`.
    Plugin,
    /// As a must-use plugin, at `/wordpress/wp-content/mu-plugins/contained-runtime/<slug>`.
    MuPlugin,
}

/// Check that a component has loaded and works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum ReadinessProbe {
    /// The component is ready when WordPress has registered this ability.
    Ability {
        /// Name of the ability.
        name: String,
    },
    /// The component is ready when this filter returns `true`.
    Filter {
        /// Name of the filter hook.
        name: String,
    },
}

/// A host directory with PHP code that the guest's WordPress loads and the agent cannot change. It
/// is mounted read-only and loaded before the agent starts. The guest that runs the checks loads it
/// too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Directory name of the component in the guest: letters, digits, `-`, `_`, `.`.
    pub slug: String,
    /// Host directory of the component. Never written to a bundle.
    pub source: String,
    /// How WordPress loads the component.
    #[serde(default)]
    pub load_as: ComponentLoad,
    /// Entry file, relative to the component's directory; absent: the file with a plugin
    /// header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Whether WordPress activates the plugin. Must-use plugins are always active.
    #[serde(default)]
    pub activate: bool,
    /// Whether the run fails when the component does not load.
    #[serde(default)]
    pub required: bool,
    /// Check that the component is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<ReadinessProbe>,
}

/// What the import of an agent bundle does when the guest already has an agent with the name of the
/// imported one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BundleConflict {
    /// The import fails.
    Error,
    /// The import keeps the existing agent.
    Skip,
    /// The imported agent replaces the existing one.
    #[default]
    Upgrade,
}

/// Definition of a WordPress agent that a component in the guest imports before the agent of the
/// run starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentBundle {
    /// Host path of the JSON document to import; never written to an artifact bundle. Exactly
    /// one of `source` and `bundle` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The JSON document to import, inline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Map<String, Value>>,
    /// Name of the imported agent; absent: the name in the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// What the import does when the guest already has an agent with the name of the imported one.
    #[serde(default)]
    pub on_conflict: BundleConflict,
    /// Id of the user of the guest's WordPress who will own the imported agent; default 1, the
    /// administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<u64>,
    /// Name of a secret of this run that the importing component may use. The guest gets a
    /// placeholder instead of the secret's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// Identity in whose name the component imports the agent, in that component's own format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_principal: Option<Map<String, Value>>,
}
