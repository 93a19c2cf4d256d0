//! Compares the directories to which changes would be applied with their state before the run.

use super::error::{Conflict, PreflightError};
use super::main_file;
use crate::changed_files::raw_relative;
use crate::digest::{sha256, sha256_of_file};
use crate::dirfd::Dir;
use crate::risks::PathRisk;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use wp_codebox_contracts::{ChangeKind, ChangedFile, EntryType, GuestPath, Sha256Hex};

/// Result of comparing target directories that do not differ.
#[derive(Debug)]
pub(super) struct Compared {
    /// Guest paths of the compared mounts.
    pub mounts: Vec<GuestPath>,
    /// Risks that depend on the files of the target directories.
    pub risks: Vec<PathRisk>,
}

/// Compares the host's entry with the state before the run, for each approved entry whose mount is
/// in `targets`.
pub(super) fn check(
    approved: &[&ChangedFile],
    changed: &[ChangedFile],
    targets: &BTreeMap<String, PathBuf>,
) -> Result<Compared, PreflightError> {
    let freed = FreedPaths::of(changed);
    let mut open: BTreeMap<&GuestPath, Dir> = BTreeMap::new();
    let mut conflicts = Vec::new();
    let mut risks = Vec::new();
    for entry in approved {
        let Some(path) = targets.get(entry.mount_target.as_str()) else {
            continue;
        };
        if !open.contains_key(&entry.mount_target) {
            let dir = Dir::open_following(path).map_err(|source| PreflightError::Target {
                mount: entry.mount_target.to_string(),
                source,
            })?;
            open.insert(&entry.mount_target, dir);
        }
        let Some(dir) = open.get(&entry.mount_target) else {
            continue;
        };
        if let Some(reason) = difference(dir, entry, &freed) {
            conflicts.push(Conflict {
                path: entry.path.clone(),
                reason,
            });
        }
        risks.extend(main_file::deletion(dir, entry));
    }
    match conflicts.first() {
        None => Ok(Compared {
            mounts: open.keys().map(|target| (*target).clone()).collect(),
            risks,
        }),
        Some(first) => Err(PreflightError::Conflict {
            count: conflicts.len(),
            first: first.path.clone(),
            conflicts,
        }),
    }
}

/// What exists at a path in the target directory now.
pub(super) enum Current {
    Absent,
    File,
    Symlink,
    Directory,
    Unknown,
}

/// Returns what exists at a path below the directory. A link in the path gives `ELOOP`.
pub(super) fn current(dir: &Dir, path: &[u8]) -> Result<Current, Errno> {
    match dir.stat_path(path) {
        Ok(stat) => Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Current::File,
            FileType::Symlink => Current::Symlink,
            FileType::Directory => Current::Directory,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Current::Unknown,
        }),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(Current::Absent),
        Err(error) => Err(error),
    }
}

/// Returns the reason of a conflict for a path that could not be read.
pub(super) const fn obstacle(error: Errno) -> &'static str {
    match error {
        Errno::LOOP | Errno::XDEV => "reached through a link",
        _ => "unreadable",
    }
}

/// Reads the target of the link at a path below the directory.
pub(super) fn link_text(dir: &Dir, path: &[u8]) -> Result<Vec<u8>, Errno> {
    let at = path.iter().rposition(|b| *b == b'/');
    let (parent, name) = at.map_or((&b"."[..], path), |at| (&path[..at], &path[at + 1..]));
    dir.dir(parent)?.link_text(name)
}

/// Returns how the host's entry at the path of `entry` differs from the state before the run;
/// `None` if it does not differ.
fn difference(dir: &Dir, entry: &ChangedFile, freed: &FreedPaths) -> Option<&'static str> {
    let path = raw_relative(entry);
    let current = match current(dir, &path) {
        Ok(current) => current,
        // A parent of this path is a link that the same change replaces, so nothing can exist at
        // this path. The link has an entry of its own, which is compared separately.
        Err(Errno::LOOP) if freed.link_above(entry.mount_index, &path) => Current::Absent,
        Err(error) => return Some(obstacle(error)),
    };
    // An entry without a mode is a regular file: other implementations write no modes and list only
    // regular files.
    let before = match (entry.status, entry.before_mode.as_deref()) {
        (ChangeKind::Added, _) => None,
        (_, Some("120000")) => Some(EntryType::Symlink),
        (_, Some("040000")) => Some(EntryType::Directory),
        (_, _) => Some(EntryType::File),
    };
    let same = |hash: Option<Sha256Hex>| {
        let same = hash.is_some() && hash == entry.before_sha256;
        (!same).then_some("other contents")
    };
    match (before, current) {
        (None, Current::Absent) => None,
        // A directory is no conflict if the change adds a directory here, or if the change replaces
        // a directory from before the run with this entry.
        (None, Current::Directory)
            if entry.entry_type == EntryType::Directory
                || freed.directory(entry.mount_index, &path) =>
        {
            None
        }
        // The change adds this entry, but the target directory has an entry at this path.
        (None, _) => Some("exists already"),
        (Some(_), Current::Absent) => Some("missing"),
        (Some(EntryType::File), Current::File) => {
            let hash = dir.open_file(&path).and_then(|(fd, _)| sha256_of_file(&fd));
            same(hash.ok())
        }
        (Some(EntryType::Symlink), Current::Symlink) => {
            same(link_text(dir, &path).ok().map(|text| sha256(&text)))
        }
        (Some(EntryType::Directory), Current::Directory) => {
            let names = dir.dir(&path).and_then(|inner| inner.names());
            (!names.is_ok_and(|n| n.is_empty())).then_some("not empty")
        }
        (Some(_), _) => Some("another type"),
    }
}

