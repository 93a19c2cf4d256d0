//! The document about an ended agent task, `agent-task-run/v1`, and the documents in it.
//!
//! The command line and the WordPress plugin call the same functions, so that both give the same
//! document. Every value comes from the result of the run or from the caller's input; a fact that
//! is not known is left out. The functions read the result as JSON, because PHP gives an empty
//! object as an empty list.

mod artifact_result;
mod facts;
mod refs;
mod remediation;
mod row;
mod run_result;
mod task_input;

pub use facts::{AgentTaskError, AgentTaskFacts};
pub use row::agent_task_row;
pub use task_input::task_document;

use super::session::{SessionState, given, own_session_id, sandbox_session};
use crate::{Outcome, schema_id};
use facts::{Facts, object};
use refs::{Reference, references};
use serde_json::{Map, Value, json};

/// Members of the run result that are moved unchanged into the document, if they are not empty.
const UNCHANGED: &[&str] = &["mounts", "cost", "isolation", "error", "notices"];

/// Builds `agent-task-run/v1`, the document about a task whose run has ended.
///
/// # Errors
/// Fails if the run result has no outcome or no run id.
pub fn agent_task_run(given: &AgentTaskFacts<'_>) -> Result<Map<String, Value>, AgentTaskError> {
    let facts = Facts::read(given)?;
    let references = references(&facts);
    let status = agent_task_status(&facts);
    let session = session(&facts);
    let run_result = run_result::run_result(&facts, &references, status);
    let mut document = object(json!({
        "success": facts.outcome.is_success(),
        "schema": schema_id::AGENT_TASK_RUN,
        "status": facts.outcome.session_status(),
        "statuses": {
            "command": command_status(facts.outcome),
            "phase": facts.completion_status(),
            "agent_task": status,
        },
        "agent_task_status": status,
        "summary": facts.summary,
        "session": session,
        "task": facts.task.get("goal").cloned().unwrap_or_else(|| "".into()),
        "task_input": task_document(facts.input, facts.task),
        "wp": facts.wordpress,
        "artifacts": facts.directory.unwrap_or_default(),
        "exit_code": facts.outcome.exit_status(),
        "changed_files": facts.list("changed_files"),
        "approvable": facts.result.get("approvable") == Some(&Value::Bool(true)),
        "checks": facts.list("checks"),
        "completion_outcome": facts.completion,
        "diagnostics": diagnostics(&facts, status),
        "run_metadata": metadata(&facts),
        "run": run(&facts),
        "agent_task_run_result": run_result,
        "headless_agent_task_result":
            run_result::headless_result(&facts, &references, &run_result),
        "artifact_result": artifact_result::artifact_result(&facts, &references, &session),
        "outputs": artifact_result::outputs(&facts),
    }));
    if let Some(agent) = &facts.agent {
        document.insert("agent_result".to_owned(), agent.clone());
        let result = run_result::agent_task_result(&facts, status);
        document.insert("agent_task_result".to_owned(), result);
    }
    if !facts.preview.is_empty() {
        document.insert("preview".to_owned(), facts.preview.clone().into());
    }
    if let Some(outcome) = remediation::remediation_outcome(&facts) {
        document.insert("outcome".to_owned(), outcome);
    }
    if let Some(directory) = facts.directory {
        let id = facts.bundle_id.unwrap_or_default();
        document.insert("artifact_id".to_owned(), id.into());
        document.insert("paths".to_owned(), paths(directory, &references));
        document.insert("evidence_refs".to_owned(), evidence(&facts, directory));
    }
    for name in UNCHANGED {
        if let Some(value) = self::given(facts.result, name) {
            document.insert((*name).to_owned(), value.clone());
        }
    }
    Ok(document)
}

/// Returns the members of a run handle that describe the task of a run that has just started:
/// `session`, `task`, `task_input` and `wp`.
#[must_use]
pub fn agent_task_started(
    input: &Map<String, Value>,
    task: &Map<String, Value>,
    run_id: &str,
    wordpress: &str,
) -> Map<String, Value> {
    let id = own_session_id(input).unwrap_or(run_id);
    let mut session = sandbox_session(input, SessionState::Ready, id);
    session.insert("run_id".to_owned(), run_id.into());
    let document = task_document(input, task);
    Map::from_iter([
        ("session".to_owned(), Value::Object(session)),
        ("task".to_owned(), document["goal"].clone()),
        ("task_input".to_owned(), document),
        ("wp".to_owned(), wordpress.into()),
    ])
}

/// Builds the session: ids of the run and of the caller. A session is completed as soon as its run
/// has ended; `status` of the whole document says whether the run succeeded.
fn session(facts: &Facts<'_>) -> Value {
    let id = own_session_id(facts.input).unwrap_or(facts.run_id);
    let mut session = sandbox_session(facts.input, SessionState::Completed, id);
    session.insert("run_id".to_owned(), facts.run_id.into());
    if let (Some(path), Some(id)) = (facts.directory, facts.bundle_id) {
        let mut artifacts = object(json!({"path": path, "bundle_id": id,
            "completion_outcome": "files/completion-outcome.json"}));
        if let Some(url) = facts.preview_url() {
            artifacts.insert("preview_url".to_owned(), url.clone());
        }
        session.insert("artifacts".to_owned(), Value::Object(artifacts));
    }
    Value::Object(session)
}

