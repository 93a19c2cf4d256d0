//! `files/changed-files.json`: the list of changed files in a bundle.

use crate::{GuestPath, Sha256Hex, schema_id};
use serde::{Deserialize, Serialize};

/// Kind of change of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The path did not exist before the change.
    Added,
    /// The path existed and its bytes, mode or type changed.
    Modified,
    /// The path no longer exists.
    Deleted,
}

/// File type of a changed path after the change; for a deleted path, before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryType {
    /// Regular file.
    File,
    /// Symbolic link; its hash covers the link target string.
    Symlink,
    /// Empty directory; a patch cannot represent one.
    Directory,
}

/// One path that a run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    /// Path in the guest: the declared mount target joined with `relative_path`. Approvals name
    /// files by this path.
    pub path: String,
    /// Path relative to the mount that contains it.
    pub relative_path: String,
    /// Whether the path was added, modified or deleted.
    pub status: ChangeKind,
    /// File type of the path after the change; for a deleted path, before it.
    #[serde(rename = "type")]
    pub entry_type: EntryType,
    /// SHA-256 of the bytes before the change; absent if the path did not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_sha256: Option<Sha256Hex>,
    /// Mode before the change: `100644`, `100755`, `120000` or `040000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_mode: Option<String>,
    /// SHA-256 of the bytes after the change; absent if the path was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_sha256: Option<Sha256Hex>,
    /// Mode after the change, with the same possible values as `before_mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_mode: Option<String>,
    /// Whether the patch contains the file as `GIT binary patch`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// Number of added lines; absent for binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    /// Number of removed lines; absent for binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// Index of the mount in the run request.
    pub mount_index: usize,
    /// Path of the mount in the guest, as the caller declared it.
    pub mount_target: GuestPath,
    /// Path of the file in `files/patch.diff`, without the `a/` or `b/` prefix.
    pub patch_name: String,
    /// Bundle path `files/diffs/mount-<N>.patch` of a patch that contains only the changes of this
    /// mount. Paths in that patch are relative to the mount.
    pub patch_path: String,
    /// `git-quoted` when `path`, `relativePath` and `patchName` are C-quoted because the file
    /// name is not valid UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_encoding: Option<String>,
    /// Old path of a renamed file; only when rename detection was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// The document `files/changed-files.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFiles {
    /// Schema id, always `wp-codebox/changed-files/v1`.
    pub schema: String,
    /// Changed paths, sorted by mount and then by path bytes.
    pub files: Vec<ChangedFile>,
}

impl ChangedFiles {
    /// Creates the document with these entries.
    #[must_use]
    pub fn new(files: Vec<ChangedFile>) -> Self {
        Self {
            schema: schema_id::CHANGED_FILES.to_owned(),
            files,
        }
    }
}
