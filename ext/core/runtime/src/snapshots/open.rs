//! Opens snapshots, so that a sandbox can be started from them.

use super::document::verify;
use super::{SnapshotError, SnapshotScope, SnapshotStore, lock};
use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use wp_codebox_contracts::SandboxSnapshot;

/// A verified snapshot. Its lock prevents the removal of the snapshot until the value is dropped.
#[derive(Debug)]
pub struct OpenSnapshot {
    /// Content of the snapshot's `snapshot.json`.
    pub snapshot: SandboxSnapshot,
    path: PathBuf,
    layers: BTreeMap<String, OwnedFd>,
    _lock: OwnedFd,
}

impl OpenSnapshot {
    /// Returns path and descriptor of the layer with this name; `None` if the snapshot has no such
    /// layer.
    #[must_use]
    pub fn layer(&self, name: &str) -> Option<(PathBuf, &OwnedFd)> {
        let fd = self.layers.get(name)?;
        Some((self.path.join(name), fd))
    }
}

impl SnapshotStore {
    /// Locks a snapshot against removal and verifies all of its files.
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
