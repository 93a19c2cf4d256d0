//! `wp-codebox apply` and `undo`: the apply engine with the bundles of this host.

use super::args::{ApplyArgs, UndoArgs};
use super::diff::show_risk;
use super::history::{History, PURPOSE, Wanted, directory, note_change};
use crate::applying::{self, Approved, SensitiveRule};
use crate::output::{Output, name};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wp_codebox_apply::{AppliedChange, Journal, Listed, UndoReport};
use wp_codebox_artifacts::PreflightRequest;
use wp_codebox_contracts::{ChangedFile, ErrorBody, ErrorCode, Outcome, schema_id};
use wp_codebox_runtime::{FoundRun, now_rfc3339};

/// Opens this user's journal of applied changes for the site of the history. Interrupted
/// transactions are finished or reversed first; those that could not be are printed as warnings.
pub(super) fn journal(output: Output, history: &History) -> Result<Journal, ErrorBody> {
    let site = history.state.as_owner(|| history.state.site(&history.site));
    let site = site.map_err(|e| e.body())?.map_err(|e| e.body())?;
    let (journal, errors) = applying::journal(&site)?;
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
    let history = History::open(&args.of.store)?;
    let journal = journal(output, &history)?;
    let run = history.run(&args.of, Wanted::Change(output))?;
    let directories = history.directories(&run)?;
    let bundle = history.bundle(&run)?;
    let changed = super::history::changed(&bundle)?;
    if changed.is_empty() {
        let message = format!("{} changed nothing, so nothing can be applied", run.run_id);
        return Err(ErrorBody::new(ErrorCode::ApprovedFilesInvalid, message)
            .hint("name an earlier run: wp-codebox log lists the runs of this directory"));
    }
    let approved = chosen(&changed, &args.files)?;
    succeeded(output, &history, &run, args)?;
    let targets = targets(&changed, &approved, directories, args.to.as_deref())?;
    let known = |error| applied_before(error, &journal, &run, &targets);
    let change = applying::apply(
        &journal,
        Approved {
            id: applying::new_id("apply")?,
            bundle: &bundle.directory,
            run_id: Some(run.run_id.clone()),
            request: PreflightRequest {
                approved_files: approved,
                targets: targets.clone(),
                trusted: applying::trusted_keys(history.state.path(), args.trusted.keys.clone())?,
                browser_origin: applying::browser_origin(args.confirm_browser_origin),
                ..PreflightRequest::default()
            },
            patch_sha256: None,
            sensitive: SensitiveRule::of(args.confirm_sensitive),
        },
        &history.settings.php_binary,
    )
    .map_err(known)?;
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
    // The site of `wp-codebox up` normally ends by being cancelled.
    let of_site = view.provenance.contains_key(PURPOSE.0);
    let ended_well = match view.outcome {
        Some(Outcome::Cancelled) if of_site => true,
        // Its change cannot be approved, and the preflight says why.
        Some(Outcome::Blocked) => true,
        Some(outcome) => outcome.is_success(),
        None => false,
    };
    if ended_well
        || args.despite_failed_checks
        || output.agreed("This run did not succeed. Apply its change anyway?")
    {
        return Ok(());
    }
    let summary = view.summary.unwrap_or_default();
    let message = format!("the run of this change did not succeed: {summary}");
    Err(ErrorBody::new(ErrorCode::ApplyChecksUnconfirmed, message)
        .hint("look at it with wp-codebox diff; wp-codebox again continues it")
        .hint("--despite-failed-checks applies the change as it is"))
}

/// Adds a hint to a conflict error if the change of this run was applied to one of the directories
/// before: this is the usual reason when all files conflict.
fn applied_before(
    error: ErrorBody,
    journal: &Journal,
    run: &FoundRun,
    targets: &BTreeMap<String, PathBuf>,
) -> ErrorBody {
    if error.code != ErrorCode::ApplyConflict {
        return error;
    }
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let targets: Vec<PathBuf> = targets.values().map(real).collect();
    let same = |change: &AppliedChange| {
        change.bundle.run_id.as_ref() == Some(&run.run_id)
            && change.undone.len() < change.files.len()
            && change
                .targets
                .iter()
                .any(|target| targets.iter().any(|here| here == Path::new(target)))
    };
    // If the journal cannot be read, report the conflict without the hint.
    let all = journal.list().unwrap_or_default();
    match all.changes.into_iter().find(same) {
        Some(change) => error.hint(format!(
            "the change of this run was applied already, at {}; wp-codebox undo takes it back",
            change.created_at
        )),
        None => error,
    }
}

