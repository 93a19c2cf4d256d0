//! The task in a result document: `task-input/v1` with every member that a reader may rely on.

use super::given;
use crate::schema_id;
use serde_json::{Map, Value, json};

/// Members of `task-input/v1` beside schema, version and goal.
const MEMBERS: &[(&str, Member)] = &[
    ("target", Member::Object),
    ("allowed_tools", Member::Texts),
    ("expected_artifacts", Member::Texts),
    ("structured_artifacts", Member::Rows),
    ("tool_bridge", Member::Object),
    ("parent_tool_bridge", Member::Object),
    ("sandbox_tool_policy", Member::Object),
    ("policy", Member::Object),
    ("context", Member::Object),
];

#[derive(Debug, Clone, Copy)]
enum Member {
    Object,
    Texts,
    Rows,
}

impl Member {
    fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (Member::Object, value) => value.is_object(),
            (Member::Texts, Value::Array(items)) => items.iter().all(Value::is_string),
            (Member::Rows, Value::Array(items)) => items.iter().all(Value::is_object),
            (Member::Texts | Member::Rows, _) => false,
        }
    }

    fn empty(self) -> Value {
        match self {
            Member::Object => json!({}),
            Member::Texts | Member::Rows => json!([]),
        }
    }
}

/// Returns `task-input/v1` of a task. `task` is the task as the agent read it, and empty if no run
/// started; members that it does not have come from `input`, the task as the caller gave it.
/// Members without a usable value are empty.
#[must_use]
pub fn task_document(input: &Map<String, Value>, task: &Map<String, Value>) -> Value {
    let goal = [task, input]
        .into_iter()
        .find_map(|from| from.get("goal")?.as_str());
    let mut document = Map::from_iter([
        ("schema".to_owned(), schema_id::TASK_INPUT.into()),
        ("version".to_owned(), 1.into()),
        ("goal".to_owned(), goal.unwrap_or_default().into()),
    ]);
    for (name, member) in MEMBERS {
        let known = [task, input].into_iter().find_map(|from| given(from, name));
        let value = known.filter(|value| member.fits(value)).cloned();
        document.insert((*name).to_owned(), value.unwrap_or_else(|| member.empty()));
    }
    for name in ["staged_files", "agent_bundles"] {
        if let Some(value) = given(task, name).filter(|value| Member::Rows.fits(value)) {
            document.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(document)
}
