//! Checks typed artifact indexes and tool call transcripts.
//!
//! A payload with its own JSON Schema cannot be validated, because this crate has no schema
//! engine. The verifier reports a violation in this case instead of accepting the payload
//! silently.

use super::files::Session;
use super::shape::{digest, full_text, hex64, text};
use crate::json::Json;
use wp_codebox_contracts::ViolationCode;

const INDEX: &str = "typed-artifacts-index";
const TRANSCRIPT: &str = "tool-call-transcript";

pub(super) fn check(session: &mut Session<'_>) {
    for (kind, judge) in [
        (
            INDEX,
            check_index as fn(&mut Session<'_>, &str, &Json) -> bool,
        ),
        (TRANSCRIPT, check_transcript),
    ] {
        for path in session.of_kind(kind) {
            let document = session.document(&path).and_then(|b| Json::parse(&b).ok());
            let fits = document.is_some_and(|document| {
                text(&document, "schema") == Some(&format!("wp-codebox/{kind}/v1"))
                    && judge(session, &path, &document)
            });
            if !fits {
                let message = format!("{path:?} is not a {kind} document");
                session.add(
                    ViolationCode::MalformedReference,
                    &path,
                    Some(&path),
                    message,
                );
            }
        }
    }
}

fn check_index(session: &mut Session<'_>, file: &str, document: &Json) -> bool {
    let Some(rows) = document.get("artifacts").and_then(Json::as_array) else {
        return false;
    };
    for (index, row) in rows.iter().enumerate() {
        let at = format!("{file}:artifacts[{index}]");
        let artifact = row.get("artifact");
        let Some(path) = artifact.and_then(|a| text(a, "path")) else {
            let message = "a typed artifact has no \"path\" of its file";
            session.add(ViolationCode::MalformedReference, at, Some(file), message);
            continue;
        };
        if session.check_reference(&format!("{at}.artifact.path"), path) {
            let field = format!("{at}.artifact.sha256");
            let stated = hex64(artifact.and_then(|a| a.get("sha256")));
            check_plain_hash(session, &field, path, stated);
        }
        let schema = ["payload_schema", "payloadSchema"]
            .iter()
            .find_map(|key| row.get(key).filter(|s| s.as_object().is_some()));
        if schema.is_some() && row.get("payload").is_some() {
            let message = "the payload has a schema of its own, which this verifier cannot check";
            let code = ViolationCode::PayloadSchemaViolation;
            session.add(code, format!("{at}.payload"), Some(file), message);
        }
    }
    true
}

/// Adds a violation unless the file has the hash `stated` (hex digits). A file that cannot be read
/// counts as missing.
fn check_plain_hash(session: &mut Session<'_>, field: &str, path: &str, stated: Option<&str>) {
    let (code, message) = match (session.file_hash(path), stated) {
        (None, _) => (ViolationCode::MissingFile, "cannot be read"),
        (Some(hash), Some(stated)) if hash.as_str() == stated => return,
        (Some(_), _) => (
            ViolationCode::FileHashMismatch,
            "does not have the hash that the document referring to it states",
        ),
    };
    session.add(code, field, Some(path), format!("{path:?} {message}"));
}

fn check_transcript(session: &mut Session<'_>, file: &str, document: &Json) -> bool {
    let policy = |value: &Json| {
        value
            .get("redaction")
            .is_some_and(|redaction| text(redaction, "policy").is_some())
    };
    let Some(calls) = document.get("tool_calls").and_then(Json::as_array) else {
        return false;
    };
    if !policy(document) {
        return false;
    }
    for (index, call) in calls.iter().enumerate() {
        let at = format!("{file}:tool_calls[{index}]");
        let complete = ["call_id", "tool_name", "tool_type", "phase", "status"]
            .iter()
            .all(|key| full_text(call, key).is_some());
        if !complete || !policy(call) {
            let message = "a tool call lacks a required field";
            session.add(ViolationCode::MalformedReference, &at, Some(file), message);
        }
        for group in ["input_artifacts", "output_artifacts"] {
            let rows = call.get(group).and_then(Json::as_array).unwrap_or_default();
            for (position, row) in rows.iter().enumerate() {
                check_call_artifact(session, file, &format!("{at}.{group}[{position}]"), row);
            }
        }
    }
    true
}

fn check_call_artifact(session: &mut Session<'_>, file: &str, at: &str, row: &Json) {
    let Some(path) = text(row, "path") else {
        let message = "an artifact of a tool call has no \"path\" of its file";
        session.add(ViolationCode::MalformedReference, at, Some(file), message);
        return;
    };
    if session.check_reference(&format!("{at}.path"), path)
        && let Some(hash) = row.get("sha256")
    {
        let stated = hex64(Some(hash)).or_else(|| digest(Some(hash)));
        check_plain_hash(session, &format!("{at}.sha256"), path, stated);
    }
}
