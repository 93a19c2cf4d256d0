//! Runs of a directory and their bundles.

use std::collections::BTreeMap;
use std::path::PathBuf;
use wp_codebox_artifacts::{
    Dir, Store, StoredBundle, VerifyOptions, read_changed_files, verify_bundle,
};
use wp_codebox_contracts::{
    ChangedFile, CodedError, ErrorBody, ErrorCode, Outcome, RunView, SiteId,
};
use wp_codebox_runtime::{
    DirectoryRun, FoundRun, RecordedWork, RunPage, RunRecord, StateDir, find, runs_of_directory,
    view,
};

/// Key and value in the provenance of a run that `wp-codebox up` started.
pub const PURPOSE: (&str, &str) = ("purpose", "site of a directory");
/// Maximum number of a directory's latest runs among which a bundle is searched.
const MOST: usize = 200;

/// The state directory and the site that a daily command reads. The process does not switch to the
/// owner of the state directory for good, because an apply writes files as the calling user.
#[derive(Debug)]
pub struct History {
    /// State directory.
    pub state: StateDir,
    /// Site whose runs are read.
    pub site: SiteId,
    /// Returns the real path of the directory. A function, because the directory need not be readable
    /// when a run is named.
    pub directory: fn() -> Result<PathBuf, ErrorBody>,
}

impl History {
    /// Returns the runs that mounted the directory, newest first.
    pub fn runs(&self, most: usize) -> Result<RunPage<DirectoryRun>, ErrorBody> {
        let sites = std::slice::from_ref(&self.site);
        let directory = (self.directory)()?;
        let runs = || runs_of_directory(&self.state, sites, &directory, most);
        let runs = self.state.as_owner(runs)?;
        runs.map_err(ErrorBody::from)
    }

    /// Returns the run that `reference` names, else the last run of this directory that `wanted`
    /// accepts. Runs of `up`, `shell`, `wp`, `php` and `test` count only if they changed files and
    /// no other run is accepted: users start them to look at an earlier change. If no run is
    /// accepted at all, returns the last run with a bundle that is not one of these.
    pub fn run(&self, reference: Option<&str>, wanted: Wanted) -> Result<ChosenRun, ErrorBody> {
        if let Some(reference) = reference {
            let sites = std::slice::from_ref(&self.site);
            let found = || find(&self.state, sites, reference);
            let found = self.state.as_owner(found)?;
            let found = found.map_err(ErrorBody::from).or_else(|error| {
                let is_unknown = error.code == ErrorCode::RunNotFound;
                let kept = is_unknown.then(|| self.kept(reference)).flatten();
                kept.ok_or(error)
            });
            return Ok(ChosenRun {
                run: found?,
                choice: None,
            });
        }
        let RunPage {
            rows: mut runs,
            unreadable,
            ..
        } = self.runs(MOST)?;
        // An unreadable run may be the last run of this directory.
        if let Some(error) = unreadable.into_iter().next() {
            return Err(error.hint("name the run that you mean: `wp-codebox log` lists the readable runs of this directory"));
        }
        runs.retain(|(_, record, _)| record.bundle_id.is_some());
        let looks = |record: &RunRecord| record.facts.provenance.contains_key(PURPOSE.0);
        let (others, tasks): (Vec<_>, Vec<_>) =
            runs.iter().partition(|(_, record, _)| looks(record));
        let changed = |(run, record, _): &DirectoryRun| self.changed_files(run, record);
        let place = match wanted {
            Wanted::Bundle => (!tasks.is_empty()).then_some(0),
            // Do not search past a task that ended well without a change: the user may have undone
            // the earlier changes before it.
            Wanted::Change => tasks
                .iter()
                .position(|run| changed(run) || run.1.outcome == Some(Outcome::NoOp)),
        };
        let other = || others.iter().find(|run| changed(run));
        let found = match place {
            Some(place) => tasks.get(place),
            None => other(),
        };
        match found.or(tasks.first()) {
            Some((run, record, _)) => {
                let choice = match (wanted, found) {
                    (Wanted::Change, Some(_)) => Some(Choice {
                        created_at: record.created_at.clone(),
                        summary: record.summary.clone(),
                        skipped: place.unwrap_or_default(),
                    }),
                    (Wanted::Change, None) | (Wanted::Bundle, _) => None,
                };
                Ok(ChosenRun {
                    run: run.clone(),
                    choice,
                })
            }
            None => Err(ErrorBody::new(
                ErrorCode::RunNotFound,
                "no run of this directory has a change yet",
            )
            .hint(
                "start one with `wp-codebox \"what to do\"`, or name a run: `wp-codebox runs list`",
            )),
        }
    }