/// Returns the paths of the files that `--file` names, as the bundle spells them. Without `--file`,
/// returns the paths of all changed files.
fn chosen(changed: &[ChangedFile], files: &[String]) -> Result<Vec<String>, ErrorBody> {
    if files.is_empty() {
        return Ok(changed.iter().map(|file| file.path.clone()).collect());
    }
    let mut paths = Vec::new();
    for wanted in files {
        let wanted = wanted.trim_start_matches("./");
        let named = |file: &&ChangedFile| file.relative_path == wanted || file.path == wanted;
        let mut matching = changed.iter().filter(named);
        match (matching.next(), matching.next()) {
            (Some(file), None) => paths.push(file.path.clone()),
            (None, _) => {
                let message = format!("--file {wanted:?} is not a changed file of this run");
                return Err(ErrorBody::new(ErrorCode::ApprovedFilesInvalid, message)
                    .hint("wp-codebox diff --stat lists the changed files"));
            }
            (Some(_), Some(_)) => {
                let message = format!("--file {wanted:?} names files in several mounts");
                return Err(
                    ErrorBody::new(ErrorCode::ApprovedFilesInvalid, message).hint(
                        "give the path of the file in the sandbox, as changed-files.json lists it",
                    ),
                );
            }
        }
    }
    Ok(paths)
}

/// Returns the directories to change, by guest path of their mount: with `--to` the given directory
/// for the only mount with approved files, else all directories that the run mounted. Without
/// `--to`, one of them must contain the project of the current directory or lie below it.
fn targets(
    changed: &[ChangedFile],
    approved: &[String],
    directories: BTreeMap<String, PathBuf>,
    to: Option<&Path>,
) -> Result<BTreeMap<String, PathBuf>, ErrorBody> {
    let mounts: std::collections::BTreeSet<String> = changed
        .iter()
        .filter(|file| approved.contains(&file.path))
        .map(|file| file.mount_target.to_string())
        .collect();
    if let Some(to) = to {
        if mounts.len() > 1 {
            let message = "--to names one directory, but the files to apply are in several mounts";
            return Err(ErrorBody::new(ErrorCode::InputInvalid, message)
                .hint("choose the files of one mount with --file"));
        }
        return Ok(mounts
            .into_iter()
            .map(|mount| (mount, to.to_owned()))
            .collect());
    }
    // Fail if no mounted directory contains this project or lies below it: the user must not
    // change another project by accident.
    let here = directory()?;
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let near = |path: &PathBuf| here.starts_with(real(path)) || real(path).starts_with(&here);
    if !mounts.is_empty() && !directories.values().any(near) {
        let named: Vec<_> = directories
            .values()
            .map(|d| d.display().to_string())
            .collect();
        let (message, hint) = match named.is_empty() {
            true => (
                "it is not known which directory this run changed".to_owned(),
                "name the directory to change with --to",
            ),
            false => (
                format!("this run changed {}, not this directory", named.join(", ")),
                "change to that directory, or name the directory to change with --to",
            ),
        };
        return Err(ErrorBody::new(ErrorCode::ApplyTargetMismatch, message).hint(hint));
    }
    Ok(directories)
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
    let history = History::open(&args.store)?;
    let journal = journal(output, &history)?;
    let listed = journal.list().map_err(|e| e.body())?;
    let change = match &args.change {
        Some(reference) => named(&listed, reference)?,
        None if listed.unreadable.is_empty() => last_here(&listed.changes)?,
        None => return Err(unreadable(&listed, "the last change is not known")),
    };
    let files: Vec<String> = args
        .files
        .iter()
        .map(|file| file.trim_start_matches("./").to_owned())
        .collect();
    let files = (!files.is_empty()).then_some(files);
    let id = applying::new_id("undo")?;
    let report = journal.undo(&change.id, files.as_deref(), id, now_rfc3339());
    Ok((change.clone(), report.map_err(|e| e.body())?))
}

