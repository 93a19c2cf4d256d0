//! A snapshot is looked at again.

use super::document::verify;
use super::{Shelf, SnapshotError, SnapshotOf, lock};
use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use wp_codebox_contracts::SandboxSnapshot;

/// A snapshot whose every byte was compared with its digests, and which stays as long as this does.
#[derive(Debug)]
pub struct OpenSnapshot {
    /// Its document.
    pub snapshot: SandboxSnapshot,
    path: PathBuf,
    layers: BTreeMap<String, OwnedFd>,
    _lock: OwnedFd,
}

impl OpenSnapshot {
    /// A layer by its name, and where it lies.
    #[must_use]
    pub fn layer(&self, name: &str) -> Option<(PathBuf, &OwnedFd)> {
        let fd = self.layers.get(name)?;
        Some((self.path.join(name), fd))
    }
}

impl Shelf {
    /// Verifies a snapshot and keeps it from being collected.
    pub fn open(&self, reference: &str, of: SnapshotOf<'_>) -> Result<OpenSnapshot, SnapshotError> {
        let id = self.find(reference, of)?;
        let path = self.root.join(&id);
        let lock = lock(&path, FlockOperation::NonBlockingLockShared)?;
        let (snapshot, layers) = verify(&path, &id)?;
        Ok(OpenSnapshot {
            snapshot,
            path,
            layers,
            _lock: lock,
        })
    }
}
