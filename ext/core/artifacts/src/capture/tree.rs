//! Copies a directory tree; defines the error type of scanning and copying.
//!
//! Invariants: special files are an error and never opened; links are copied as links and never
//! followed; excluded directories are not entered; holes of sparse files are preserved.

use super::budget::{Budget, Exceeded, ListError};
use super::link::check_link;
use super::{CaptureLimits, ExcludeRules, OmitReason, Omitted, is_git_directory};
use crate::dirfd::{Dir, IfExists, SparseWriter, read_pieces, size_of};
use crate::patch::shown_name;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, FileType, Mode, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use wp_codebox_contracts::CodedError;

/// Reason why a tree could not be scanned or copied.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum TreeError {
    /// The tree exceeds a limit.
    #[error("the directory has more than {limit} {what}; mount a smaller directory")]
    #[code(MountTooLarge)]
    Limit {
        /// Limited quantity, e.g. `entries`, `bytes in one file` or `directory levels`.
        what: &'static str,
        /// Value of the exceeded limit, in the unit that `what` names.
        limit: u64,
    },
    /// The tree contains a mount point.
    #[error(
        "the directory contains the mount point {path:?} of the host; mount that into the sandbox separately, or choose a directory without mount points"
    )]
    #[code(MountUnreadable)]
    MountPoint {
        /// Path of the mount point, relative to the tree.
        path: String,
    },
    /// The tree contains a FIFO, socket or device.
    #[error(
        "the directory contains the {kind} {path:?}; remove it or mount a directory without special files"
    )]
    #[code(MountSpecialFile)]
    Special {
        /// Path of the special file, relative to the tree.
        path: String,
        /// File type, e.g. `FIFO`, `socket` or `block device`.
        kind: &'static str,
    },
    /// An entry could not be read.
    #[error(
        "the directory's entry {path:?} could not be read: {source}; give the user that runs the sandbox read access"
    )]
    #[code(MountUnreadable)]
    Unreadable {
        /// Path of the entry, relative to the tree.
        path: String,
        /// Error number of the system call that failed.
        #[source]
        source: rustix::io::Errno,
    },
    /// An entry of the copy could not be written.
    #[error(
        "the copy of {path:?} could not be written: {source}; check space and inodes of the state directory's file system"
    )]
    #[code(SandboxStartFailed)]
    Write {
        /// Path of the entry, relative to the tree.
        path: String,
        /// Error number of the system call that failed.
        #[source]
        source: rustix::io::Errno,
    },
}

/// Which symbolic links of a tree are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// All links are copied, with unchanged targets.
    AsTheyAre,
    /// Only links with targets inside the tree are copied.
    Inside,
}

/// What a copy of a tree contains and what it left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Number of entries copied.
    pub entries: u64,
    /// Number of bytes copied.
    pub bytes: u64,
    /// Links and excluded names that were not copied; only the first [`CopyReport::LISTED`].
    pub omitted: Vec<Omitted>,
    /// Number of all entries that were not copied, listed or not.
    pub omitted_count: u64,
}

impl CopyReport {
    /// Maximum number of paths in `omitted`.
    pub const LISTED: usize = 1000;

    fn omit(&mut self, path: &[u8], reason: OmitReason) {
        self.omitted_count += 1;
        if self.omitted.len() < Self::LISTED {
            let path = path.to_vec();
            self.omitted.push(Omitted { path, reason });
        }
    }
}

/// Copies the contents of a directory into another, empty directory. The copies belong to the user
/// of this process. Times of files and directories are preserved.
pub fn copy_tree(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    rules: &ExcludeRules,
    links: Links,
    limits: &CaptureLimits,
) -> Result<CopyReport, TreeError> {
    let from = Dir::reopen(from).map_err(|e| unreadable(b"", e))?;
    let to = Dir::reopen(to).map_err(|e| write(b"", e))?;
    let mut report = CopyReport::default();
    let mut walk = Walk {
        rules,
        budget: Budget::new(limits),
    };
    // Directories being filled, outermost first. Their times are set after the last entry,
    // because each new entry changes them.
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
                        let child = target.open_dir(name, IfExists::Fail);
                        let child = child.map_err(|e| write(path, e))?;
                        open.push(child);
                    }
                    FileType::Symlink => {
                        let text = dir.link_text(name).map_err(|e| unreadable(path, e))?;
                        if links == Links::Inside
                            && let Err(reason) = check_link(path, &text)
                        {
                            report.omit(path, reason);
                            return Ok(());
                        }
                        fs::symlinkat(text.as_slice(), target, name).map_err(|e| write(path, e))?;
                    }
                    _ => copy_file(dir, target, name, path, limits, &mut report.bytes)?,
                }
                report.entries += 1;
            }
            Step::Excluded { path, name } if is_git_directory(name) => {
                report.omit(path, OmitReason::GitMetadata);
            }
            Step::Excluded { path, .. } => report.omit(path, OmitReason::Excluded),
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
    /// An entry that is not excluded. For a directory, this comes before its entries.
    Entry {
        path: &'a [u8],
        stat: &'a Stat,
        dir: &'a Dir,
        name: &'a [u8],
    },
    /// An entry with an excluded name.
    Excluded { path: &'a [u8], name: &'a [u8] },
    /// The end of a directory, after all of its entries.
    Leave { path: &'a [u8], stat: &'a Stat },
}

