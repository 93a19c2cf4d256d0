//! An overlay layer that hides some paths of the tree below it and changes nothing else.
//!
//! Invariant: apart from whiteouts and the optional file `.git`, the layer has only directories
//! that also exist in the tree. They have the mode and times of the tree's directories, because an
//! overlay shows these attributes of the topmost directory.

use super::layer::{LayerError, failed, whiteout};
use super::tree::set_times;
use crate::dirfd::{Dir, write_all};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, Mode};
use rustix::io::Errno;
use std::collections::BTreeSet;

/// Name of the file that tells git where the repository of the containing directory is.
const GIT_FILE: &[u8] = b".git";

/// Writes into the empty directory `to` an overlay layer that hides the paths `hidden` of `tree`.
/// If `git_file` is given, the layer also gets a file `.git` in its root with that text.
pub fn write_mask<'p>(
    tree: BorrowedFd<'_>,
    hidden: impl Iterator<Item = &'p [u8]>,
    git_file: Option<&str>,
    to: BorrowedFd<'_>,
) -> Result<(), LayerError> {
    let tree = Dir::reopen(tree).map_err(|e| failed(b"", e))?;
    let layer = Dir::reopen(to).map_err(|e| failed(b"", e))?;
    let mut directories = BTreeSet::from([&b""[..]]);
    if let Some(text) = git_file {
        let write = || -> Result<(), Errno> {
            let file = layer.create(GIT_FILE)?;
            write_all(&file, text.as_bytes())?;
            fs::fchmod(&file, Mode::from_raw_mode(0o644))
        };
        write().map_err(|e| failed(GIT_FILE, e))?;
    }
    let covered = |path: &&[u8]| git_file.is_none() || *path != GIT_FILE;
    for path in hidden.filter(covered) {
        match tree.dir(above(path)) {
            Ok(_) => {}
            // The parent directory vanished since the scan. A whiteout below it would make the
            // overlay show this directory again.
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            Err(error) => return Err(failed(path, error)),
        }
        whiteout(&layer, path).map_err(|e| failed(path, e))?;
        let mut rest = path;
        while let Some(end) = rest.iter().rposition(|b| *b == b'/') {
            rest = rest.get(..end).unwrap_or_default();
            if !directories.insert(rest) {
                break;
            }
        }
    }
    // Sets mode and times last, because creating an entry changes the times of its directory.
    // Begins with the deepest directories, because a new mode may deny access to what is below.
    for path in directories.into_iter().rev() {
        let look = || -> Result<(), Errno> {
            let stat = tree.dir(named(path))?.own_stat()?;
            let made = layer.dir(named(path))?;
            fs::fchmod(&made, Mode::from_raw_mode(stat.st_mode & 0o777))?;
            set_times(made.as_fd(), &stat)
        };
        look().map_err(|e| failed(path, e))?;
    }
    Ok(())
}

/// Returns the path of the parent directory of an entry.
fn above(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|b| *b == b'/').unwrap_or(0);
    named(path.get(..end).unwrap_or_default())
}

fn named(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::FileType;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn layer_that_hides_paths_keeps_mode_and_times_of_their_parent_directories() {
        let (tree, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = tree.path();
        std::fs::create_dir_all(root.join("a/b/.git")).unwrap();
        std::fs::create_dir(root.join("c")).unwrap();
        std::fs::write(root.join("a/b/f"), "x").unwrap();
        for (path, mode) in [("", 0o711), ("a", 0o755), ("a/b", 0o500)] {
            let mode = PermissionsExt::from_mode(mode);
            std::fs::set_permissions(root.join(path), mode).unwrap();
            let past =
                std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
            let open = std::fs::File::open(root.join(path)).unwrap();
            open.set_modified(past).unwrap();
        }
        // The directory of the last path does not exist, and the parent of the path before it is
        // a file.
        let hidden = [&b"a/b/.git"[..], b".git", b"a/b/f/.git", b"gone/.git"];
        let open = |path: &std::path::Path| Dir::open(path).unwrap();
        write_mask(
            open(root).as_fd(),
            hidden.into_iter(),
            None,
            open(to.path()).as_fd(),
        )
        .unwrap();
        for path in ["", "a", "a/b"] {
            let was = std::fs::metadata(root.join(path)).unwrap();
            let is = std::fs::metadata(to.path().join(path)).unwrap();
            assert_eq!((is.mode(), is.mtime()), (was.mode(), was.mtime()), "{path}");
        }
        for path in [".git", "a/b/.git"] {
            let found = std::fs::symlink_metadata(to.path().join(path)).unwrap();
            let kind = FileType::from_raw_mode(found.mode());
            assert_eq!(
                (kind, found.rdev()),
                (FileType::CharacterDevice, 0),
                "{path}"
            );
        }
        for absent in ["c", "a/b/f", "gone"] {
            assert!(!to.path().join(absent).exists(), "{absent}");
        }
        std::fs::set_permissions(to.path().join("a/b"), PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::set_permissions(root.join("a/b"), PermissionsExt::from_mode(0o700)).unwrap();
    }
}
