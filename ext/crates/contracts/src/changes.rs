//! `files/changed-files.json`.

use crate::{GuestPath, Sha256Hex, schema_id};
use serde::{Deserialize, Serialize};

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It did not exist before.
    Added,
    /// It existed and differs in bytes, mode or type.
    Modified,
    /// It exists no more.
    Deleted,
}

/// What the path is after the change (before it, when deleted).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryType {
    /// Regular file.
    File,
    /// Symbolic link; its hash is that of the link text.
    Symlink,
    /// Empty directory; a patch cannot carry it.
    Directory,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    /// Declared target of the mount and the relative path. What approvals name.
    pub path: String,
    /// Path below the mount.
    pub relative_path: String,
    /// What happened.
    pub status: ChangeKind,
    /// What it is.
    #[serde(rename = "type")]
    pub entry_type: EntryType,
    /// sha256 of the bytes before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_sha256: Option<Sha256Hex>,
    /// Mode before: `100644`, `100755`, `120000` or `040000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_mode: Option<String>,
    /// sha256 of the bytes after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_sha256: Option<Sha256Hex>,
    /// Mode after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_mode: Option<String>,
    /// Whether the patch carries it as `GIT binary patch`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// Lines added; absent for binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    /// Lines removed; absent for binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// Which mount, counted in the plan.
    pub mount_index: usize,
    /// Declared target of that mount.
    pub mount_target: GuestPath,
    /// Name in `files/patch.diff`, without `a/` or `b/`.
    pub patch_name: String,
    /// `files/diffs/mount-<N>.patch`, which is always mount-relative.
    pub patch_path: String,
    /// `git-quoted` when `path`, `relativePath` and `patchName` are C-quoted because the name is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_encoding: Option<String>,
    /// The path this one was renamed from, when renames were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// The document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFiles {
    /// Always `wp-codebox/changed-files/v1`.
    pub schema: String,
    /// Entries sorted by mount, then by path bytes.
    pub files: Vec<ChangedFile>,
}

impl ChangedFiles {
    /// Wraps entries.
    #[must_use]
    pub fn new(files: Vec<ChangedFile>) -> Self {
        Self {
            schema: schema_id::CHANGED_FILES.to_owned(),
            files,
        }
    }
}