/// Returns the absolute paths of the bundle and of the files that a reviewer reads first.
fn paths(directory: &str, references: &[Reference]) -> Value {
    let at = |name: &str| format!("{directory}/{name}");
    let mut paths = Map::from_iter([
        ("artifacts".to_owned(), directory.into()),
        ("manifest".to_owned(), at("manifest.json").into()),
        ("review".to_owned(), at("files/review.json").into()),
        (
            "test_results".to_owned(),
            at("files/test-results.json").into(),
        ),
    ]);
    for (name, id) in [("patch", "patch"), ("changed_files", "changed-files")] {
        if let Some(reference) = references.iter().find(|row| row.id == id) {
            paths.insert(name.to_owned(), reference.path.as_str().into());
        }
    }
    Value::Object(paths)
}

/// Returns where the evidence of the agent's work is: bundle, ids, and paths relative to the
/// bundle.
fn evidence(facts: &Facts<'_>, directory: &str) -> Value {
    let mut evidence = object(json!({
        "schema": schema_id::AGENT_TASK_EVIDENCE_REFS,
        "artifacts_path": directory,
        "artifact_bundle_id": facts.bundle_id.unwrap_or_default(),
        "manifest_sha256": facts.manifest_sha256.unwrap_or_default(),
        "completion_outcome": "files/completion-outcome.json",
        "transcript": "files/transcript.json",
    }));
    if let Some(url) = facts.preview_url() {
        evidence.insert("preview_url".to_owned(), url.clone());
    }
    if facts.agent.is_some() {
        evidence.insert("agent_result".to_owned(), "files/agent-result.json".into());
    }
    Value::Object(evidence)
}

/// Returns the facts by which a program decides what to do next: outcome, exit code, and whether a
/// retry can help.
fn diagnostics(facts: &Facts<'_>, status: &str) -> Value {
    let mut diagnostics = object(json!({
        "schema": schema_id::AGENT_TASK_DIAGNOSTICS,
        "exit_code": facts.outcome.exit_status(),
        "outcome_kind": facts.outcome,
        "outcome_retryable": facts.is_retryable(),
        "completion_outcome_status": facts.completion_status(),
        "agent_actionable": facts.is_actionable(),
    }));
    if let Some(reason) = facts.no_op_reason() {
        diagnostics.insert("agent_no_op_reason".to_owned(), reason.into());
    }
    if let Some(agent) = &facts.agent {
        let own = schema_id::AGENT_TASK_RESULT;
        for (name, value) in [
            ("agent_result_schema", agent["schema"].as_str()),
            ("agent_task_result_schema", Some(own)),
            ("agent_task_result_status", Some(status)),
        ] {
            if let Some(value) = value {
                diagnostics.insert(name.to_owned(), value.into());
            }
        }
    }
    Value::Object(diagnostics)
}

/// Returns the run id, the WordPress version, the ids of the caller and the model of the run.
fn metadata(facts: &Facts<'_>) -> Value {
    let mut metadata = object(json!({
        "schema": schema_id::AGENT_TASK_RUN_METADATA,
        "run_id": facts.run_id,
        "wp": facts.wordpress,
    }));
    for (from, to) in [
        ("sandbox_session_id", "sandbox_session_id"),
        ("session_id", "agent_session_id"),
        ("orchestrator", "orchestrator"),
    ] {
        if let Some(value) = given(facts.input, from) {
            metadata.insert(to.to_owned(), value.clone());
        }
    }
    for name in ["provider", "model", "credential"] {
        if let Some(value) = given(facts.model, name) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    let usage = facts.result.get("cost").and_then(|cost| cost.get("model"));
    if let Some(usage) = usage.filter(|usage| usage.is_object()) {
        metadata.insert("usage".to_owned(), usage.clone());
    }
    Value::Object(metadata)
}

/// Returns the main fields of the run result, and the manifest digest that an approval must state.
fn run(facts: &Facts<'_>) -> Value {
    let mut run = object(json!({
        "schema": schema_id::RUN_RESULT,
        "run_id": facts.run_id,
        "outcome": facts.outcome,
        "summary": facts.summary,
        "approvable": facts.result.get("approvable") == Some(&Value::Bool(true)),
        "exit_status": facts.outcome.exit_status(),
        "session_status": facts.outcome.session_status(),
    }));
    if let Some(digest) = facts.manifest_sha256 {
        run.insert("manifest_sha256".to_owned(), digest.into());
    }
    Value::Object(run)
}

const fn command_status(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded | Outcome::NoOp | Outcome::Partial => "completed",
        Outcome::TimedOut => "timed_out",
        Outcome::Cancelled => "cancelled",
        Outcome::Blocked | Outcome::Denied | Outcome::Failed => "failed",
    }
}

fn agent_task_status(facts: &Facts<'_>) -> &'static str {
    if facts.is_provider_error() {
        return "provider_error";
    }
    match facts.outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::NoOp => "no_op",
        Outcome::TimedOut => "timeout",
        Outcome::Partial | Outcome::Blocked | Outcome::Denied => "unable_to_remediate",
        Outcome::Failed | Outcome::Cancelled => "failed",
    }
}

#[cfg(test)]
mod tests;
