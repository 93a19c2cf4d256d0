//! Location of the directories of a run's mounts.

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
    /// Guests' store that replaces the run's scratch directory for copies.
    pub store: Option<&'a GuestStore>,
}

impl ScratchSpace<'_> {
    /// Creates a directory for a copy; returns its descriptor and its path for launchers.
    pub(super) fn directory(&self, name: &str) -> Result<(OwnedFd, PathBuf), std::io::Error> {
        if let Some(store) = self.store {
            let (directory, path) = store.directory(name)?;
            return Ok((directory, path.into()));
        }
        let path = self.run_dir.scratch(name).map_err(std::io::Error::other)?;
        Ok((open_dir(&path)?, path))
    }
}
