//! What a spawner is asked to show, and what became of it.

use rustix::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use wp_codebox_contracts::{GuestIds, KernelIds, ViewAccess};

/// A host directory that guests will see.
#[derive(Debug)]
pub struct ViewSource<'a> {
    /// Its name in the spawner's place; letters, digits and hyphens.
    pub name: String,
    /// The open directory.
    pub directory: BorrowedFd<'a>,
    /// Its owner on disk.
    pub owner: KernelIds,
    /// Whether guests' launchers may write it.
    pub access: ViewAccess,
    /// Absolute path as plans name it; what lies at or below is opened through the view.
    pub path: String,
    /// Directories directly below it that no launcher needs.
    pub covered: Vec<String>,
}

/// What a spawner is asked for.
#[derive(Debug)]
pub struct SpawnerRequestSpec<'a> {
    /// The launcher.
    pub launcher: &'a Path,
    /// Owner of the state directory.
    pub owner: KernelIds,
    /// uid and gid inside guests.
    pub guest_id: u32,
    /// The operator's range.
    pub ids: GuestIds,
    /// The state directory.
    pub state_dir: &'a Path,
    /// The share directory.
    pub share_dir: &'a Path,
    /// What guests will see; nothing when the caller is not root.
    pub views: Vec<ViewSource<'a>>,
}

/// What became of one view.
#[derive(Debug)]
pub enum ViewState {
    /// Launchers see it; the state's owner may read it as it is.
    Shown,
    /// Launchers see it, and this mount shows it to the state's owner as its own.
    ShownWith(OwnedFd),
    /// The file system has no idmapped mounts, errno: it must be copied.
    Refused(i32),
}
