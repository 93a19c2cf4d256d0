//! Removes from a patch all changes that were not approved.
//!
//! Invariants: the result contains every block (one `diff --git` section) of every approved entry
//! of `changed-files.json` and no other block. A rename is included only if both of its paths are
//! approved. A block must add, delete or modify its file, as the entry states.

use super::parse::{Block, PatchError, parse_patch};
use super::quote::unquote_name;
use std::collections::HashMap;
use wp_codebox_contracts::{ChangedFile, CodedError};

/// Reason why a patch could not be reduced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(PatchUnfilterable)]
pub enum FilterError {
    /// The bytes are not a patch.
    #[error(transparent)]
    Malformed(#[from] PatchError),
    /// The patch has too few or too many blocks for an approved entry.
    #[error(
        "the patch has {found} blocks for {path:?}, but changed-files.json requires {expected}; discard the bundle or run again"
    )]
    BlockCount {
        /// Path of the approved entry.
        path: String,
        /// Number of blocks for the entry in the patch.
        found: usize,
        /// Number of blocks that the change stated in `changed-files.json` requires.
        expected: usize,
    },
    /// The patch adds, deletes or modifies the file, but `changed-files.json` states a different
    /// one of these changes.
    #[error(
        "the patch changes {path:?} in a different way than changed-files.json states; discard the bundle or run again"
    )]
    Shape {
        /// Path of the approved entry.
        path: String,
    },
    /// The patch does not give the file the contents whose hash `changed-files.json` states.
    #[error(
        "the patch does not give {path:?} the contents that changed-files.json states; discard the bundle or run again"
    )]
    Contents {
        /// Path of the approved entry.
        path: String,
    },
    /// Two approved entries have the same name in the patch.
    #[error(
        "two approved files have the name {name:?} in the patch, so the patch cannot be split; discard the bundle or run again"
    )]
    SharedName {
        /// Name that two changed files have in the patch.
        name: String,
    },
    /// Only the old or only the new path of a rename was approved.
    #[error(
        "the approved path {path:?} is one side of a rename; approve the other side {other:?} as well, or neither"
    )]
    #[code(ApprovedFilesInvalid)]
    HalfRename {
        /// The approved one of the two paths of the rename.
        path: String,
        /// The other path of the rename, as named in the patch.
        other: String,
    },
}

/// Member of an entry in `changed-files.json` that contains the file's name in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// `patchName`, in `files/patch.diff`.
    Patch,
    /// `relativePath`, in `files/diffs/mount-<N>.patch`.
    Relative,
}

/// Returns the parts of `files/patch.diff` that change the approved entries, in the order of the
/// patch. Fails if the patch does not match the entries.
pub fn filter_patch(patch: &[u8], approved: &[ChangedFile]) -> Result<Vec<u8>, FilterError> {
    let entries: Vec<&ChangedFile> = approved.iter().collect();
    filter_by(patch, &entries, NamedBy::Patch)
}

pub(crate) fn filter_by(
    patch: &[u8],
    approved: &[&ChangedFile],
    by: NamedBy,
) -> Result<Vec<u8>, FilterError> {
    let mut wanted: HashMap<Vec<u8>, usize> = HashMap::new();
    for (index, entry) in approved.iter().enumerate() {
        let text = match by {
            NamedBy::Patch => &entry.patch_name,
            NamedBy::Relative => &entry.relative_path,
        };
        let name = raw_name(text, entry);
        if wanted.insert(name, index).is_some() {
            return Err(FilterError::SharedName { name: text.clone() });
        }
    }
    let mut found: Vec<Vec<Block>> = vec![Vec::new(); approved.len()];
    let mut kept = Vec::new();
    for block in parse_patch(patch)? {
        let index_of = |name: &Option<Vec<u8>>| name.as_ref().and_then(|n| wanted.get(n).copied());
        let (old, new) = (index_of(&block.old_name), index_of(&block.new_name));
        let renamed = matches!((&block.old_name, &block.new_name), (Some(a), Some(b)) if a != b);
        match (old, new) {
            (None, None) => continue,
            (Some(index), None) | (None, Some(index)) if renamed => {
                let other = if old.is_some() {
                    &block.new_name
                } else {
                    &block.old_name
                };
                return Err(FilterError::HalfRename {
                    path: approved[index].path.clone(),
                    other: String::from_utf8_lossy(other.as_deref().unwrap_or_default())
                        .into_owned(),
                });
            }
            _ => {}
        }
        kept.extend_from_slice(&patch[block.range.clone()]);
        if !kept.ends_with(b"\n") {
            kept.push(b'\n');
        }
        if renamed {
            old.into_iter()
                .for_each(|index| found[index].push(block.clone()));
        }
        if let Some(index) = new.or(old) {
            found[index].push(block);
        }
    }
    for (entry, blocks) in approved.iter().zip(&found) {
        check(entry, blocks)?;
    }
    Ok(kept)
}

/// Returns for each entry the part of the patch that changes its file; no bytes if no part does.
/// The block of a rename is returned for the old and the new path. The result is only for display:
/// this function does not check that a block changes the file as the entry states.
pub fn split_patch(patch: &[u8], entries: &[ChangedFile]) -> Result<Vec<Vec<u8>>, PatchError> {
    let mut by_name: HashMap<Vec<u8>, usize> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        by_name.insert(raw_name(&entry.patch_name, entry), index);
    }
    let mut parts = vec![Vec::new(); entries.len()];
    for block in parse_patch(patch)? {
        let mut sides: Vec<usize> = [&block.old_name, &block.new_name]
            .into_iter()
            .filter_map(|name| by_name.get(name.as_ref()?).copied())
            .collect();
        sides.dedup();
        for side in sides {
            if let (Some(part), Some(bytes)) = (parts.get_mut(side), patch.get(block.range.clone()))
            {
                part.extend_from_slice(bytes);
            }
        }
    }
    Ok(parts)
}

fn raw_name(text: &str, entry: &ChangedFile) -> Vec<u8> {
    match entry.path_encoding.as_deref() {
        Some("git-quoted") => {
            unquote_name(text.as_bytes()).map_or_else(|| text.as_bytes().to_vec(), |(name, _)| name)
        }
        _ => text.as_bytes().to_vec(),
    }
}

/// Checks that the blocks of an entry add, delete or modify the file as the entry states.
fn check(entry: &ChangedFile, blocks: &[Block]) -> Result<(), FilterError> {
    fn carried(mode: &Option<String>) -> Option<&str> {
        mode.as_deref().filter(|m| *m != "040000")
    }
    let (before, after) = (carried(&entry.before_mode), carried(&entry.after_mode));
    let is_link = |mode: &str| mode == "120000";
    let expected: &[(bool, bool)] = match (before, after) {
        (None, None) => &[],
        (Some(old), Some(new)) if is_link(old) != is_link(new) => &[(true, false), (false, true)],
        (Some(_), Some(_)) => &[(true, true)],
        (Some(_), None) => &[(true, false)],
        (None, Some(_)) => &[(false, true)],
    };
    if blocks.len() != expected.len() {
        return Err(FilterError::BlockCount {
            path: entry.path.clone(),
            found: blocks.len(),
            expected: expected.len(),
        });
    }
    let fits = blocks.iter().zip(expected).all(|(block, shape)| {
        let rename = matches!((&block.old_name, &block.new_name), (Some(a), Some(b)) if a != b);
        rename || (block.old_name.is_some(), block.new_name.is_some()) == *shape
    });
    if fits {
        Ok(())
    } else {
        Err(FilterError::Shape {
            path: entry.path.clone(),
        })
    }
}
