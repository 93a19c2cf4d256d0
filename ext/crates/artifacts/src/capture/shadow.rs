//! A copy of a directory on which a tool of the host works, and the merge of its changes.
//!
//! The tool never sees the directory itself. The changes are read by the rules of a capture: only
//! regular files are read, links are never followed, and links that lead out are left out. A merge
//! first compares each path with the state from which the tool started. If one differs, it changes
//! nothing.

use super::tree::{CopyReport, Links, TreeError, copy_tree};
use super::{
    CaptureError, CaptureLimits, Change, ExcludeRules, FileMode, MountChanges, Node,
    capture_difference,
};
use crate::dirfd::{Dir, IfExists, write_all};
use crate::patch::shown_name;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, AtFlags, FileType, Gid, Mode, Stat, Uid};
use rustix::io::Errno;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Name of a new file until it replaces the old one.
const TEMPORARY: &[u8] = b".wp-codebox-merge";

/// Reason why changes were not merged, or not all of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// The directory changed while the tool worked. Nothing was merged.
    #[error(
        "{count} paths changed while the tool worked, the first is {path:?}; nothing was merged"
    )]
    Conflict {
        /// First path that differs.
        path: String,
        /// Number of paths that differ.
        count: usize,
    },
    /// A path could not be written. Paths before it, in the order of their names, are merged.
    #[error("the change of {path:?} could not be merged: {source}")]
    Write {
        /// Path, relative to the directory.
        path: String,
        /// Error number of the system call that failed.
        #[source]
        source: rustix::io::Errno,
    },
}

impl MergeError {
    /// Returns the machine-readable code of this error, which later versions keep.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Conflict { .. } => ErrorCode::ApplyConflict,
            Self::Write { .. } => ErrorCode::ApplyFailed,
        }
    }
    /// Returns code and message of this error as the JSON body that callers receive.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}

/// A directory and the copy of it that a tool may change.
#[derive(Debug)]
pub struct Shadow {
    original: Dir,
    copy: Dir,
    rules: ExcludeRules,
}

impl Shadow {
    /// Copies the contents of `original` into the empty directory `copy`, within the limits for the
    /// directory of a mount. Links are copied as they are, FIFOs, sockets and devices are refused.
    pub fn make(
        original: BorrowedFd<'_>,
        copy: BorrowedFd<'_>,
        rules: ExcludeRules,
    ) -> Result<(Self, CopyReport), TreeError> {
        let limits = CaptureLimits::TREE;
        let report = copy_tree(original, copy, &rules, Links::AsTheyAre, &limits)?;
        let reopen = |fd| {
            Dir::reopen(fd).map_err(|source| TreeError::Write {
                path: String::new(),
                source,
            })
        };
        let shadow = Self {
            original: reopen(original)?,
            copy: reopen(copy)?,
            rules,
        };
        Ok((shadow, report))
    }

    /// Returns what the tool changed in the copy. The tool must have ended.
    pub fn changes(&self) -> Result<MountChanges, CaptureError> {
        let limits = CaptureLimits::default();
        capture_difference(
            self.original.as_fd(),
            self.copy.as_fd(),
            &self.rules,
            &limits,
        )
    }

