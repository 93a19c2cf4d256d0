//! Snapshots of sandboxes: `sites/<site>/snapshots/<id>/{snapshot.json,<layer>.jsonl,<layer>/}`.
//!
//! A snapshot is made under a hidden name, brought to disk, read again and compared with what was
//! read from the guest, and only then given its name by one rename: a death at any moment leaves
//! none or a whole one. Whoever makes or uses one holds a lock on its directory for as long, so a
//! collection leaves it alone, and knows the leftovers of the dead.

mod error;
mod keep;
mod open;

pub use error::SnapshotError;
pub use keep::{LayerSource, SnapshotFacts};
pub use open::OpenSnapshot;

use crate::{StateDir, StateDirError};
use error::io;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{CanonicalError, OverLimit, canonical_value, remove_tree, sha256};
use wp_codebox_contracts::{RunId, SandboxSnapshot, Sha256Hex, SiteId, schema_id};

/// Directory of a site's snapshots.
pub(crate) const SNAPSHOTS: &str = "snapshots";
/// Name of one while it is made, before its id.
pub(crate) const UNFINISHED: &str = ".new-";
/// Name of one on its way out, before its id.
pub(crate) const REMOVED: &str = ".old-";
/// What a snapshot here holds: bytes, not steps.
pub const SNAPSHOT_SEMANTICS: &str = "runtime-state-artifact";
/// Its own document.
const DOCUMENT: &str = "snapshot.json";
/// Largest document, bytes.
const LARGEST_DOCUMENT: u64 = 1024 * 1024;
/// Largest list of entries, bytes: half a million of them.
const LARGEST_LIST: u64 = 512 * 1024 * 1024;

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
                is_id(&name).then(|| open::document(&entry.path(), &name).ok())?
            })
            .filter(|snapshot| match of {
                SnapshotOf::Any => true,
                SnapshotOf::Run(run_id) => snapshot.run_id == *run_id,
            })
            .collect();
        all.sort_by(|a, b| (&a.created_at, &a.id).cmp(&(&b.created_at, &b.id)));
        all
    }

    /// The id that an id, the beginning of one, or the name of a sandbox's own snapshot means.
    pub fn find(&self, reference: &str, of: SnapshotOf<'_>) -> Result<String, SnapshotError> {
        let missing = || SnapshotError::NotFound {
            reference: reference.to_owned(),
        };
        // An id that is there is used as it is: what is wrong with it is said when it is opened.
        if is_id(reference) && self.root.join(reference).is_dir() {
            return Ok(reference.to_owned());
        }
        let all = self.list(of);
        if let Some(named) = all.iter().find(|snapshot| snapshot.name == reference) {
            return Ok(named.id.clone());
        }
        let wanted = reference.trim_start_matches("snap_");
        let digits = |id: &str| id.trim_start_matches("snap_").to_owned();
        let mut matching = all
            .iter()
            .filter(|snapshot| !wanted.is_empty() && digits(&snapshot.id).starts_with(wanted));
        match (matching.next(), matching.next()) {
            (Some(one), None) => Ok(one.id.clone()),
            _ => Err(missing()),
        }
    }

    /// Removes one that nobody uses.
    pub fn remove(&self, id: &str) -> Result<(), SnapshotError> {
        if !is_id(id) || !self.root.join(id).is_dir() {
            return Err(SnapshotError::NotFound {
                reference: id.to_owned(),
            });
        }
        let path = self.root.join(id);
        let _lock = lock(&path, FlockOperation::NonBlockingLockExclusive)?;
        let hidden = self.root.join(format!("{REMOVED}{id}"));
        fs::rename(&path, &hidden).map_err(io("take the snapshot away"))?;
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
    let fd = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|e| io("open the snapshot")(e.into()))?;
    match rustix::fs::flock(&fd, how) {
        Ok(()) => Ok(fd),
        Err(Errno::WOULDBLOCK) => Err(SnapshotError::InUse {
            id: path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
        }),
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

/// The digest over everything else in the document.
fn digest(snapshot: &SandboxSnapshot) -> Result<Sha256Hex, CanonicalError> {
    let mut value = serde_json::to_value(snapshot).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.remove("digest");
    }
    let text = canonical_value(&value, OverLimit::Refuse)?;
    Ok(sha256(
        format!("{}\n{text}", schema_id::SANDBOX_SNAPSHOT).as_bytes(),
    ))
}

#[cfg(test)]
mod tests;
