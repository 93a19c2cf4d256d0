//! Merge of changes into a directory that other programs may use at the same time.

use crate::capture::{Change, FileMode, MountChanges, Node};
use crate::dirfd::{Dir, IfExists, read_pieces, write_all};
use crate::patch::shown_name;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Gid, Mode, RenameFlags, Stat, Uid};
use rustix::io::Errno;
use wp_codebox_contracts::CodedError;

/// Name of a new file until it replaces the old one, and of the old one until it is compared. The
/// lock excludes a second merge that uses the same name.
const TEMPORARY: &[u8] = b".wp-codebox-merge";

/// Reason why changes were not merged, or not all of them.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum MergeError {
    /// Another merge, apply or undo holds the lock of the directory. Nothing was merged.
    #[error("another merge, apply or undo works on the directory; wait until it has ended")]
    #[code(Busy)]
    Busy,
    /// The directory changed while the tool worked. Nothing was merged.
    #[error(
        "other programs changed {count} paths of the directory while the tool worked, the first is {path:?}; nothing was merged"
    )]
    #[code(ApplyConflict)]
    Conflict {
        /// First path that differs.
        path: String,
        /// Number of paths that differ.
        count: usize,
    },
    /// Another program changed a path during the merge. Its entry is kept; other paths may be
    /// merged already.
    #[error(
        "another program changed {path:?} during the merge, and that program's version stays; other paths may be merged already"
    )]
    #[code(ApplyConflict)]
    Changed {
        /// Path, relative to the directory.
        path: String,
    },
    /// A path could not be written. Other paths may be merged already.
    #[error(
        "the change of {path:?} could not be merged: {source}; other paths may be merged already"
    )]
    #[code(ApplyFailed)]
    Write {
        /// Path, relative to the directory.
        path: String,
        /// Error number of the system call that failed.
        #[source]
        source: rustix::io::Errno,
    },
}

/// Why one path was not merged.
enum Step {
    /// Another program changed it after the first comparison.
    Changed,
    Failed(Errno),
}

