//! `wp-codebox log`: the runs of this directory and which of them were applied.

use super::apply::journal;
use super::args::LogArgs;
use super::history::open;
use crate::columns::{Column, table, terminal};
use crate::output::Output;
use crate::runs::{exit_status, note_unreadable};
use serde_json::{Value, json};
use std::process::ExitCode;
use wp_codebox_apply::AppliedChange;
use wp_codebox_contracts::{CodedError, ErrorBody, RunStatus, schema_id};

const COLUMNS: &[Column] = &[
    Column {
        heading: "RUN",
        spare: false,
    },
    Column {
        heading: "BEGAN",
        spare: true,
    },
    Column {
        heading: "OUTCOME",
        spare: false,
    },
    Column {
        heading: "APPLIED",
        spare: false,
    },
    Column {
        heading: "GOAL",
        spare: false,
    },
];

/// Prints the runs of the current directory, newest first.
pub(crate) fn log(output: &Output, args: &LogArgs) -> ExitCode {
    match show(*output, args) {
        Ok(status) => status,
        Err(error) => output.failure("log", &error),
    }
}

fn show(output: Output, args: &LogArgs) -> Result<ExitCode, ErrorBody> {
    let (history, _) = open(&args.store)?;
    let page = history.runs(usize::from(args.limit))?;
    let (runs, mut status) = (page.rows, exit_status(&page.unreadable));
    let listed = journal(output, &history)?.list()?;
    let applied = listed.changes;
    for error in &listed.unreadable {
        output.note(&format!("Warning: {error} [{}]", error.code()));
        status = ExitCode::from(error.code().exit_status());
    }
    let rows: Vec<Value> = runs
        .iter()
        .map(|(run, record, status)| {
            let of_run =
                |change: &&AppliedChange| change.bundle.run_id.as_ref() == Some(&run.run_id);
            let state = applied.iter().find(of_run).map(state);
            json!({
                "runId": run.run_id,
                "createdAt": record.created_at,
                "status": status,
                "outcome": record.outcome,
                "goal": record.facts.goal(),
                "artifactId": record.bundle_id,
                "applied": state,
            })
        })
        .collect();
    if output.is_json() {
        let mut document = json!({"schema": schema_id::DIRECTORY_LOG, "runs": rows});
        if !page.unreadable.is_empty() {
            document["unreadable"] = json!(page.unreadable);
        }
        output.document(&document);
        return Ok(status);
    }
    note_unreadable(&output, &page.unreadable);
    let cells: Vec<Vec<String>> = rows
        .iter()
        .zip(&runs)
        .map(|(row, (run, _, status))| {
            let text = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
            let id = run.run_id.as_str().trim_start_matches("run_");
            let outcome = match status {
                RunStatus::Running => "running".to_owned(),
                RunStatus::Ended => text("outcome"),
            };
            vec![
                id.get(..8).unwrap_or(id).to_owned(),
                text("createdAt"),
                outcome,
                text("applied"),
                text("goal"),
            ]
        })
        .collect();
    if cells.is_empty() {
        output.note("no runs of this directory yet");
        return Ok(status);
    }
    let lines = table(COLUMNS, &cells, terminal());
    lines.iter().for_each(|line| output.line(line));
    Ok(status)
}

/// Returns whether an applied change is still in the files: `yes`, `undone` or `in part`.
fn state(change: &AppliedChange) -> &'static str {
    match change.undone.len() {
        0 => "yes",
        undone if undone >= change.files.len() => "undone",
        _ => "in part",
    }
}
