//! `wp-codebox diff`: prints the change of a run.

use super::args::DiffArgs;
use super::history::{History, Wanted, changed, member};
use crate::output::{Colour, Output, name};
use serde_json::json;
use std::process::ExitCode;
use wp_codebox_artifacts::{VerifyOptions, path_risks, verify_bundle};
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
