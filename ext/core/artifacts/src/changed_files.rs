//! `files/changed-files.json`: one entry per changed path.
//!
//! Invariants: `path` is the guest path of the mount followed by the path in the mount. A path that
//! is not UTF-8 is quoted as a whole, as in git, and the entry's `pathEncoding` is `git-quoted`.
//! The entry of a directory has a mode and no hash.

use crate::capture::{MountChanges, Node};
use crate::digest::sha256;
use crate::json::{Json, JsonError};
use crate::patch::{FileStats, Rename, RenderedPatch, quote_name, unquote_name};
use std::collections::HashMap;
use wp_codebox_contracts::{
    ChangeKind, ChangedFile, ChangedFiles, CodedError, EntryType, GuestPath, Sha256Hex,
};

/// Index, guest path and patch prefix of one mount. The names of the mount's files in a bundle are
/// derived from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountNames {
    /// Position of the mount in the run's list of mounts, from 0.
    pub index: usize,
    /// Guest path of the mount, as the request declared it.
    pub target: GuestPath,
    /// Prefix of this mount's file names in `files/patch.diff`: empty if no other mount was
    /// captured, otherwise the target without leading `/`, followed by `/`.
    pub prefix: String,
}

/// Converts a path to the text that documents contain. The second value is true if the path is not
/// UTF-8 and was therefore quoted.
pub(crate) fn document_name(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (quote_name(bytes), true),
    }
}

/// Returns the path of an entry relative to its mount as raw bytes; a quoted path is decoded.
pub(crate) fn raw_relative(entry: &ChangedFile) -> Vec<u8> {
    #[cfg(test)]
    conversions::count();
    let text = entry.relative_path.as_bytes();
    match entry.path_encoding.as_deref() {
        Some("git-quoted") => unquote_name(text).map_or_else(|| text.to_vec(), |(name, _)| name),
        _ => text.to_vec(),
    }
}

/// Number of paths that this thread converted, for tests of how the work of a preflight grows.
#[cfg(test)]
pub(crate) mod conversions {
    use std::cell::Cell;

    thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

    pub(super) fn count() {
        COUNT.set(COUNT.get() + 1);
    }

    /// Returns the number of conversions during a call, and its result.
    pub(crate) fn during<T>(call: impl FnOnce() -> T) -> (usize, T) {
        let before = COUNT.get();
        let result = call();
        (COUNT.get() - before, result)
    }
}

/// Returns one entry for `files/changed-files.json` per change of a mount, in the order of the
/// changes.
#[must_use]
pub fn mount_entries(
    names: &MountNames,
    changes: &MountChanges,
    patch: &RenderedPatch,
    renames: &[Rename],
) -> Vec<ChangedFile> {
    let sources: HashMap<&[u8], &[u8]> = renames
        .iter()
        .map(|r| (r.to.as_slice(), r.from.as_slice()))
        .collect();
    let declared = |relative: &[u8]| {
        document_name(&[names.target.as_str().as_bytes(), b"/", relative].concat())
    };
    changes
        .entries
        .iter()
        .map(|entry| {
            let (before, after) = (entry.change.before(), entry.change.after());
            let (path, quoted) = declared(&entry.path);
            let (insertions, deletions, binary) = match patch.stats.get(&entry.path) {
                Some(FileStats::Text {
                    insertions,
                    deletions,
                }) => (Some(*insertions), Some(*deletions), false),
                Some(FileStats::Binary) => (None, None, true),
                Some(FileStats::NotCarried) | None => (None, None, false),
            };
            ChangedFile {
                path,
                relative_path: document_name(&entry.path).0,
                status: match (before, after) {
                    (None, _) => ChangeKind::Added,
                    (Some(_), Some(_)) => ChangeKind::Modified,
                    (Some(_), None) => ChangeKind::Deleted,
                },
                entry_type: entry_type(after.or(before)),
                before_sha256: hash(before),
                before_mode: before.map(|n| n.git_mode().to_owned()),
                after_sha256: hash(after),
                after_mode: after.map(|n| n.git_mode().to_owned()),
                binary,
                insertions,
                deletions,
                mount_index: names.index,
                mount_target: names.target.clone(),
                patch_name: document_name(&[names.prefix.as_bytes(), &entry.path].concat()).0,
                patch_path: mount_patch_path(names.index),
                path_encoding: quoted.then(|| "git-quoted".to_owned()),
                renamed_from: sources
                    .get(entry.path.as_slice())
                    .map(|from| declared(from).0),
            }
        })
        .collect()
}

/// Returns the path of one mount's patch in the bundle.
pub(crate) fn mount_patch_path(index: usize) -> String {
    format!("files/diffs/mount-{index}.patch")
}

const fn entry_type(node: Option<&Node>) -> EntryType {
    match node {
        Some(Node::Symlink { .. }) => EntryType::Symlink,
        Some(Node::Directory) => EntryType::Directory,
        Some(Node::File { .. }) | None => EntryType::File,
    }
}

fn hash(node: Option<&Node>) -> Option<Sha256Hex> {
    node.and_then(Node::blob).map(sha256)
}

/// Reason why a `changed-files.json` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(ArtifactVerificationFailed)]
pub enum ChangedFilesError {
    /// The document is not strict JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The document has a missing or malformed member.
    #[error(
        "changed-files.json is not a wp-codebox/changed-files/v1 document: its member {field} is missing or malformed; discard the bundle or run again"
    )]
    Shape {
        /// Name of the missing or malformed member.
        field: String,
    },
}

/// Parses `files/changed-files.json` of a bundle from any implementation. Other implementations do
/// not write `type` and `patchName`; the defaults are `file` and the value of `relativePath`.
pub fn read_changed_files(bytes: &[u8]) -> Result<ChangedFiles, ChangedFilesError> {
    let document = Json::parse(bytes)?;
    let shape = |field: &str| ChangedFilesError::Shape {
        field: field.to_owned(),
    };
    if document.get("schema").and_then(Json::as_str)
        != Some(wp_codebox_contracts::schema_id::CHANGED_FILES)
    {
        return Err(shape("schema"));
    }
    let rows = document
        .get("files")
        .and_then(Json::as_array)
        .ok_or_else(|| shape("files"))?;
    let mut files = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let mut value = row.to_value();
        if let Some(members) = value.as_object_mut() {
            if !members.contains_key("type") {
                members.insert("type".to_owned(), "file".into());
            }
            if !members.contains_key("patchName")
                && let Some(relative) = members.get("relativePath").cloned()
            {
                members.insert("patchName".to_owned(), relative);
            }
        }
        files.push(
            serde_json::from_value(value)
                .map_err(|error| shape(&format!("files[{index}]: {error}")))?,
        );
    }
    Ok(ChangedFiles::new(files))
}
