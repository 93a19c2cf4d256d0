//! The code of one directory before and after the upload, as two directory trees.
//!
//! The changes are computed by the capture that also compares the copy of a guest with its original
//! ([`capture_difference`]). A file that the upload does not touch is an empty file in both trees:
//! equal on both sides, so it is no change, and its directory is not empty.

use super::ComposeError;
use super::baseline::{Baseline, Entry};
use super::upload::{RootUpload, Spellings, prefixes, shown};
use crate::bundle::TEMPORARY_PREFIX;
use crate::capture::{CaptureLimits, ExcludeRules, FileMode, MountChanges, capture_difference};
use crate::dirfd::{Dir, write_all};
use crate::removal::remove_tree_in;
use rustix::fd::AsFd;
use rustix::fs::{self, Mode};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

/// Entry of a directory after the upload.
#[derive(Debug, Clone, PartialEq, Eq)]
enum After {
    /// Entry of the baseline, which the upload does not change.
    Entry(Entry),
    /// Uploaded content.
    Uploaded(FileMode, Vec<u8>),
}

/// Returns the changes from the baseline to the baseline with the upload.
pub(super) fn changes(
    parent: &Dir,
    baseline: &mut Baseline,
    upload: RootUpload,
) -> Result<MountChanges, ComposeError> {
    let before = baseline.entries.clone();
    let after = result(&before, upload)?;
    let work = WorkDirectory::new(parent)?;
    let (old, new) = (work.tree("before")?, work.tree("after")?);
    let (mut old, mut new) = (Writer::new(&old), Writer::new(&new));
    for (path, entry) in &before {
        let untouched = after.get(path) == Some(&After::Entry(*entry));
        write(&mut old, baseline, path, *entry, untouched)?;
    }
    for (path, node) in &after {
        match node {
            After::Entry(entry) => write(&mut new, baseline, path, *entry, true)?,
            After::Uploaded(mode, bytes) => new.file(path, *mode, bytes)?,
        }
    }
    let rules = ExcludeRules::default();
    let limits = CaptureLimits::default();
    let (old, new) = (old.root.as_fd(), new.root.as_fd());
    Ok(capture_difference(old, new, &rules, &limits)?)
}

fn write(
    to: &mut Writer<'_>,
    baseline: &mut Baseline,
    path: &[u8],
    entry: Entry,
    untouched: bool,
) -> Result<(), ComposeError> {
    match entry {
        Entry::Directory => Ok(to.directory(path)?),
        Entry::Other => Ok(to.file(path, FileMode::Regular, b"")?),
        Entry::File { mode, .. } if untouched => Ok(to.file(path, mode, b"")?),
        Entry::File {
            mode,
            source,
            index,
        } => {
            let bytes = baseline.read(path, source, index)?;
            Ok(to.file(path, mode, &bytes)?)
        }
    }
}

/// Returns the entries after the upload. Fails if a path of the upload is taken by an entry of
/// another type, exists in another spelling, or cannot be deleted.
fn result(
    before: &BTreeMap<Vec<u8>, Entry>,
    upload: RootUpload,
) -> Result<BTreeMap<Vec<u8>, After>, ComposeError> {
    let mut spellings = Spellings::default();
    before.keys().for_each(|path| spellings.add(path));
    let mut after: BTreeMap<Vec<u8>, After> = before
        .iter()
        .map(|(path, entry)| (path.clone(), After::Entry(*entry)))
        .collect();
    for path in &upload.deleted {
        match after.get(path.as_bytes()) {
            Some(After::Entry(Entry::File { .. })) => after.remove(path.as_bytes()),
            _ => return Err(ComposeError::NothingToDelete { path: shown(path) }),
        };
    }
    for (path, bytes) in upload.files {
        spellings.add_uploaded(&path)?;
        let occupied = |other: &[u8]| ComposeError::Occupied {
            path: shown(&path),
            other: shown(&String::from_utf8_lossy(other)),
        };
        let name = path.as_bytes();
        let parents = prefixes(name).filter(|part| part.len() < name.len());
        for above in parents {
            match after.get(above) {
                None => {}
                // Only empty directories are entries, and this one now contains a file.
                Some(After::Entry(Entry::Directory)) => drop(after.remove(above)),
                Some(_) => return Err(occupied(above)),
            }
        }
        let mode = match after.get(name) {
            None => FileMode::Regular,
            Some(After::Entry(Entry::File { mode, .. })) => *mode,
            Some(_) => return Err(occupied(name)),
        };
        if let Some(below) = first_below(&after, name) {
            return Err(occupied(&below));
        }
        after.insert(name.to_vec(), After::Uploaded(mode, bytes));
    }
    Ok(after)
}

