//! Finds the directories that a change removes, for a change that was read from a bundle.
//!
//! A bundle lists only changed entries. A capture also lists the directories that no longer exist,
//! because a layer must hide them: otherwise a guest would see them as empty directories.

use super::EntryChange;
use crate::dirfd::{Dir, join};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::collections::BTreeSet;

/// Returns the directories of `baseline` that do not exist after the changes `entries`, sorted. A
/// directory is gone if the changes delete everything in it and leave nothing at its path. A
/// directory that exists but lost all its entries is itself one of `entries`.
pub fn find_removed_directories(
    entries: &[EntryChange],
    baseline: BorrowedFd<'_>,
) -> Result<Vec<Vec<u8>>, Errno> {
    let baseline = Dir::reopen(baseline)?;
    let mut deleted: BTreeSet<&[u8]> = BTreeSet::new();
    // Paths that exist after the changes, and the directories above them.
    let mut occupied: BTreeSet<&[u8]> = BTreeSet::new();
    for entry in entries {
        match entry.change.after() {
            None => {
                deleted.insert(&entry.path);
            }
            Some(_) => {
                occupied.insert(&entry.path);
                occupied.extend(above(&entry.path));
            }
        }
    }
    let candidates: BTreeSet<&[u8]> = deleted.iter().flat_map(|path| above(path)).collect();
    let mut gone: BTreeSet<&[u8]> = BTreeSet::new();
    // In reverse order a directory comes after everything below it.
    for &path in candidates.iter().rev() {
        if occupied.contains(path) {
            continue;
        }
        let dir = match baseline.dir(path) {
            Ok(dir) => dir,
            // The baseline has no directory at this path.
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            Err(error) => return Err(error),
        };
        let stays = dir.has_entry(|name| {
            let at = join(path, name);
            !deleted.contains(at.as_slice()) && !gone.contains(at.as_slice())
        })?;
        if !stays {
            gone.insert(path);
        }
    }
    Ok(gone.into_iter().map(<[u8]>::to_vec).collect())
}

/// Returns the paths of the directories above a path, without the root.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bytes = path.iter().enumerate();
    bytes
        .filter(|(_, byte)| **byte == b'/')
        .map(move |(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Change, FileMode, Node};
    use rustix::fd::AsFd;

    fn entry(path: &str, after: Option<Node>) -> EntryChange {
        let file = Node::File {
            mode: FileMode::Regular,
            bytes: Vec::new(),
        };
        EntryChange {
            path: path.as_bytes().to_vec(),
            change: after.map_or(Change::Deleted(file), Change::Added),
        }
    }

    fn removed(entries: &[EntryChange]) -> Vec<String> {
        let tree = tempfile::tempdir().unwrap();
        for path in ["d/a", "d/e/b", "f/a", "f/kept"] {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let dir = Dir::open(tree.path()).unwrap();
        find_removed_directories(entries, dir.as_fd())
            .unwrap()
            .into_iter()
            .map(|path| String::from_utf8(path).unwrap())
            .collect()
    }

    #[test]
    fn directory_counts_as_removed_if_all_its_entries_are_deleted_and_nothing_takes_its_place() {
        let file = || entry("x", None).change.before().cloned();
        assert_eq!(removed(&[]), [""; 0]);
        assert_eq!(removed(&[entry("f/a", None)]), [""; 0]);
        assert_eq!(removed(&[entry("d/e/b", None)]), ["d/e"]);
        let all = [entry("d/a", None), entry("d/e/b", None)];
        assert_eq!(removed(&all), ["d", "d/e"]);
        // The directory does not count as removed: it is empty, has a new file, or is a file now.
        let empty = [entry("d/e", Some(Node::Directory)), entry("d/e/b", None)];
        assert_eq!(removed(&empty), [""; 0]);
        let new = [entry("d/e/b", None), entry("d/e/c", file())];
        assert_eq!(removed(&new), [""; 0]);
        let replaced = [entry("d/e", file()), entry("d/e/b", None)];
        assert_eq!(removed(&replaced), [""; 0]);
    }
}