    /// Writes changes of [`Self::changes`] to the original directory. Each file is replaced by one
    /// rename; it keeps the owner, and the permissions except for the execute bits.
    pub fn merge(&self, changes: &MountChanges) -> Result<(), MergeError> {
        let mut conflicts = Vec::new();
        for entry in &changes.entries {
            let found = self.node_is(&entry.path, entry.change.before());
            if !found.map_err(|source| failed(&entry.path, source))? {
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
            let gone = match (entry.change.before(), entry.change.after()) {
                (Some(_), None) => true,
                (Some(before), Some(after)) => is_directory(before) != is_directory(after),
                (None, _) => false,
            };
            if gone {
                self.remove(&entry.path)
                    .map_err(|source| failed(&entry.path, source))?;
            }
        }
        for path in changes.removed_directories.iter().rev() {
            match self.remove(path) {
                // A file that another program made meanwhile is in it.
                Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(source) => return Err(failed(path, source)),
            }
        }
        for entry in &changes.entries {
            if let Some(node) = entry.change.after() {
                self.place(&entry.path, node, matches!(entry.change, Change::Added(_)))
                    .map_err(|source| failed(&entry.path, source))?;
            }
        }
        Ok(())
    }

    /// Returns whether the original directory has `expected` at the path.
    fn node_is(&self, path: &[u8], expected: Option<&Node>) -> Result<bool, Errno> {
        let stat = match self.original.stat_path(path) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(expected.is_none()),
            Err(error) => return Err(error),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        Ok(match expected {
            // A directory with entries is not an entry of its own in a capture.
            None => kind == FileType::Directory,
            Some(Node::Directory) => kind == FileType::Directory,
            Some(Node::Symlink { target }) => {
                let (dir, name) = self.parent(path)?;
                kind == FileType::Symlink && dir.link_text(name)? == *target
            }
            Some(Node::File { mode, bytes }) => {
                kind == FileType::RegularFile
                    && FileMode::from_raw(stat.st_mode) == *mode
                    && self.has_bytes(path, bytes)?
            }
        })
    }

    fn has_bytes(&self, path: &[u8], expected: &[u8]) -> Result<bool, Errno> {
        let (fd, _) = self.original.open_file(path)?;
        let mut same = 0;
        let mut equal = true;
        crate::dirfd::read_pieces(&fd, |piece| {
            let end = same + piece.len();
            equal = equal && expected.get(same..end) == Some(piece);
            same = end;
            Ok(())
        })?;
        Ok(equal && same == expected.len())
    }

    /// Opens the directory of a path, without following a link, and returns the last component.
    fn parent<'p>(&self, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Errno> {
        match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => Ok((self.original.dir(&path[..at])?, &path[at + 1..])),
            None => Ok((self.original.dir(b".")?, path)),
        }
    }

    fn remove(&self, path: &[u8]) -> Result<(), Errno> {
        let (dir, name) = match self.parent(path) {
            Err(Errno::NOENT) => return Ok(()),
            other => other?,
        };
        let Some(stat) = dir.stat(name)? else {
            return Ok(());
        };
        let flags = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        fs::unlinkat(&dir, name, flags)
    }

    fn place(&self, path: &[u8], node: &Node, is_new: bool) -> Result<(), Errno> {
        let mut dir = self.original.dir(b".")?;
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
        let around = fs::fstat(&dir)?;
        match node {
            Node::Directory => {
                let made = dir.open_dir(name, IfExists::Open)?;
                if is_new {
                    own(made.as_fd(), &around);
                }
                Ok(())
            }
            Node::Symlink { target } => {
                // A leftover of a merge that was killed.
                let _ = fs::unlinkat(&dir, TEMPORARY, AtFlags::empty());
                fs::symlinkat(target.as_slice(), &dir, TEMPORARY)?;
                fs::renameat(&dir, TEMPORARY, &dir, name)
            }
            Node::File { mode, bytes } => {
                let _ = fs::unlinkat(&dir, TEMPORARY, AtFlags::empty());
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
                fs::renameat(&dir, TEMPORARY, &dir, name)
            }
        }
    }
}

/// Gives a new entry the owner of the one it replaces, or of its directory. Only root can; for
/// every other user the entry already belongs to the user who merges.
fn own(fd: BorrowedFd<'_>, like: &Stat) {
    let owner = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
    let _ = fs::fchown(fd, Some(owner.0), Some(owner.1));
}

fn is_directory(node: &Node) -> bool {
    *node == Node::Directory
}

