//! `agent-task-run-result/v1` and the smaller results that repeat parts of it.

use super::refs::{self, Reference};
use super::{Facts, object};
use crate::{Outcome, schema_id};
use serde_json::{Map, Value, json};

/// Builds `agent-task-run-result/v1`. `status` is the status of the agent task.
pub(super) fn run_result(facts: &Facts<'_>, references: &[Reference], status: &str) -> Value {
    let mut result = object(json!({
        "schema": schema_id::AGENT_TASK_RUN_RESULT,
        "status": status,
        "success": facts.outcome.is_success(),
        "summary": facts.summary,
        "artifacts": refs::artifacts(references),
        "refs": refs::by_list(references),
        "diagnostics": rows(facts),
        "metadata": metadata(facts),
        "no_op": no_op(facts),
    }));
    if let Some(class) = failure_classification(facts) {
        result.insert("failure_classification".to_owned(), class.into());
    }
    Value::Object(result)
}

/// Builds `headless-agent-task-result/v1`, the result for a caller without a user interface.
pub(super) fn headless_result(
    facts: &Facts<'_>,
    references: &[Reference],
    run_result: &Value,
) -> Value {
    let same = |name: &str| run_result.get(name).cloned().unwrap_or_default();
    let mut result = object(json!({
        "schema": schema_id::HEADLESS_AGENT_TASK_RESULT,
        "success": same("success"),
        "status": same("status"),
        "summary": facts.summary,
        "refs": same("refs"),
        "artifacts": same("artifacts"),
        "evidence_refs": refs::evidence(references),
        "diagnostics": same("diagnostics"),
        "metadata": same("metadata"),
        "agent_task_run_result": run_result,
    }));
    if !facts.preview.is_empty() {
        result.insert("preview".to_owned(), facts.preview.clone().into());
    }
    Value::Object(result)
}

/// Builds the result of the agent alone, without references.
pub(super) fn agent_task_result(facts: &Facts<'_>, status: &str) -> Value {
    let mut result = object(json!({
        "schema": schema_id::AGENT_TASK_RESULT,
        "status": status,
        "success": facts.outcome.is_success(),
        "summary": facts.summary,
        "actionable": facts.is_actionable(),
    }));
    if let Some(reason) = facts.no_op_reason() {
        result.insert("no_op_reason".to_owned(), reason.into());
    }
    Value::Object(result)
}

/// Returns one row per known problem: the error of the run, failed checks, notices.
pub(super) fn rows(facts: &Facts<'_>) -> Vec<Value> {
    let mut rows = Vec::new();
    if let Some(error) = facts.error() {
        let mut row = object(json!({"severity": "error", "phase": "run"}));
        for name in ["code", "message"] {
            if let Some(value) = error.get(name) {
                row.insert(name.to_owned(), value.clone());
            }
        }
        let hints = error.get("hints").and_then(Value::as_array);
        if let Some(hints) = hints.filter(|hints| !hints.is_empty()) {
            row.insert("metadata".to_owned(), json!({"hints": hints}));
        }
        rows.push(Value::Object(row));
    }
    for check in facts.list("checks") {
        if check["status"] == "passed" {
            continue;
        }
        let command = check["command"].as_str().unwrap_or_default();
        let mut metadata = Map::from_iter([("command".to_owned(), command.into())]);
        for name in ["status", "exit_code"] {
            if let Some(value) = check.get(name).filter(|value| !value.is_null()) {
                metadata.insert(name.to_owned(), value.clone());
            }
        }
        rows.push(json!({
            "code": "check-failed",
            "message": format!("The check `{command}` did not pass."),
            "severity": "error",
            "phase": "check",
            "metadata": metadata,
        }));
    }
    for notice in facts.list("notices").iter().filter_map(Value::as_str) {
        rows.push(json!({"code": "notice", "message": notice, "severity": "info", "phase": "run"}));
    }
    rows
}

/// Returns ids, statuses and counts of the run.
pub(super) fn metadata(facts: &Facts<'_>) -> Value {
    let mut metadata = object(json!({
        "run_id": facts.run_id,
        "run_status": facts.outcome.session_status(),
        "runtime_id": facts.run_id,
        "runtime_status": "destroyed",
        "changed_files_count": facts.list("changed_files").len(),
    }));
    for (from, to) in [("bytes", "patch_bytes"), ("sha256", "patch_sha256")] {
        if let Some(value) = facts.patch(from) {
            metadata.insert(to.to_owned(), value.clone());
        }
    }
    if let Some(reason) = facts.no_op_reason() {
        metadata.insert("no_op_reason".to_owned(), reason.into());
    }
    if facts.agent.is_some() {
        metadata.insert(
            "agent_task_result_schema".to_owned(),
            schema_id::AGENT_TASK_RESULT.into(),
        );
    }
    Value::Object(metadata)
}

/// Returns whether the agent succeeded without changing a file.
fn no_op(facts: &Facts<'_>) -> Value {
    let mut no_op = object(json!({
        "detected": facts.outcome == Outcome::NoOp,
        "changed_files_count": facts.list("changed_files").len(),
    }));
    if let Some(reason) = facts.no_op_reason() {
        no_op.insert("reason".to_owned(), reason.into());
    }
    if let Some(bytes) = facts.patch("bytes") {
        no_op.insert("patch_bytes".to_owned(), bytes.clone());
    }
    Value::Object(no_op)
}

/// Returns why a run failed, if the reason has a name of its own: the deadline, or an exit status
/// of the agent that is not zero.
fn failure_classification(facts: &Facts<'_>) -> Option<&'static str> {
    match facts.outcome {
        Outcome::TimedOut => Some("timeout"),
        Outcome::Failed => {
            let failures = facts.agent.as_ref()?["failures"].as_array()?;
            let exited = |row: &Value| row["exitCode"].as_i64().is_some_and(|code| code != 0);
            failures.iter().any(exited).then_some("non_zero_exit")
        }
        Outcome::Succeeded
        | Outcome::NoOp
        | Outcome::Partial
        | Outcome::Blocked
        | Outcome::Denied
        | Outcome::Cancelled => None,
    }
}
