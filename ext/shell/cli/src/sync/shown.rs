//! Formats the result of a sync as human-readable lines or JSON.

use crate::output::{Output, name as listed};
use serde_json::{Value, json};
use std::process::ExitCode;
use wp_codebox_changes::{Carried, Direction, SyncReport, Verdict};
use wp_codebox_contracts::schema_id;

/// Maximum number of rows in human-readable output.
const SHOWN: usize = 200;

const fn carried_name(carried: Carried) -> &'static str {
    match carried {
        Carried::Written => "written",
        Carried::Deleted => "deleted",
    }
}

pub(super) fn show(report: &SyncReport, output: &Output) -> ExitCode {
    if output.is_json() {
        output.document(&document(report));
    } else {
        table(report, output);
    }
    let conflicts = report
        .pending
        .values()
        .any(|verdict| *verdict == Verdict::Conflict);
    let differ = report.direction == Direction::Status && !report.pending.is_empty();
    ExitCode::from(match (conflicts, differ || !report.left_out.is_empty()) {
        (true, _) => 1,
        (false, true) => 3,
        (false, false) => 0,
    })
}

fn document(report: &SyncReport) -> Value {
    let carried: Vec<Value> = report
        .carried
        .iter()
        .map(|(path, carried)| json!({"path": path, "action": carried_name(*carried)}))
        .collect();
    let pending: Vec<Value> = report
        .pending
        .iter()
        .map(|(path, verdict)| json!({"path": path, "verdict": verdict}))
        .collect();
    let left_out: Vec<Value> = report
        .left_out
        .iter()
        .map(|(path, why)| json!({"path": path, "reason": why}))
        .collect();
    json!({
        "success": true, "schema": schema_id::SANDBOX_SYNC, "direction": report.direction,
        "run_id": report.run, "path": report.top, "carried": carried, "pending": pending,
        "leftOut": left_out,
    })
}

fn table(report: &SyncReport, output: &Output) {
    let rows = report
        .carried
        .iter()
        .map(|(path, carried)| (carried_name(*carried), path.as_str(), ""));
    let pending = report.pending.iter().map(|(path, verdict)| {
        let name = match verdict {
            Verdict::Push => "to push",
            Verdict::Pull => "to pull",
            Verdict::Conflict => "conflict",
        };
        (name, path.as_str(), "")
    });
    let left_out = report
        .left_out
        .iter()
        .map(|(path, why)| ("left out", path.as_str(), why.as_str()));
    let rows: Vec<_> = rows.chain(pending).chain(left_out).collect();
    for (name, path, why) in rows.iter().take(SHOWN) {
        let path = listed(path);
        let why = if why.is_empty() {
            String::new()
        } else {
            format!("  ({why})")
        };
        output.line(&format!("{name:<9} {path}{why}"));
    }
    if rows.len() > SHOWN {
        output.line(&format!("… and {} more", rows.len() - SHOWN));
    }
    output.note(&format!(
        "{} copied, {} pending, {} left out; in the sandbox {}",
        report.carried.len(),
        report.pending.len(),
        report.left_out.len(),
        report.top
    ));
}
