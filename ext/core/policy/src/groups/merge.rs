//! Combines the fields of one task with the fields that all tasks of its batch or fan-out share.
//! The task's own fields take precedence.

use super::plan::object;
use crate::task::normalise_task;
use serde_json::{Map, Value};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Sets of fields that a task overrides as a whole: a task that has one field of a set inherits no
/// field of that set. A task with its own mounts, for example, does not inherit the shared plugin.
const TOGETHER: &[&[&str]] = &[
    &["plugin", "theme", "mounts"],
    &["agent", "agent_command", "runtime_task"],
    &["policy", "network"],
    &["limits", "task_timeout_seconds"],
];
/// Fields of the whole call, which a single task must not contain.
const WHOLE: &[&str] = &["sandbox_session_id", "orchestrator", "wait"];
/// Fields of a batch or fan-out that its tasks do not inherit.
pub(super) const GROUP: &[&str] = &[
    "tasks",
    "stop_on_failure",
    "workers",
    "concurrency",
    "aggregator",
    "goal",
];

fn invalid(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

/// Returns the input of one task, which the caller gave as a goal or as an object with fields of a
/// task. `session` is the task's session id. The values are validated later, when they become a
/// run request.
pub(super) fn merge_task(
    shared: &Map<String, Value>,
    task: &Value,
    session: &str,
) -> Result<Map<String, Value>, ErrorBody> {
    let own = match task {
        Value::String(goal) => Some(Map::from_iter([(
            "goal".to_owned(),
            Value::from(goal.as_str()),
        )])),
        fields => object(fields),
    };
    let Some(own) = own else {
        return Err(invalid(
            "A task must be a goal, or an object with the fields of run-agent-task.",
        ));
    };
    if let Some(field) = WHOLE.iter().find(|field| own.contains_key(**field)) {
        return Err(invalid(format!(
            "{field} cannot be given for a single task of a batch or fan-out; leave it out of the task."
        )));
    }
    // Unpacks a workload in the task before the shared fields are added, so that the workload's
    // fields replace shared fields.
    let own = normalise_task(own)?;
    let replaced = |name: &str| {
        let groups = TOGETHER.iter().filter(|group| group.contains(&name));
        groups
            .flat_map(|group| group.iter())
            .any(|field| own.contains_key(*field))
    };
    let mut input: Map<String, Value> = shared
        .iter()
        .filter(|(name, _)| !GROUP.contains(&name.as_str()) && !replaced(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    input.extend(own);
    // Adds the defaults of the shared fields.
    let mut input = normalise_task(input)?;
    input.insert("sandbox_session_id".to_owned(), session.into());
    Ok(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(shared: Value, task: Value) -> Result<Value, ErrorBody> {
        let Value::Object(shared) = shared else {
            panic!()
        };
        merge_task(&shared, &task, "s:0").map(Value::Object)
    }

    #[test]
    fn shared_structured_artifacts_get_their_defaults_and_invalid_ones_are_refused() {
        let row = |row: Value| json!({"structured_artifacts": [row]});
        let found = merged(
            row(json!({"name": "a", "type": "b", "payload": 1})),
            json!("mend"),
        );
        assert_eq!(
            found.unwrap()["structured_artifacts"],
            json!([{"name": "a", "type": "b", "payload": 1, "metadata": {},
                "schema": "wp-codebox/structured-artifact/v1",
                "provenance": {"direction": "input"}}])
        );
        assert!(merged(row(json!({"name": "a"})), json!("mend")).is_err());
    }

    /// [`TOGETHER`] lists the sets: a task that has one field of a set inherits no field of that
    /// set.
    #[test]
    fn task_replaces_shared_fields_of_the_same_name_or_set_and_an_invalid_task_is_refused() {
        let shared = json!({"goal": "shared", "tasks": [], "mounts": ["a"], "agent_command": "x",
            "network": "deny", "limits": {"processes": 4}, "checks": ["c"], "sandbox_session_id": "p"});
        assert_eq!(
            merged(shared.clone(), json!("mend")).unwrap(),
            json!({"goal": "mend", "mounts": ["a"], "agent_command": "x", "network": "deny",
                "limits": {"processes": 4}, "checks": ["c"], "sandbox_session_id": "s:0"})
        );
        let own = json!({"goal": "g", "plugin": "p", "agent": "built-in", "policy": {},
            "task_timeout_seconds": 5});
        assert_eq!(
            merged(shared.clone(), own).unwrap(),
            json!({"goal": "g", "plugin": "p", "agent": "built-in", "policy": {}, "checks": ["c"],
                "task_timeout_seconds": 5, "sandbox_session_id": "s:0"})
        );
        let workload = json!({"schema": "wp-codebox/agent-workload/v1", "task": "g",
            "agent_runtime": "coder"});
        assert_eq!(
            merged(shared.clone(), json!({"workload": workload})).unwrap(),
            json!({"goal": "g", "agent": "coder", "mounts": ["a"], "network": "deny",
                "limits": {"processes": 4}, "checks": ["c"], "sandbox_session_id": "s:0"})
        );
        for bad in [
            json!(1),
            json!(["g"]),
            json!([[]]),
            json!(null),
            json!({"goal": "g", "wait": false}),
            json!({"goal": "g", "orchestrator": {}}),
        ] {
            let error = merged(shared.clone(), bad.clone()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InputInvalid, "{bad}");
        }
    }
}
