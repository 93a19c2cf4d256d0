//! Snapshots of sandboxes: `sites/<site>/snapshots/<id>/{snapshot.json,<layer>.jsonl,<layer>/}`.
//!
//! A snapshot is created under a hidden name, synced if requested, read back and compared with the
//! data from the guest; then one rename gives it its final name. A crash at any time leaves no
//! snapshot or a complete one. A process that creates or uses a snapshot holds a lock on the
//! snapshot's directory, so garbage collection does not remove the snapshot. An unfinished
//! directory without a lock was left by a dead process.

mod create;
mod document;
mod error;
mod open;

pub use create::{LayerSource, SnapshotFacts};
pub use error::SnapshotError;
pub use open::OpenSnapshot;

use crate::{StateDir, StateDirError};
use document::document;
use error::io;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::remove_tree;
use wp_codebox_contracts::{RunId, SandboxSnapshot, SiteId};

/// Name of the directory with a site's snapshots.
pub(crate) const SNAPSHOTS: &str = "snapshots";
/// Name prefix of the directory of an unfinished snapshot; the snapshot's id follows.
pub(crate) const UNFINISHED: &str = ".new-";
/// Name prefix of the directory of a snapshot that is being removed; the snapshot's id follows.
pub(crate) const REMOVED: &str = ".old-";
/// Value of `semantics` in `snapshot.json`: the snapshot contains the state itself, not steps that
/// would produce it again.
pub const SNAPSHOT_SEMANTICS: &str = "runtime-state-artifact";
/// The snapshots in one directory.
#[derive(Debug, Clone)]
pub struct SnapshotStore {
    root: PathBuf,
}

/// Which snapshots a call lists or finds by name.
#[derive(Debug, Clone, Copy)]
pub enum SnapshotScope<'r> {
    /// All snapshots, whichever sandbox they were made of.
    Any,
    /// Only snapshots of the sandbox of this run.
    Run(&'r RunId),
}

impl SnapshotStore {
    /// Opens the directory with the snapshots of a site, after creating it if missing.
    pub fn of_site(state: &StateDir, site: &SiteId) -> Result<Self, StateDirError> {
        let root = state.ensure(&["sites", site.as_str(), SNAPSHOTS])?;
        Ok(Self { root })
    }

    /// Opens the snapshots in the directory `root` instead of that of a site, e.g. in a run's
    /// scratch directory.
    #[must_use]
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the snapshots that `of` allows, oldest first. Damaged snapshots are left out.
    #[must_use]
    pub fn list(&self, of: SnapshotScope<'_>) -> Vec<SandboxSnapshot> {
        let Ok(entries) = fs::read_dir(&self.root) else {
            return Vec::new();
        };
        let mut all: Vec<SandboxSnapshot> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().to_str()?.to_owned();
                is_id(&name).then(|| document(&entry.path(), &name).ok())?
            })
            .filter(|snapshot| match of {
                SnapshotScope::Any => true,
                SnapshotScope::Run(run_id) => snapshot.run_id == *run_id,
            })
            .collect();
        all.sort_by(|a, b| (&a.created_at, &a.id).cmp(&(&b.created_at, &b.id)));
        all
    }

    /// Returns the id of a snapshot by its name, or by its id or the beginning of the id. Names and
    /// beginnings of ids are compared only with snapshots that `of` allows; a complete id of any
    /// existing snapshot is accepted, whatever `of` says.
    pub fn find(&self, reference: &str, of: SnapshotScope<'_>) -> Result<String, SnapshotError> {
        // For a complete id, neither `of` nor the snapshot's document is checked. `open` verifies
        // the document, but not `of`.
        if self.is_there(reference) {
            return Ok(reference.to_owned());
        }
        let all = self.list(of);
        let named = all.iter().find(|snapshot| snapshot.name == reference);
        named.map_or_else(|| begins_with(&all, reference), |one| Ok(one.id.clone()))
    }

    /// Returns the id of a snapshot by its id or the beginning of the id. Names are ignored: a
    /// caller could give its own snapshot a name that looks like the id of another snapshot.
    pub fn by_id(&self, reference: &str) -> Result<String, SnapshotError> {
        if self.is_there(reference) {
            return Ok(reference.to_owned());
        }
        begins_with(&self.list(SnapshotScope::Any), reference)
    }

    /// Returns whether a text has the form of a complete snapshot id.
    #[must_use]
    pub fn is_id(text: &str) -> bool {
        is_id(text)
    }

    fn is_there(&self, id: &str) -> bool {
        is_id(id) && self.root.join(id).is_dir()
    }

    /// Returns the ids of snapshots whose document cannot be used, each with the reason: with
    /// [`SnapshotError::Invalid`] the snapshot is damaged for good. The digests of the files are
    /// checked only when a snapshot is opened.
    #[must_use]
    pub fn unusable(&self) -> Vec<(String, SnapshotError)> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut all: Vec<(String, SnapshotError)> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_id(name))
            .filter_map(|name| {
                let error = document(&self.root.join(&name), &name).err()?;
                Some((name, error))
            })
            .collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Starts the removal of a snapshot: locks it, so that no sandbox can start on it.
    /// [`Removal::finish`] removes it.
    pub fn removal(&self, id: &str) -> Result<Removal<'_>, SnapshotError> {
        let missing = || SnapshotError::NotFound {
            reference: id.to_owned(),
        };
        if !self.is_there(id) {
            return Err(missing());
        }
        let path = self.root.join(id);
        let lock = lock(&path, FlockOperation::NonBlockingLockExclusive)?;
        // Another process has removed the directory after this process opened it and before it got
        // the lock.
        if rustix::fs::fstat(&lock).is_ok_and(|stat| stat.st_nlink == 0) || !self.is_there(id) {
            return Err(missing());
        }
        Ok(Removal {
            shelf: self,
            id: id.to_owned(),
            snapshot: document(&path, id).ok(),
            _lock: lock,
        })
    }

    /// Removes a snapshot. Fails if a sandbox uses it.
    pub fn remove(&self, id: &str) -> Result<(), SnapshotError> {
        self.removal(id)?.finish()
    }
}

