//! Directories that a spawner shows on request, and the result for each.

use rustix::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use wp_codebox_contracts::{GuestIds, KernelIds, ViewAccess};

/// A host directory for guests.
#[derive(Debug)]
pub struct ViewSource<'a> {
    /// Name below the spawner's view directory; letters, digits and hyphens.
    pub name: String,
    /// Descriptor of the directory.
    pub directory: BorrowedFd<'a>,
    /// Owner of the files on disk.
    pub owner: KernelIds,
    /// Access of the guests' launchers.
    pub access: ViewAccess,
    /// Absolute path as plans name it; paths at or below it are opened through the view.
    pub path: String,
    /// Direct subdirectories that no launcher needs, to be covered.
    pub covered: Vec<String>,
}

/// Input of [`crate::Spawner::start`].
#[derive(Debug)]
pub struct SpawnerRequestSpec<'a> {
    /// Path of the launcher.
    pub launcher: &'a Path,
    /// Owner of the state directory.
    pub owner: KernelIds,
    /// Uid and gid inside guests.
    pub guest_id: u32,
    /// Id range that the operator configured.
    pub ids: GuestIds,
    /// State directory.
    pub state_dir: &'a Path,
    /// Share directory.
    pub share_dir: &'a Path,
    /// Directories for guests; empty when the caller is not root.
    pub views: Vec<ViewSource<'a>>,
}

/// Result for one view.
#[derive(Debug)]
pub enum ViewState {
    /// Launchers see the directory; the state's owner reads it at its own path.
    Shown,
    /// Launchers see the directory. Through this mount, the state's owner sees its files as files
    /// of its own.
    ShownWith(OwnedFd),
    /// The file system does not support idmapped mounts (errno); the directory must be copied.
    Refused(i32),
}
