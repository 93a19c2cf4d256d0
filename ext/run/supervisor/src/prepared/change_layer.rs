//! Writes the change of a mount as an overlay layer into the run's scratch directory.

use crate::request::pinned::{open_dir, pinned};
use std::os::fd::{AsFd, OwnedFd};
use wp_codebox_artifacts::{LayerError, MountChanges, remove_tree, write_layer};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, HostSource};
use wp_codebox_runtime::RunDir;

/// An overlay layer with the change of one mount, in the run's scratch directory.
#[derive(Debug)]
pub(crate) struct ChangeLayer {
    /// Path and inode of the layer's directory, by which launchers find it.
    pub place: HostSource,
    /// Open descriptor of the layer's directory.
    pub directory: OwnedFd,
}

/// Writes the change as an overlay layer into a new scratch directory with this name.
pub(crate) fn write(
    run_dir: &RunDir,
    name: &str,
    changes: &MountChanges,
) -> Result<ChangeLayer, ErrorBody> {
    let path = run_dir.scratch(name)?;
    let unable = |e: std::io::Error| {
        ErrorBody::new(
            ErrorCode::RunFailed,
            format!("the run's changes cannot be written as an overlay layer: {e}"),
        )
    };
    let directory = open_dir(&path).map_err(unable)?;
    write_layer(changes, directory.as_fd()).map_err(|error: LayerError| {
        // A layer that is only partly written is useless, and the bundle may need its disk space.
        let _ = remove_tree(&path);
        error.body()
    })?;
    let place = pinned(&path, &directory).map_err(unable)?;
    Ok(ChangeLayer { place, directory })
}
