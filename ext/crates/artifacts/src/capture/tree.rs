//! A mount's source before and after a run: scan, fingerprint, copy.
//!
//! Invariants: special files are an error, never opened; links are recorded, never
//! followed; excluded names are not entered. Two scans of an unchanged tree give the
//! same fingerprint, and a changed inode, size, time, mode or owner gives another.

use super::budget::{Budget, Exceeded, ListError};
use super::link::judge_link;
use super::{CaptureLimits, ExcludeRules, OmitReason, Omitted};
use crate::beneath::{Dir, Existing, read_pieces, size_of, write_all};
use crate::patch::shown_name;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, Access, AtFlags, FileType, Mode, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Sha256Hex};

/// Why a tree could not be scanned or copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// Larger than allowed.
    #[error("the directory has more than {limit} {what}; mount a smaller directory")]
    Limit {
        /// `entries`, `bytes`, `bytes in one file` or `directory levels`.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// Something is mounted inside it.
    #[error(
        "{path:?} lies on another mount; mount it separately, or mount a directory without mounts inside"
    )]
    MountPoint {
        /// Path below the directory.
        path: String,
    },
    /// FIFO, socket or device in it.
    #[error("{path:?} is a {kind}; remove it or mount a directory without special files")]
    Special {
        /// Path below the directory.
        path: String,
        /// `fifo`, `socket`, `block device`, `character device`.
        kind: &'static str,
    },
    /// Something in it could not be read.
    #[error(
        "{path:?} could not be read: {source}; give the user that runs the sandbox read access"
    )]
    Unreadable {
        /// Path below the directory.
        path: String,
        /// The cause.
        #[source]
        source: rustix::io::Errno,
    },
    /// The copy could not be written.
    #[error("the copy of {path:?} could not be written")]
    Write {
        /// Path below the directory.
        path: String,
        /// The cause.
        #[source]
        source: rustix::io::Errno,
    },
}

impl TreeError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Limit { .. } => ErrorCode::MountTooLarge,
            Self::Special { .. } => ErrorCode::MountSpecialFile,
            Self::MountPoint { .. } | Self::Unreadable { .. } => ErrorCode::MountUnreadable,
            Self::Write { .. } => ErrorCode::SandboxStartFailed,
        }
    }
    /// As it crosses a border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}

/// What a scan saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeScan {
    /// Entries, the root not counted.
    pub entries: u64,
    /// Logical bytes of regular files.
    pub bytes: u64,
    /// sha256 over path, inode, size, times, mode and owner of every entry and the root.
    pub fingerprint: Sha256Hex,
    /// Every (uid, gid) seen, the root's included.
    pub owners: BTreeSet<(u32, u32)>,
}

/// What a copy left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Entries copied.
    pub entries: u64,
    /// Bytes copied.
    pub bytes: u64,
    /// Links and excluded names that were not copied, the first [`CopyReport::LISTED`].
    pub omitted: Vec<Omitted>,
    /// How many were not copied.
    pub omitted_count: u64,
}

impl CopyReport {
    /// Omitted paths that are listed.
    pub const LISTED: usize = 1000;

    fn omit(&mut self, path: &[u8], reason: OmitReason) {
        self.omitted_count += 1;
        if self.omitted.len() < Self::LISTED {
            let path = path.to_vec();
            self.omitted.push(Omitted { path, reason });
        }
    }
}

/// Walks a directory without reading files.
pub fn scan_tree(
    root: BorrowedFd<'_>,
    rules: &ExcludeRules,
    limits: &CaptureLimits,
) -> Result<TreeScan, TreeError> {
    let root = Dir::reopen(root).map_err(|e| unreadable(b"", e))?;
    let mut walk = Walk {
        rules,
        budget: Budget::new(limits),
        entries: 0,
    };
    let mut hasher = Sha256::new();
    let mut owners = BTreeSet::new();
    let top = root.own_stat().map_err(|e| unreadable(b"", e))?;
    record(&mut hasher, b"", &top);
    owners.insert((top.st_uid, top.st_gid));
    walk.descend(&root, b"", 0, &mut |step| {
        if let Step::Entry {
            path,
            stat,
            dir,
            name,
        } = step
        {
            record(&mut hasher, path, stat);
            owners.insert((stat.st_uid, stat.st_gid));
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
                fs::accessat(dir, name, Access::READ_OK, flags).map_err(|e| unreadable(path, e))?;
            }
        }
        Ok(())
    })?;
    Ok(TreeScan {
        entries: walk.entries,
        bytes: walk.budget.spent(),
        fingerprint: Sha256Hex::from_bytes(&hasher.finalize().into()),
        owners,
    })
}