/// Returns the first path below a directory.
pub(super) fn first_below<V>(tree: &BTreeMap<Vec<u8>, V>, path: &[u8]) -> Option<Vec<u8>> {
    let start = [path, b"/"].concat();
    let bounds = (Bound::Included(start.clone()), Bound::Unbounded);
    let (first, _) = tree.range(bounds).next()?;
    first.starts_with(&start).then(|| first.clone())
}

/// Removes the directories that have entries: these follow from the paths of their entries.
pub(super) fn keep_empty_directories(entries: &mut BTreeMap<Vec<u8>, Entry>) {
    let directories = entries.iter().filter(|(_, e)| **e == Entry::Directory);
    let filled: Vec<Vec<u8>> = directories
        .filter(|(path, _)| first_below(entries, path).is_some())
        .map(|(path, _)| path.clone())
        .collect();
    for path in filled {
        entries.remove(&path);
    }
}

/// Temporary directory in the artifacts directory of a site. A crash leaves it there, and `gc`
/// removes it like an unfinished bundle.
struct WorkDirectory<'p> {
    parent: &'p Dir,
    name: String,
    root: Dir,
}

impl<'p> WorkDirectory<'p> {
    fn new(parent: &'p Dir) -> Result<Self, Errno> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|_| Errno::AGAIN)?;
        let random = u128::from_le_bytes(random);
        let name = format!("{TEMPORARY_PREFIX}upload-{random:032x}");
        fs::mkdirat(parent, name.as_str(), Mode::from_raw_mode(0o700))?;
        let root = parent.dir(name.as_bytes())?;
        Ok(Self { parent, name, root })
    }

    fn tree(&self, name: &str) -> Result<Dir, Errno> {
        self.root.private_dir(name)
    }
}

impl Drop for WorkDirectory<'_> {
    fn drop(&mut self) {
        // A failure is ignored: `gc` tries again.
        let _ = remove_tree_in(self.parent.as_fd(), self.name.as_bytes());
    }
}

/// Writes the files of one tree.
struct Writer<'t> {
    root: &'t Dir,
    made: HashSet<Vec<u8>>,
}

impl<'t> Writer<'t> {
    fn new(root: &'t Dir) -> Self {
        Self {
            root,
            made: HashSet::new(),
        }
    }

    fn directory(&mut self, path: &[u8]) -> Result<(), Errno> {
        for part in prefixes(path) {
            if self.made.contains(part) {
                continue;
            }
            let (above, name) = self.parent(part)?;
            fs::mkdirat(above.as_ref().unwrap_or(self.root), name, Mode::RWXU)?;
            self.made.insert(part.to_vec());
        }
        Ok(())
    }

    fn file(&mut self, path: &[u8], mode: FileMode, bytes: &[u8]) -> Result<(), Errno> {
        if let Some(at) = path.iter().rposition(|byte| *byte == b'/') {
            self.directory(path.get(..at).unwrap_or_default())?;
        }
        let (above, name) = self.parent(path)?;
        let file = above.as_ref().unwrap_or(self.root).create(name)?;
        write_all(&file, bytes)?;
        match mode {
            FileMode::Regular => Ok(()),
            FileMode::Executable => fs::fchmod(&file, Mode::RWXU),
        }
    }

    /// Opens the directory above a path, `None` for the root, and returns the last component.
    fn parent<'n>(&self, path: &'n [u8]) -> Result<(Option<Dir>, &'n [u8]), Errno> {
        match path.iter().rposition(|byte| *byte == b'/') {
            None => Ok((None, path)),
            Some(at) => {
                let (above, name) = path.split_at(at);
                Ok((
                    Some(self.root.dir(above)?),
                    name.get(1..).unwrap_or_default(),
                ))
            }
        }
    }
}
