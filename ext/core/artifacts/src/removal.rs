//! Removal of directory trees by descriptor, whatever state a guest left them in.
//!
//! Invariants: links are removed and never followed. No mount point is entered. A directory is
//! opened only with `openat2` beneath its parent, and `..` must lead back to the same directory
//! the walk came from. At most three descriptors are open and the walk does not recurse, so each
//! level costs only a small record. A directory without owner permissions first gets them,
//! through its own descriptor. An entry that cannot be removed remains together with its parent
//! directories and is reported.

use crate::dirfd::{Dir, join};
use crate::patch::{SHOWN_BYTES, shown_name};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, AtFlags, FileType, Mode, RawDir, Stat};
use rustix::io::Errno;
use std::path::Path;
use wp_codebox_contracts::CodedError;

/// Maximum number of subdirectory names in memory for each directory on the path from the tree's
/// root to the directory that is being emptied.
const BATCH: usize = 4096;
/// Maximum number of repeated visits of directories in one removal; each [`BATCH`] removed entries
/// allow one more. If another process keeps adding entries to a directory, the directory remains.
const REVISITS: u64 = 64;
/// Permission bits that an owner needs to empty a directory.
const OWNER: u32 = 0o700;

/// Reason why a tree was not removed completely.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(StateDirInvalid)]
pub enum RemovalError {
    /// The name is not a single path component.
    #[error("the name of the directory to remove, {name:?}, is not a single path component")]
    Name {
        /// The invalid name.
        name: String,
    },
    /// Some entries could not be removed.
    #[error(
        "{failed} entries of the directory tree could not be removed; the first is {path:?}: {source}"
    )]
    #[code(
        hint = "unmount what is mounted in the directory, or remove the directory by hand as its owner"
    )]
    Remains {
        /// Path of the first entry that could not be removed, beginning with the name to be
        /// removed; shortened if it is long.
        path: String,
        /// Number of entries that could not be removed, without their parent directories, which
        /// remain too.
        failed: u64,
        /// Error number of the first removal that failed.
        #[source]
        source: Errno,
    },
}

/// Removes `path` with everything below it and returns the number of removed entries, 0 if `path`
/// does not exist. Links in the parent path are followed; links at or below `path` never.
pub fn remove_tree(path: &Path) -> Result<u64, RemovalError> {
    use std::os::unix::ffi::OsStrExt;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(RemovalError::Name {
            name: shown_name(path.as_os_str().as_bytes()),
        });
    };
    let name = name.as_bytes();
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    match Dir::open_following(parent) {
        Ok(parent) => remove_tree_in(parent.as_fd(), name),
        Err(Errno::NOENT) => Ok(0),
        Err(source) => Err(RemovalError::Remains {
            path: shown_name(path.as_os_str().as_bytes()),
            failed: 1,
            source,
        }),
    }
}

/// Removes the entry `name` of an open directory with everything below it.
pub fn remove_tree_in(parent: BorrowedFd<'_>, name: &[u8]) -> Result<u64, RemovalError> {
    if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') {
        return Err(RemovalError::Name {
            name: shown_name(name),
        });
    }
    let mut removal = Removal {
        removed: 0,
        failed: 0,
        revisits: 0,
        first: None,
    };
    if let Err((path, error)) = removal.run(parent, name) {
        removal.note(path, error);
    }
    match removal.first {
        None => Ok(removal.removed),
        Some((path, source)) => Err(RemovalError::Remains {
            path: shown_name(&path),
            failed: removal.failed,
            source,
        }),
    }
}

struct Removal {
    removed: u64,
    failed: u64,
    revisits: u64,
    first: Option<(Vec<u8>, Errno)>,
}

/// A directory being emptied. The outermost level is the directory that contains the tree; the
/// removal removes only the tree from it.
struct Level {
    name: Vec<u8>,
    id: (u64, u64),
    /// Names of subdirectories that remain to be removed.
    pending: Vec<Vec<u8>>,
    /// Number of entries removed from this directory since the walk last entered it.
    removed: u64,
    /// Whether something in this directory could not be removed, so that the directory remains.
    remains: bool,
}

