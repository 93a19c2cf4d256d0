//! Removing what a guest or a crash left, whatever it looks like.
//!
//! Nothing is ever followed: every step works on one name in an open directory, through
//! `openat2` with BENEATH, NO_SYMLINKS, NO_XDEV and NO_MAGICLINKS. A directory with
//! something in it is first moved up beside the others, so depth costs neither stack nor
//! descriptors. Two removals of the same tree may run at once: what is gone already is
//! what is wanted. What cannot be removed (an immutable file, a mount) is counted and left.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat, chmod, fstat, openat, openat2,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;
use std::os::fd::AsRawFd;

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

/// Removes `name` from `parent` with everything below it. Answers an error when something
/// stays; everything else of the tree is gone then.
pub(crate) fn remove_tree(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match look(parent, name)? {
        None => return Ok(()),
        Some(stat) if !is_directory(&stat) => {
            return gone(unlinkat(parent, name, AtFlags::empty()));
        }
        Some(_) => {}
    }
    open_up(parent, name);
    let root = match open_directory(parent, name) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut first = None;
    let mut moved = 0_u64;
    // Each round removes every entry or moves the entries of a directory one level up, so it
    // ends when a round changes nothing.
    loop {
        let mut progress = false;
        let mut left = false;
        let moved_before = moved;
        for entry in names(root.as_fd())? {
            match clear(root.as_fd(), &entry, &mut moved) {
                Ok(()) => progress = true,
                Err(error) => {
                    first.get_or_insert(error);
                    left = true;
                }
            }
        }
        if !progress && moved == moved_before {
            if left {
                return Err(first.unwrap_or(Errno::NOTEMPTY));
            }
            match unlinkat(parent, name, AtFlags::REMOVEDIR) {
                // Another removal has just moved something up.
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                done => return gone(done),
            }
        }
    }
}

/// Removes one entry of the root, or empties it into the root.
fn clear(root: BorrowedFd<'_>, entry: &[u8], moved: &mut u64) -> Result<(), Errno> {
    let Some(stat) = look(root, entry)? else {
        return Ok(());
    };
    if !is_directory(&stat) {
        return gone(unlinkat(root, entry, AtFlags::empty()));
    }
    match unlinkat(root, entry, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {}
        done => return gone(done),
    }
    open_up(root, entry);
    let directory = match open_directory(root, entry) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut failed = None;
    for inner in names(directory.as_fd())? {
        let below = look(directory.as_fd(), &inner)?;
        let result = match below {
            Some(stat) if is_directory(&stat) => {
                // Moving a directory changes its `..`, which needs write permission on it.
                open_up(directory.as_fd(), &inner);
                lift(directory.as_fd(), &inner, root, moved)
            }
            Some(_) => gone(unlinkat(&directory, inner.as_slice(), AtFlags::empty())),
            None => Ok(()),
        };
        if let Err(error) = result {
            failed.get_or_insert(error);
        }
    }
    match (failed, unlinkat(root, entry, AtFlags::REMOVEDIR)) {
        // What another removal has just moved in is the next round's.
        (None, Err(Errno::NOTEMPTY | Errno::EXIST)) => Ok(()),
        (None, done) => gone(done),
        (Some(error), _) => Err(error),
    }
}

/// Moves a directory up into the root under a name of its own.
fn lift(
    from: BorrowedFd<'_>,
    name: &[u8],
    root: BorrowedFd<'_>,
    moved: &mut u64,
) -> Result<(), Errno> {
    loop {
        *moved += 1;
        let pid = rustix::process::getpid().as_raw_nonzero();
        let target = format!(".lifted-{pid}-{moved}");
        // Renaming over an empty directory would succeed, over anything else fail: both are fine.
        match renameat(from, name, root, target.as_str()) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            done => return gone(done),
        }
    }
}

/// Gives the owner all rights on a directory, through the very inode that was looked at.
fn open_up(parent: BorrowedFd<'_>, name: &[u8]) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A failure shows when the directory is opened.
    let Ok(inode) = openat2(parent, name, flags, Mode::empty(), BENEATH) else {
        return;
    };
    if fstat(&inode).is_ok_and(|stat| stat.st_mode & 0o700 != 0o700) {
        let _ = chmod(format!("/proc/self/fd/{}", inode.as_raw_fd()), Mode::RWXU);
    }
}

fn gone(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
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
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    fn open(path: &Path) -> OwnedFd {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    fn deep(root: &Path, levels: usize) {
        fs::create_dir(root).unwrap();
        let mut at = open(root);
        for level in 0..levels {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
            drop(openat(&at, "f", flags, Mode::RUSR).unwrap());
            at = open_directory(at.as_fd(), b"d").unwrap();
            if level % 3 == 0 {
                rustix::fs::fchmod(&at, Mode::RWXU).unwrap();
            }
        }
    }

    #[test]
    fn a_tree_deeper_than_stack_and_descriptors_goes() {
        let temp = tempfile::tempdir().unwrap();
        deep(&temp.path().join("t"), 2_500);
        remove_tree(open(temp.path()).as_fd(), b"t").unwrap();
        assert!(!temp.path().join("t").exists());
    }

    #[test]
    fn closed_directories_links_and_special_files_go_and_nothing_outside() {
        let temp = tempfile::tempdir().unwrap();
        let outside = temp.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let root = temp.path().join("t");
        fs::create_dir_all(root.join("closed/inner/more")).unwrap();
        fs::write(root.join("closed/inner/more/file"), "x").unwrap();
        symlink(&outside, root.join("closed/link")).unwrap();
        symlink(&outside, root.join("link")).unwrap();
        fs::hard_link(outside.join("kept"), root.join("hard")).unwrap();
        let fifo = Mode::RUSR;
        rustix::fs::mknodat(open(&root).as_fd(), "fifo", FileType::Fifo, fifo, 0).unwrap();
        fs::write(
            root.join(".lifted-1-1"),
            "a name that removal itself would use",
        )
        .unwrap();
        for closed in ["closed/inner/more", "closed/inner", "closed"] {
            fs::set_permissions(root.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(open(temp.path()).as_fd(), b"t").unwrap();
        assert!(!root.exists());
        assert_eq!(fs::read(outside.join("kept")).unwrap(), b"x");
        let mode = fs::metadata(&outside).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "a link's target keeps its mode");
        // A link in the place of the tree is removed, not entered.
        symlink(&outside, &root).unwrap();
        remove_tree(open(temp.path()).as_fd(), b"t").unwrap();
        assert!(fs::symlink_metadata(&root).is_err() && outside.join("kept").exists());
    }

    #[test]
    fn several_at_once_on_one_tree() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("t");
        for a in 0..20 {
            fs::create_dir_all(root.join(format!("{a}/x/y/z"))).unwrap();
            fs::write(root.join(format!("{a}/x/y/f")), "x").unwrap();
        }
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let parent = open(temp.path());
                std::thread::spawn(move || remove_tree(parent.as_fd(), b"t"))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
        assert!(!root.exists());
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
