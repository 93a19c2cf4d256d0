//! Metadata of a snapshot, which stores a sandbox's files and database.

use crate::{InodeId, MountAccess, RunId, Sha256Hex, SiteId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `wp-codebox/sandbox-snapshot/v1`: written last, in the directory of the layers it describes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxSnapshot {
    /// Schema id of the document.
    pub schema: String,
    /// Id of the snapshot: `snap_` and 32 hex digits.
    pub id: String,
    /// Name of the snapshot, unique in its sandbox.
    pub name: String,
    /// RFC 3339 timestamp.
    pub created_at: String,
    /// Actor that requested the snapshot.
    pub actor: String,
    /// Run id of the sandbox.
    pub run_id: RunId,
    /// Site that owns the snapshot.
    pub site: SiteId,
    /// Always `runtime-state-artifact`: the snapshot stores the bytes of files and database,
    /// not steps for a replay.
    pub semantics: String,
    /// WordPress template below the snapshot's layers.
    pub template: SnapshotTemplate,
    /// Mounts of the sandbox, in order.
    pub mounts: Vec<SnapshotMount>,
    /// Stored layers: one for `wp-content` with the database, and one for each writable mount.
    pub layers: Vec<SnapshotLayer>,
    /// Total size of all files in bytes.
    pub total_bytes: u64,
    /// Free-form data from the requester.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// SHA-256 over the schema id, a newline and the canonical JSON of all other members.
    pub digest: Sha256Hex,
}

/// WordPress template below a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotTemplate {
    /// Key of the template.
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
    /// File names excluded from capture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Inode of the host directory.
    pub source: InodeId,
    /// State of the host directory: SHA-256 over paths, inodes, sizes, times, modes and owners.
    pub baseline_sha256: Sha256Hex,
}

/// One stored layer of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotLayer {
    /// Name of the layer and of its directory beside this document: `content`, or `mount-` and
    /// the mount's index.
    pub name: String,
    /// Number of entries in the layer's list `<name>.jsonl`.
    pub entries: u64,
    /// Digest of the layer's list, which contains the digest of each file.
    pub list_sha256: Sha256Hex,
    /// Total size of the layer's files in bytes.
    pub bytes: u64,
    /// Number of sockets, FIFOs and devices that the snapshot omits.
    #[serde(default)]
    pub left_out: u64,
}
