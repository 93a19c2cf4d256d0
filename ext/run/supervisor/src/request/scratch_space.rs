//! Place in which a run copies the directories of its mounts.

use super::pinned::open_dir;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use wp_codebox_backend_native::GuestStore;
use wp_codebox_contracts::IsolationLevel;
use wp_codebox_runtime::{Owner, RunDir};

/// Where copies of mounts are created, and the user that owns them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScratchSpace<'a> {
    pub owner: Owner,
    pub level: IsolationLevel,
    pub run_dir: &'a RunDir,
    /// Tmpfs that belongs to the guests' user. If there is one, copies are created in it instead of
    /// the run's scratch directory.
    pub store: Option<&'a GuestStore>,
}

impl ScratchSpace<'_> {
    /// Creates an empty directory for a copy. Returns an open descriptor and the path by which
    /// launchers (programs that start guests) reach it.
    pub(crate) fn directory(&self, name: &str) -> Result<(OwnedFd, PathBuf), std::io::Error> {
        if let Some(store) = self.store {
            let (directory, path) = store.directory(name)?;
            return Ok((directory, path.into()));
        }
        let path = self.run_dir.scratch(name).map_err(std::io::Error::other)?;
        Ok((open_dir(&path)?, path))
    }
}
