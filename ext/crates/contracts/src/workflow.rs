//! The steps of a recipe as the runner takes them: host paths are guest paths by now, every
//! command is judged, and nothing of the recipe's file is needed any more.

use crate::CommandCall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a failing step means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The run stops, and fails.
    #[default]
    Stop,
    /// It is recorded, and the run goes on.
    Allow,
    /// It is recorded as advice, and the run goes on.
    Advise,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowStep {
    /// `setup`, `startup-probe`, `before`, `steps`, `after`, `probe`.
    pub phase: String,
    /// Position in its phase.
    pub index: u32,
    /// Name, where it has one: of a probe, for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The command.
    pub call: CommandCall,
    /// Milliseconds until it is ended; absent: the run's own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What its failure means.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Whether its output must be JSON.
    #[serde(default)]
    pub expect_json: bool,
    /// A bounded loop around it, as the recipe has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Value>,
    /// Free data of the recipe.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// A file of the guest that becomes evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectedFile {
    /// Name, unique in the run.
    pub name: String,
    /// Guest path.
    pub path: String,
    /// Whether the run fails without it.
    pub required: bool,
    /// Whether it must be JSON.
    pub parse_json: bool,
    /// `type`, `contentType`, `payloadSchema` of a typed artifact.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub typed: Map<String, Value>,
}

/// Everything a recipe does in its guest, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// Steps of all phases, in order.
    pub steps: Vec<WorkflowStep>,
    /// Files to collect when they are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<CollectedFile>,
}
