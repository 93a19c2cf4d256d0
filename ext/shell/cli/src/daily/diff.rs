//! `wp-codebox diff`: prints the change of a run.

use super::args::DiffArgs;
use super::history::{change_of, open};
use crate::output::{Colour, Output, name};
use serde_json::json;
use std::process::ExitCode;
use wp_codebox_artifacts::path_risks;
use wp_codebox_changes::{changed, member};
use wp_codebox_contracts::{ChangeKind, ChangedFile, ErrorBody, schema_id};

/// Prints the patch; with `--stat` one line per changed file instead; with `--json` a document that
/// contains both.
pub(crate) fn diff(output: &Output, args: &DiffArgs) -> ExitCode {
    match show(*output, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure("diff", &error),
    }
}

fn show(output: Output, args: &DiffArgs) -> Result<(), ErrorBody> {
    let (history, _) = open(&args.of.store)?;
    let run = change_of(output, &history, &args.of)?;
    let bundle = history.verified_bundle(&run)?;
    let files = changed(&bundle)?;
    let patch = member(&bundle, "files/patch.diff")?;
    if output.is_json() {
        output.document(&json!({
            "schema": schema_id::RUN_DIFF,
            "runId": run.run_id,
            "artifactId": bundle.row.artifact_id,
            "files": files,
            "risks": path_risks(&files),
            "patch": String::from_utf8_lossy(&patch),
        }));
        return Ok(());
    }
    if args.stat {
        files.iter().for_each(|file| output.line(&stat(file)));
    } else {
        output.coloured(&patch, colour);
    }
    if files.is_empty() {
        output.note(&format!("{} changed nothing", run.run_id));
    }
    for risk in path_risks(&files) {
        show_risk(output, risk.flag, &risk.path, risk.sentence);
    }
    Ok(())
}

/// Prints a message for a changed file that a program runs or obeys by its name.
pub(super) fn show_risk(output: Output, flag: &str, path: &str, sentence: &str) {
    output.note(&format!("{flag} {}: {sentence}", name(path)));
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

fn colour(line: &[u8]) -> Colour {
    match line {
        [b'+', ..] => Colour::Green,
        [b'-', ..] => Colour::Red,
        [b'@', ..] => Colour::Cyan,
        [b'd', b'i', b'f', b'f', ..] => Colour::Bold,
        _ => Colour::Plain,
    }
}
