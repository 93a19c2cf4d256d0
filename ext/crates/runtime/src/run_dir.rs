//! The directory of a run: `sites/<site>/runs/<run_id>/{run.json,events.jsonl,lease,scratch/}`.
//!
//! `sites/<site>/active/<run_id>` marks runs that are not settled, so that reaping costs
//! what is alive or broken, not what ever ran. The marker is made and locked before
//! anything else of the run and removed after everything else was settled; whoever
//! supervises a run holds the locks on marker and `lease` for as long as it lives. So a
//! marker that can be locked speaks of a dead run, whatever of it there is: [`reap_dead`]
//! completes its record and removes its scratch and its unfinished bundle.

use crate::{StateDir, StateDirError, now_rfc3339};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{Dir, Store, remove_tree_in};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, RunId, SiteId};

/// A marker in the making.
const NEW_MARKER: &str = ".new-";

/// Why a run directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunDirError {
    /// The state directory is not usable.
    #[error(transparent)]
    State(#[from] StateDirError),
    /// Too many runs of this site are alive.
    #[error(
        "{active} runs of this site are active, the limit is {limit}; wait for one to end or cancel it"
    )]
    Busy {
        /// Alive now.
        active: usize,
        /// Allowed.
        limit: usize,
    },
    /// A file of the run directory cannot be made or read.
    #[error("cannot {what} of the run")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
}

impl RunDirError {
    /// The error as it crosses a border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        match self {
            RunDirError::State(error) => error.body(),
            RunDirError::Busy { .. } => ErrorBody::new(ErrorCode::Busy, self.to_string()),
            RunDirError::Io { source, .. } => {
                ErrorBody::new(ErrorCode::StateDirInvalid, format!("{self}: {source}"))
                    .hint("check free space and permissions of the state directory")
            }
        }
    }
}

/// `run.json`: what a later call can know about a run. Holds host paths; never in a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run.
    pub run_id: RunId,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// `running` or `ended`.
    pub status: String,
    /// What it came to, when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Bundle id, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<String>,
}

impl RunRecord {
    fn begun(run_id: &RunId) -> Self {
        let now = now_rfc3339();
        Self {
            run_id: run_id.clone(),
            created_at: now.clone(),
            updated_at: now,
            status: "running".to_owned(),
            outcome: None,
            reason: None,
            bundle_id: None,
        }
    }

    /// The record of a run directory, when it can be read.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let bytes = fs::read(path.join("run.json")).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Whether it says what the run came to.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.status == "ended"
    }
}

/// A run directory whose lease this process holds.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    marker: PathBuf,
    record: RunRecord,
    _locks: [OwnedFd; 2],
}

