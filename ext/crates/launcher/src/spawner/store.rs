//! What launchers see that a user's spawner starts, who may not make idmapped mounts of a disk.
//!
//! The store is a tmpfs of the spawner's user namespace. The runner fills it through a mount in
//! which the guest's files are its own, so a copy is the guest's at once. Directories that every
//! user may read are shown as they are: what is not mapped has the overflow id in the guest.

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

/// The directory in which launchers find what is shown to them.
pub(super) struct Place {
    directory: OwnedFd,
}

/// Covers the place and puts the store there; answers the runner's mount of it too.
pub(super) fn make(path: &str) -> Result<(Place, OwnedFd), Failure> {
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
    Ok((Place { directory }, theirs))
}

impl Place {
    /// Shows a host directory under a new name, read-only, with everything mounted below it.
    pub(super) fn show(&self, name: &str, path: &str) -> Result<(), Errno> {
        if !views::is_name(name) {
            return Err(Errno::INVAL);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let shown = open(path, flags, Mode::empty())?;
        // Without what is mounted there the kernel would not copy the mount: it may cover something.
        let shown = clone_tree(shown.as_fd())?;
        set_attributes(shown.as_fd(), READ_ONLY, true)?;
        let point = views::directory(&self.directory, name)
            .map_err(|failure| Errno::from_raw_os_error(failure.errno))?;
        attach(shown.as_fd(), point.as_fd())
    }
}
