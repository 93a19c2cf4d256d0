//! Mounts of host directories for launchers of a spawner that was not started by root. The kernel
//! does not let such a spawner create idmapped mounts of a disk file system.
//!
//! The store is a tmpfs owned by the spawner's user namespace. The supervisor copies host files there
//! through an idmapped mount in which the guest's files appear as the supervisor's own. So files that
//! the supervisor creates there belong to the guest without a change of owner. World-readable
//! directories are mounted without a copy: owners without a mapping appear as the overflow id in
//! the guest.

use super::user_namespace::{self, GUEST, OWNER};
use super::views;
use crate::error::{At, Failure, Step};
use crate::mounting::{
    QUIET, READ_ONLY, attach, clone_of, clone_tree, new_mount, set_attributes, set_idmap,
};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use wp_codebox_contracts::{KernelIds, STORE};

/// Directory in which launchers find the mounts that the spawner makes for them.
pub(super) struct ViewDirectory {
    directory: OwnedFd,
}

/// Mounts a private tmpfs over `path` and the store in a directory of it. Returns the directory and
/// a mount of the store for the supervisor.
pub(super) fn make(path: &str) -> Result<(ViewDirectory, OwnedFd), Failure> {
    let directory = views::cover_place(path)?;
    let guest = GUEST.to_string();
    let options = [("mode", "0755"), ("uid", &guest), ("gid", &guest)];
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let store = new_mount("tmpfs", &options, &[], quiet).at(Step::View, STORE)?;
    let point = views::directory(&directory, STORE)?;
    attach(store.as_fd(), point.as_fd()).at(Step::View, STORE)?;
    let owner = KernelIds {
        uid: OWNER,
        gid: OWNER,
    };
    let mapping = user_namespace::of(GUEST, owner)?;
    let theirs = clone_of(store.as_fd()).at(Step::View, STORE)?;
    set_idmap(theirs.as_fd(), QUIET, mapping.as_fd()).at(Step::View, STORE)?;
    Ok((ViewDirectory { directory }, theirs))
}

impl ViewDirectory {
    /// Mounts the host directory `path` read-only as `name`, with all mounts below it.
    pub(super) fn show(&self, name: &str, path: &str) -> Result<(), Errno> {
        if !views::is_name(name) {
            return Err(Errno::INVAL);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let shown = open(path, flags, Mode::empty())?;
        // The clone must include the mounts below the directory. A clone without these mounts would
        // show the files that they hide, and the kernel refuses that in a less privileged mount
        // namespace.
        let shown = clone_tree(shown.as_fd())?;
        set_attributes(shown.as_fd(), READ_ONLY, true)?;
        let point = views::directory(&self.directory, name)
            .map_err(|failure| Errno::from_raw_os_error(failure.errno))?;
        attach(shown.as_fd(), point.as_fd())
    }
}
