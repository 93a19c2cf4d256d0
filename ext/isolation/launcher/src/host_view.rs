//! Host files in the guest: shown through overlays and copies, so that the guest does not get the
//! host's own inodes. Exceptions: [`View::Bind`], device nodes, and the directories that a template
//! build writes.
//!
//! A bind mount would share the host's inodes: `flock`, POSIX locks, leases and inotify in the
//! guest would act on the inode that the host's programs use. A socket or FIFO that a host program
//! creates below the mount later would connect the guest to that program. `fsync` would reach the
//! disk. An overlay has its own inodes, sockets and FIFOs and does not sync a lower layer. So each
//! host directory is shown as the lower directory of a read-only overlay, and a single file is
//! copied into the root tmpfs.

use crate::error::{At, Failure, Step};
use crate::mounting::{READ_ONLY, clone_tree, link, new_mount, set_attributes};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use std::fs::File;
use std::io::{self, Read};
use wp_codebox_contracts::HostSource;

/// Size limit in bytes of one copied file. Staged files (single host files shown in the guest) are
/// no larger.
const FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Size limit in bytes of all copied files of a guest together: a tmpfs holds them in memory.
const FILES_BYTES: u64 = 256 * 1024 * 1024;
/// Upper bound of the tmpfs memory that a file uses in addition to its size, in bytes: the unused
/// part of its last page.
const PAGE: u64 = 4096;

/// A regular host file, opened for copying it into the guest.
pub(crate) struct Copied {
    file: File,
    size: u64,
    mode: u32,
}

/// Returns how many bytes of the root tmpfs the copied files need; fails with EFBIG when they
/// exceed [`FILES_BYTES`].
pub(crate) fn copied_bytes<'a>(files: impl Iterator<Item = &'a Copied>) -> Result<u64, Failure> {
    let total = files.map(|file| file.size + PAGE).sum();
    if total > FILES_BYTES {
        return Err(Errno::FBIG).at(Step::Bind, "all copied files together");
    }
    Ok(total)
}

/// Opens a regular file for copying. Returns `None` if `path` is a descriptor of a directory; fails
/// with EINVAL for every other type of file.
pub(crate) fn copied(path: &OwnedFd) -> Result<Option<Copied>, Errno> {
    let stat = rustix::fs::fstat(path)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => return Ok(None),
        FileType::RegularFile => {}
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => return Err(Errno::INVAL),
    }
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if size > FILE_BYTES {
        return Err(Errno::FBIG);
    }
    // An O_PATH descriptor cannot be read; opening its `/proc/self/fd` link opens the same inode
    // for reading.
    let file = rustix::fs::open(link(path), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Some(Copied {
        file: File::from(file),
        size,
        mode: stat.st_mode & 0o777,
    }))
}

impl Copied {
    /// Copies the file into `target`. Copies no more bytes than the root tmpfs was sized for,
    /// because the file may have grown since its size was read.
    pub(crate) fn write_to(self, mut target: File) -> io::Result<()> {
        io::copy(&mut self.file.take(self.size), &mut target)?;
        rustix::fs::fchmod(&target, Mode::from_raw_mode(self.mode))?;
        Ok(())
    }
}

/// How a host directory is mounted in the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The directory is the lower directory of an overlay.
    Overlay,
    /// The directory is bind-mounted, because no overlay over it is possible; only for system
    /// directories.
    Bind,
}

/// Returns a mount, not attached yet, that merges `lowers`, topmost first, read-only. Also returns
/// whether it is an overlay or a bind mount. `host` is set when a single host directory is shown.
///
/// `empty` is an empty directory used as a second lower: the kernel refuses an overlay with one
/// lower and no upper.
pub(crate) fn directories(
    lowers: &[OwnedFd],
    empty: &OwnedFd,
    host: Option<&HostSource>,
    target: &str,
) -> Result<(OwnedFd, View), Failure> {
    let all: Vec<_> = lowers.iter().chain([empty]).map(link).collect();
    let all = all.join(":");
    let quiet = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    let system = host.is_some_and(|host| is_system(host, target));
    let system = lowers.first().filter(|_| system);
    let overlay = new_mount("overlay", &[("lowerdir", &all)], &["userxattr"], quiet);
    match (overlay, system) {
        (Ok(mount), _) => Ok((mount, View::Overlay)),
        // EINVAL has three causes. (1) Other mounts lie below the directory: an overlay would show
        // the files that these mounts hide, which the kernel forbids in a mount namespace of an
        // unprivileged user namespace. (2) The directory already lies on two stacked overlays, the
        // kernel's maximum. (3) The file system of the directory cannot be a lower layer.
        (Err(Errno::INVAL), Some(directory)) => {
            let tree = clone_tree(directory.as_fd()).at(Step::Bind, target)?;
            // Set read-only before attaching, so the mount is never writable in the tree.
            set_attributes(tree.as_fd(), READ_ONLY, true).at(Step::Bind, target)?;
            Ok((tree, View::Bind))
        }
        (Err(errno), _) => Err(errno).at(Step::Overlay, target),
    }
}

/// Returns true if a mount step shows a system directory (one that only root can change) at its own
/// path. The step then has no recorded inode. Directories of sites and of the state directory have
/// a recorded inode or are shown at a different path, so they are never bind-mounted.
fn is_system(host: &HostSource, target: &str) -> bool {
    host.inode.is_none() && host.path == target
}