impl From<Errno> for Step {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

impl Step {
    fn at(self, path: &[u8]) -> MergeError {
        let path = shown_name(path);
        match self {
            Self::Changed => MergeError::Changed { path },
            Self::Failed(source) => MergeError::Write { path, source },
        }
    }
}

/// Writes changes to the directory `root`. Calls `before_write` with each path after the first
/// comparison and before the path is written, so that a test can change it in between.
pub(super) fn merge(
    root: &Dir,
    changes: &MountChanges,
    before_write: &mut dyn FnMut(&[u8]),
) -> Result<(), MergeError> {
    // The kernel releases the lock when the descriptor is closed.
    let _lock = lock(root)?;
    let mut conflicts = Vec::new();
    for entry in &changes.entries {
        let found = is_still(root, &entry.path, entry.change.before());
        if !found.map_err(|errno| Step::from(errno).at(&entry.path))? {
            conflicts.push(&entry.path);
        }
    }
    if let Some(first) = conflicts.first() {
        return Err(MergeError::Conflict {
            path: shown_name(first),
            count: conflicts.len(),
        });
    }
    // Deepest first: a directory is empty when its turn comes.
    for entry in changes.entries.iter().rev() {
        if let Some(before) = entry.change.before()
            && is_replaced(&entry.change)
        {
            before_write(&entry.path);
            remove(root, &entry.path, before).map_err(|step| step.at(&entry.path))?;
        }
    }
    for path in changes.removed_directories.iter().rev() {
        match remove_directory(root, path) {
            // The directory stays if another program has created an entry in it meanwhile.
            Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(errno) => return Err(Step::from(errno).at(path)),
        }
    }
    for entry in &changes.entries {
        if let Some(node) = entry.change.after() {
            before_write(&entry.path);
            let before = entry
                .change
                .before()
                .filter(|_| !is_replaced(&entry.change));
            place(root, &entry.path, node, before).map_err(|step| step.at(&entry.path))?;
        }
    }
    Ok(())
}

/// Locks the directory against other merges, and against the transactions of an apply or undo,
/// which take the same lock.
fn lock(root: &Dir) -> Result<Dir, MergeError> {
    let locked = Dir::reopen(root.as_fd()).and_then(|dir| {
        fs::flock(&dir, FlockOperation::NonBlockingLockExclusive)?;
        Ok(dir)
    });
    locked.map_err(|errno| match errno {
        Errno::WOULDBLOCK => MergeError::Busy,
        errno => Step::from(errno).at(b"."),
    })
}

/// Returns whether the old entry is removed in a separate step before new entries are written: if
/// the path gets no new entry, or if only one of the old and the new entry is a directory.
fn is_replaced(change: &Change) -> bool {
    match (change.before(), change.after()) {
        (Some(_), None) => true,
        (Some(before), Some(after)) => (*before == Node::Directory) != (*after == Node::Directory),
        (None, _) => false,
    }
}

/// Returns whether the entry at the path is still `expected`; `None` expects no entry.
fn is_still(root: &Dir, path: &[u8], expected: Option<&Node>) -> Result<bool, Errno> {
    match parent(root, path) {
        Ok((dir, name)) => is_node(&dir, name, expected),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(expected.is_none()),
        Err(error) => Err(error),
    }
}

fn is_node(dir: &Dir, name: &[u8], expected: Option<&Node>) -> Result<bool, Errno> {
    let Some(stat) = dir.stat(name)? else {
        return Ok(expected.is_none());
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    Ok(match expected {
        // `None` also stands for a directory with entries, which a capture does not list.
        None => kind == FileType::Directory,
        Some(Node::Directory) => kind == FileType::Directory,
        Some(Node::Symlink { target }) => {
            kind == FileType::Symlink && dir.link_text(name)? == *target
        }
        Some(Node::File { mode, bytes }) => {
            kind == FileType::RegularFile
                && FileMode::from_raw(stat.st_mode) == *mode
                && has_bytes(dir, name, bytes)?
        }
    })
}

fn has_bytes(dir: &Dir, name: &[u8], expected: &[u8]) -> Result<bool, Errno> {
    let (fd, _) = dir.open_file(name)?;
    let mut same = 0;
    let mut equal = true;
    read_pieces(&fd, |piece| {
        let end = same + piece.len();
        equal = equal && expected.get(same..end) == Some(piece);
        same = end;
        Ok(())
    })?;
    Ok(equal && same == expected.len())
}

/// Opens the parent directory of a path without following links. Returns it with the last
/// component of the path.
fn parent<'p>(root: &Dir, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Errno> {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => Ok((root.dir(&path[..at])?, &path[at + 1..])),
        None => Ok((root.dir(b".")?, path)),
    }
}

fn remove(root: &Dir, path: &[u8], before: &Node) -> Result<(), Step> {
    if *before == Node::Directory {
        return remove_directory(root, path).map_err(|errno| match errno {
            Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR => Step::Changed,
            errno => Step::Failed(errno),
        });
    }
    let (dir, name) = match parent(root, path) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    clear(&dir);
    match move_to_free_name(&dir, name, TEMPORARY) {
        Ok(()) => {}
        // Another program removed the entry, too.
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    }
    match is_node(&dir, TEMPORARY, Some(before)) {
        Ok(true) => Ok(fs::unlinkat(&dir, TEMPORARY, AtFlags::empty())?),
        changed => {
            move_to_free_name(&dir, TEMPORARY, name)?;
            Err(changed.map_or_else(Step::Failed, |_| Step::Changed))
        }
    }
}

