//! `agent-sandbox-remediation-outcome/v1`: the outcome of a task that repairs a finding.

use super::Facts;
use crate::{ErrorCode, Outcome, schema_id};
use serde_json::{Map, Value, json};

/// Values of a task's `target.kind` for which this document is built.
const KINDS: &[&str] = &[
    "audit-remediation",
    "agent-sandbox-remediation",
    "remediation-outcome",
];

/// Builds the document; `None` unless the task's target has one of [`KINDS`].
pub(super) fn remediation_outcome(facts: &Facts<'_>) -> Option<Value> {
    let kind = facts.task.get("target")?.get("kind")?.as_str()?;
    if !KINDS.contains(&kind) {
        return None;
    }
    let kind = outcome_kind(facts);
    let mut outcome = Map::from_iter([
        (
            "schema".to_owned(),
            schema_id::AGENT_SANDBOX_REMEDIATION_OUTCOME.into(),
        ),
        ("success".to_owned(), facts.outcome.is_success().into()),
        ("kind".to_owned(), kind.into()),
        ("exit_code".to_owned(), facts.outcome.exit_status().into()),
        ("retryable".to_owned(), facts.is_retryable().into()),
        ("metadata".to_owned(), json!({"upstream_run": facts.run_id})),
    ]);
    match kind {
        "completed" => {}
        "provider_error" | "max_turns_exceeded" => {
            outcome.insert("failure".to_owned(), kind.into());
        }
        _ => {
            outcome.insert("failure".to_owned(), "failed".into());
        }
    }
    if let Some(error) = facts.error() {
        let part = |name: &str| error.get(name).cloned().unwrap_or_else(|| "".into());
        let row = json!({"code": part("code"), "message": part("message")});
        let name = if facts.is_provider_error() {
            "provider_error"
        } else {
            "diagnostics"
        };
        outcome.insert(name.to_owned(), row);
    }
    if let (Some(directory), Some(id)) = (facts.directory, facts.bundle_id) {
        let files = facts.list("changed_files").iter();
        let files: Vec<&Value> = files.filter_map(|file| file.get("path")).collect();
        let artifact = json!({"id": id, "directory": directory, "changed_files": files});
        outcome.insert("artifact".to_owned(), artifact);
    }
    Some(Value::Object(outcome))
}

fn outcome_kind(facts: &Facts<'_>) -> &'static str {
    if facts.is_provider_error() {
        return "provider_error";
    }
    if facts.error_code() == Some(ErrorCode::BudgetExhausted.as_str()) {
        return "max_turns_exceeded";
    }
    match facts.outcome {
        Outcome::Succeeded | Outcome::NoOp => "completed",
        Outcome::Partial | Outcome::Blocked | Outcome::Denied => "unable_to_remediate",
        Outcome::Failed | Outcome::TimedOut | Outcome::Cancelled => "failed",
    }
}
