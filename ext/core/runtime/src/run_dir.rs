//! The directory of a run:
//! `sites/<site>/runs/<run_id>/{run.json,events.jsonl,lease,control.sock,result.json,held.json,
//! episode.jsonl,usage.json,crash,salvage/,scratch/}`.
//!
//! `sites/<site>/active/<run_id>` is the marker of a run that is not settled, i.e. whose final
//! record is not written. `reap_dead`, which settles dead runs, reads only the markers, so its cost
//! does not grow with the number of settled runs. The marker is created and locked before anything
//! else of the run and removed after everything else was settled. The supervisor holds the locks on
//! marker and `lease` as long as it lives. Hence a marker without an exclusive lock belongs to a
//! dead run, whatever files the run has.

use crate::document::{DocumentError, replace_file, sync_directory, unfinished};
use crate::markers::{AliveRun, alive, alive_of, lock_directory, make_marker, take_lease};
use crate::run_record::{Ending, LiveRecord, NewRun, RecordedWork, RunRecord};
use crate::run_usage::USAGE_FILE;
use crate::state_dir::reserve;
use crate::supervisor_death::CRASH;
use crate::{StateDir, StateDirError, event_log};
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wp_codebox_artifacts::{Durability, remove_tree_in};
use wp_codebox_contracts::{
    CONTROL_SOCKET, CodedError, ErrorBody, Outcome, Requester, RequesterShare, RunId, RunResult,
    SiteId,
};

/// File with the result of the run, which can be read after the run's caller has disconnected.
pub const RESULT_FILE: &str = "result.json";
/// File with the facts that the bundle of a held sandbox (kept open for clients) needs.
pub(crate) const HELD_FACTS: &str = "held.json";
/// File with the trace of a held sandbox's episode (the actions of its clients), one part per line.
pub(crate) const HELD_EPISODE: &str = "episode.jsonl";
/// Directory in the run directory that contains the recovery bundle, as `salvage/<run_id>/`. The
/// recovery bundle is used only if the supervisor process dies or fails before it has written the
/// run's bundle.
pub const RECOVERY_BUNDLE: &str = "salvage";

/// File in [`RECOVERY_BUNDLE`] that reserves disk space for the end of the run.
const RESERVE: &str = "reserve";

/// Name prefix of run directories being removed.
pub(crate) const REMOVING: &str = ".removing-";

/// Reason why a run directory cannot be used.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum RunDirError {
    /// The state directory, which contains the run directory, cannot be used.
    #[error(transparent)]
    #[code(transparent)]
    State(#[from] StateDirError),
    /// The maximum number of living runs of this site is reached.
    #[error(
        "{active} runs of this site are active, and the limit is {limit}; wait until one ends, or cancel one"
    )]
    #[code(Busy)]
    Busy {
        /// Number of runs of the site that are alive.
        active: usize,
        /// Maximum number of runs of the site that may be alive.
        limit: usize,
    },
    /// The requester of the run has as many living runs of this site as its share allows.
    #[error(
        "{who} has {active} active runs on this site, and the limit for one requester is {limit}; wait until {oldest} ends, or cancel one of them", who = subject(*requester)
    )]
    #[code(
        Busy,
        hint = "an administrator can raise \"Runs at once for one user\" in the settings of Codebox"
    )]
    ShareUsed {
        /// Who asked for the run.
        requester: Requester,
        /// Number of runs of the requester that are alive.
        active: usize,
        /// Maximum number of runs of the requester that may be alive.
        limit: usize,
        /// Name of the requester's run that started first.
        oldest: String,
    },
    /// Another process of this host executes, settles or removes the run, so the run cannot be
    /// started again now.
    #[error("another process of this host already works on the run {run_id}")]
    #[code(ClusterConflict)]
    Alive {
        /// Id of the run.
        run_id: RunId,
    },
    /// A file or directory of the run, or the list of active runs, cannot be created or read.
    #[error("this process cannot {what} in the state directory")]
    #[code(
        StateDirInvalid,
        hint = "check free space and permissions of the state directory"
    )]
    Io {
        /// What was attempted, e.g. `lock the lease file of the run`.
        what: &'static str,
        /// I/O error of the failed operation.
        source: std::io::Error,
    },
    /// The record of an earlier attempt at the run cannot be read, so the attempt stays.
    #[error("the earlier attempt at the run {run_id} cannot be replaced: {source}")]
    #[code(StateDirInvalid)]
    Earlier {
        /// Id of the run.
        run_id: RunId,
        /// Why the record cannot be read.
        source: DocumentError,
    },
}

