//! The task in a result document: `task-input/v1` with every member that a reader may rely on.

use super::given;
use crate::{TaskTexts, schema_id};
use serde_json::{Map, Value, json};

/// Members of `task-input/v1` beside schema, version and goal.
const MEMBERS: &[(&str, Member)] = &[
    ("target", Member::Target),
    ("allowed_tools", Member::Texts),
    ("expected_artifacts", Member::Texts),
    ("structured_artifacts", Member::Rows),
    ("tool_bridge", Member::Object),
    ("parent_tool_bridge", Member::Object),
    ("sandbox_tool_policy", Member::Object),
    ("policy", Member::Object),
    ("context", Member::Object),
];

/// Members of `target` whose values are texts; a caller may give a number, such as that of an issue.
const TARGET_TEXTS: &[&str] = &["kind", "ref", "path", "url"];

#[derive(Debug, Clone, Copy)]
enum Member {
    Object,
    /// An object in which the members [`TARGET_TEXTS`] are texts.
    Target,
    Texts,
    Rows,
}

impl Member {
    fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (Member::Object | Member::Target, value) => value.is_object(),
            (Member::Texts, Value::Array(items)) => items.iter().all(Value::is_string),
            (Member::Rows, Value::Array(items)) => items.iter().all(Value::is_object),
            (Member::Texts | Member::Rows, _) => false,
        }
    }

    fn empty(self) -> Value {
        match self {
            Member::Object | Member::Target => json!({}),
            Member::Texts | Member::Rows => json!([]),
        }
    }
}

/// Turns numbers into texts in the members that must be texts, and removes values of other types.
fn keep_texts(target: &mut Map<String, Value>) {
    for name in TARGET_TEXTS {
        match target.get_mut(*name) {
            Some(value @ Value::Number(_)) => *value = value.to_string().into(),
            None | Some(Value::String(_)) => {}
            Some(_) => {
                target.shift_remove(*name);
            }
        }
    }
}

/// Returns `task-input/v1` of a task. `task` is the task as the agent read it, and empty if no run
/// started; members that it does not have come from `input`, the task as the caller gave it.
/// Members without a usable value are empty.
#[must_use]
pub fn task_document(input: &Map<String, Value>, task: &Map<String, Value>) -> Value {
    let mut document = Map::from_iter([
        ("schema".to_owned(), schema_id::TASK_INPUT.into()),
        ("version".to_owned(), 1.into()),
        ("goal".to_owned(), "".into()),
    ]);
    for name in TaskTexts::NAMES {
        let mut texts = [task, input]
            .into_iter()
            .filter_map(|from| from.get(*name)?.as_str());
        if let Some(text) = texts.next() {
            document.insert((*name).to_owned(), text.into());
        }
    }
    for (name, member) in MEMBERS {
        let known = [task, input].into_iter().find_map(|from| given(from, name));
        let mut value = known.filter(|value| member.fits(value)).cloned();
        if let (Member::Target, Some(Value::Object(target))) = (member, &mut value) {
            keep_texts(target);
        }
        document.insert((*name).to_owned(), value.unwrap_or_else(|| member.empty()));
    }
    for name in ["staged_files", "agent_bundles"] {
        if let Some(value) = given(task, name).filter(|value| Member::Rows.fits(value)) {
            document.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(document)
}
