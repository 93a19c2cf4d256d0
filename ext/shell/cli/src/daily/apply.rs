//! `wp-codebox apply` and `undo`: the apply engine with the bundles of this host.

use super::args::{ApplyArgs, UndoArgs};
use super::diff::show_risk;
use super::history::{change_of, note_change, open};
use crate::output::{Output, name};
use serde_json::json;
use std::process::ExitCode;
use wp_codebox_apply::{AppliedChange, Journal, UndoReport};
use wp_codebox_changes::{ApplyDecisions, History, check_success};
use wp_codebox_contracts::{ErrorBody, ErrorCode, schema_id};
use wp_codebox_runtime::FoundRun;

/// Opens this user's journal of applied changes for the site of the history. Interrupted
/// transactions are finished or reversed first; those that could not be are printed as warnings.
pub(super) fn journal(output: Output, history: &History) -> Result<Journal, ErrorBody> {
    let (journal, errors) = history.journal()?;
    for error in errors {
        output.note(&format!("Warning: {} [{}]", error.message, error.code));
        for hint in &error.hints {
            output.note(&format!("  hint: {hint}"));
        }
    }
    Ok(journal)
}

/// Applies the change of a run to the files of its directory.
pub(crate) fn apply(output: &Output, args: &ApplyArgs) -> ExitCode {
    match applied(*output, args) {
        Ok((run, change)) => {
            if output.is_json() {
                output.document(&json!({
                    "schema": schema_id::APPLIED_CHANGE,
                    "success": true,
                    "runId": run.run_id,
                    "change": change,
                }));
                return ExitCode::SUCCESS;
            }
            for file in &change.files {
                output.line(&format!("applied {}", name(file)));
            }
            let files = match change.files.len() {
                1 => "1 file".to_owned(),
                count => format!("{count} files"),
            };
            output.note(&format!("{files} in {}", change.targets.join(", ")));
            output.note("Next: wp-codebox undo takes this back");
            ExitCode::SUCCESS
        }
        Err(error) => {
            if !output.is_json() {
                show_conflicts(*output, &error);
                show_unconfirmed(*output, &error);
            }
            output.failure("apply", &error)
        }
    }
}

/// Prints the conflicts in an error, one per line.
fn show_conflicts(output: Output, error: &ErrorBody) {
    let conflicts = error.data.as_ref().and_then(|data| data.get("conflicts"));
    for conflict in conflicts.and_then(|c| c.as_array()).into_iter().flatten() {
        output.note(&format!(
            "conflict {}: {}",
            name(conflict["path"].as_str().unwrap_or_default()),
            conflict["reason"].as_str().unwrap_or_default()
        ));
    }
}

/// Prints the files in an error that need a confirmation, one per line.
fn show_unconfirmed(output: Output, error: &ErrorBody) {
    let risks = error.data.as_ref().and_then(|data| data.get("risks"));
    for risk in risks.and_then(|r| r.as_array()).into_iter().flatten() {
        let text = |key: &str| risk[key].as_str().unwrap_or_default();
        show_risk(output, text("flag"), text("path"), text("sentence"));
    }
}

fn applied(output: Output, args: &ApplyArgs) -> Result<(FoundRun, AppliedChange), ErrorBody> {
    let (history, settings) = open(&args.of.store)?;
    let journal = journal(output, &history)?;
    let run = change_of(output, &history, &args.of)?;
    let proposed = history.proposed(&run, &args.files)?;
    succeeded(output, &history, &run, args)?;
    let decisions = ApplyDecisions {
        to: args.to.as_deref(),
        trusted_keys: args.trusted.keys.clone(),
        confirm_browser_origin: args.confirm_browser_origin,
        confirm_sensitive: args.confirm_sensitive,
        php: &settings.php_binary,
    };
    let change = proposed.apply(&journal, decisions)?;
    Ok((run, change))
}

/// Fails if the run of the change did not succeed and the user does not want its change anyway.
fn succeeded(
    output: Output,
    history: &History,
    run: &FoundRun,
    args: &ApplyArgs,
) -> Result<(), ErrorBody> {
    let view = match history.view(run) {
        // A bundle without a run of this host.
        Err(error) if error.code == ErrorCode::RunNotFound => return Ok(()),
        viewed => viewed?,
    };
    if args.of.run.is_some() {
        note_change(output, run, &view.created_at, view.summary.as_deref());
    }
    check_success(&view, || {
        args.despite_failed_checks
            || output.agreed("This run did not succeed. Apply its change anyway?")
    })
}

/// Undoes an applied change.
pub(crate) fn undo(output: &Output, args: &UndoArgs) -> ExitCode {
    match undone(*output, args) {
        Ok((change, report)) => {
            if output.is_json() {
                output.document(&json!({
                    "schema": schema_id::UNDONE_CHANGE,
                    "success": report.conflicts.is_empty(),
                    "change": report,
                }));
            } else {
                for file in &report.restored {
                    output.line(&format!("{} {}", undone_as(&change, file), name(file)));
                }
                for conflict in &report.conflicts {
                    output.line(&format!(
                        "left unchanged {}: {}",
                        name(&conflict.path),
                        conflict.reason
                    ));
                }
            }
            ExitCode::from(u8::from(!report.conflicts.is_empty()))
        }
        Err(error) => output.failure("undo", &error),
    }
}

/// Returns `removed` if the undo deleted the file, because the change had added it; otherwise
/// `restored`.
fn undone_as(change: &AppliedChange, file: &str) -> &'static str {
    let mut paths = change.files.iter().zip(&change.paths);
    let gone = paths.any(|(of, path)| of == file && path.symlink_metadata().is_err());
    if gone { "removed" } else { "restored" }
}

fn undone(output: Output, args: &UndoArgs) -> Result<(AppliedChange, UndoReport), ErrorBody> {
    let (history, _) = open(&args.store)?;
    let journal = journal(output, &history)?;
    history.undo(&journal, args.change.as_deref(), &args.files)
}
