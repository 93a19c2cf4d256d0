//! Applies the change of a run to the files of a directory, and undoes it.

use crate::applying::{self, Approved, SensitiveRule};
use crate::history::{History, PURPOSE, changed};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wp_codebox_apply::{AppliedChange, Journal, Listed, UndoReport};
use wp_codebox_artifacts::{PreflightRequest, StoredBundle};
use wp_codebox_contracts::{ChangedFile, ErrorBody, ErrorCode, Outcome, RunView, Sha256Hex};
use wp_codebox_runtime::{FoundRun, now_rfc3339};

/// The change of a run, and which of its files are to be applied.
pub struct ProposedChange<'a> {
    history: &'a History,
    run: &'a FoundRun,
    bundle: StoredBundle,
    /// All files that the run changed.
    changed: Vec<ChangedFile>,
    /// Paths of the files to apply, as the bundle spells them.
    approved: Vec<String>,
    /// Host directories that the run mounted, by guest path.
    directories: BTreeMap<String, PathBuf>,
}

/// What the user decided about an apply.
pub struct ApplyDecisions<'a> {
    /// Directory to change instead of the one that the run mounted.
    pub to: Option<&'a Path>,
    /// Ids of other hosts' signing keys whose bundles are trusted.
    pub trusted_keys: Vec<Sha256Hex>,
    /// Whether contents that a browser uploaded are applied.
    pub confirm_browser_origin: bool,
    /// Whether files are applied that programs run or obey by themselves.
    pub confirm_sensitive: bool,
    /// PHP that checks the syntax of new PHP files.
    pub php: &'a Path,
}

impl History {
    /// Opens this user's journal of applied changes for the site of the history. Interrupted
    /// transactions are finished or reversed first; the bodies are the errors of those that could not
    /// be.
    pub fn journal(&self) -> Result<(Journal, Vec<ErrorBody>), ErrorBody> {
        let site = self.state.as_owner(|| self.state.site(&self.site));
        let site = site??;
        applying::journal(&site)
    }

    /// Returns the change of a run with only the named files; with all if `files` is empty.
    pub fn proposed<'a>(
        &'a self,
        run: &'a FoundRun,
        files: &[String],
    ) -> Result<ProposedChange<'a>, ErrorBody> {
        let directories = self.directories(run)?;
        let bundle = self.bundle(run)?;
        let changed = changed(&bundle)?;
        if changed.is_empty() {
            let message = format!("{} changed nothing, so nothing can be applied", run.run_id);
            return Err(ErrorBody::new(ErrorCode::ApprovedFilesInvalid, message)
                .hint("name an earlier run: wp-codebox log lists the runs of this directory"));
        }
        let approved = chosen(&changed, files)?;
        Ok(ProposedChange {
            history: self,
            run,
            bundle,
            changed,
            approved,
            directories,
        })
    }

    /// Undoes the change that `reference` names, or the last one of the directory: all its files if
    /// `files` is empty, else these.
    pub fn undo(
        &self,
        journal: &Journal,
        reference: Option<&str>,
        files: &[String],
    ) -> Result<(AppliedChange, UndoReport), ErrorBody> {
        let listed = journal.list()?;
        let change = match reference {
            Some(reference) => named(&listed, reference)?,
            None if listed.unreadable.is_empty() => {
                last_here(&listed.changes, &(self.directory)()?)?
            }
            None => return Err(unreadable(&listed, "the last change is not known")),
        };
        let files: Vec<String> = files
            .iter()
            .map(|file| file.trim_start_matches("./").to_owned())
            .collect();
        let files = (!files.is_empty()).then_some(files);
        let id = applying::new_id("undo")?;
        let report = journal.undo(&change.id, files.as_deref(), id, now_rfc3339());
        Ok((change.clone(), report?))
    }
}

impl ProposedChange<'_> {
    /// Applies the files.
    pub fn apply(
        self,
        journal: &Journal,
        decisions: ApplyDecisions<'_>,
    ) -> Result<AppliedChange, ErrorBody> {
        let Self {
            history,
            run,
            bundle,
            changed,
            approved,
            directories,
        } = self;
        let here = history.directory;
        let targets = targets(&changed, &approved, directories, decisions.to, here)?;
        let known = |error| applied_before(error, journal, run, &targets);
        let trusted = applying::trusted_keys(history.state.path(), decisions.trusted_keys);
        applying::apply(
            journal,
            Approved {
                id: applying::new_id("apply")?,
                bundle: &bundle.directory,
                run_id: Some(run.run_id.clone()),
                request: PreflightRequest {
                    approved_files: approved,
                    targets: targets.clone(),
                    trusted: trusted?,
                    browser_origin: applying::browser_origin(decisions.confirm_browser_origin),
                    ..PreflightRequest::default()
                },
                patch_sha256: None,
                sensitive: SensitiveRule::of(decisions.confirm_sensitive),
            },
            decisions.php,
        )
        .map_err(known)
    }
}

/// Fails if the run of a change did not succeed and the user does not want its change anyway.
pub fn check_success(
    view: &RunView,
    wanted_anyway: impl FnOnce() -> bool,
) -> Result<(), ErrorBody> {
    // The site of `wp-codebox up` normally ends by being cancelled.
    let of_site = view.facts.provenance.contains_key(PURPOSE.0);
    let ended_well = match view.outcome {
        Some(Outcome::Cancelled) if of_site => true,
        // Its change cannot be approved, and the preflight says why.
        Some(Outcome::Blocked) => true,
        Some(outcome) => outcome.is_success(),
        None => false,
    };
    if ended_well || wanted_anyway() {
        return Ok(());
    }
    let summary = view.summary.clone().unwrap_or_default();
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
/// `--to`, one of them must contain the directory `here` or lie below it.
fn targets(
    changed: &[ChangedFile],
    approved: &[String],
    directories: BTreeMap<String, PathBuf>,
    to: Option<&Path>,
    here: fn() -> Result<PathBuf, ErrorBody>,
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
    let here = here()?;
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
fn last_here<'a>(all: &'a [AppliedChange], here: &Path) -> Result<&'a AppliedChange, ErrorBody> {
    let near = |change: &&AppliedChange| {
        let mut targets = change.targets.iter().map(Path::new);
        targets.any(|target| here.starts_with(target) || target.starts_with(here))
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
            let here = || panic!("--to names the directory");
            targets(
                &files,
                &approved,
                BTreeMap::new(),
                Some(Path::new("/x")),
                here,
            )
        };
        assert_eq!(to(&[]).unwrap_err().code, ErrorCode::InputInvalid);
        let one = to(&["/workspace/b/main.php".to_owned()]).unwrap();
        assert_eq!(one.into_keys().collect::<Vec<_>>(), ["/workspace/b"]);
    }
}
