//! Metadata of a snapshot, which stores a sandbox's files and database.

use crate::{InodeId, MountAccess, RunId, Sha256Hex, SiteId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `wp-codebox/sandbox-snapshot/v1`, the file that describes a stored snapshot. It is written after
/// the snapshot's layers, into the directory that contains them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxSnapshot {
    /// Schema id of the document.
    pub schema: String,
    /// Id of the snapshot: `snap_` and 32 hex digits.
    pub id: String,
    /// Name of the snapshot, unique in its sandbox.
    pub name: String,
    /// RFC 3339 timestamp of the snapshot's creation.
    pub created_at: String,
    /// Name of the user or program that requested the snapshot.
    pub actor: String,
    /// Run id of the sandbox.
    pub run_id: RunId,
    /// Site that owns the snapshot.
    pub site: SiteId,
    /// Always `runtime-state-artifact`: the snapshot stores the bytes of files and database,
    /// not steps for a replay.
    pub semantics: String,
    /// WordPress template (an installed site) on which the snapshot's layers build.
    pub template: SnapshotTemplate,
    /// Mounts of the sandbox, in order.
    pub mounts: Vec<SnapshotMount>,
    /// Stored layers of changed files: one for `wp-content` with the database, and one for each
    /// writable mount.
    pub layers: Vec<SnapshotLayer>,
    /// Total size of the files in all layers, in bytes.
    pub total_bytes: u64,
    /// Free-form data from the caller who requested the snapshot.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// SHA-256 over the schema id, a newline and the canonical JSON of all other members.
    pub digest: Sha256Hex,
}

/// WordPress template on which the layers of a snapshot build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotTemplate {
    /// Key of the template: a hash of the names, sizes and times of its source files.
    pub key: String,
    /// `$wp_version` of the template.
    pub wordpress_version: String,
    /// `PHP_VERSION` of the template.
    pub php_version: String,
}

/// A mount of the sandbox when the snapshot was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMount {
    /// Path of the mount in the guest.
    pub target: String,
    /// Access of the guest to the mount.
    pub mode: MountAccess,
    /// Names of files in the mount that the snapshot excludes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Inode of the mounted host directory.
    pub source: InodeId,
    /// State of the mounted host directory: SHA-256 over path, inode, size, times, mode and owner
    /// of each entry.
    pub baseline_sha256: Sha256Hex,
}

/// One stored layer of a snapshot: the changed files of one directory tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotLayer {
    /// Name of the layer and of its directory beside this document: `content`, or `mount-` and
    /// the mount's index.
    pub name: String,
    /// Number of entries in `<name>.jsonl`, the list of the layer's files.
    pub entries: u64,
    /// SHA-256 of `<name>.jsonl`, which contains the digest of each file.
    pub list_sha256: Sha256Hex,
    /// Total size of the layer's files in bytes.
    pub bytes: u64,
    /// Number of sockets, FIFOs and devices that the snapshot omits from this layer.
    #[serde(default)]
    pub left_out: u64,
}