impl Removal {
    /// Removes the tree. Returns path and error number if the walk had to stop.
    fn run(&mut self, parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), (Vec<u8>, Errno)> {
        let mut above: Vec<Level> = Vec::new();
        let mut dir = Dir::reopen(parent).map_err(|e| (name.to_vec(), e))?;
        let top = dir.own_stat().map_err(|e| (name.to_vec(), e))?;
        let mut here = Level::new(b"", &top);
        here.pending.push(name.to_vec());
        loop {
            if let Some(child) = here.pending.pop() {
                match take(&dir, &child) {
                    Ok(Taken::Removed) => self.count(&mut here),
                    Ok(Taken::Gone) => {}
                    Ok(Taken::Entered(below, level)) => {
                        above.push(std::mem::replace(&mut here, level));
                        dir = below;
                        self.sweep(&dir, &mut here, &above);
                    }
                    Err(error) => self.fail(&mut here, &above, &child, error),
                }
                continue;
            }
            let Some(outer) = above.pop() else {
                return Ok(());
            };
            let left = std::mem::replace(&mut here, outer);
            dir = dir
                .parent_dir()
                .and_then(|up| match id(&up.own_stat()?) == here.id {
                    true => Ok(up),
                    false => Err(Errno::STALE),
                })
                .map_err(|e| (path_of(&above, &here, &left.name), e))?;
            self.leave(&dir, &mut here, &above, left);
        }
    }

    /// Removes every entry that is not a directory and collects the names of directories.
    fn sweep(&mut self, dir: &Dir, here: &mut Level, above: &[Level]) {
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let (name, kind) = match &entry {
                Ok(entry) => (entry.file_name().to_bytes(), entry.file_type()),
                Err(error) => return self.fail(here, above, b".", *error),
            };
            match kind {
                _ if name == b"." || name == b".." => {}
                // The batch is full. The directory is visited again, which collects the other
                // subdirectories.
                FileType::Directory | FileType::Unknown if here.pending.len() == BATCH => {}
                FileType::Directory | FileType::Unknown => here.pending.push(name.to_vec()),
                _ => match fs::unlinkat(dir, name, AtFlags::empty()) {
                    Ok(()) => self.count(here),
                    Err(Errno::NOENT) => {}
                    Err(error) => self.fail(here, above, name, error),
                },
            }
        }
    }

    /// Removes the directory `left` from its parent after its entries were removed.
    fn leave(&mut self, dir: &Dir, here: &mut Level, above: &[Level], left: Level) {
        if left.remains {
            here.remains = true;
            return;
        }
        match fs::unlinkat(dir, &left.name, AtFlags::REMOVEDIR) {
            Ok(()) => self.count(here),
            Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST)
                if left.removed > 0 && self.revisits < REVISITS + self.removed / BATCH as u64 =>
            {
                self.revisits += 1;
                here.pending.push(left.name);
            }
            Err(error) => self.fail(here, above, &left.name, error),
        }
    }

    fn count(&mut self, here: &mut Level) {
        here.removed += 1;
        self.removed += 1;
    }

    fn fail(&mut self, here: &mut Level, above: &[Level], name: &[u8], error: Errno) {
        here.remains = true;
        if self.first.is_none() {
            self.note(path_of(above, here, name), error);
        } else {
            self.failed += 1;
        }
    }

    fn note(&mut self, path: Vec<u8>, error: Errno) {
        self.failed += 1;
        self.first.get_or_insert((path, error));
    }
}

impl Level {
    fn new(name: &[u8], stat: &Stat) -> Self {
        Self {
            name: name.to_vec(),
            id: id(stat),
            pending: Vec::new(),
            removed: 0,
            remains: false,
        }
    }
}

enum Taken {
    Removed,
    /// Another process had removed the entry already.
    Gone,
    /// The entry is a directory with entries and was opened.
    Entered(Dir, Level),
}

fn take(dir: &Dir, name: &[u8]) -> Result<Taken, Errno> {
    let removed = match fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTDIR) => fs::unlinkat(dir, name, AtFlags::empty()),
        other => other,
    };
    match removed {
        Ok(()) => Ok(Taken::Removed),
        Err(Errno::NOENT) => Ok(Taken::Gone),
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            let below = dir.dir_owned(name)?;
            let stat = below.own_stat()?;
            if stat.st_mode & OWNER != OWNER {
                // fchmod fails if the directory has another owner. Its entries then remain and
                // are reported.
                let _ = fs::fchmod(&below, Mode::from_raw_mode(OWNER));
            }
            let level = Level::new(name, &stat);
            Ok(Taken::Entered(below, level))
        }
        Err(error) => Err(error),
    }
}

const fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn path_of(above: &[Level], here: &Level, name: &[u8]) -> Vec<u8> {
    let mut path = Vec::new();
    for level in above.iter().chain([here]) {
        // The outermost level has no name. A path longer than the limit of error messages is not
        // extended further.
        if !level.name.is_empty() && path.len() <= SHOWN_BYTES {
            path = join(&path, &level.name);
        }
    }
    join(&path, name)
}

#[cfg(test)]
mod tests;
