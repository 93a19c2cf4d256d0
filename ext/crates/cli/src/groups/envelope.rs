//! Result document of a task, `agent-task-run/v1`, built from the result of its run. The abilities
//! return the same document.

use serde_json::{Map, Value, json};
use wp_codebox_contracts::{Outcome, RunRequest, RunResult, schema_id};
use wp_codebox_policy::GroupStatus;

/// Members of a task's result document that are moved into the task's row of a group.
const ROW_MEMBERS: &[&str] = &[
    "outcome",
    "summary",
    "session",
    "changed_files",
    "approvable",
    "completion_outcome",
    "agent_result",
    "evidence_refs",
    "cost",
    "run",
    "error",
    "task_input",
];

/// Data that is only copied to the result document, and not stored with the run.
pub(super) struct Echo<'a> {
    /// Input of the task, which may contain the caller's own ids.
    pub input: &'a Map<String, Value>,
    /// WordPress version of the guest.
    pub wordpress: &'a str,
}

/// Builds the result document of a task.
pub(super) fn build(request: &RunRequest, result: &RunResult, echo: &Echo<'_>) -> Value {
    let outcome = result.outcome;
    let directory = result.artifacts.as_ref().map(|a| a.path.as_str());
    let task = request.task.as_ref();
    let task_input = task
        .map(wp_codebox_supervisor::task_document)
        .unwrap_or_default();
    let completion = located(result.completion_outcome.clone(), directory);
    let mut envelope = json!({
        "success": outcome.is_success(),
        "schema": schema_id::AGENT_TASK_RUN,
        "status": outcome.session_status(),
        "statuses": {
            "command": command_status(outcome),
            "phase": completion.get("status").cloned().unwrap_or_else(|| "failed".into()),
            "agent_task": agent_task_status(outcome),
        },
        "agent_task_status": agent_task_status(outcome),
        "outcome": outcome,
        "summary": result.summary,
        "session": session(result, echo),
        "task": task.map(|task| task.goal.as_str()),
        "task_input": task_input,
        "wp": echo.wordpress,
        "artifacts": directory.unwrap_or_default(),
        "exit_code": outcome.exit_status(),
        "changed_files": result.changed_files,
        "approvable": result.approvable,
        "checks": result.checks,
        "diagnostics": diagnostics(result, &completion),
        "completion_outcome": completion,
        "run_metadata": metadata(request, result, echo),
        "run": run(result),
        "cost": result.cost,
        "isolation": result.isolation,
    });
    if result.agent_result.is_object() {
        envelope["agent_result"] = located(result.agent_result.clone(), directory);
    }
    if let Some(bundle) = &result.artifacts {
        let at = |name: &str| format!("{}/{name}", bundle.path);
        envelope["artifact_id"] = json!(bundle.bundle_id);
        envelope["paths"] = json!({
            "artifacts": bundle.path,
            "manifest": at("manifest.json"),
            "patch": at("files/patch.diff"),
            "changed_files": at("files/changed-files.json"),
            "review": at("files/review.json"),
            "test_results": at("files/test-results.json"),
        });
        envelope["evidence_refs"] = json!({
            "schema": schema_id::AGENT_TASK_EVIDENCE_REFS,
            "artifacts_path": bundle.path,
            "artifact_bundle_id": bundle.bundle_id,
            "manifest_sha256": bundle.manifest_sha256,
            "completion_outcome": "files/completion-outcome.json",
            "agent_result": "files/agent-result.json",
            "transcript": "files/transcript.json",
        });
    }
    if let Some(error) = &result.error {
        envelope["error"] = json!(error);
    }
    if !result.notices.is_empty() {
        envelope["notices"] = json!(result.notices);
    }
    envelope
}

/// Builds the row of a task in a group from its result document.
pub(super) fn row(result: &RunResult, mut envelope: Value) -> Map<String, Value> {
    let status = GroupStatus::of_outcome(result.outcome);
    let mut row = Map::from_iter([
        (
            "success".to_owned(),
            (status == GroupStatus::Completed).into(),
        ),
        ("status".to_owned(), status.as_str().into()),
        ("exit_code".to_owned(), result.outcome.exit_status().into()),
        ("run_id".to_owned(), json!(result.run_id)),
    ]);
    for name in ROW_MEMBERS {
        if let Some(value) = envelope.get_mut(*name) {
            row.insert((*name).to_owned(), value.take());
        }
    }
    if let Some(bundle) = &result.artifacts {
        row.insert("artifact_id".to_owned(), json!(bundle.bundle_id));
        row.insert("artifacts".to_owned(), json!({"path": bundle.path}));
    }
    row
}

