//! Snapshot that a guest starts from.

use super::facts::{self, layer_name};
use crate::prepared::context::RunContext;
use crate::request::pinned::pinned;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use wp_codebox_backend_native::WP_CONTENT_LAYER;
use wp_codebox_contracts::{ErrorBody, ErrorCode, HostSource, SandboxSnapshot};
use wp_codebox_runtime::{OpenSnapshot, SnapshotScope, SnapshotStore};

/// The snapshot that a guest starts from, opened and verified. It cannot be removed while it is
/// open, because the guest uses its layers as lower overlay directories.
#[derive(Debug)]
pub(crate) struct Base {
    open: OpenSnapshot,
    /// Directories of the snapshot's layers, by layer index.
    places: BTreeMap<u32, HostSource>,
}

impl Base {
    /// Opens and verifies a snapshot, and checks that it matches this run's WordPress and mounts.
    pub(crate) fn open(
        context: &RunContext<'_>,
        shelf: &SnapshotStore,
        reference: &str,
    ) -> Result<Self, ErrorBody> {
        let open = shelf.open(reference, SnapshotScope::Any)?;
        facts::check(context, &open.snapshot)?;
        let mut places = BTreeMap::new();
        for index in indexes(context) {
            let name = layer_name(index);
            let invalid = |why: String| {
                let message = format!("snapshot {} cannot be used: {why}", open.snapshot.id);
                ErrorBody::new(ErrorCode::SnapshotInvalid, message)
            };
            let (path, fd) = open
                .layer(&name)
                .ok_or_else(|| invalid(format!("it has no layer {name}")))?;
            let place = pinned(&path, fd)
                .map_err(|e| invalid(format!("its layer {name} cannot be read: {e}")))?;
            places.insert(index, place);
        }
        Ok(Self { open, places })
    }

    /// Returns the document that describes the snapshot.
    pub(crate) fn snapshot(&self) -> &SandboxSnapshot {
        &self.open.snapshot
    }

    /// Returns the host directory of the layer with this index.
    pub(crate) fn place(&self, index: u32) -> Option<HostSource> {
        self.places.get(&index).cloned()
    }

    /// Returns the host directory of the layer that contains the changes of `wp-content`.
    pub(crate) fn content(&self) -> Vec<HostSource> {
        self.place(WP_CONTENT_LAYER).into_iter().collect()
    }

    /// Returns an open descriptor of the layer with this index.
    pub(crate) fn layer(&self, index: u32) -> Option<BorrowedFd<'_>> {
        self.open
            .layer(&layer_name(index))
            .map(|(_, fd)| fd.as_fd())
    }
}

/// Returns the indexes of the layers that a snapshot of this run has.
fn indexes(context: &RunContext<'_>) -> Vec<u32> {
    let writable = context
        .mounts
        .iter()
        .enumerate()
        .filter(|(_, mount)| facts::is_kept(mount))
        .filter_map(|(index, _)| u32::try_from(index).ok());
    writable.chain([WP_CONTENT_LAYER]).collect()
}
