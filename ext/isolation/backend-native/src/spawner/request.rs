//! Host directories that a spawner mounts for launchers on request, and the result for each.

use rustix::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use wp_codebox_contracts::{GuestIds, KernelIds, ViewAccess};

/// A host directory that the spawner mounts for launchers.
#[derive(Debug)]
pub struct ViewSource<'a> {
    /// Name of the mount below the spawner's view directory; letters, digits and hyphens.
    pub name: String,
    /// Open descriptor of the host directory.
    pub directory: BorrowedFd<'a>,
    /// Owner that the files have on disk.
    pub owner: KernelIds,
    /// Whether launchers may write the directory.
    pub access: ViewAccess,
    /// Absolute host path of the directory in launch plans; launchers open paths at or below it
    /// through the mount.
    pub path: String,
    /// Names of direct subdirectories that no launcher needs; the spawner hides them under an empty
    /// mount.
    pub covered: Vec<String>,
}

/// Input of [`crate::Spawner::start`].
#[derive(Debug)]
pub struct SpawnerRequestSpec<'a> {
    /// Path of the launcher program, which is also the spawner's program.
    pub launcher: &'a Path,
    /// Owner of the state directory.
    pub owner: KernelIds,
    /// Uid and gid that programs have inside guests.
    pub guest_id: u32,
    /// Range of kernel ids that the operator configured for guests.
    pub ids: GuestIds,
    /// Path of the state directory.
    pub state_dir: &'a Path,
    /// Path of the share directory (WP-CLI and the guest programs).
    pub share_dir: &'a Path,
    /// Host directories to mount for launchers; empty when the caller is not root.
    pub views: Vec<ViewSource<'a>>,
    /// An empty file and its size in bytes, in which the spawner makes a file system for the
    /// writable files of guests; `None`: they lie on a tmpfs of each guest. Only root.
    pub scratch: Option<(OwnedFd, u64)>,
}

/// Result of mounting one host directory for launchers.
#[derive(Debug)]
pub enum ViewState {
    /// Launchers see the directory. The owner of the state directory needs no second mount, because
    /// it can read the directory at its original path.
    Shown,
    /// Launchers see the directory. The descriptor refers to a second mount of it, in which its
    /// files appear to belong to the owner of the state directory.
    ShownWith(OwnedFd),
    /// The file system does not support idmapped mounts (the number is the errno), so the supervisor
    /// must copy the directory.
    Refused(i32),
}
