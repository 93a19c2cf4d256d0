//! Opening and verification of snapshots.

use super::document::verify;
use super::{SnapshotError, SnapshotScope, SnapshotStore, lock};
use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use wp_codebox_contracts::SandboxSnapshot;

/// A verified snapshot. Its lock prevents garbage collection until the value is dropped.
#[derive(Debug)]
pub struct OpenSnapshot {
    /// Document of the snapshot.
    pub snapshot: SandboxSnapshot,
    path: PathBuf,
    layers: BTreeMap<String, OwnedFd>,
    _lock: OwnedFd,
}

impl OpenSnapshot {
    /// Returns path and descriptor of the layer with this name.
    #[must_use]
    pub fn layer(&self, name: &str) -> Option<(PathBuf, &OwnedFd)> {
        let fd = self.layers.get(name)?;
        Some((self.path.join(name), fd))
    }
}

impl SnapshotStore {
    /// Verifies a snapshot and locks it against garbage collection.
    pub fn open(
        &self,
        reference: &str,
        of: SnapshotScope<'_>,
    ) -> Result<OpenSnapshot, SnapshotError> {
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
