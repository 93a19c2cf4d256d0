//! The directory of a run: `sites/<site>/runs/<run_id>/{run.json,events.jsonl,lease,scratch/}`.
//!
//! Whoever supervises a run holds an exclusive lock on `lease`. A run whose lease
//! can be taken is dead; [`reap_dead`] settles its record and removes its scratch.
//! `sites/<site>/active/<run_id>` marks runs that are not settled, so that reaping
//! costs what is alive or broken, not what ever ran.

use crate::removal::remove_tree;
use crate::{StateDir, StateDirError, now_rfc3339};
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, RunId, SiteId};

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

/// A run directory whose lease this process holds.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    marker: PathBuf,
    record: RunRecord,
    _lease: OwnedFd,
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
        let running = fs::read_dir(&active)
            .map(Iterator::count)
            .map_err(|source| RunDirError::Io {
                what: "list the active runs",
                source,
            })?;
        if running >= limit {
            return Err(RunDirError::Busy {
                active: running,
                limit,
            });
        }
        let runs = state.ensure(&["sites", site.as_str(), "runs"])?;
        let path = runs.join(run_id.as_str());
        let io = |what| move |source: std::io::Error| RunDirError::Io { what, source };
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o700))
            .map_err(|e| io("make the directory")(e.into()))?;
        let lease = take_lease(&path, OFlags::CREATE).map_err(io("take the lease"))?;
        let marker = active.join(run_id.as_str());
        private_file(&marker).map_err(io("make the marker"))?;
        let now = now_rfc3339();
        let record = RunRecord {
            run_id: run_id.clone(),
            created_at: now.clone(),
            updated_at: now,
            status: "running".to_owned(),
            outcome: None,
            reason: None,
            bundle_id: None,
        };
        write_record(&path, &record).map_err(io("write the record"))?;
        Ok(Self {
            path,
            marker,
            record,
            _lease: lease,
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
    let mut reaped = Reaped::default();
    let entries = fs::read_dir(&active).map_err(|source| RunDirError::Io {
        what: "list the active runs",
        source,
    })?;
    for entry in entries.flatten() {
        let Some(run_id) = entry.file_name().to_str().and_then(|n| RunId::new(n).ok()) else {
            continue;
        };
        let path = runs.join(run_id.as_str());
        if path.join("lease").exists() {
            let Ok(_lease) = take_lease(&path, OFlags::empty()) else {
                reaped.alive += 1;
                continue;
            };
            settle_dead(&path, &run_id);
        }
        let _ = fs::remove_file(entry.path());
        reaped.settled += 1;
    }
    Ok(reaped)
}

fn settle_dead(path: &Path, run_id: &RunId) {
    let now = now_rfc3339();
    let mut record = fs::read(path.join("run.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<RunRecord>(&bytes).ok())
        .unwrap_or_else(|| RunRecord {
            run_id: run_id.clone(),
            created_at: now.clone(),
            updated_at: now.clone(),
            status: "running".to_owned(),
            outcome: None,
            reason: None,
            bundle_id: None,
        });
    if record.status != "ended" {
        record.status = "ended".to_owned();
        record.outcome = Some(Outcome::Failed);
        record.reason = Some("the supervisor of this run died".to_owned());
        record.updated_at = now;
        let _ = write_record(path, &record);
    }
    remove_scratch(path);
}

fn remove_scratch(path: &Path) {
    // What stays is removed with the run's directory.
    let _ = remove_tree(&path.join("scratch"));
}

fn take_lease(path: &Path, extra: OFlags) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | extra;
    let fd = rustix::fs::open(path.join("lease"), flags, Mode::from_raw_mode(0o600))?;
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
