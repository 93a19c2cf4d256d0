//! `wp-codebox diff`: prints the change of a run.

use super::args::DiffArgs;
use super::history::{History, Wanted, changed, member};
use crate::output::{Output, name};
use serde_json::json;
use std::io::IsTerminal;
use std::process::ExitCode;
use wp_codebox_artifacts::{VerifyOptions, verify_bundle};
use wp_codebox_contracts::{ChangeKind, ChangedFile, ErrorBody, ErrorCode, schema_id};

/// Prints the patch; with `--stat` one line per changed file instead; with `--json` a document that
/// contains both.
pub(crate) fn diff(output: &Output, args: &DiffArgs) -> ExitCode {
    match show(*output, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure("diff", &error),
    }
}

fn show(output: Output, args: &DiffArgs) -> Result<(), ErrorBody> {
    let history = History::open(&args.of.store)?;
    let run = history.run(&args.of, Wanted::Change(output))?;
    let bundle = history.bundle(&run)?;
    let verification = verify_bundle(&bundle.directory, &VerifyOptions::default());
    if !verification.valid {
        let message = format!(
            "the bundle of {} is damaged or was changed, so its change is not shown",
            run.run_id
        );
        return Err(
            ErrorBody::new(ErrorCode::ArtifactVerificationFailed, message)
                .hint("wp-codebox artifacts verify lists what is wrong; run the task again"),
        );
    }
    let files = changed(&bundle)?;
    let patch = member(&bundle, "files/patch.diff")?;
    if output.is_json() {
        output.document(&json!({
            "schema": schema_id::RUN_DIFF,
            "runId": run.run_id,
            "artifactId": bundle.row.artifact_id,
            "files": files,
            "patch": String::from_utf8_lossy(&patch),
        }));
        return Ok(());
    }
    if args.stat {
        files.iter().for_each(|file| output.line(&stat(file)));
    } else {
        print(output, &patch);
    }
    if files.is_empty() {
        output.note(&format!("{} changed nothing", run.run_id));
    }
    Ok(())
}

fn stat(file: &ChangedFile) -> String {
    let kind = match file.status {
        ChangeKind::Added => "A",
        ChangeKind::Modified => "M",
        ChangeKind::Deleted => "D",
    };
    let lines = match (file.insertions, file.deletions) {
        (Some(added), Some(removed)) => format!("+{added} -{removed}"),
        _ if file.binary => "binary".to_owned(),
        _ => String::new(),
    };
    format!("{kind} {lines:<12} {}", name(&file.relative_path))
}

/// Prints the patch unchanged, or with colours on a terminal.
fn print(output: Output, patch: &[u8]) {
    let coloured = std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if !coloured {
        return output.data(patch);
    }
    for line in String::from_utf8_lossy(patch).lines() {
        let colour = match line.as_bytes() {
            [b'+', ..] => "\x1b[32m",
            [b'-', ..] => "\x1b[31m",
            [b'@', ..] => "\x1b[36m",
            [b'd', b'i', b'f', b'f', ..] => "\x1b[1m",
            _ => "",
        };
        // The text comes from the guest: its control characters must not reach the terminal.
        let text = wp_codebox_contracts::terminal_text::plain(line.as_bytes());
        let end = if colour.is_empty() { "" } else { "\x1b[0m" };
        output.data(format!("{colour}{text}{end}\n").as_bytes());
    }
}
