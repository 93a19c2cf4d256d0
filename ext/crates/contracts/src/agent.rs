//! Who does the work of a task, and what it is given for it: a model, tools, components.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Who does the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Agent {
    /// A program in the guest.
    Command(AgentCommand),
    /// A well-known program, started the way its preset says. The runner makes a
    /// [`AgentCommand`] of it before anything else is decided.
    Preset(PresetAgent),
    /// The built-in loop: the model outside the guest, every tool inside it.
    Model(ModelAgent),
    /// An ability that a component registers in the guest's WordPress.
    Ability(RuntimeTask),
}

impl Agent {
    /// The program, when it is one.
    #[must_use]
    pub const fn command(&self) -> Option<&AgentCommand> {
        match self {
            Self::Command(command) => Some(command),
            Self::Preset(_) | Self::Model(_) | Self::Ability(_) => None,
        }
    }

    /// Whether it works in the guest and may be given a model there. The built-in loop asks
    /// its model from outside.
    #[must_use]
    pub const fn uses_model_in_guest(&self) -> bool {
        match self {
            Self::Command(_) | Self::Preset(_) | Self::Ability(_) => true,
            Self::Model(_) => false,
        }
    }
}

/// A well-known program by the name of its preset, see [`crate::AgentPreset`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetAgent {
    /// Name of the preset: small letters, digits and `-`.
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
    /// Extra environment, names `[A-Z_][A-Z0-9_]*`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Name of the preset that it came from, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
}

impl AgentCommand {
    fn default_success() -> Vec<i32> {
        vec![0]
    }
}

/// The built-in loop. Its model is the request's, its tools are what the tool policy allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelAgent {
    /// When it stops.
    #[serde(default)]
    pub budget: AgentBudget,
    /// What the host wants said to the model beside the task. Not from the task's author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// What the built-in loop may use up. The wall clock is the run's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentBudget {
    /// Answers of the model.
    pub turns: u32,
    /// Tokens sent, over all turns.
    pub input_tokens: u64,
    /// Tokens received, over all turns.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar, by the model's price table. Absent: no limit.
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
    /// Its name, `namespace/name`.
    pub ability: String,
    /// Its input.
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// Ways to speak to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelApi {
    /// `POST {base_url}/chat/completions`; the base usually ends in `/v1`.
    OpenaiChat,
    /// `POST {base_url}/v1/messages`.
    AnthropicMessages,
}

/// The model of a run and where it is. The host names it, never the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEndpoint {
    /// Id of the provider, for the record, e.g. that of its connector.
    pub provider: String,
    /// Name of the model as the provider knows it.
    pub model: String,
    /// How it is spoken to.
    pub api: ModelApi,
    /// Where it is: `https://…`, or `http://…` where the host itself or its private network
    /// serves it. No query, no user, no trailing slash.
    pub base_url: String,
    /// Name of the request's secret that opens it. Absent: it needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The operator lets this model lie on this host or in its private network. Absent: every
    /// address it resolves to must be public.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Tokens its window holds; absent: 128,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Most tokens of one answer; absent: 8,192.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<ModelPrices>,
}

/// Prices in millionths of a US dollar per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrices {
    /// Sent.
    #[serde(default)]
    pub input: u64,
    /// Sent and found in the provider's cache; absent: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
    /// Received.
    #[serde(default)]
    pub output: u64,
}

/// `wp-codebox/sandbox-tool-policy/v1`: which tools exist for an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxToolPolicy {
    /// `wp-codebox/sandbox-tool-policy/v1`.
    pub schema: String,
    /// 1.
    pub version: u32,
    /// Rules; an empty list allows nothing.
    pub tools: Vec<ToolRule>,
    /// Free data of whoever made it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// What the policy says of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// Id, e.g. `workspace.read`.
    pub id: String,
    /// Id as programs know it: letters, digits and `_`.
    pub runtime_tool_id: String,
    /// Further names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Where it runs.
    pub execution_location: ToolLocation,
    /// Who sees it.
    pub transport_visibility: ToolVisibility,
    /// Whether it may be called.
    pub allowed: bool,
    /// Where it may run and what it may reach.
    pub runtime: ToolRuntime,
    /// How much harm it could do, in the words of whoever made the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// What it does, in the words of whoever made the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Free data; `aliases` in it count as aliases.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Where a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolLocation {
    /// In the guest.
    Sandbox,
    /// At the parent, which judges each call again.
    Parent,
}

/// Who sees a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolVisibility {
    /// The agent.
    Sandbox,
    /// The parent only.
    Parent,
    /// Both.
    Both,
    /// Nobody.
    Hidden,
}

/// Where a tool may run and what it may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRuntime {
    /// Where.
    pub environment: ToolScope,
    /// What.
    pub capability_scope: ToolScope,
}

/// Reach of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolScope {
    /// The guest.
    RuntimeLocal,
    /// The parent.
    ControlPlane,
}

/// `wp-codebox/parent-tool-bridge/v1`, as far as a run needs it: which tools the parent
/// answers for. What is not in the list is never asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentToolBridge {
    /// Tools by id, each with what the model is told of it.
    #[serde(default)]
    pub tools: Vec<ParentTool>,
    /// Longest wait for one answer, milliseconds; absent: 60,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A tool that the parent answers for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentTool {
    /// Id, e.g. `host.read-ticket`.
    pub id: String,
    /// One sentence for the model.
    pub description: String,
    /// JSON Schema of its input, an object.
    #[serde(default)]
    pub input_schema: Map<String, Value>,
}

/// How a component is loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComponentLoad {
    #[default]
    /// As a plugin, at `/wordpress/wp-content/plugins/<slug>`.
    Plugin,
    /// As a must-use plugin, at `/wordpress/wp-content/mu-plugins/contained-runtime/<slug>`.
    MuPlugin,
}

/// How to see that a component is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum ReadinessProbe {
    /// The ability exists.
    Ability {
        /// Its name.
        name: String,
    },
    /// The filter answers `true`.
    Filter {
        /// Its name.
        name: String,
    },
}

/// Code of the host that is part of the guest's WordPress and not of the change: mounted
/// read-only, loaded before the agent and in the checks' guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Directory name in the guest: letters, digits, `-`, `_`, `.`.
    pub slug: String,
    /// Host directory. Never in a bundle.
    pub source: String,
    /// How it is loaded.
    #[serde(default)]
    pub load_as: ComponentLoad,
    /// Entry file below its directory; absent: found by its plugin header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Whether the plugin is activated. A must-use plugin is always loaded.
    #[serde(default)]
    pub activate: bool,
    /// Whether the run fails without it.
    #[serde(default)]
    pub required: bool,
    /// How to see that it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<ReadinessProbe>,
}

/// What becomes of an agent that the guest has already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BundleConflict {
    /// The import fails.
    Error,
    /// The one that is there stays.
    Skip,
    /// The bundle's takes its place.
    #[default]
    Upgrade,
}

/// A bundle of an agent that a component of the guest imports before the agent runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentBundle {
    /// Host file with the bundle's JSON document. Never in a bundle of ours. Exactly one of
    /// `source` and `bundle` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The bundle's document itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Map<String, Value>>,
    /// Name of the agent; absent: the document's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// What becomes of an agent that is there already.
    #[serde(default)]
    pub on_conflict: BundleConflict,
    /// User of the guest to whom the agent belongs; absent: the administrator, 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<u64>,
    /// Name of a secret of this run that the importer may use; the guest has its placeholder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// In whose name the importer acts, as its own contract has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_principal: Option<Map<String, Value>>,
}
