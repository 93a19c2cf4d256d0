//! Generates files from the table of task fields: the input schemas of groups (batch and fan-out),
//! and for PHP tests the table of who may set each field.

use crate::findings::TaskError;
use crate::generated::Generated;
use crate::tree;
use serde_json::{Map, Value, json};
use std::path::Path;
use wp_codebox_contracts::{TASK_FIELDS, TaskAuthority};

const TASK: &str = "abilities/schemas/run-agent-task-input.v1.schema.json";
/// Generated schemas, each with the file that defines the members of the group itself.
const GROUPS: [(&str, &str); 2] = [
    (
        "abilities/schemas/run-agent-task-batch-input.v1.schema.json",
        include_str!("batch.json"),
    ),
    (
        "abilities/schemas/run-agent-task-fanout-input.v1.schema.json",
        include_str!("fanout.json"),
    ),
];
/// Fields of a task that a batch or fan-out cannot set for all its tasks at once. `code` and
/// `code_file` are refused in each single task, too, because a task cannot carry raw code.
const NOT_SHARED: [&str; 6] = ["goal", "wait", "code", "code_file", "schema", "version"];

/// Returns the schemas of batch and fan-out, and the table of who may set each field.
pub fn documents(root: &Path) -> Result<Vec<Generated>, TaskError> {
    let task = tree::read(&root.join(TASK))?;
    let mut documents = vec![Generated {
        path: "tests/wordpress/fake/task-fields.json",
        text: pretty(&authorities()),
    }];
    for (path, own) in GROUPS {
        let text =
            group(&task, own).map_err(|e| TaskError::Findings(vec![format!("{TASK}: {e}")]))?;
        documents.push(Generated { path, text });
    }
    Ok(documents)
}

/// Returns a row for each field of a task: its `name`, and in `authority` who may set it.
fn authorities() -> Value {
    let rows = TASK_FIELDS.iter().map(|row| {
        let authority = match row.authority {
            TaskAuthority::Caller => "caller",
            TaskAuthority::Host => "host",
            TaskAuthority::Operator => "operator",
        };
        json!({"name": row.name, "authority": authority})
    });
    rows.collect()
}

/// Returns the input schema of a group: its own members, then the fields that its tasks share.
fn group(task: &str, own: &str) -> Result<String, serde_json::Error> {
    let task: Map<String, Value> = serde_json::from_str(task)?;
    let mut group: Map<String, Value> = serde_json::from_str(own)?;
    let shared = task.get("properties").and_then(Value::as_object);
    let shared = shared.into_iter().flatten();
    if let Some(Value::Object(members)) = group.get_mut("properties") {
        members.extend(
            shared
                .filter(|(name, _)| !NOT_SHARED.contains(&name.as_str()))
                .map(|(name, schema)| (name.clone(), schema.clone())),
        );
    }
    Ok(pretty(&Value::Object(group)))
}

fn pretty(document: &Value) -> String {
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields that PHP converts to fields of the table or refuses (`plugin-php/includes/TaskInput`);
    /// the extension never gets them from a caller.
    const CONVERTED: [&str; 24] = [
        "code",
        "code_file",
        "schema",
        "version",
        "staged_files",
        "agent_workload",
        "workload",
        "parent_request",
        "mode",
        "runtime_profile",
        "workspace_artifact_policy",
        "workspaces",
        "runtime_stack_mounts",
        "runtime_config_mounts",
        "runtime_state_mounts",
        "runtime_overlays",
        "runtime_env",
        "wp",
        "debug",
        "preview_hold_seconds",
        "preview_port",
        "preview_bind",
        "preview_public_url",
        "artifacts_path",
    ];

    /// The extension would refuse a field that is in the schema but not in the table.
    #[test]
    fn task_schema_has_exactly_the_fields_a_caller_may_set() {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let root = Path::new(&manifest).join("../../..");
        let text = tree::read(&root.join(TASK)).unwrap();
        let schema: Value = serde_json::from_str(&text).unwrap();
        let mut fields: Vec<&str> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .filter(|name| !CONVERTED.contains(name))
            .collect();
        let mut rows: Vec<&str> = TASK_FIELDS
            .iter()
            .filter(|row| row.authority == TaskAuthority::Caller)
            .map(|row| row.name)
            .collect();
        fields.sort_unstable();
        rows.sort_unstable();
        assert_eq!(fields, rows);
    }

    #[test]
    fn schema_of_a_task_group_has_its_own_members_and_the_fields_that_all_its_tasks_share() {
        let task = r#"{"properties": {"goal": {}, "wait": {}, "checks": {"type": "array"}}}"#;
        let own = r#"{"properties": {"tasks": {}}, "default": {}}"#;
        let made: Value = serde_json::from_str(&group(task, own).unwrap()).unwrap();
        let wanted =
            json!({"properties": {"tasks": {}, "checks": {"type": "array"}}, "default": {}});
        assert_eq!(made, wanted);
    }
}