impl RunDir {
    /// Makes the directory of a new run and takes its lease.
    pub fn create(
        state: &StateDir,
        site: &SiteId,
        run_id: &RunId,
        limit: usize,
    ) -> Result<Self, RunDirError> {
        state.site(site)?;
        let active = state.ensure(&["sites", site.as_str(), "active"])?;
        let runs = state.ensure(&["sites", site.as_str(), "runs"])?;
        let marker = active.join(run_id.as_str());
        let io = |what| move |source: std::io::Error| RunDirError::Io { what, source };
        let mark = make_marker(&active, run_id).map_err(io("make the marker"))?;
        let abandon = |error| {
            // A marker that stays is one that reaping settles.
            let _ = fs::remove_file(&marker);
            error
        };
        let running = fs::read_dir(&active)
            .map(|entries| entries.flatten().filter(is_marker).count())
            .map_err(|e| abandon(io("list the active runs")(e)))?;
        if running > limit {
            return Err(abandon(RunDirError::Busy {
                active: running - 1,
                limit,
            }));
        }
        let path = runs.join(run_id.as_str());
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o700))
            .map_err(|e| abandon(io("make the directory")(e.into())))?;
        let lease = take_lease(&path, OFlags::CREATE).map_err(io("take the lease"))?;
        let record = RunRecord::begun(run_id);
        write_record(&path, &record).map_err(io("write the record"))?;
        Ok(Self {
            path,
            marker,
            record,
            _locks: [mark, lease],
        })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When it began.
    #[must_use]
    pub fn created_at(&self) -> &str {
        &self.record.created_at
    }

    /// `scratch/<name>`, made when missing.
    pub fn scratch(&self, name: &str) -> Result<PathBuf, RunDirError> {
        let path = self.path.join("scratch").join(name);
        fs::create_dir_all(&path).map_err(|source| RunDirError::Io {
            what: "make the scratch directory",
            source,
        })?;
        Ok(path)
    }

    /// Writes the terminal record and removes the scratch. `keep_scratch` leaves it for a human.
    pub fn settle(
        mut self,
        outcome: Outcome,
        reason: &str,
        bundle_id: Option<&str>,
        scratch: Scratch,
    ) -> Result<(), RunDirError> {
        self.record.status = "ended".to_owned();
        self.record.outcome = Some(outcome);
        self.record.reason = Some(reason.to_owned());
        self.record.bundle_id = bundle_id.map(str::to_owned);
        self.record.updated_at = now_rfc3339();
        write_record(&self.path, &self.record).map_err(|source| RunDirError::Io {
            what: "write the record",
            source,
        })?;
        if scratch == Scratch::Remove {
            remove_scratch(&self.path);
        }
        fs::remove_file(&self.marker).map_err(|source| RunDirError::Io {
            what: "remove the marker",
            source,
        })
    }
}

/// What happens to the scratch when a run is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scratch {
    /// It is deleted.
    Remove,
    /// It holds work that reached no bundle: it stays.
    Keep,
}

/// What reaping did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Runs settled because their supervisor was gone.
    pub settled: usize,
    /// Runs alive.
    pub alive: usize,
}

/// Settles every run of a site whose supervisor is gone.
pub fn reap_dead(state: &StateDir, site: &SiteId) -> Result<Reaped, RunDirError> {
    let active = state.ensure(&["sites", site.as_str(), "active"])?;
    let runs = state.ensure(&["sites", site.as_str(), "runs"])?;
    let io = |what| move |source: std::io::Error| RunDirError::Io { what, source };
    let mut reaped = Reaped::default();
    for entry in fs::read_dir(&active)
        .map_err(io("list the active runs"))?
        .flatten()
    {
        let marker = entry.path();
        let Some(run_id) = entry.file_name().to_str().and_then(|n| RunId::new(n).ok()) else {
            if !is_marker(&entry) && lock(&marker, OFlags::empty()).is_ok() {
                let _ = fs::remove_file(marker);
            }
            continue;
        };
        match lock(&marker, OFlags::empty()) {
            // Settled by somebody else since the directory was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => reaped.alive += 1,
            // Removed by its run between the look and the lock.
            Ok(mark) if rustix::fs::fstat(&mark).map_or(true, |stat| stat.st_nlink == 0) => {}
            Ok(_mark) => match settle_dead(state, site, &runs.join(run_id.as_str()), &run_id) {
                Settled::Yes => {
                    let _ = fs::remove_file(marker);
                    reaped.settled += 1;
                }
                Settled::StillAlive => reaped.alive += 1,
            },
        }
    }
    Ok(reaped)
}

/// Whether an entry of `active` is more than a marker in the making.
fn is_marker(entry: &fs::DirEntry) -> bool {
    !entry
        .file_name()
        .as_encoded_bytes()
        .starts_with(NEW_MARKER.as_bytes())
}

/// Whether a run is settled now.
pub(crate) enum Settled {
    Yes,
    /// Somebody holds its lease.
    StillAlive,
}