    /// Finds a bundle that no run of this host wrote, e.g. one with contents from a browser.
    /// Returns it like a run whose directory does not exist.
    fn kept(&self, reference: &str) -> Option<FoundRun> {
        let root = Dir::open(self.state.path()).ok()?;
        let bundle = Store::open(&root, &self.site)
            .ok()?
            .resolve(reference)
            .ok()?;
        let run_id = bundle.row.run_id;
        let runs = self.state.path().join("sites").join(self.site.as_str());
        Some(FoundRun {
            site: self.site.clone(),
            path: runs.join("runs").join(run_id.as_str()),
            run_id,
        })
    }

    /// Returns whether the bundle of a run changes files. The summary of the run counts them; the
    /// record of a run whose supervisor died has no count, so its bundle is read.
    fn changed_files(&self, run: &FoundRun, record: &RunRecord) -> bool {
        let summary = record.summary_detail.as_ref();
        match summary.and_then(|summary| summary.args.changes) {
            Some(changes) => changes.total() > 0,
            None => {
                let bundle = self.bundle(run).ok();
                let files = bundle.and_then(|bundle| changed(&bundle).ok());
                files.is_some_and(|files| !files.is_empty())
            }
        }
    }

    /// Returns the bundle of a run.
    pub fn bundle(&self, run: &FoundRun) -> Result<StoredBundle, ErrorBody> {
        let root = Dir::open(self.state.path());
        let root = root.map_err(|e| ErrorBody::new(ErrorCode::StateDirInvalid, e.to_string()))?;
        let store = Store::open(&root, &run.site)?;
        store.resolve(run.run_id.as_str()).map_err(ErrorBody::from)
    }

    /// Returns the bundle of a run if it is undamaged.
    ///
    /// # Errors
    /// `wp_codebox_artifact_verification_failed` if the bundle is damaged or was changed.
    pub fn verified_bundle(&self, run: &FoundRun) -> Result<StoredBundle, ErrorBody> {
        let bundle = self.bundle(run)?;
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
        Ok(bundle)
    }

    /// Returns the record of a run. If the supervisor of the run died, first writes the final
    /// record, so that it contains the bundle.
    pub fn view(&self, run: &FoundRun) -> Result<RunView, ErrorBody> {
        let settled = self.state.as_owner(|| view(&self.state, run));
        settled?.map_err(ErrorBody::from)
    }

    /// Returns directories, agent and checks of a run from its record; `None` if it has no record.
    pub fn work(&self, run: &FoundRun) -> Result<Option<RecordedWork>, ErrorBody> {
        let work = self.state.as_owner(|| run.work());
        work?.map_err(ErrorBody::from)
    }

    /// Returns the host directories that a run mounted, by guest path.
    pub fn directories(&self, run: &FoundRun) -> Result<BTreeMap<String, PathBuf>, ErrorBody> {
        match self.view(run) {
            // A bundle without a run of this host: the caller names the directory.
            Err(error) if error.code == ErrorCode::RunNotFound => return Ok(Default::default()),
            viewed => viewed?,
        };
        let work = self.work(run)?;
        Ok(work.map(|work| work.directories).unwrap_or_default())
    }
}

/// Which run counts as the last one of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A run with a bundle.
    Bundle,
    /// A run with a bundle that changes files, or that ended well without a change.
    Change,
}

/// The run that a command uses.
#[derive(Debug)]
pub struct ChosenRun {
    /// The run.
    pub run: FoundRun,
    /// Facts to tell the user about a run with a wanted change that the user did not name.
    pub choice: Option<Choice>,
}

/// Facts about a run that was chosen for its change.
#[derive(Debug)]
pub struct Choice {
    /// Time at which the run began.
    pub created_at: String,
    /// How the run ended.
    pub summary: Option<String>,
    /// Number of later runs that failed without a change.
    pub skipped: usize,
}

/// Returns the entries of `files/changed-files.json`.
pub fn changed(bundle: &StoredBundle) -> Result<Vec<ChangedFile>, ErrorBody> {
    let bytes = member(bundle, "files/changed-files.json")?;
    let document = read_changed_files(&bytes);
    Ok(document
        .map_err(|e| ErrorBody::new(e.code(), e.to_string()))?
        .files)
}

/// Returns the content of a file of a bundle.
pub fn member(bundle: &StoredBundle, path: &str) -> Result<Vec<u8>, ErrorBody> {
    bundle.bytes(path).ok_or_else(|| {
        let message = format!(
            "{path} of the bundle of {} cannot be read",
            bundle.row.run_id
        );
        ErrorBody::new(ErrorCode::ArtifactVerificationFailed, message)
    })
}