impl RunDirError {
    fn detail(&self, mut body: ErrorBody) -> ErrorBody {
        match self {
            Self::State(_) | Self::Earlier { .. } => body,
            Self::Busy { active, limit } => body.with("active", *active).with("limit", *limit),
            Self::ShareUsed {
                requester,
                active,
                limit,
                oldest,
            } => body
                .with("requester", requester.to_string())
                .with("active", *active)
                .with("limit", *limit)
                .with("oldest_run_id", oldest.as_str()),
            Self::Alive { run_id } => body.hint(format!(
                "wait until the run has ended; `wp-codebox runs get {run_id}` shows its state and result"
            )),
            Self::Io { source, .. } => {
                body.message = format!("{self}: {source}");
                body
            }
        }
    }
}

pub(crate) fn io(what: &'static str) -> impl Fn(std::io::Error) -> RunDirError {
    move |source| RunDirError::Io { what, source }
}

/// The directory of a live run. This process is its supervisor and holds its locks.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    marker: PathBuf,
    record: Arc<LiveRecord>,
    _locks: [OwnedFd; 2],
}

impl RunDir {
    /// Creates the directory of a new run and locks its file `lease`. Fails if `limit` runs of the
    /// site are alive, or as many runs of the requester as its share allows. Concurrent calls are serialised: at most `limit` runs start, and no call is
    /// refused because of another call that is refused itself.
    ///
    /// A cluster run that is submitted again keeps its id, so its new directory replaces the
    /// directory of the earlier attempt if that has ended.
    pub fn create(
        state: &StateDir,
        site: &SiteId,
        run: &NewRun,
        limit: usize,
    ) -> Result<Self, RunDirError> {
        state.site(site)?;
        let active = state.ensure(&["sites", site.as_str(), "active"])?;
        let runs = state.ensure(&["sites", site.as_str(), "runs"])?;
        let marker = active.join(run.run_id.as_str());
        let path = runs.join(run.run_id.as_str());
        let mark = {
            let _turn = lock_directory(&active).map_err(io("lock the list of active runs"))?;
            let running = alive(&active).map_err(io("list the active runs"))?;
            if running.len() >= limit {
                return Err(RunDirError::Busy {
                    active: running.len(),
                    limit,
                });
            }
            if let Some(share) = &run.share {
                check_share(share, alive_of(share.requester, running))?;
            }
            if run.work.is_placed {
                discard_earlier(&marker, &path, &run.run_id)?;
            }
            make_marker(
                &active,
                &run.run_id,
                run.share.as_ref().map(|share| share.requester),
            )
            .map_err(io("create the file that marks the run as active"))?
        };
        if let Err(error) = rustix::fs::mkdir(&path, Mode::from_raw_mode(0o700)) {
            // If the marker cannot be removed, a later call of `reap_dead` settles the run.
            let _ = fs::remove_file(&marker);
            return Err(io("create the directory of the run")(error.into()));
        }
        let lease =
            take_lease(&path, OFlags::CREATE).map_err(io("lock the lease file of the run"))?;
        let record = RunRecord::begun(run);
        record
            .write(&path)
            .map_err(io("write the record of the run"))?;
        // A power loss must lose neither the new directory entries nor, for the first run of a site,
        // the directories of the site.
        let site = runs.parent().into_iter();
        for changed in [&*runs, &*active]
            .into_iter()
            .chain(site.flat_map(|site| site.ancestors().take(3)))
        {
            sync_directory(changed).map_err(io("write the directories of the run to the disk"))?;
        }
        Ok(Self {
            record: Arc::new(LiveRecord::new(path.clone(), record)),
            path,
            marker,
            _locks: [mark, lease],
        })
    }