/// Completes the record of a dead run and removes what only a living one needs. The record
/// comes first: whatever interrupts this, it is done again as long as the marker is there.
pub(crate) fn settle_dead(state: &StateDir, site: &SiteId, path: &Path, run_id: &RunId) -> Settled {
    // A supervisor that died before it had a directory gets its record all the same.
    let _ = rustix::fs::mkdir(path, Mode::from_raw_mode(0o700));
    let Ok(_lease) = take_lease(path, OFlags::CREATE) else {
        return Settled::StillAlive;
    };
    let mut record = RunRecord::read(path).unwrap_or_else(|| RunRecord::begun(run_id));
    if !record.is_terminal() {
        record.status = "ended".to_owned();
        record.outcome = Some(Outcome::Failed);
        record.reason = Some("the supervisor of this run died".to_owned());
        record.updated_at = now_rfc3339();
        let _ = write_record(path, &record);
        // What it was writing; a terminal record comes only after the bundle has its place.
        let _ = remove_staging(state, site, run_id);
        remove_scratch(path);
    } else if record.outcome != Some(Outcome::Failed) {
        // It died while it tidied up. After a failure, scratch may be kept on purpose.
        remove_scratch(path);
    }
    Settled::Yes
}

fn remove_staging(state: &StateDir, site: &SiteId, run_id: &RunId) -> Option<usize> {
    let root = Dir::open(state.path()).ok()?;
    Store::open(&root, site).ok()?.remove_staging(run_id).ok()
}

/// Best effort: what stays is tried again by whoever cleans up later, and breaks no run.
fn remove_scratch(path: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(run) = rustix::fs::open(path, flags, Mode::empty()) {
        // What stays is removed with the run directory, by a collection.
        let _ = remove_tree_in(run.as_fd(), b"scratch");
    }
}

/// Makes the marker and locks it. It gets its name only once it is locked: reaping would
/// take one that is not for a dead run's, and give that run its record.
fn make_marker(active: &Path, run_id: &RunId) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (new, marker) = (
        active.join(format!("{NEW_MARKER}{run_id}")),
        active.join(run_id.as_str()),
    );
    loop {
        let fd = rustix::fs::open(&new, flags, Mode::from_raw_mode(0o600))?;
        rustix::fs::flock(&fd, FlockOperation::LockExclusive)?;
        match renameat_with(CWD, &new, CWD, &marker, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(fd),
            // Reaping was faster than the lock.
            Err(Errno::NOENT) => {}
            Err(error) => {
                let _ = fs::remove_file(&new);
                return Err(error.into());
            }
        }
    }
}

pub(crate) fn take_lease(path: &Path, extra: OFlags) -> std::io::Result<OwnedFd> {
    lock(&path.join("lease"), extra)
}

fn lock(path: &Path, extra: OFlags) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | extra;
    let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
    Ok(fd)
}

fn private_file(path: &Path) -> std::io::Result<fs::File> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

