//! What a guest sees of the host's own files: overlays and copies, never the host's inode.
//!
//! Through a bind mount `flock`, POSIX locks, leases and inotify act on the inode that the
//! host's programs use, a socket or FIFO made there later leads to the host program behind
//! it, and `fsync` reaches the disk. An overlay has inodes, sockets and FIFOs of its own and
//! does not sync a lower layer, so a directory becomes the lower of a read-only overlay. A
//! single file is copied into the root tmpfs.

use crate::error::{At, Failure, Step};
use crate::mounting::{READ_ONLY, clone_tree, link, new_mount, set_attributes};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use std::fs::File;
use std::io::{self, Read};
use wp_codebox_contracts::HostSource;

/// Largest file that is copied, bytes. Staged files are no larger.
const FILE_BYTES: u64 = 16 * 1024 * 1024;
/// All copied files of a guest together, bytes: they are memory.
const FILES_BYTES: u64 = 256 * 1024 * 1024;
/// Memory that one file takes beyond its bytes: the rest of its last page.
const PAGE: u64 = 4096;

/// A file of the host, open to be copied.
pub(crate) struct Copied {
    file: File,
    size: u64,
    mode: u32,
}

/// Bytes of the root tmpfs that copied files need; refuses more than a guest may have.
pub(crate) fn copied_bytes<'a>(files: impl Iterator<Item = &'a Copied>) -> Result<u64, Failure> {
    let total = files.map(|file| file.size + PAGE).sum();
    if total > FILES_BYTES {
        return Err(Errno::FBIG).at(Step::Bind, "all copied files together");
    }
    Ok(total)
}

/// Opens a regular file to be copied; `None` when the descriptor shows a directory.
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
    // The descriptor has no right to read; this opens the same inode again with it.
    let file = rustix::fs::open(link(path), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Some(Copied {
        file: File::from(file),
        size,
        mode: stat.st_mode & 0o777,
    }))
}

impl Copied {
    /// Copies the file into a new one, no further than it was when the root's size was computed.
    pub(crate) fn write_to(self, mut target: File) -> io::Result<()> {
        io::copy(&mut self.file.take(self.size), &mut target)?;
        rustix::fs::fchmod(&target, Mode::from_raw_mode(self.mode))?;
        Ok(())
    }
}

/// How a directory of the host is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Through an overlay.
    Overlay,
    /// By a plain bind, because no overlay over it can be made.
    Bind,
}

/// A detached read-only mount that shows `lowers`, topmost first, as one directory, and which
/// kind it is. `host` names one that is shown alone.
///
/// `empty` is an empty directory: the kernel refuses an overlay of one lower without an upper.
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
        // EINVAL: other mounts lie below the directory, which a mount namespace of a user
        // namespace may not uncover; or it lies on two overlays already, the deepest stack
        // there is; or its file system cannot be a lower.
        (Err(Errno::INVAL), Some(directory)) => {
            let tree = clone_tree(directory.as_fd()).at(Step::Bind, target)?;
            // Before it is attached: there is no moment at which it is writable in the tree.
            set_attributes(tree.as_fd(), READ_ONLY, true).at(Step::Bind, target)?;
            Ok((tree, View::Bind))
        }
        (Err(errno), _) => Err(errno).at(Step::Overlay, target),
    }
}

/// Whether a step shows a directory of the system, which only root can change, at its own path.
/// Directories of sites and of the state directory are never shown by a bind.
fn is_system(host: &HostSource, target: &str) -> bool {
    host.inode.is_none() && host.path == target
}
