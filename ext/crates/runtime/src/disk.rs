//! Looking at what runs left: names, kinds and space, by descriptor.
//!
//! Nothing is ever followed: every step works on one name in an open directory, through
//! `openat2` with BENEATH, NO_SYMLINKS, NO_XDEV and NO_MAGICLINKS.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat, openat, openat2, statat,
};
use rustix::io::Errno;

/// How names below an open directory are resolved.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Opens a directory in `parent` by one name.
pub(crate) fn open_directory(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(parent, name, flags, Mode::empty(), BENEATH)
}

/// Names in a directory, without `.` and `..`.
pub(crate) fn names(directory: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fresh = match openat(directory, c".", flags, Mode::empty()) {
        // Removed by somebody else while it was open.
        Err(Errno::NOENT) => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(&fresh, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = match entry {
            // Likewise, while it was read.
            Err(Errno::NOENT) => break,
            entry => entry?.file_name().to_bytes().to_vec(),
        };
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// What lies at a name, not followed; none when there is nothing.
pub(crate) fn look(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Stat>, Errno> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Disk space of `name` in `parent` and everything below it, bytes, as far as it can be
/// read; at most `ENTRIES` entries are looked at.
pub(crate) fn disk_bytes(parent: BorrowedFd<'_>, name: &[u8]) -> u64 {
    const ENTRIES: usize = 200_000;
    const DEPTH: usize = 64;
    let blocks = |stat: &Stat| {
        u64::try_from(stat.st_blocks)
            .unwrap_or(0)
            .saturating_mul(512)
    };
    let Ok(Some(stat)) = look(parent, name) else {
        return 0;
    };
    let mut total = blocks(&stat);
    let Ok(root) = open_directory(parent, name) else {
        return total;
    };
    let mut stack = vec![root];
    let mut seen = 0;
    while let Some(directory) = stack.pop() {
        for entry in names(directory.as_fd()).unwrap_or_default() {
            seen += 1;
            if seen > ENTRIES {
                return total;
            }
            let Ok(Some(stat)) = look(directory.as_fd(), &entry) else {
                continue;
            };
            total = total.saturating_add(blocks(&stat));
            if is_directory(&stat)
                && stack.len() < DEPTH
                && let Ok(inner) = open_directory(directory.as_fd(), &entry)
            {
                stack.push(inner);
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn open(path: &Path) -> OwnedFd {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    #[test]
    fn space_is_counted() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("t/u")).unwrap();
        fs::write(temp.path().join("t/u/f"), vec![1_u8; 100_000]).unwrap();
        let bytes = disk_bytes(open(temp.path()).as_fd(), b"t");
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }
}
