//! `artifact-result-envelope/v1` of an ended task, and the outputs of the task.

use super::refs::{self, Reference, ReferenceKind};
use super::run_result::{metadata, rows};
use super::{Facts, given, object};
use crate::schema_id;
use serde_json::{Map, Value, json};

/// Start of a bundle's id; the content digest of the bundle follows.
const ID_PREFIX: &str = "artifact-bundle-sha256-";

/// Builds `artifact-result-envelope/v1`. The status is `created` only if the run succeeded and
/// wrote a bundle; otherwise a program that reads only this document could apply the bundle of a
/// failed run.
pub(super) fn artifact_result(
    facts: &Facts<'_>,
    references: &[Reference],
    session: &Value,
) -> Value {
    let is_good = facts.outcome.is_success() && facts.directory.is_some();
    let mut envelope = object(json!({
        "schema": schema_id::ARTIFACT_RESULT_ENVELOPE,
        "operation": "run-agent-task",
        "status": if is_good { "created" } else { "failed" },
        "success": is_good,
        "artifactRefs": refs::artifacts(references),
        "evidenceRefs": refs::evidence(references),
        "result": result(facts, references, session),
        "diagnostics": rows(facts),
        "metadata": metadata(facts),
    }));
    if let (Some(path), Some(id)) = (facts.directory, facts.bundle_id) {
        let mut bundle = object(json!({
            "kind": ReferenceKind::Bundle.as_str(), "id": id, "path": path,
        }));
        if let Some(value) = id.strip_prefix(ID_PREFIX) {
            let digest = json!({"algorithm": "sha256", "value": value});
            bundle.insert("digest".to_owned(), digest);
        }
        envelope.insert("artifactBundle".to_owned(), Value::Object(bundle));
    }
    if let Some(error) = facts.error() {
        let part = |name: &str| error.get(name).cloned().unwrap_or_else(|| "".into());
        let row =
            json!({"name": "AgentTaskError", "message": part("message"), "code": part("code")});
        envelope.insert("error".to_owned(), row);
    }
    Value::Object(envelope)
}

fn result(facts: &Facts<'_>, references: &[Reference], session: &Value) -> Value {
    let mut result = Map::new();
    if let Some(rows) = given(facts.task, "structured_artifacts") {
        result.insert("structured_artifacts".to_owned(), rows.clone());
    }
    if let Some(reply) = agent_reply(facts) {
        result.insert("agent_reply".to_owned(), reply);
    }
    let transcripts = refs::of_kind(references, ReferenceKind::Transcript);
    result.insert("transcript_refs".to_owned(), transcripts.into());
    let evidence = refs::evidence(references);
    result.insert("evidence_refs".to_owned(), evidence.into());
    result.insert("session".to_owned(), session.clone());
    Value::Object(result)
}

/// Returns what the task produced: paths of the changed files, the agent's reply, and the document
/// that an ability or the agent's program printed.
pub(super) fn outputs(facts: &Facts<'_>) -> Value {
    let files = facts.list("changed_files").iter();
    let files: Vec<&Value> = files.filter_map(|file| file.get("path")).collect();
    let mut outputs = object(json!({"changed_files": files}));
    if let Some(patch) = facts.at("files/patch.diff") {
        outputs.insert("patch".to_owned(), patch.into());
    }
    if let Some(reply) = agent_reply(facts) {
        outputs.insert("agent_reply".to_owned(), reply);
    }
    if let Some(document) = printed_document(facts) {
        outputs.insert("result".to_owned(), document.clone());
    }
    Value::Object(outputs)
}

/// Returns the reply of the agent: its last message if it is known, and the summary of its work.
fn agent_reply(facts: &Facts<'_>) -> Option<Value> {
    let agent = facts.agent.as_ref()?;
    let mut reply = Map::new();
    for (from, to) in [
        ("agentSummary", "text"),
        ("summary", "summary"),
        ("status", "status"),
    ] {
        if let Some(value) = agent.get(from).filter(|value| value.is_string()) {
            reply.insert(to.to_owned(), value.clone());
        }
    }
    Some(Value::Object(reply))
}

/// Returns the document that the last execution of the agent printed.
fn printed_document<'a>(facts: &Facts<'a>) -> Option<&'a Value> {
    let executions = facts.result.get("transcript")?.get("executions")?;
    let mut agent = executions.as_array()?.iter().rev();
    agent.find(|row| row["phase"] == "agent")?.get("parsed")
}
