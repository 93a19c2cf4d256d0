//! Compares the WASI tools that a bundle records with the calls in its transcript.
//!
//! Every call that ran a program must have a record with the same digests, and every recorded
//! program must belong to a call. So neither a record nor a call can be missing or exchanged.

use super::files::Session;
use super::shape::{full_text, hex64, text};
use crate::json::Json;
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_contracts::{ViolationCode, schema_id};

const RECORDS: &str = "wasi-tools";
const TRANSCRIPT: &str = "tool-call-transcript";
/// Type of a call of a WASI tool in the transcript.
const CALL_TYPE: &str = "wasi";

/// Record of one tool.
struct Record {
    /// File that contains the record.
    file: String,
    definition: String,
    module: String,
    executions: BTreeSet<String>,
}

pub(super) fn check(session: &mut Session<'_>) {
    let records = records(session);
    let mut called: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut is_whole = true;
    for path in session.of_kind(TRANSCRIPT) {
        // The checks in `typed` report a document that is not a transcript.
        let Some(document) = parsed(session, &path) else {
            continue;
        };
        is_whole &= document.get("calls_cut").is_none();
        let calls = document.get("tool_calls").and_then(Json::as_array);
        for (index, call) in calls.unwrap_or_default().iter().enumerate() {
            let executions = texts(call.get("executions")).unwrap_or_default();
            if text(call, "tool_type") != Some(CALL_TYPE) || executions.is_empty() {
                continue;
            }
            let tool = text(call, "tool_name").unwrap_or_default();
            if !records
                .get(tool)
                .is_some_and(|record| fits(record, call, &executions))
            {
                let at = format!("{path}:tool_calls[{index}]");
                let message = format!(
                    "the bundle has no record of how {tool:?} ran, or the record differs from the call"
                );
                session.add(
                    ViolationCode::ReviewEvidenceMismatch,
                    at,
                    Some(&path),
                    message,
                );
            }
            called
                .entry(tool.to_owned())
                .or_default()
                .extend(executions);
        }
    }
    for (tool, record) in records {
        let calls = called.remove(&tool).unwrap_or_default();
        if is_whole && !record.executions.is_subset(&calls) {
            let message =
                format!("the transcript lacks a call for a recorded execution of {tool:?}");
            let file = record.file;
            session.add(
                ViolationCode::ReviewEvidenceMismatch,
                &file,
                Some(&file),
                message,
            );
        }
    }
}

fn fits(record: &Record, call: &Json, executions: &BTreeSet<String>) -> bool {
    let stated = |name| hex64(call.get("wasi").and_then(|wasi| wasi.get(name)));
    stated("definitionSha256") == Some(&record.definition)
        && stated("moduleSha256") == Some(&record.module)
        && executions.is_subset(&record.executions)
}

fn records(session: &mut Session<'_>) -> BTreeMap<String, Record> {
    let mut records = BTreeMap::new();
    for path in session.of_kind(RECORDS) {
        let malformed = |session: &mut Session<'_>, at: &str| {
            let message = format!("{path:?} is not a valid record of WASI tools");
            session.add(ViolationCode::MalformedReference, at, Some(&path), message);
        };
        let document = parsed(session, &path);
        let document = document.filter(|d| text(d, "schema") == Some(schema_id::WASI_TOOLS));
        let rows = document.as_ref().and_then(|d| d.get("tools")?.as_array());
        let Some(rows) = rows else {
            malformed(session, &path);
            continue;
        };
        for (index, row) in rows.iter().enumerate() {
            let fresh = record(&path, row).filter(|(id, _)| !records.contains_key(id));
            match fresh {
                Some((id, record)) => {
                    records.insert(id, record);
                }
                None => malformed(session, &format!("{path}:tools[{index}]")),
            }
        }
    }
    records
}

/// Parses the record of one tool; `None` if a member is missing or has the wrong type.
fn record(file: &str, row: &Json) -> Option<(String, Record)> {
    let audits = row.get("sandboxAudits")?.as_array()?;
    let is_audit = |audit: &Json| {
        full_text(audit, "kind").is_some()
            && full_text(audit, "wrappedCmd").is_some()
            && text(audit, "wrapperName").is_some()
            && ["wrappedArgs", "mounts"]
                .iter()
                .all(|key| texts(audit.get(key)).is_some())
    };
    if audits.is_empty() || !audits.iter().all(is_audit) {
        return None;
    }
    let executions = texts(row.get("executions")).filter(|ran| !ran.is_empty())?;
    let record = Record {
        file: file.to_owned(),
        definition: hex64(row.get("definitionSha256"))?.to_owned(),
        module: hex64(row.get("moduleSha256"))?.to_owned(),
        executions,
    };
    Some((full_text(row, "id")?.to_owned(), record))
}

fn parsed(session: &mut Session<'_>, path: &str) -> Option<Json> {
    Json::parse(&session.document(path)?).ok()
}

/// Returns the texts of a list; `None` if it is not a list of texts.
fn texts(value: Option<&Json>) -> Option<BTreeSet<String>> {
    let items = value?.as_array()?.iter();
    items.map(|item| item.as_str().map(str::to_owned)).collect()
}