/// Copies a directory's contents into another, empty one, owned by the caller. Times of
/// files and directories are kept; links are kept when they stay inside.
pub fn copy_tree(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    rules: &ExcludeRules,
    limits: &CaptureLimits,
) -> Result<CopyReport, TreeError> {
    let from = Dir::reopen(from).map_err(|e| unreadable(b"", e))?;
    let to = Dir::reopen(to).map_err(|e| write(b"", e))?;
    let mut report = CopyReport::default();
    let mut walk = Walk {
        rules,
        budget: Budget::new(limits),
        entries: 0,
    };
    // Directories being filled, outermost first; their times are set once they are full.
    let mut open: Vec<Dir> = vec![to];
    walk.descend(&from, b"", 0, &mut |step| {
        let target = open.last().ok_or_else(|| write(b"", Errno::BADF))?;
        match step {
            Step::Entry {
                path,
                stat,
                dir,
                name,
            } => {
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory => {
                        let child = target.open_dir(name, Existing::Refused);
                        let child = child.map_err(|e| write(path, e))?;
                        open.push(child);
                    }
                    FileType::Symlink => {
                        let text = dir.link_text(name).map_err(|e| unreadable(path, e))?;
                        if let Err(reason) = judge_link(path, &text) {
                            report.omit(path, reason);
                            return Ok(());
                        }
                        fs::symlinkat(text.as_slice(), target, name).map_err(|e| write(path, e))?;
                    }
                    _ => copy_file(dir, target, name, path, limits, &mut report.bytes)?,
                }
                report.entries += 1;
            }
            Step::Excluded { path } => report.omit(path, OmitReason::Excluded),
            Step::Leave { path, stat } => {
                set_times(target.as_fd(), stat).map_err(|e| write(path, e))?;
                open.pop();
            }
        }
        Ok(())
    })?;
    Ok(report)
}

enum Step<'a> {
    /// An entry, before its contents.
    Entry {
        path: &'a [u8],
        stat: &'a Stat,
        dir: &'a Dir,
        name: &'a [u8],
    },
    /// An entry that is left out.
    Excluded { path: &'a [u8] },
    /// A directory, after its contents.
    Leave { path: &'a [u8], stat: &'a Stat },
}

struct Walk<'a> {
    rules: &'a ExcludeRules,
    budget: Budget<'a>,
    /// Entries that take part.
    entries: u64,
}

impl Walk<'_> {
    fn descend(
        &mut self,
        dir: &Dir,
        path: &[u8],
        depth: usize,
        visit: &mut dyn FnMut(Step<'_>) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        self.budget.depth(depth)?;
        let names = self.budget.names(dir).map_err(|error| match error {
            ListError::Exceeded(exceeded) => exceeded.into(),
            ListError::Io(source) => unreadable(path, source),
        })?;
        for name in names {
            let at = self.budget.path(path, &name)?;
            // A name that vanished since it was listed is a change; the fingerprint shows it.
            let Some(stat) = dir.stat(&name).map_err(|e| unreadable(&at, e))? else {
                continue;
            };
            if self.rules.excludes_at(&at, &name) {
                visit(Step::Excluded { path: &at })?;
                continue;
            }
            self.count(&stat, &at)?;
            visit(Step::Entry {
                path: &at,
                stat: &stat,
                dir,
                name: &name,
            })?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let child = dir.dir(&name).map_err(|e| unreadable(&at, e))?;
                self.descend(&child, &at, depth + 1, visit)?;
                visit(Step::Leave {
                    path: &at,
                    stat: &stat,
                })?;
            }
        }
        Ok(())
    }

    fn count(&mut self, stat: &Stat, path: &[u8]) -> Result<(), TreeError> {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory | FileType::Symlink => None,
            FileType::RegularFile => {
                self.budget.file(size_of(stat))?;
                self.budget.spend(size_of(stat))?;
                None
            }
            FileType::Fifo => Some("FIFO"),
            FileType::Socket => Some("socket"),
            FileType::BlockDevice => Some("block device"),
            FileType::CharacterDevice => Some("character device"),
            FileType::Unknown => Some("file of unknown type"),
        };
        if let Some(kind) = kind {
            return Err(TreeError::Special {
                path: shown_name(path),
                kind,
            });
        }
        self.entries += 1;
        Ok(())
    }
}