fn remove_directory(root: &Dir, path: &[u8]) -> Result<(), Errno> {
    let removed =
        parent(root, path).and_then(|(dir, name)| fs::unlinkat(&dir, name, AtFlags::REMOVEDIR));
    match removed {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Removes a leftover of a merge that was killed.
fn clear(dir: &Dir) {
    let _ = fs::unlinkat(dir, TEMPORARY, AtFlags::empty());
}

/// Renames an entry; fails with `EEXIST` if the new name is taken.
fn move_to_free_name(dir: &Dir, from: &[u8], to: &[u8]) -> Result<(), Errno> {
    match fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        // File systems such as NFS do not know the flag.
        Err(Errno::INVAL) if dir.stat(to)?.is_some() => Err(Errno::EXIST),
        Err(Errno::INVAL) => fs::renameat(dir, from, dir, to),
        other => other,
    }
}

/// Writes `node` at the path, in place of `before`, or of nothing.
fn place(root: &Dir, path: &[u8], node: &Node, before: Option<&Node>) -> Result<(), Step> {
    let (dir, name) = made_parent(root, path)?;
    let around = fs::fstat(&dir)?;
    match node {
        Node::Directory => {
            let existed = dir.stat(name)?.is_some();
            let made = dir.open_dir(name, IfExists::Open)?;
            if !existed {
                own(made.as_fd(), &around);
            }
            return Ok(());
        }
        Node::Symlink { target } => {
            clear(&dir);
            fs::symlinkat(target.as_slice(), &dir, TEMPORARY)?;
        }
        Node::File { mode, bytes } => {
            clear(&dir);
            let file = dir.create(TEMPORARY)?;
            write_all(&file, bytes)?;
            let old = dir
                .stat(name)?
                .filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
            own(file.as_fd(), old.as_ref().unwrap_or(&around));
            let bits = match old {
                Some(old) if FileMode::from_raw(old.st_mode) == *mode => old.st_mode & 0o777,
                _ => mode.bits(),
            };
            fs::fchmod(&file, Mode::from_raw_mode(bits))?;
        }
    }
    match before {
        None => move_to_free_name(&dir, TEMPORARY, name).map_err(|errno| {
            clear(&dir);
            match errno {
                Errno::EXIST => Step::Changed,
                errno => Step::Failed(errno),
            }
        }),
        Some(before) => exchange(&dir, name, before),
    }
}

/// Puts the temporary entry at `name` if the entry there is still `before`.
fn exchange(dir: &Dir, name: &[u8], before: &Node) -> Result<(), Step> {
    let swap = || fs::renameat_with(dir, TEMPORARY, dir, name, RenameFlags::EXCHANGE);
    let refused = match swap() {
        Ok(()) => match is_node(dir, TEMPORARY, Some(before)) {
            Ok(true) => return Ok(fs::unlinkat(dir, TEMPORARY, AtFlags::empty())?),
            changed => {
                // If this fails, the other program's entry stays under the temporary name.
                swap()?;
                changed.map_or_else(Step::Failed, |_| Step::Changed)
            }
        },
        // File systems such as NFS cannot exchange two names. Between this comparison and the
        // rename another program can still change the entry.
        Err(Errno::INVAL) => match is_node(dir, name, Some(before)) {
            Ok(true) => return Ok(fs::renameat(dir, TEMPORARY, dir, name)?),
            changed => changed.map_or_else(Step::Failed, |_| Step::Changed),
        },
        // Another program removed the entry.
        Err(Errno::NOENT) => Step::Changed,
        Err(errno) => errno.into(),
    };
    clear(dir);
    Err(refused)
}

/// Opens the parent directory of a path. Creates missing directories, each with the owner of the
/// directory above it.
fn made_parent<'p>(root: &Dir, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Errno> {
    let mut dir = root.dir(b".")?;
    let mut parts = path.split(|byte| *byte == b'/').peekable();
    let mut name = path;
    while let Some(part) = parts.next() {
        name = part;
        if parts.peek().is_some() {
            let owner = fs::fstat(&dir)?;
            let existed = dir.stat(part)?.is_some();
            dir = dir.open_dir(part, IfExists::Open)?;
            if !existed {
                own(dir.as_fd(), &owner);
            }
        }
    }
    Ok((dir, name))
}

/// Gives a new entry the owner of the entry `like`: the one that it replaces, or its directory.
/// Fails for users other than root, which is ignored: the entry then keeps the user who merges.
fn own(fd: BorrowedFd<'_>, like: &Stat) {
    let owner = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
    let _ = fs::fchown(fd, Some(owner.0), Some(owner.1));
}
