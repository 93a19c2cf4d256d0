//! `wp-codebox/task-input/v1`: the task as the agent sees it.

use crate::{StagedFile, schema_id};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The normalised task. Serialised whole it is `/run/codebox/task.json` in the
/// guest. Empty objects are omitted: PHP would turn them into lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskInput {
    /// Always `wp-codebox/task-input/v1`.
    pub schema: String,
    /// Always 1.
    pub version: u32,
    /// What to do, in the caller's words; never blank.
    pub goal: String,
    /// What the task is about: `kind`, `ref`, `path`, `url`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub target: Map<String, Value>,
    /// Tool ids the agent may use.
    #[serde(default)]
    pub allowed_tools: Vec<String>,
    /// Names of artifacts the caller hopes for.
    #[serde(default)]
    pub expected_artifacts: Vec<String>,
    /// Structured inputs, as given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub structured_artifacts: Vec<Value>,
    /// Files put into the guest. Host paths are removed before the guest or a bundle sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged_files: Vec<StagedFile>,
    /// Free context of the caller.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub context: Map<String, Value>,
}

impl TaskInput {
    /// A task with a goal and nothing else.
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
            context: Map::new(),
        }
    }
}
