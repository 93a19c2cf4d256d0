//! Host directories that are identified by path and inode, so that a replaced directory is noticed.

use rustix::fs::{Mode, OFlags};
use std::os::fd::OwnedFd;
use std::path::Path;
use wp_codebox_contracts::{HostSource, InodeId};

pub(crate) fn open_dir(path: &Path) -> std::io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Returns the path together with the inode of the open directory. When the guest is built, the
/// launcher refuses the path if it leads to another inode.
pub(crate) fn pinned(path: &Path, open: &OwnedFd) -> std::io::Result<HostSource> {
    let stat = rustix::fs::fstat(open)?;
    Ok(HostSource {
        path: path.to_string_lossy().into_owned(),
        inode: Some(InodeId {
            device: stat.st_dev,
            inode: stat.st_ino,
        }),
    })
}