/// Paths at which the change removes what was there before the run, each with the index of its mount.
/// Sets, because a scan of all changes for each entry would take quadratic time.
struct FreedPaths {
    links: HashSet<(usize, Vec<u8>)>,
    /// Directories with a deleted entry at any depth.
    directories: HashSet<(usize, Vec<u8>)>,
}

impl FreedPaths {
    fn of(changed: &[ChangedFile]) -> Self {
        let (mut links, mut directories) = (HashSet::new(), HashSet::new());
        for entry in changed {
            let (before, after) = (entry.before_mode.as_deref(), entry.after_mode.as_deref());
            if before == Some("120000") && after != Some("120000") {
                links.insert((entry.mount_index, raw_relative(entry)));
            }
            if entry.status == ChangeKind::Deleted {
                let path = raw_relative(entry);
                for parent in parents(&path) {
                    // The parents of a known directory are known, too.
                    if !directories.insert((entry.mount_index, parent.to_vec())) {
                        break;
                    }
                }
            }
        }
        Self { links, directories }
    }

    /// Returns whether the change removes a link that is a parent of this path.
    fn link_above(&self, mount: usize, path: &[u8]) -> bool {
        parents(path).any(|parent| self.links.contains(&(mount, parent.to_vec())))
    }

    /// Returns whether the change deletes an entry below this path, which means that the path was a
    /// directory before the run.
    fn directory(&self, mount: usize, path: &[u8]) -> bool {
        self.directories.contains(&(mount, path.to_vec()))
    }
}

/// Returns the directories that contain a path, the nearest first.
fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().rev().filter(|(_, b)| **b == b'/');
    slashes.map(|(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changed_files::conversions;
    use serde_json::json;

    const MOUNT: &str = "/wordpress/wp-content/plugins/p0";

    fn entry(path: &str, status: &str, modes: [Option<&str>; 2]) -> ChangedFile {
        let hash = |mode: Option<&str>| mode.map(|_| "0".repeat(64));
        serde_json::from_value(json!({
            "path": format!("{MOUNT}/{path}"), "relativePath": path, "status": status, "type": "file", "binary": false,
            "beforeSha256": hash(modes[0]), "beforeMode": modes[0], "afterSha256": hash(modes[1]), "afterMode": modes[1],
            "mountIndex": 0, "mountTarget": MOUNT, "patchName": path, "patchPath": "files/diffs/mount-0.patch",
        }))
        .unwrap()
    }

    #[test]
    fn check_converts_each_path_a_bounded_number_of_times() {
        let temp = tempfile::tempdir().unwrap();
        let mut changed = Vec::new();
        for number in 0..300 {
            let name = format!("d{number}");
            std::fs::create_dir(temp.path().join(&name)).unwrap();
            changed.push(entry(&name, "added", [None, Some("100644")]));
            changed.push(entry(
                &format!("{name}/in/x"),
                "deleted",
                [Some("100644"), None],
            ));
        }
        let added: Vec<_> = changed.iter().step_by(2).collect();
        let targets = BTreeMap::from([(MOUNT.to_owned(), temp.path().to_owned())]);
        let (conversions, result) = conversions::during(|| check(&added, &changed, &targets));
        assert_eq!(result.unwrap().mounts.len(), 1);
        assert!(conversions <= 2 * changed.len(), "{conversions}");
        // Without the deleted entry, the directory is not one from before the run that the change replaces.
        let only = &changed[..1];
        let refused = check(&only.iter().collect::<Vec<_>>(), only, &targets);
        assert!(
            matches!(refused, Err(PreflightError::Conflict { count: 1, .. })),
            "{refused:?}"
        );
    }
}
