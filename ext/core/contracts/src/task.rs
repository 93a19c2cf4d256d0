//! `wp-codebox/task-input/v1`: the task as the agent sees it.

use crate::{StagedFile, schema_id};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The normalised task, serialised to `/run/codebox/task.json` in the guest. Readers rely on every
/// member except `staged_files`, so an empty member is written too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskInput {
    /// Schema id, always `wp-codebox/task-input/v1`.
    pub schema: String,
    /// Version of the document, always 1.
    pub version: u32,
    /// Goal of the task in the caller's words; never blank.
    pub goal: String,
    /// Object that the task is about: `kind`, `ref`, `path`, `url`.
    #[serde(default)]
    pub target: Map<String, Value>,
    /// Ids of the tools that the agent may use.
    #[serde(default)]
    pub allowed_tools: Vec<String>,
    /// Names of artifacts that the caller expects.
    #[serde(default)]
    pub expected_artifacts: Vec<String>,
    /// Structured inputs from the caller, each a `structured-artifact/v1`.
    #[serde(default)]
    pub structured_artifacts: Vec<Value>,
    /// Files copied into the guest. Host paths are removed before the guest or a bundle gets
    /// this document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged_files: Vec<StagedFile>,
    /// `tool_bridge` of the caller.
    #[serde(default)]
    pub tool_bridge: Map<String, Value>,
    /// `parent_tool_bridge` of the caller.
    #[serde(default)]
    pub parent_tool_bridge: Map<String, Value>,
    /// Tool policy of the task.
    #[serde(default)]
    pub sandbox_tool_policy: Map<String, Value>,
    /// Runtime policy of the task.
    #[serde(default)]
    pub policy: Map<String, Value>,
    /// Free-form context from the caller.
    #[serde(default)]
    pub context: Map<String, Value>,
}

impl TaskInput {
    /// Creates a task with a goal and defaults for all other members.
    #[must_use]
    pub fn new(goal: impl Into<String>) -> Self {
        Self {
            schema: schema_id::TASK_INPUT.to_owned(),
            version: 1,
            goal: goal.into(),
            target: Map::new(),
            allowed_tools: Vec::new(),
            expected_artifacts: Vec::new(),
            structured_artifacts: Vec::new(),
            staged_files: Vec::new(),
            tool_bridge: Map::new(),
            parent_tool_bridge: Map::new(),
            sandbox_tool_policy: Map::new(),
            policy: Map::new(),
            context: Map::new(),
        }
    }
}

/// Returns the members of a document; an absent document has none.
pub(crate) fn members(document: Option<&impl Serialize>) -> Map<String, Value> {
    match document.map(serde_json::to_value) {
        Some(Ok(Value::Object(members))) => members,
        _ => Map::new(),
    }
}