fn record(hasher: &mut Sha256, path: &[u8], stat: &Stat) {
    hasher.update((path.len() as u64).to_le_bytes());
    hasher.update(path);
    let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    for number in [
        i128::from(stat.st_ino),
        // A directory's size is the file system's own affair.
        if directory {
            0
        } else {
            i128::from(stat.st_size)
        },
        i128::from(stat.st_mtime),
        i128::from(stat.st_mtime_nsec),
        i128::from(stat.st_ctime),
        i128::from(stat.st_ctime_nsec),
        i128::from(stat.st_mode),
        i128::from(stat.st_uid),
        i128::from(stat.st_gid),
    ] {
        hasher.update(number.to_le_bytes());
    }
}

fn copy_file(
    from: &Dir,
    to: &Dir,
    name: &[u8],
    path: &[u8],
    limits: &CaptureLimits,
    total: &mut u64,
) -> Result<(), TreeError> {
    let (source, stat) = from.open_file(name).map_err(|e| unreadable(path, e))?;
    let target = to.create(name).map_err(|e| write(path, e))?;
    let mut size = 0_u64;
    let mut outcome = Ok(());
    let read = read_pieces(&source, |piece| {
        size += piece.len() as u64;
        *total += piece.len() as u64;
        // The file can grow while it is copied.
        outcome = if size > limits.file_bytes {
            Err(limit("bytes in one file", limits.file_bytes))
        } else if *total > limits.total_bytes {
            Err(limit("bytes", limits.total_bytes))
        } else {
            write_all(&target, piece).map_err(|e| write(path, e))
        };
        outcome.as_ref().map_err(|_| Errno::CANCELED).copied()
    });
    outcome?;
    read.map_err(|e| unreadable(path, e))?;
    fs::fchmod(&target, Mode::from_raw_mode(stat.st_mode & 0o777 | 0o600))
        .and_then(|()| set_times(target.as_fd(), &stat))
        .map_err(|e| write(path, e))
}

fn set_times(fd: BorrowedFd<'_>, stat: &Stat) -> Result<(), Errno> {
    let time = Timespec {
        tv_sec: stat.st_mtime,
        tv_nsec: i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
    };
    fs::futimens(
        fd,
        &Timestamps {
            last_access: time,
            last_modification: time,
        },
    )
}

impl From<Exceeded> for TreeError {
    fn from(Exceeded { what, limit }: Exceeded) -> Self {
        Self::Limit { what, limit }
    }
}

fn unreadable(path: &[u8], source: Errno) -> TreeError {
    let path = shown_name(path);
    match source {
        Errno::XDEV => TreeError::MountPoint { path },
        _ => TreeError::Unreadable { path, source },
    }
}

fn write(path: &[u8], source: Errno) -> TreeError {
    TreeError::Write {
        path: shown_name(path),
        source,
    }
}

