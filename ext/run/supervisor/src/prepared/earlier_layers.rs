//! A follow-up run starts from the change of an earlier bundle. This module writes that change as
//! overlay layers above the mounts' sources and below what the work guest writes.
//!
//! Invariant: a layer is written only if each file that the earlier bundle changed is still, in the
//! mount's source, as it was before that change. The guest that runs the checks gets none of these
//! layers: the captured change of the follow-up run contains the earlier change.

use super::change_layer::{self, ChangeLayer};
use super::materialise::Materialised;
use crate::request::follow_up::{Earlier, FollowUpError};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;
use wp_codebox_artifacts::{MountChanges, changes_since, find_removed_directories, quote_name};
use wp_codebox_contracts::{ErrorBody, HostSource};
use wp_codebox_runtime::RunDir;

/// The earlier bundle's change of each mount, and the overlay layers with these changes.
#[derive(Debug)]
pub(crate) struct EarlierLayers {
    /// Change of the earlier bundle by mount index.
    changes: BTreeMap<usize, MountChanges>,
    /// Overlay layers by layer index, which equals the mount index.
    layers: BTreeMap<u32, ChangeLayer>,
}

/// Writes the earlier bundle's change as overlay layers. Fails if a changed file differs, in the
/// source of its mount, from its state before that change.
pub(crate) fn lay(
    earlier: &Earlier,
    mounts: &[Materialised],
    run_dir: &RunDir,
) -> Result<EarlierLayers, ErrorBody> {
    let mut found = changes(earlier, mounts)?;
    let mut laid = EarlierLayers {
        changes: BTreeMap::new(),
        layers: BTreeMap::new(),
    };
    for (index, mount) in mounts.iter().enumerate() {
        let Some(changes) = found.remove(&index) else {
            continue;
        };
        if let (Ok(number), false) = (u32::try_from(index), changes.entries.is_empty()) {
            let layer = change_layer::write(run_dir, &format!("earlier-{index}"), &changes)
                .map_err(|error| error.with("target", mount.mount.target.as_str()))?;
            laid.layers.insert(number, layer);
        }
        laid.changes.insert(index, changes);
    }
    Ok(laid)
}

/// Returns the earlier bundle's change of each mount, by mount index. Sets `removed_directories` of
/// each change from the source of the mount.
fn changes(
    earlier: &Earlier,
    mounts: &[Materialised],
) -> Result<BTreeMap<usize, MountChanges>, FollowUpError> {
    // The guest's changes are captured relative to this open directory, too, so both changes refer
    // to the same files.
    let path = |mount: &Materialised| format!("/proc/self/fd/{}", mount.baseline.as_raw_fd());
    let targets = mounts.iter().map(|mount| {
        let target = mount.mount.target.as_str().to_owned();
        (target, PathBuf::from(path(mount)))
    });
    let mut found = earlier.changes(&targets.collect())?;
    let mut all = BTreeMap::new();
    for (index, mount) in mounts.iter().enumerate() {
        let Some(mut changes) = found.remove(&mount.mount.target) else {
            continue;
        };
        let rules = mount.rules();
        let mut paths = changes.entries.iter().map(|entry| &entry.path);
        let excluded = paths.find(|path| path.split(|b| *b == b'/').any(|n| rules.excludes(n)));
        if let Some(path) = excluded {
            let path = quote_name(path);
            return Err(FollowUpError::Excluded { path });
        }
        changes.removed_directories =
            find_removed_directories(&changes.entries, mount.baseline.as_fd()).map_err(
                |source| FollowUpError::Read {
                    target: mount.mount.target.to_string(),
                    source,
                },
            )?;
        all.insert(index, changes);
    }
    Ok(all)
}

impl EarlierLayers {
    /// Returns the host directory of the layer with this index.
    pub(crate) fn place(&self, index: u32) -> Option<HostSource> {
        self.layers.get(&index).map(|layer| layer.place.clone())
    }

    /// Returns an open descriptor of the layer with this index.
    pub(crate) fn layer(&self, index: u32) -> Option<BorrowedFd<'_>> {
        let layer = self.layers.get(&index);
        layer.map(|layer| layer.directory.as_fd())
    }

    /// Returns how many paths the earlier bundle changed.
    pub(crate) fn count(&self) -> usize {
        self.changes
            .values()
            .map(|changes| changes.entries.len())
            .sum()
    }

    /// Returns, by mount index, what this run changed in addition to the earlier bundle's change.
    /// `now` contains the captured changes by mount index, relative to the sources of the mounts.
    pub(crate) fn since(&self, now: &[Option<MountChanges>]) -> BTreeMap<usize, MountChanges> {
        let nothing = MountChanges::default();
        let captured = now.iter().enumerate();
        captured
            .filter_map(|(index, now)| {
                let earlier = self.changes.get(&index).unwrap_or(&nothing);
                let since = changes_since(earlier, now.as_ref()?);
                (!since.entries.is_empty()).then_some((index, since))
            })
            .collect()
    }
}