struct Walk<'a> {
    rules: &'a ExcludeRules,
    budget: Budget<'a>,
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
            // An entry that vanished since the listing is skipped. The scans before and after the
            // run detect that change.
            let Some(stat) = dir.stat(&name).map_err(|e| unreadable(&at, e))? else {
                continue;
            };
            if self.rules.excludes_at(&at, &name) {
                visit(Step::Excluded {
                    path: &at,
                    name: &name,
                })?;
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
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::RegularFile {
            self.budget.file(size_of(stat))?;
            self.budget.spend(size_of(stat))?;
        }
        refuse_special(kind, path)
    }
}

/// Returns an error for a FIFO, socket or device.
pub(super) fn refuse_special(kind: FileType, path: &[u8]) -> Result<(), TreeError> {
    let kind = match kind {
        FileType::Directory | FileType::Symlink | FileType::RegularFile => return Ok(()),
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::BlockDevice => "block device",
        FileType::CharacterDevice => "character device",
        FileType::Unknown => "file of unknown type",
    };
    let path = shown_name(path);
    Err(TreeError::Special { path, kind })
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
    let mut sparse = SparseWriter::new(&target);
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
            sparse.write(piece).map_err(|e| write(path, e))
        };
        outcome.as_ref().map_err(|_| Errno::CANCELED).copied()
    });
    outcome?;
    read.map_err(|e| unreadable(path, e))?;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o777 | 0o600);
    sparse
        .finish()
        .and_then(|()| fs::fchmod(&target, mode))
        .and_then(|()| set_times(target.as_fd(), &stat))
        .map_err(|e| write(path, e))
}

pub(super) fn set_times(fd: BorrowedFd<'_>, stat: &Stat) -> Result<(), Errno> {
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

pub(super) fn unreadable(path: &[u8], source: Errno) -> TreeError {
    // The path of the tree's root is empty.
    let path = shown_name(if path.is_empty() { b"." } else { path });
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
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;
    use wp_codebox_contracts::ErrorCode;

    pub(in crate::capture) fn tree() -> tempfile::TempDir {
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

    #[test]
    fn failed_copy_reports_path_cause_and_state_directory() {
        let body = write(b"a/f", Errno::NOSPC).body();
        assert_eq!(body.code, ErrorCode::SandboxStartFailed);
        for part in ["a/f", "No space left on device", "state directory"] {
            assert!(body.message.contains(part), "{}", body.message);
        }
    }

    #[test]
    fn tree_copy_preserves_times_modes_and_links_inside_the_tree() {
        let dir = tree();
        let to = tempfile::tempdir().unwrap();
        let report = copy_tree(
            Dir::open(dir.path()).unwrap().as_fd(),
            Dir::open(to.path()).unwrap().as_fd(),
            &ExcludeRules::default(),
            Links::Inside,
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

    #[test]
    fn copy_with_links_as_they_are_contains_symlinks_to_paths_outside_the_tree() {
        let (dir, to) = (tree(), tempfile::tempdir().unwrap());
        let report = copy_tree(
            Dir::open(dir.path()).unwrap().as_fd(),
            Dir::open(to.path()).unwrap().as_fd(),
            &ExcludeRules::default(),
            Links::AsTheyAre,
            &CaptureLimits::TREE,
        )
        .unwrap();
        let text = std::fs::read_link(to.path().join("a/out")).unwrap();
        assert_eq!(text, Path::new("/etc/passwd"));
        let omitted: Vec<_> = report.omitted.iter().map(|o| o.reason).collect();
        assert_eq!(omitted, [OmitReason::GitMetadata]);
    }

    /// Creates a sparse file of 64 MiB with a few bytes at the start, in the middle and
    /// optionally at the end.
    fn sparse(path: &Path, end: &[u8]) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::File::create(path).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(b"begin", 0).unwrap();
        file.write_all_at(b"middle", (32 << 20) - 3).unwrap();
        file.write_all_at(end, (64 << 20) - end.len() as u64)
            .unwrap();
    }

    #[test]
    fn tree_copy_preserves_holes_of_sparse_files() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let kept = tempfile::tempdir().unwrap();
        sparse(&from.path().join("holes"), b"");
        sparse(&from.path().join("ends"), b"end");
        std::fs::write(from.path().join("full"), vec![7; 1 << 20]).unwrap();
        let open = |dir: &tempfile::TempDir| Dir::open(dir.path()).unwrap();
        let (rules, limits) = (ExcludeRules::default(), CaptureLimits::TREE);
        let (source, links) = (open(&from), Links::AsTheyAre);
        let copied = copy_tree(source.as_fd(), open(&to).as_fd(), &rules, links, &limits).unwrap();
        assert_eq!(copied.bytes, (128 << 20) + (1 << 20));
        let layer =
            crate::snapshot::snapshot_layer(source.as_fd(), None, open(&kept).as_fd(), &limits);
        assert_eq!(layer.unwrap().bytes, (128 << 20) + (1 << 20));
        for copy in [to.path(), kept.path()] {
            for name in ["holes", "ends", "full"] {
                let (one, other) = (from.path().join(name), copy.join(name));
                assert!(
                    std::fs::read(&one).unwrap() == std::fs::read(&other).unwrap(),
                    "{name}"
                );
                let blocks = std::fs::metadata(&other).unwrap().blocks();
                let bound = if name == "full" { 4096 } else { 256 };
                assert!(blocks <= bound, "{name} takes {blocks} blocks");
            }
        }
        // Control: blocks with non-zero bytes are allocated.
        assert!(std::fs::metadata(to.path().join("full")).unwrap().blocks() >= 2048);
    }
}
