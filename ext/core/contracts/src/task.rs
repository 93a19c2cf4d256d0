//! `wp-codebox/task-input/v1`: the task as the agent sees it, and what the record of a run keeps of it.

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
    /// Texts of the task.
    #[serde(flatten)]
    pub texts: TaskTexts,
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
            texts: TaskTexts::of_goal(goal),
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

/// Defines [`TaskTexts`] and [`RunFacts`] by the names of the texts.
macro_rules! task_texts {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Texts of a task that the record of its run, lists, answers and the bundle repeat. Each is a
        /// field of the task, a member of `task-input/v1` and a member of the run's record. An absent
        /// text is empty.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct TaskTexts {
            $($(#[$doc])* #[serde(skip_serializing_if = "String::is_empty")] pub $name: String,)+
        }

        impl TaskTexts {
            /// Names of the texts.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// Returns the texts of a task that has only a goal.
            #[must_use]
            #[allow(clippy::needless_update, reason = "the goal may be the only text")]
            pub fn of_goal(goal: impl Into<String>) -> Self {
                Self {
                    goal: goal.into(),
                    ..Self::default()
                }
            }
        }

        /// What a request says about its run, as the run's record and every answer about the run
        /// repeat it: the texts of the task, which are empty without a task, and the requester. The
        /// record has redacted texts. It has the texts themselves, because serde refuses unknown
        /// members only in a document with one level of flattened structs.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct RunFacts {
            $($(#[$doc])* #[serde(skip_serializing_if = "String::is_empty")] pub $name: String,)+
            /// Who or what requested the run.
            #[serde(skip_serializing_if = "Map::is_empty")]
            pub provenance: Map<String, Value>,
        }

        impl RunFacts {
            /// Creates the facts of a run.
            #[must_use]
            pub fn new(texts: TaskTexts, provenance: Map<String, Value>) -> Self {
                Self {
                    $($name: texts.$name,)+
                    provenance,
                }
            }

            /// Returns the texts that are not empty, with their names.
            pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
                let texts = [$((stringify!($name), self.$name.as_str())),+];
                texts.into_iter().filter(|(_, text)| !text.is_empty())
            }
        }
    };
}

task_texts! {
    /// Goal of the task in the caller's words. It is not blank in a task for an agent.
    goal,
}

impl RunFacts {
    /// Returns the facts after `redact` has removed secrets from their JSON.
    #[must_use]
    pub fn redacted(&self, redact: impl Fn(Value) -> Value) -> Self {
        let facts = Value::Object(members(Some(self)));
        serde_json::from_value(redact(facts)).unwrap_or_default()
    }

    /// Returns the goal of the run's task; `None` if the run has no task.
    #[must_use]
    pub fn goal(&self) -> Option<&str> {
        Some(self.goal.as_str()).filter(|goal| !goal.is_empty())
    }
}

/// Returns the members of a document; an absent document has none.
pub(crate) fn members(document: Option<&impl Serialize>) -> Map<String, Value> {
    match document.map(serde_json::to_value) {
        Some(Ok(Value::Object(members))) => members,
        _ => Map::new(),
    }
}
