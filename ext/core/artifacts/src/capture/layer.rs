//! Writes captured changes as an overlay *lower* layer for a new guest, and applies such a layer
//! to a plain copy where no overlay can be mounted.
//!
//! Invariant: the layer mounted over the baseline shows the state that the guest left, except for
//! the entries the capture omitted. Each deletion is a separate whiteout, so no directory needs
//! the opaque attribute.

use super::{FileMode, MountChanges, Node};
use crate::dirfd::{Dir, IfExists, SparseWriter, join, read_pieces, write_all};
use crate::patch::shown_name;
use crate::removal::{RemovalError, remove_tree_in};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, FileType, Mode};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ops::Bound;
use wp_codebox_contracts::CodedError;

/// Error when a layer could not be written.
#[derive(Debug, thiserror::Error, CodedError)]
#[error(
    "the entry {path:?} could not be written to the overlay layer: {source}; check free space of the state directory"
)]
#[code(RunFailed)]
pub struct LayerError {
    /// Path of the entry that could not be written, relative to the layer.
    pub path: String,
    /// Error number of the system call that failed.
    #[source]
    pub source: rustix::io::Errno,
}

/// Writes captured changes as an overlay lower layer into an empty directory.
pub fn write_layer(changes: &MountChanges, to: BorrowedFd<'_>) -> Result<(), LayerError> {
    let root = Dir::reopen(to).map_err(|e| failed(b"", e))?;
    let mut alive: BTreeSet<&[u8]> = BTreeSet::new();
    // Paths of files, links and removed directories; nothing below them needs a whiteout.
    let mut covers: BTreeSet<&[u8]> = BTreeSet::new();
    for entry in &changes.entries {
        if let Some(node) = entry.change.after() {
            alive.insert(&entry.path);
            if *node != Node::Directory {
                covers.insert(&entry.path);
            }
        }
    }
    for path in &changes.removed_directories {
        // The changes are sorted: a removed directory comes before the entries below it.
        if !covered(&covers, path) && covers.insert(path) {
            whiteout(&root, path).map_err(|e| failed(path, e))?;
        }
    }
    for entry in &changes.entries {
        let path = entry.path.as_slice();
        let step = match entry.change.after() {
            Some(node) => place(&root, path, node),
            None if covers.contains(path) || covered(&covers, path) => Ok(()),
            // A directory with entries replaced the deleted file. Writing those entries creates the
            // directory, which hides the deleted file, so no whiteout is needed.
            None if has_below(&alive, path) => Ok(()),
            None => whiteout(&root, path),
        };
        step.map_err(|e| failed(path, e))?;
    }
    Ok(())
}

/// Applies a layer that [`write_layer`] made to a plain tree. The tree then shows what an overlay
/// of the layer over the tree would show. No other process may use either directory.
pub fn apply_layer(layer: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), LayerError> {
    let layer = Dir::reopen(layer).map_err(|e| failed(b"", e))?;
    let to = Dir::reopen(to).map_err(|e| failed(b"", e))?;
    lay_directory(&layer, &to, b"")
}

fn lay_directory(layer: &Dir, to: &Dir, path: &[u8]) -> Result<(), LayerError> {
    for name in layer.names().map_err(|e| failed(path, e))? {
        let at = join(path, &name);
        let step = || -> Result<Option<(Dir, Dir)>, Errno> {
            let stat = layer.stat(&name)?.ok_or(Errno::NOENT)?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            let stays = kind == FileType::Directory && is_directory(to, &name)?;
            if !stays {
                remove_tree_in(to.as_fd(), &name).map_err(|e| match e {
                    RemovalError::Name { .. } => Errno::INVAL,
                    RemovalError::Remains { source, .. } => source,
                })?;
            }
            match kind {
                FileType::Directory => {
                    let below = to.open_dir(&name, IfExists::Open)?;
                    return Ok(Some((layer.dir(&name)?, below)));
                }
                FileType::Symlink => fs::symlinkat(layer.link_text(&name)?.as_slice(), to, &name)?,
                FileType::RegularFile => {
                    let (from, stat) = layer.open_file(&name)?;
                    let file = to.create(&name)?;
                    let mut sparse = SparseWriter::new(&file);
                    read_pieces(&from, |piece| sparse.write(piece))?;
                    sparse.finish()?;
                    fs::fchmod(&file, Mode::from_raw_mode(stat.st_mode & 0o777))?;
                }
                // A whiteout: the name was already removed from the tree.
                _ => {}
            }
            Ok(None)
        };
        if let Some((layer, to)) = step().map_err(|e| failed(&at, e))? {
            lay_directory(&layer, &to, &at)?;
        }
    }
    Ok(())
}

fn is_directory(dir: &Dir, name: &[u8]) -> Result<bool, Errno> {
    let stat = dir.stat(name)?;
    Ok(stat.is_some_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory))
}

pub(super) fn has_below(paths: &BTreeSet<&[u8]>, above: &[u8]) -> bool {
    let start = [above, b"/"].concat();
    paths
        .range::<[u8], _>((Bound::Included(start.as_slice()), Bound::Unbounded))
        .next()
        .is_some_and(|path| path.starts_with(&start))
}

fn covered(covers: &BTreeSet<&[u8]>, path: &[u8]) -> bool {
    path.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .any(|(at, _)| covers.contains(&path[..at]))
}

pub(super) fn failed(path: &[u8], source: Errno) -> LayerError {
    LayerError {
        path: shown_name(path),
        source,
    }
}

/// Opens the parent directory of `path`, after creating missing directories on the way. Returns it
/// with the last component of the path.
fn parent<'p>(root: &Dir, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Errno> {
    let mut dir = root.dir(b".")?;
    let mut parts = path.split(|b| *b == b'/').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return Ok((dir, part));
        }
        dir = dir.open_dir(part, IfExists::Open)?;
    }
    Err(Errno::INVAL)
}

pub(super) fn whiteout(root: &Dir, path: &[u8]) -> Result<(), Errno> {
    let (dir, name) = parent(root, path)?;
    fs::mknodat(&dir, name, FileType::CharacterDevice, Mode::empty(), 0)
}

fn place(root: &Dir, path: &[u8], node: &Node) -> Result<(), Errno> {
    let (dir, name) = parent(root, path)?;
    match node {
        Node::Directory => dir.open_dir(name, IfExists::Open).map(drop),
        Node::Symlink { target } => fs::symlinkat(target.as_slice(), &dir, name),
        Node::File { mode, bytes } => {
            let file = dir.create(name)?;
            write_all(&file, bytes)?;
            let bits = match mode {
                FileMode::Regular => 0o644,
                FileMode::Executable => 0o755,
            };
            fs::fchmod(&file, Mode::from_raw_mode(bits))
        }
    }
}