    /// Reserves the id of a run that does not exist: creates its directory with a final record that
    /// says why the run never started. A supervisor that gets a request with this id afterwards
    /// cannot create the run.
    ///
    /// # Errors
    /// When the run exists or is being created, or the record cannot be written.
    pub fn forestall(
        state: &StateDir,
        site: &SiteId,
        run: &NewRun,
        why: ErrorBody,
    ) -> Result<(), RunDirError> {
        // This run is over at once, so it may exceed the limit of active runs.
        let taken = Self::create(state, site, run, usize::MAX)?;
        let ending = Ending {
            outcome: Outcome::Failed,
            summary: why.message.clone(),
            summary_detail: None,
            error: Some(why),
            bundle_id: None,
        };
        taken.settle(ending, Scratch::Remove)
    }

    /// Returns the path of the run directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the record of the run.
    #[must_use]
    pub fn record(&self) -> &Arc<LiveRecord> {
        &self.record
    }

    /// Returns the path of the scratch directory `scratch/<name>`, after creating it if missing.
    pub fn scratch(&self, name: &str) -> Result<PathBuf, RunDirError> {
        let path = self.path.join("scratch").join(name);
        fs::create_dir_all(&path).map_err(io("create the scratch directory of the run"))?;
        Ok(path)
    }

    /// Removes the scratch directory and the recovery bundle, and ignores errors: settling the run
    /// removes what remains.
    pub fn discard_scratch(&self) {
        remove_scratch(&self.path);
    }

    /// Returns the path of the directory for a recovery bundle, `salvage/`, after creating it if
    /// missing. The reserved disk space is free afterwards.
    pub fn recovery_bundle(&self) -> Result<PathBuf, RunDirError> {
        let made = recovery_bundle(&self.path);
        made.map_err(io("create the directory for the recovery bundle"))
    }

    /// Reserves disk space for the last events and the recovery bundle, so that a disk which fills
    /// up during the run does not take the change with it. The space is free again before the
    /// recovery bundle is written, or when an event needs it.
    pub fn reserve(&self) -> Result<(), RunDirError> {
        let failed = io("reserve disk space for the end of the run");
        let path = recovery_bundle(&self.path).map_err(&failed)?.join(RESERVE);
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600);
        let file = file.open(path).map_err(&failed)?;
        reserve(file.as_fd()).map_err(|error| failed(error.into()))
    }

    /// Writes `result.json` with mode 0600. It is written before the final record, so a reader
    /// that finds the final record also finds the result.
    pub fn write_result(&self, result: &RunResult) -> Result<(), RunDirError> {
        let failed = io("write the result of the run");
        let mut bytes = serde_json::to_vec(result).map_err(|e| failed(e.into()))?;
        bytes.push(b'\n');
        replace_file(&self.path, RESULT_FILE, &bytes, Durability::Synced).map_err(failed)
    }

    /// Ends the run: writes the final record and removes data that only a live run needs.
    pub fn settle(self, ending: Ending, scratch: Scratch) -> Result<(), RunDirError> {
        event_log::sync(&self.path).map_err(io("write the journal of the run to the disk"))?;
        self.record
            .end(ending)
            .map_err(io("write the record of the run"))?;
        remove_leftovers(&self.path);
        if scratch == Scratch::Remove {
            remove_scratch(&self.path);
        }
        fs::remove_file(&self.marker).map_err(io("remove the file that marks the run as active"))
    }
}

/// Fails if the requester of a share already has as many of the living runs as it may have. `own`
/// has its living runs, the oldest first.
fn check_share(share: &RequesterShare, own: Vec<AliveRun>) -> Result<(), RunDirError> {
    let (active, limit) = (own.len(), share.max_runs as usize);
    match own.into_iter().next() {
        Some(oldest) if active >= limit => Err(RunDirError::ShareUsed {
            requester: share.requester,
            active,
            limit,
            oldest: oldest.name,
        }),
        Some(_) | None => Ok(()),
    }
}

