//! Generates, from the table of task fields, the table of who may set each field for PHP tests. The
//! tests compare the input schemas of tasks and groups with the table.

use crate::generated::Generated;
use serde_json::{Value, json};
use wp_codebox_contracts::{TASK_FIELDS, TaskAuthority};

/// Returns the file with a row for each field of a task: its `name`, and in `authority` who may set it.
pub fn authorities() -> Generated {
    let rows = TASK_FIELDS.iter().map(|row| {
        let authority = match row.authority {
            TaskAuthority::Caller => "caller",
            TaskAuthority::Host => "host",
            TaskAuthority::Operator => "operator",
        };
        json!({"name": row.name, "authority": authority})
    });
    Generated {
        path: "tests/wordpress/fake/task-fields.json",
        text: format!("{:#}\n", rows.collect::<Value>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemas;
    use serde_json::Map;
    use std::path::Path;

    /// Fields of a task that a batch or fan-out cannot set for all its tasks at once. `code` and
    /// `code_file` are refused in each single task, too, because a task cannot carry raw code.
    const NOT_SHARED: [&str; 6] = ["goal", "wait", "code", "code_file", "schema", "version"];

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

    /// Returns the properties of an input schema.
    fn properties(name: &str) -> Map<String, Value> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let schema = schemas::named(&Path::new(&manifest).join("../../.."), name).unwrap();
        schema["properties"].as_object().unwrap().clone()
    }

    /// The extension would refuse a field that is in the schema but not in the table.
    #[test]
    fn task_schema_has_exactly_the_fields_a_caller_may_set() {
        let properties = properties("run-agent-task-input");
        let mut fields: Vec<&str> = properties
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
        let mut shared = properties("run-agent-task-input");
        shared.retain(|name, _| !NOT_SHARED.contains(&name.as_str()));
        for (group, own) in [
            ("batch", &["tasks", "stop_on_failure"][..]),
            (
                "fanout",
                &["schema", "workers", "concurrency", "aggregator"],
            ),
        ] {
            let mut found = properties(&format!("run-agent-task-{group}-input"));
            for name in own {
                assert!(found.shift_remove(*name).is_some(), "{group} {name}");
            }
            assert_eq!(found, shared, "{group}");
        }
    }
}