const fn limit(what: &'static str, limit: u64) -> TreeError {
    TreeError::Limit { what, limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(root.join(".git/x")).unwrap();
        std::fs::write(root.join("a/f"), "data").unwrap();
        std::fs::write(root.join("a/run"), "#!").unwrap();
        std::fs::set_permissions(root.join("a/run"), PermissionsExt::from_mode(0o755)).unwrap();
        symlink("f", root.join("a/in")).unwrap();
        symlink("/etc/passwd", root.join("a/out")).unwrap();
        dir
    }

    fn scan(path: &Path) -> Result<TreeScan, TreeError> {
        let root = Dir::open(path).unwrap();
        scan_tree(root.as_fd(), &ExcludeRules::default(), &CaptureLimits::TREE)
    }

    #[test]
    fn fingerprint_follows_changes() {
        let dir = tree();
        let first = scan(dir.path()).unwrap();
        assert_eq!((first.entries, first.bytes), (6, 6));
        assert_eq!(scan(dir.path()).unwrap(), first);
        // Same size, same mtime: the ctime still tells.
        let file = dir.path().join("a/f");
        let meta = std::fs::metadata(&file).unwrap();
        std::fs::write(&file, "DATA").unwrap();
        let time = Timespec {
            tv_sec: meta.mtime(),
            tv_nsec: meta.mtime_nsec(),
        };
        let both = Timestamps {
            last_access: time,
            last_modification: time,
        };
        fs::utimensat(fs::CWD, &file, &both, AtFlags::empty()).unwrap();
        assert_ne!(scan(dir.path()).unwrap().fingerprint, first.fingerprint);
        // What is excluded may change.
        let second = scan(dir.path()).unwrap();
        std::fs::write(dir.path().join(".git/x/index"), "1").unwrap();
        assert_eq!(scan(dir.path()).unwrap(), second);
    }

    #[test]
    fn special_files_are_an_error() {
        let dir = tree();
        assert!(scan(dir.path()).is_ok());
        let pipe = dir.path().join("a/pipe");
        fs::mknodat(fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let error = scan(dir.path()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MountSpecialFile);
        assert!(error.to_string().contains("a/pipe"), "{error}");
    }

    #[test]
    fn limits() {
        let dir = tree();
        let root = Dir::open(dir.path()).unwrap();
        let rules = ExcludeRules::default();
        for limits in [
            CaptureLimits {
                entries: 5,
                ..CaptureLimits::TREE
            },
            CaptureLimits {
                total_bytes: 5,
                ..CaptureLimits::TREE
            },
            CaptureLimits {
                file_bytes: 3,
                ..CaptureLimits::TREE
            },
            CaptureLimits {
                depth: 1,
                ..CaptureLimits::TREE
            },
        ] {
            let error = scan_tree(root.as_fd(), &rules, &limits).unwrap_err();
            assert_eq!(error.code(), ErrorCode::MountTooLarge);
        }
    }

    #[test]
    fn copy_keeps_times_modes_and_inner_links() {
        let dir = tree();
        let to = tempfile::tempdir().unwrap();
        let report = copy_tree(
            Dir::open(dir.path()).unwrap().as_fd(),
            Dir::open(to.path()).unwrap().as_fd(),
            &ExcludeRules::default(),
            &CaptureLimits::TREE,
        )
        .unwrap();
        let omitted: Vec<_> = report.omitted.iter().map(|o| o.path.as_slice()).collect();
        assert_eq!(omitted, [&b".git"[..], b"a/out"]);
        assert_eq!((report.entries, report.bytes), (5, 6));
        assert_eq!(std::fs::read(to.path().join("a/f")).unwrap(), b"data");
        assert_eq!(
            std::fs::read_link(to.path().join("a/in")).unwrap(),
            Path::new("f")
        );
        assert!(!to.path().join(".git").exists());
        for path in ["a", "a/b", "a/f", "a/run"] {
            let old = std::fs::metadata(dir.path().join(path)).unwrap();
            let new = std::fs::metadata(to.path().join(path)).unwrap();
            assert_eq!(
                (old.mtime(), old.mtime_nsec(), old.mode()),
                (new.mtime(), new.mtime_nsec(), new.mode()),
                "{path}"
            );
        }
    }
}
