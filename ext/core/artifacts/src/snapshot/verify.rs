//! Compares the files of a snapshot layer with its list of entries.

use super::row::{SnapshotEntry, SnapshotNode};
use super::{LayerSnapshotError, differs, read_failed};
use crate::digest::sha256_of_file;
use crate::dirfd::{Dir, OverlayAttribute, join, size_of};
use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, FileType, Stat};
use std::collections::HashMap;

/// Reads every entry of a layer again, from disk instead of the page cache where possible, and
/// compares it with the list. Fails if an entry is missing, additional or different.
pub fn verify_layer(
    layer: BorrowedFd<'_>,
    entries: &[SnapshotEntry],
) -> Result<(), LayerSnapshotError> {
    let mut expected = HashMap::with_capacity(entries.len());
    for entry in entries {
        let path = entry
            .path()
            .ok_or_else(|| differs(b"", "the list contains an invalid path"))?;
        expected.insert(path, &entry.node);
    }
    if expected.len() != entries.len() {
        return Err(differs(b"", "the list contains a path twice"));
    }
    let root = Dir::reopen(layer).map_err(read_failed(b""))?;
    let stat = root.own_stat().map_err(read_failed(b""))?;
    directory(&root, &stat, b"", &mut expected)?;
    match expected.keys().min() {
        Some(path) => Err(differs(path, "it is missing")),
        None => Ok(()),
    }
}

type Expected<'e> = HashMap<Vec<u8>, &'e SnapshotNode>;

fn directory(
    dir: &Dir,
    stat: &Stat,
    path: &[u8],
    expected: &mut Expected<'_>,
) -> Result<(), LayerSnapshotError> {
    let found = SnapshotNode::Directory {
        mode: stat.st_mode & 0o7777,
        opaque: match dir.overlay_attribute("opaque") {
            OverlayAttribute::Absent => false,
            OverlayAttribute::Yes => true,
            OverlayAttribute::Other => {
                return Err(differs(
                    path,
                    "its overlay attribute opaque has an invalid value",
                ));
            }
        },
    };
    compare(path, &found, expected)?;
    for name in dir.names().map_err(read_failed(path))? {
        let at = join(path, &name);
        let read = read_failed(&at);
        let stat = dir.stat(&name).map_err(&read)?;
        let stat = stat.ok_or_else(|| differs(&at, "it is missing"))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let child = dir.dir(&name).map_err(&read)?;
                directory(&child, &stat, &at, expected)?;
            }
            FileType::RegularFile => {
                let (file, stat) = dir.open_file(&name).map_err(&read)?;
                // If fadvise fails, the comparison reads the page cache, i.e. the data just
                // written.
                let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
                let found = SnapshotNode::File {
                    mode: stat.st_mode & 0o7777,
                    bytes: size_of(&stat),
                    sha256: sha256_of_file(&file).map_err(&read)?,
                };
                compare(&at, &found, expected)?;
            }
            FileType::Symlink => {
                let text = dir.link_text(&name).map_err(&read)?;
                compare(&at, &SnapshotNode::link(&text), expected)?;
            }
            FileType::CharacterDevice if stat.st_rdev == 0 => {
                compare(&at, &SnapshotNode::Gone {}, expected)?;
            }
            _ => return Err(differs(&at, "it is a special file")),
        }
    }
    Ok(())
}

fn compare(
    path: &[u8],
    found: &SnapshotNode,
    expected: &mut Expected<'_>,
) -> Result<(), LayerSnapshotError> {
    match expected.remove(path) {
        Some(kept) if kept == found => Ok(()),
        Some(_) => Err(differs(path, "kind, mode, size or content differ")),
        None => Err(differs(path, "the list does not have it")),
    }
}