fn session(result: &RunResult, echo: &Echo<'_>) -> Value {
    let own = Ok(result.run_id.as_str().to_owned());
    let id = wp_codebox_policy::session_id(echo.input, || own).unwrap_or_default();
    let good = true;
    let mut session = wp_codebox_policy::group_session(echo.input, good, &id);
    session.insert("status".to_owned(), json!(result.outcome.session_status()));
    session.insert("run_id".to_owned(), json!(result.run_id));
    if let Some(bundle) = &result.artifacts {
        let artifacts = json!({"path": bundle.path, "bundle_id": bundle.bundle_id,
            "completion_outcome": "files/completion-outcome.json"});
        session.insert("artifacts".to_owned(), artifacts);
    }
    Value::Object(session)
}

fn diagnostics(result: &RunResult, completion: &Value) -> Value {
    let mut diagnostics = json!({
        "schema": schema_id::AGENT_TASK_DIAGNOSTICS,
        "exit_code": result.outcome.exit_status(),
        "outcome_kind": result.outcome,
        "outcome_retryable": completion["nextAction"] == "retry",
        "completion_outcome_status": completion.get("status").cloned().unwrap_or_else(|| "failed".into()),
        "agent_actionable": result.agent_result["actionable"] == true,
    });
    if let Some(reason) = result.agent_result["noOpReason"].as_str() {
        diagnostics["agent_no_op_reason"] = json!(reason);
    }
    diagnostics
}

fn metadata(request: &RunRequest, result: &RunResult, echo: &Echo<'_>) -> Value {
    let mut metadata = json!({
        "schema": schema_id::AGENT_TASK_RUN_METADATA,
        "run_id": result.run_id,
        "wp": echo.wordpress,
    });
    for (from, to) in [
        ("sandbox_session_id", "sandbox_session_id"),
        ("session_id", "agent_session_id"),
        ("orchestrator", "orchestrator"),
    ] {
        if let Some(given) = echo.input.get(from) {
            metadata[to] = given.clone();
        }
    }
    if let Some(model) = &request.model {
        metadata["provider"] = json!(model.provider);
        metadata["model"] = json!(model.model);
    }
    if let Some(usage) = &result.cost.model {
        metadata["usage"] = json!(usage);
    }
    metadata
}

/// Returns facts about the run that are not elsewhere in the result document.
fn run(result: &RunResult) -> Value {
    let mut run = json!({
        "schema": result.schema, "run_id": result.run_id, "outcome": result.outcome,
        "summary": result.summary, "approvable": result.approvable,
        "exit_status": result.outcome.exit_status(), "session_status": result.outcome.session_status(),
    });
    if let Some(bundle) = &result.artifacts {
        run["manifest_sha256"] = json!(bundle.manifest_sha256);
    }
    run
}

/// Replaces the path `.` by the host path of the bundle's directory. Documents inside the bundle
/// refer to that directory as `.`.
fn located(mut document: Value, directory: Option<&str>) -> Value {
    if let Some(directory) = directory {
        for pointer in ["/provenance/artifactDirectory", "/artifacts/directory"] {
            if let Some(place) = document.pointer_mut(pointer)
                && *place == "."
            {
                *place = directory.into();
            }
        }
    }
    document
}

const fn command_status(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded | Outcome::NoOp | Outcome::Partial => "completed",
        Outcome::TimedOut => "timed_out",
        Outcome::Cancelled => "cancelled",
        Outcome::Blocked | Outcome::Denied | Outcome::Failed => "failed",
    }
}

const fn agent_task_status(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::NoOp => "no_op",
        Outcome::TimedOut => "timeout",
        Outcome::Partial | Outcome::Blocked | Outcome::Denied => "unable_to_remediate",
        Outcome::Failed | Outcome::Cancelled => "failed",
    }
}