/// Returns the error for a question that the readable changes do not answer.
fn unreadable(listed: &Listed, what: &str) -> ErrorBody {
    let why: Vec<String> = listed.unreadable.iter().map(ToString::to_string).collect();
    let message = format!("{what}: {}", why.join("; "));
    ErrorBody::new(ErrorCode::ApplyFailed, message)
        .hint("wp-codebox undo CHANGE takes back a change whose record can be read")
}

fn named<'a>(listed: &'a Listed, reference: &str) -> Result<&'a AppliedChange, ErrorBody> {
    let fits = |id: &str| {
        let digits = id.split_once('_').map_or(id, |(_, digits)| digits);
        id.starts_with(reference) || digits.starts_with(reference)
    };
    let mut matching = listed.changes.iter().filter(|change| {
        let run = change.bundle.run_id.as_ref();
        fits(change.id.as_str()) || run.is_some_and(|run| fits(run.as_str()))
    });
    matching.next().ok_or_else(|| {
        let message = format!("no applied change of this user matches {reference:?}");
        if !listed.unreadable.is_empty() {
            return unreadable(listed, &message);
        }
        ErrorBody::new(ErrorCode::ApplyNotFound, message).hint(
            "name a change by its id or its run: wp-codebox log shows the runs of this directory",
        )
    })
}

/// Returns the newest change applied to this directory that is not completely undone.
fn last_here(all: &[AppliedChange]) -> Result<&AppliedChange, ErrorBody> {
    let here = directory()?;
    let near = |change: &&AppliedChange| {
        let mut targets = change.targets.iter().map(Path::new);
        targets.any(|target| here.starts_with(target) || target.starts_with(&here))
    };
    let of_here: Vec<_> = all.iter().filter(near).collect();
    let open = of_here
        .iter()
        .find(|change| change.undone.len() < change.files.len());
    match (open, of_here.first()) {
        (Some(change), _) => Ok(change),
        (None, Some(last)) => Err(ErrorBody::new(
            ErrorCode::ApplyUndone,
            format!(
                "the last change of this directory, {}, was undone already",
                last.id
            ),
        )
        .hint("name an older change or its run: wp-codebox undo CHANGE; wp-codebox log shows the runs")),
        (None, None) => Err(ErrorBody::new(
            ErrorCode::ApplyNotFound,
            "no change was applied to this directory",
        )
        .hint("wp-codebox apply applies the change of the last run")),
    }
}

#[cfg(test)]
mod tests {
    use super::{chosen, targets};
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::path::Path;
    use wp_codebox_contracts::{ChangedFile, ErrorCode};

    fn changed(mount: &str) -> ChangedFile {
        serde_json::from_value(json!({
            "path": format!("{mount}/main.php"),
            "relativePath": "main.php",
            "status": "deleted",
            "type": "file",
            "mountIndex": 0,
            "mountTarget": mount,
            "patchName": "main.php",
            "patchPath": "files/diffs/mount-0.patch",
        }))
        .unwrap()
    }

    #[test]
    fn option_to_is_refused_for_files_of_two_mounts_and_accepted_for_files_of_one() {
        let files = [changed("/workspace/a"), changed("/workspace/b")];
        let to = |names: &[String]| {
            let approved = chosen(&files, names).unwrap();
            targets(&files, &approved, BTreeMap::new(), Some(Path::new("/x")))
        };
        assert_eq!(to(&[]).unwrap_err().code, ErrorCode::InputInvalid);
        let one = to(&["/workspace/b/main.php".to_owned()]).unwrap();
        assert_eq!(one.into_keys().collect::<Vec<_>>(), ["/workspace/b"]);
    }
}
