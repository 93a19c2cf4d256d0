//! Snapshots of sandboxes: `sites/<site>/snapshots/<id>/{snapshot.json,<layer>.jsonl,<layer>/}`.
//!
//! A snapshot is made under a hidden name, brought to disk, read again and compared with what was
//! read from the guest, and only then given its name by one rename: a death at any moment leaves
//! none or a whole one. Whoever makes or uses one holds a lock on its directory for as long, so a
//! collection leaves it alone, and knows the leftovers of the dead.

mod document;
mod error;
mod keep;
mod open;

pub use error::SnapshotError;
pub use keep::{LayerSource, SnapshotFacts};
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

/// Directory of a site's snapshots.
pub(crate) const SNAPSHOTS: &str = "snapshots";
/// Name of one while it is made, before its id.
pub(crate) const UNFINISHED: &str = ".new-";
/// Name of one on its way out, before its id.
pub(crate) const REMOVED: &str = ".old-";
/// What a snapshot here holds: bytes, not steps.
pub const SNAPSHOT_SEMANTICS: &str = "runtime-state-artifact";
/// Where snapshots are kept.
#[derive(Debug, Clone)]
pub struct Shelf {
    root: PathBuf,
}

/// Of which sandboxes.
#[derive(Debug, Clone, Copy)]
pub enum SnapshotOf<'r> {
    /// Of all.
    Any,
    /// Of this one.
    Run(&'r RunId),
}

impl Shelf {
    /// The snapshots of a site.
    pub fn of_site(state: &StateDir, site: &SiteId) -> Result<Self, StateDirError> {
        let root = state.ensure(&["sites", site.as_str(), SNAPSHOTS])?;
        Ok(Self { root })
    }

    /// A directory of one's own, such as one in a run's scratch.
    #[must_use]
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Every snapshot that can be read, oldest first. What is damaged is not listed.
    #[must_use]
    pub fn list(&self, of: SnapshotOf<'_>) -> Vec<SandboxSnapshot> {
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
                SnapshotOf::Any => true,
                SnapshotOf::Run(run_id) => snapshot.run_id == *run_id,
            })
            .collect();
        all.sort_by(|a, b| (&a.created_at, &a.id).cmp(&(&b.created_at, &b.id)));
        all
    }

    /// The id that the name of a snapshot of these sandboxes means, or else what [`Self::by_id`]
    /// finds among theirs.
    pub fn find(&self, reference: &str, of: SnapshotOf<'_>) -> Result<String, SnapshotError> {
        // An id that is there is used as it is: what is wrong with it is said when it is opened.
        if self.is_there(reference) {
            return Ok(reference.to_owned());
        }
        let all = self.list(of);
        let named = all.iter().find(|snapshot| snapshot.name == reference);
        named.map_or_else(|| begins_with(&all, reference), |one| Ok(one.id.clone()))
    }

    /// The id that an id or the beginning of one means. Names mean nothing here: anybody may have
    /// given his own snapshot whichever name.
    pub fn by_id(&self, reference: &str) -> Result<String, SnapshotError> {
        if self.is_there(reference) {
            return Ok(reference.to_owned());
        }
        begins_with(&self.list(SnapshotOf::Any), reference)
    }

    /// Whether this is a whole id.
    #[must_use]
    pub fn is_id(text: &str) -> bool {
        is_id(text)
    }

    fn is_there(&self, id: &str) -> bool {
        is_id(id) && self.root.join(id).is_dir()
    }

    /// Snapshots that have their name and cannot be read, such as one whose document was edited.
    /// Their digests may be wrong all the same where they are listed: that is seen when one is
    /// opened.
    #[must_use]
    pub fn damaged(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut all: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_id(name) && document(&self.root.join(name), name).is_err())
            .collect();
        all.sort();
        all
    }

    /// Begins to remove one: it is locked, so that no sandbox can begin on it, and goes with
    /// [`Removal::finish`].
    pub fn removal(&self, id: &str) -> Result<Removal<'_>, SnapshotError> {
        let missing = || SnapshotError::NotFound {
            reference: id.to_owned(),
        };
        if !self.is_there(id) {
            return Err(missing());
        }
        let path = self.root.join(id);
        let lock = lock(&path, FlockOperation::NonBlockingLockExclusive)?;
        // Whoever removes one holds its lock until it is gone.
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

    /// Removes one that nobody uses.
    pub fn remove(&self, id: &str) -> Result<(), SnapshotError> {
        self.removal(id)?.finish()
    }
}

/// The id of the only one that begins so.
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

/// A snapshot that nobody can use any more, and is there until the removal is finished.
#[derive(Debug)]
pub struct Removal<'s> {
    shelf: &'s Shelf,
    /// Which.
    pub id: String,
    /// Its document; none when it cannot be read.
    pub snapshot: Option<SandboxSnapshot>,
    _lock: OwnedFd,
}

impl Removal<'_> {
    /// Takes it off the list by one rename, then gives its space back.
    pub fn finish(self) -> Result<(), SnapshotError> {
        let root = &self.shelf.root;
        let hidden = root.join(format!("{REMOVED}{}", self.id));
        fs::rename(root.join(&self.id), &hidden).map_err(io("take the snapshot away"))?;
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
        // Another process removed it after the caller had found it.
        Err(Errno::NOENT) => return Err(SnapshotError::NotFound { reference: name() }),
        Err(error) => return Err(io("open the snapshot")(error.into())),
    };
    match rustix::fs::flock(&fd, how) {
        Ok(()) => Ok(fd),
        Err(Errno::WOULDBLOCK) => Err(SnapshotError::InUse { id: name() }),
        Err(error) => Err(io("lock the snapshot")(error.into())),
    }
}

/// `snap_` and 32 hex digits, which no path can be made of.
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