/// Returns a requester as the subject of a sentence.
fn subject(requester: Requester) -> String {
    match requester {
        Requester::User(id) => format!("user {id}"),
        Requester::Operator => "the operator (WP-CLI without a user)".to_owned(),
        Requester::Nobody => "code that runs without a user, such as cron,".to_owned(),
    }
}

/// Removes the directory of an earlier attempt at a run of a cluster, if it has ended. The caller
/// holds the lock of the site, so no process can create the run's marker meanwhile. A run without a
/// marker has its final record, or a garbage collection holds its file `lease`.
fn discard_earlier(marker: &Path, path: &Path, run_id: &RunId) -> Result<(), RunDirError> {
    let failed = io("remove the directory of an earlier attempt");
    let alive = || RunDirError::Alive {
        run_id: run_id.clone(),
    };
    if fs::exists(marker).map_err(&failed)? {
        return Err(alive());
    }
    // The directory of a run that belongs to no cluster stays, so the caller fails to create it. If
    // the supervisor died before it wrote a record, the record from settling has an empty `work`.
    let is_earlier = |work: &RecordedWork| work.is_placed || *work == RecordedWork::default();
    let record = RunRecord::read(path).map_err(|source| RunDirError::Earlier {
        run_id: run_id.clone(),
        source,
    })?;
    if !record.is_some_and(|record| is_earlier(&record.work)) {
        return Ok(());
    }
    let Ok(_lease) = take_lease(path, OFlags::CREATE) else {
        return Err(alive());
    };
    // The rename comes first, because a partly removed directory would look like a damaged run. If
    // the removal fails, a later garbage collection removes the renamed directory.
    let hidden = path.with_file_name(format!("{REMOVING}{run_id}"));
    fs::rename(path, &hidden)
        .and_then(|()| fs::remove_dir_all(&hidden))
        .map_err(failed)
}

/// Creates the directory for the recovery bundle of a run if it is missing, and frees the reserved
/// disk space.
pub(crate) fn recovery_bundle(run: &Path) -> std::io::Result<PathBuf> {
    let path = run.join(RECOVERY_BUNDLE);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&path)?;
    free_reserve(run);
    Ok(path)
}

/// Frees the disk space that [`RunDir::reserve`] reserved. Returns whether there was some.
pub(crate) fn free_reserve(run: &Path) -> bool {
    fs::remove_file(run.join(RECOVERY_BUNDLE).join(RESERVE)).is_ok()
}

/// Treatment of the scratch directory and the recovery bundle when a run is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scratch {
    /// Both are deleted.
    Remove,
    /// Both remain, because they contain changes of the guest that are in no bundle.
    Keep,
}

/// Removes the scratch directory and the recovery bundle, and ignores errors: garbage collection
/// removes what remains together with the run directory, and until then no run uses it.
pub(crate) fn remove_scratch(path: &Path) {
    remove_in(path, b"scratch");
    remove_in(path, RECOVERY_BUNDLE.as_bytes());
}

/// Removes files that a run with a final record no longer needs: control socket, partial result,
/// crash note and the files of a held sandbox.
pub(crate) fn remove_leftovers(path: &Path) {
    for name in [HELD_FACTS, HELD_EPISODE] {
        let _ = fs::remove_file(path.join(name));
    }
    let _ = fs::remove_file(path.join(CONTROL_SOCKET));
    let _ = fs::remove_file(path.join(CRASH));
    let _ = fs::remove_file(path.join(unfinished(CRASH)));
    for name in [RESULT_FILE, USAGE_FILE] {
        let _ = fs::remove_file(path.join(unfinished(name)));
    }
}

fn remove_in(path: &Path, name: &[u8]) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(run) = rustix::fs::open(path, flags, Mode::empty()) {
        let _ = remove_tree_in(run.as_fd(), name);
    }
}

#[cfg(test)]
mod tests;
