//! Reads the approved changes of one mount: each file's contents before the change from the target
//! directory, and the contents after it by applying the approved patch.
//!
//! Invariants: the contents before the change have the hash of the state before the run, and the
//! contents after it have the hash that the bundle states. Nothing is written.

use super::base::{Current, current, link_text, obstacle};
use super::error::{Conflict, PreflightError};
use super::{MountPatch, Preflight};
use crate::capture::{Change, EntryChange, FileMode, MountChanges, Node};
use crate::changed_files::raw_relative;
use crate::digest::sha256;
use crate::dirfd::{Dir, ReadOutcome};
use crate::patch::{Block, FilterError, apply_block, parse_patch};
use std::collections::HashMap;
use std::path::Path;
use wp_codebox_contracts::{ChangeKind, ChangedFile};

/// Maximum size of a file that is read from the target directory, in bytes.
const LARGEST: u64 = 1 << 30;

impl Preflight {
    /// Returns the approved changes of the mount to which `patch` belongs. `target` is the host
    /// directory to which they would be applied.
    pub fn changes(
        &self,
        patch: &MountPatch,
        target: &Path,
    ) -> Result<MountChanges, PreflightError> {
        let target = Dir::open_following(target).map_err(|source| PreflightError::Target {
            mount: patch.mount_target.to_string(),
            source,
        })?;
        let bytes = patch.patch.as_bytes();
        let blocks = parse_patch(bytes).map_err(FilterError::from)?;
        // Of two blocks with the same name, the later one stays.
        let blocks: HashMap<&[u8], &Block> = blocks
            .iter()
            .filter_map(|block| Some((block.new_name.as_deref()?, block)))
            .collect();
        let mut entries = Vec::new();
        let mut conflicts = Vec::new();
        for entry in &self.changed_files {
            if entry.mount_index != patch.mount_index {
                continue;
            }
            let path = raw_relative(entry);
            let read = Sides {
                target: &target,
                patch: bytes,
                blocks: &blocks,
                entry,
                path: &path,
            };
            match read.change()? {
                Ok(change) => entries.push(EntryChange { path, change }),
                Err(reason) => conflicts.push(Conflict {
                    path: entry.path.clone(),
                    reason,
                }),
            }
        }
        if let Some(first) = conflicts.first() {
            return Err(PreflightError::Conflict {
                count: conflicts.len(),
                first: first.path.clone(),
                conflicts,
            });
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(MountChanges {
            entries,
            ..MountChanges::default()
        })
    }
}

/// What is needed to read the contents of one changed path before and after the change.
struct Sides<'a> {
    target: &'a Dir,
    patch: &'a [u8],
    /// Blocks by the name of the file after the change.
    blocks: &'a HashMap<&'a [u8], &'a Block>,
    entry: &'a ChangedFile,
    path: &'a [u8],
}

impl Sides<'_> {
    /// Returns the change of the entry, or as inner error how the target differs from the state
    /// before the run.
    fn change(&self) -> Result<Result<Change, &'static str>, PreflightError> {
        let entry = self.entry;
        let before = match entry.status {
            ChangeKind::Added => None,
            ChangeKind::Modified | ChangeKind::Deleted => match self.before() {
                Ok(node) => Some(node),
                Err(reason) => return Ok(Err(reason)),
            },
        };
        let after = match entry.status {
            ChangeKind::Deleted => None,
            ChangeKind::Added | ChangeKind::Modified => match self.after(before.as_ref())? {
                Ok(node) => Some(node),
                Err(reason) => return Ok(Err(reason)),
            },
        };
        Ok(match (before, after) {
            (None, Some(after)) => Ok(Change::Added(after)),
            (Some(before), Some(after)) => Ok(Change::Modified { before, after }),
            (Some(before), None) => Ok(Change::Deleted(before)),
            (None, None) => Err("no change"),
        })
    }

    /// Returns the entry in the target directory, whose contents must have the hash from before the
    /// run.
    fn before(&self) -> Result<Node, &'static str> {
        let entry = self.entry;
        let node = node(self.target, self.path)?;
        let hash = node.blob().map(sha256);
        if hash != entry.before_sha256 {
            return Err("other contents");
        }
        Ok(node)
    }

    /// Returns the entry after the change, or as inner error how the target differs from the state
    /// before the run.
    fn after(&self, before: Option<&Node>) -> Result<Result<Node, &'static str>, PreflightError> {
        let mode = self.entry.after_mode.as_deref();
        if mode == Some("040000") {
            return Ok(Ok(Node::Directory));
        }
        let is_link = mode == Some("120000");
        let block = self.blocks.get(self.path).ok_or_else(|| self.mismatch())?;
        let old = match (&block.old_name, before) {
            (None, _) => Vec::new(),
            (Some(old), Some(node)) if old == self.path => node.blob().unwrap_or_default().to_vec(),
            // The contents of a renamed file come from its old path.
            (Some(old), _) => match node(self.target, old) {
                Ok(node) => node.blob().unwrap_or_default().to_vec(),
                Err(reason) => return Ok(Err(reason)),
            },
        };
        let bytes = apply_block(self.patch, block, &old).map_err(FilterError::from)?;
        if Some(sha256(&bytes)) != self.entry.after_sha256 {
            return Err(self.mismatch());
        }
        let mode = match (mode, before) {
            (Some("100755"), _) => FileMode::Executable,
            // Bundles of other implementations have no modes: such a file keeps the mode that it
            // has.
            (None, Some(Node::File { mode, .. })) => *mode,
            _ => FileMode::Regular,
        };
        Ok(Ok(match is_link {
            true => Node::Symlink { target: bytes },
            false => Node::File { mode, bytes },
        }))
    }

    fn mismatch(&self) -> PreflightError {
        let path = self.entry.path.clone();
        FilterError::Contents { path }.into()
    }
}

/// Reads the entry at a path of the target directory.
fn node(target: &Dir, path: &[u8]) -> Result<Node, &'static str> {
    match current(target, path) {
        Ok(Current::File) => match target.read(path, LARGEST) {
            Ok((ReadOutcome::Bytes(bytes), stat)) => Ok(Node::File {
                mode: FileMode::from_raw(stat.st_mode),
                bytes,
            }),
            Ok((ReadOutcome::TooLarge, _)) => Err("larger than 1 GiB"),
            Err(error) => Err(obstacle(error)),
        },
        Ok(Current::Symlink) => link_text(target, path)
            .map(|target| Node::Symlink { target })
            .map_err(obstacle),
        Ok(Current::Directory) => Ok(Node::Directory),
        Ok(Current::Absent) => Err("missing"),
        Ok(Current::Unknown) => Err("another type"),
        Err(error) => Err(obstacle(error)),
    }
}