fn failed(path: &[u8], source: Errno) -> MergeError {
    MergeError::Write {
        path: shown_name(path),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self as files, File};
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct Place {
        place: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            for name in ["site", "copy", "outside"] {
                files::create_dir(place.path().join(name)).unwrap();
            }
            let this = Self { place };
            files::create_dir_all(this.at("site/sub/deep")).unwrap();
            files::write(this.at("site/a.txt"), "a").unwrap();
            files::write(this.at("site/sub/b.txt"), "b").unwrap();
            files::write(this.at("site/sub/deep/c.txt"), "c").unwrap();
            files::write(this.at("outside/secret"), "secret").unwrap();
            this
        }

        fn at(&self, name: &str) -> std::path::PathBuf {
            self.place.path().join(name)
        }

        fn read(&self, name: &str) -> String {
            files::read_to_string(self.at(name)).unwrap()
        }

        fn shadow(&self) -> Shadow {
            let open = |name: &str| File::open(self.at(name)).unwrap();
            let (site, copy) = (open("site"), open("copy"));
            Shadow::make(site.as_fd(), copy.as_fd(), ExcludeRules::default())
                .unwrap()
                .0
        }
    }

    #[test]
    fn changes_of_the_copy_reach_the_directory_only_by_a_merge() {
        let place = Place::new();
        files::set_permissions(place.at("site/a.txt"), files::Permissions::from_mode(0o640))
            .unwrap();
        let shadow = place.shadow();
        files::write(place.at("copy/a.txt"), "changed").unwrap();
        files::create_dir_all(place.at("copy/new/dir")).unwrap();
        files::write(place.at("copy/new/dir/d.txt"), "d").unwrap();
        files::remove_dir_all(place.at("copy/sub/deep")).unwrap();
        files::remove_file(place.at("copy/sub/b.txt")).unwrap();
        files::create_dir(place.at("copy/sub/b.txt")).unwrap();
        files::write(place.at("copy/sub/b.txt/inner"), "now a directory").unwrap();
        let changes = shadow.changes().unwrap();
        assert_eq!(place.read("site/a.txt"), "a");
        assert!(!place.at("site/new").exists());
        shadow.merge(&changes).unwrap();
        assert_eq!(place.read("site/a.txt"), "changed");
        assert_eq!(place.read("site/new/dir/d.txt"), "d");
        assert_eq!(place.read("site/sub/b.txt/inner"), "now a directory");
        assert!(!place.at("site/sub/deep").exists());
        let mode = files::metadata(place.at("site/a.txt"))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o640);
        assert_eq!(shadow.changes().unwrap().entries, []);
    }

    #[test]
    fn links_left_in_the_copy_are_not_followed_and_those_that_lead_out_are_left_out() {
        let place = Place::new();
        let shadow = place.shadow();
        symlink(place.at("outside/secret"), place.at("copy/absolute")).unwrap();
        symlink("../outside", place.at("copy/relative")).unwrap();
        symlink("a.txt", place.at("copy/inside")).unwrap();
        let changes = shadow.changes().unwrap();
        assert_eq!(changes.omitted.len(), 2, "{changes:?}");
        shadow.merge(&changes).unwrap();
        assert!(files::symlink_metadata(place.at("site/absolute")).is_err());
        assert!(files::symlink_metadata(place.at("site/relative")).is_err());
        // Positive control: a link that stays inside is a change like any other.
        assert_eq!(place.read("site/inside"), "a");
    }

    #[test]
    fn link_in_the_directory_is_not_followed_by_a_merge() {
        let place = Place::new();
        let shadow = place.shadow();
        files::create_dir(place.at("copy/late")).unwrap();
        files::write(place.at("copy/late/made"), "x").unwrap();
        let changes = shadow.changes().unwrap();
        // Another program puts a link where the merge creates a directory.
        symlink(place.at("outside"), place.at("site/late")).unwrap();
        assert!(shadow.merge(&changes).is_err());
        assert!(!place.at("outside/made").exists());
        files::remove_file(place.at("site/late")).unwrap();
        shadow.merge(&changes).unwrap();
        assert_eq!(place.read("site/late/made"), "x");
    }

    #[test]
    fn merge_into_a_directory_that_changed_meanwhile_is_a_conflict_and_changes_nothing() {
        let place = Place::new();
        let shadow = place.shadow();
        for name in ["a.txt", "sub/b.txt"] {
            files::write(place.at("copy").join(name), "of the tool").unwrap();
        }
        let changes = shadow.changes().unwrap();
        files::write(place.at("site/sub/b.txt"), "of another program").unwrap();
        let refused = shadow.merge(&changes).unwrap_err();
        assert!(matches!(&refused, MergeError::Conflict { path, count: 1 } if path == "sub/b.txt"));
        assert_eq!(place.read("site/a.txt"), "a");
        files::write(place.at("site/sub/b.txt"), "b").unwrap();
        shadow.merge(&changes).unwrap();
        assert_eq!(place.read("site/sub/b.txt"), "of the tool");
    }

    #[test]
    fn fifo_in_the_directory_is_refused_and_one_in_the_copy_is_left_out() {
        let place = Place::new();
        let shadow = place.shadow();
        let mode = Mode::from_raw_mode(0o600);
        fs::mknodat(fs::CWD, place.at("copy/fifo"), FileType::Fifo, mode, 0).unwrap();
        let changes = shadow.changes().unwrap();
        assert_eq!((changes.entries.len(), changes.omitted.len()), (0, 1));
        let other = Place::new();
        fs::mknodat(fs::CWD, other.at("site/fifo"), FileType::Fifo, mode, 0).unwrap();
        let open = |name: &str| File::open(other.at(name)).unwrap();
        let (site, copy) = (open("site"), open("copy"));
        let refused = Shadow::make(site.as_fd(), copy.as_fd(), ExcludeRules::default());
        assert!(matches!(refused, Err(TreeError::Special { .. })));
    }
}