/// Returns the only id that starts with the text. Fails if there is none or more than one.
fn begins_with(all: &[SandboxSnapshot], reference: &str) -> Result<String, SnapshotError> {
    let digits = |id: &str| id.strip_prefix("snap_").unwrap_or(id).to_owned();
    let wanted = digits(reference);
    let mut matching = all
        .iter()
        .filter(|snapshot| !wanted.is_empty() && digits(&snapshot.id).starts_with(&wanted));
    match (matching.next(), matching.next()) {
        (Some(one), None) => Ok(one.id.clone()),
        _ => Err(SnapshotError::NotFound {
            reference: reference.to_owned(),
        }),
    }
}

/// A locked snapshot. [`Removal::finish`] removes it; dropping the value only releases the lock.
#[derive(Debug)]
pub struct Removal<'s> {
    shelf: &'s SnapshotStore,
    /// Id of the locked snapshot.
    pub id: String,
    /// Content of `snapshot.json`; `None` if it cannot be read.
    pub snapshot: Option<SandboxSnapshot>,
    _lock: OwnedFd,
}

impl Removal<'_> {
    /// Hides the snapshot from the list with one rename, then deletes its files.
    pub fn finish(self) -> Result<(), SnapshotError> {
        let root = &self.shelf.root;
        let hidden = root.join(format!("{REMOVED}{}", self.id));
        fs::rename(root.join(&self.id), &hidden)
            .map_err(io("rename the snapshot before its removal"))?;
        match remove_tree(&hidden) {
            Ok(_) => Ok(()),
            Err(error) => Err(io("remove the snapshot")(std::io::Error::other(
                error.to_string(),
            ))),
        }
    }
}

/// Opens a directory and locks it until the descriptor is closed.
pub(crate) fn lock(path: &Path, how: FlockOperation) -> Result<OwnedFd, SnapshotError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = || {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let fd = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => fd,
        // Another process removed the directory after the caller had found it.
        Err(Errno::NOENT) => return Err(SnapshotError::NotFound { reference: name() }),
        Err(error) => return Err(io("open the snapshot")(error.into())),
    };
    match rustix::fs::flock(&fd, how) {
        Ok(()) => Ok(fd),
        Err(Errno::WOULDBLOCK) => Err(SnapshotError::InUse { id: name() }),
        Err(error) => Err(io("lock the snapshot")(error.into())),
    }
}

/// Returns whether the text is `snap_` and 32 hex digits, and therefore safe as a file name.
pub(crate) fn is_id(text: &str) -> bool {
    text.strip_prefix("snap_").is_some_and(|digits| {
        digits.len() == 32
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests;