fn write_record(path: &Path, record: &RunRecord) -> std::io::Result<()> {
    let temp = path.join(".run.json.new");
    let mut file = private_file(&temp)?;
    let mut bytes = serde_json::to_vec_pretty(record)?;
    bytes.push(b'\n');
    file.write_all(&bytes)?;
    fs::rename(temp, path.join("run.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn state(temp: &Path) -> StateDir {
        let path = temp.join("state");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12_345), Some(12_345)).unwrap();
        }
        StateDir::open(&path).unwrap()
    }

    fn run(n: u8) -> RunId {
        RunId::new(format!("run_{n:032x}")).unwrap()
    }

    #[test]
    fn a_run_without_a_holder_is_settled_once() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(temp.path());
        let site = SiteId::new("s").unwrap();
        let alive = RunDir::create(&state, &site, &run(1), 8).unwrap();
        let dead = RunDir::create(&state, &site, &run(2), 8).unwrap();
        let dead_path = dead.path().to_owned();
        fs::write(dead.scratch("x").unwrap().join("f"), "x").unwrap();
        drop(dead);
        assert_eq!(
            reap_dead(&state, &site).unwrap(),
            Reaped {
                settled: 1,
                alive: 1
            }
        );
        assert_eq!(
            reap_dead(&state, &site).unwrap(),
            Reaped {
                settled: 0,
                alive: 1
            }
        );
        assert!(!dead_path.join("scratch").exists());
        let record: RunRecord =
            serde_json::from_slice(&fs::read(dead_path.join("run.json")).unwrap()).unwrap();
        assert_eq!(
            (record.status.as_str(), record.outcome),
            ("ended", Some(Outcome::Failed))
        );
        alive
            .settle(Outcome::Succeeded, "done", None, Scratch::Remove)
            .unwrap();
        assert_eq!(reap_dead(&state, &site).unwrap(), Reaped::default());
    }

    /// A supervisor killed between any two steps of `create` leaves one of these.
    #[test]
    fn whatever_was_there_when_it_died_the_run_gets_its_record() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(temp.path());
        let site = SiteId::new("s").unwrap();
        reap_dead(&state, &site).unwrap();
        let root = temp.path().join("state/sites/s");
        for n in 1..=3 {
            fs::write(root.join("active").join(run(n).as_str()), "").unwrap();
        }
        fs::create_dir(root.join("runs").join(run(2).as_str())).unwrap();
        fs::create_dir(root.join("runs").join(run(3).as_str())).unwrap();
        fs::write(root.join("runs").join(run(3).as_str()).join("lease"), "").unwrap();
        let artifacts = root.join("artifacts");
        fs::create_dir(&artifacts).unwrap();
        for n in [3, 4] {
            let staging = artifacts.join(format!(".writing-{}-0123456789abcdef", run(n)));
            fs::create_dir_all(staging.join("files")).unwrap();
        }
        assert_eq!(reap_dead(&state, &site).unwrap().settled, 3);
        for n in 1..=3 {
            let record = RunRecord::read(&root.join("runs").join(run(n).as_str())).unwrap();
            assert!(record.is_terminal() && record.reason.is_some(), "{n}");
        }
        assert_eq!(fs::read_dir(root.join("active")).unwrap().count(), 0);
        assert_eq!(
            fs::read_dir(&artifacts).unwrap().count(),
            1,
            "another run's staging stays"
        );
    }

    /// A reaper that sees a marker before its lock would settle a run that is about to begin.
    #[test]
    fn reaping_all_the_time_takes_no_new_run_for_a_dead_one() {
        let temp = tempfile::tempdir().unwrap();
        let (state, site) = (&state(temp.path()), &SiteId::new("s").unwrap());
        let left = temp.path().join("state/sites/s/active");
        reap_dead(state, site).unwrap();
        fs::write(left.join(format!("{NEW_MARKER}{}", run(250))), "").unwrap();
        let over = &std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        assert_eq!(reap_dead(state, site).unwrap().settled, 0);
                    }
                });
            }
            for n in 0..200 {
                let made = RunDir::create(state, site, &run(n), 8)
                    .and_then(|dir| dir.settle(Outcome::Succeeded, "x", None, Scratch::Remove));
                if made.is_err() {
                    over.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                made.unwrap();
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(left).unwrap().count(), 0);
    }

    #[test]
    fn work_that_was_kept_is_not_removed_by_reaping() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(temp.path());
        let site = SiteId::new("s").unwrap();
        let dir = RunDir::create(&state, &site, &run(1), 8).unwrap();
        let (path, marker) = (dir.path().to_owned(), dir.marker.clone());
        dir.scratch("work").unwrap();
        dir.settle(Outcome::Failed, "no bundle", None, Scratch::Keep)
            .unwrap();
        // As if it had died right before the marker was removed.
        fs::write(marker, "").unwrap();
        assert_eq!(reap_dead(&state, &site).unwrap().settled, 1);
        assert!(path.join("scratch/work").exists());
        assert_eq!(RunRecord::read(&path).unwrap().reason.unwrap(), "no bundle");
    }

    #[test]
    fn the_limit_holds() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(temp.path());
        let site = SiteId::new("s").unwrap();
        let first = RunDir::create(&state, &site, &run(1), 1).unwrap();
        let error = RunDir::create(&state, &site, &run(2), 1).unwrap_err();
        assert_eq!(error.body().code, ErrorCode::Busy);
        first
            .settle(Outcome::Failed, "x", None, Scratch::Keep)
            .unwrap();
        assert!(RunDir::create(&state, &site, &run(2), 1).is_ok());
    }
}
