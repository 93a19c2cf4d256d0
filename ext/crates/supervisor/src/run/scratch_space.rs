//! Where a run creates the directories of its mounts.

use super::pinned::open_dir;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use wp_codebox_backend_native::GuestStore;
use wp_codebox_contracts::IsolationLevel;
use wp_codebox_runtime::{Owner, RunDir};

/// Directory for copies of mounts, and the user that guests run as.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScratchSpace<'a> {
    pub owner: Owner,
    pub level: IsolationLevel,
    pub run_dir: &'a RunDir,
    /// Store of the guests' user. If there is one, copies are created in it instead of the run's
    /// scratch directory.
    pub store: Option<&'a GuestStore>,
}

impl ScratchSpace<'_> {
    /// Creates a directory for a copy. Returns the directory's descriptor and the path by which
    /// launchers reach it.
    pub(super) fn directory(&self, name: &str) -> Result<(OwnedFd, PathBuf), std::io::Error> {
        if let Some(store) = self.store {
            let (directory, path) = store.directory(name)?;
            return Ok((directory, path.into()));
        }
        let path = self.run_dir.scratch(name).map_err(std::io::Error::other)?;
        Ok((open_dir(&path)?, path))
    }
}
