//! A snapshot: the state of a sandbox's files and database, as it is listed and told.

use crate::{InodeId, MountAccess, RunId, Sha256Hex, SiteId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `wp-codebox/sandbox-snapshot/v1`: written last, beside the layers it speaks of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxSnapshot {
    /// The schema id.
    pub schema: String,
    /// `snap_` and 32 hex digits.
    pub id: String,
    /// Name, unique in its sandbox.
    pub name: String,
    /// RFC 3339.
    pub created_at: String,
    /// Who asked for it.
    pub actor: String,
    /// The sandbox it was made of.
    pub run_id: RunId,
    /// Whose.
    pub site: SiteId,
    /// `runtime-state-artifact`: bytes of files and database, not steps to make them again.
    pub semantics: String,
    /// What it lies on.
    pub template: SnapshotTemplate,
    /// The mounts of its sandbox, in order.
    pub mounts: Vec<SnapshotMount>,
    /// What was kept: of `wp-content` with the database, and of each writable mount.
    pub layers: Vec<SnapshotLayer>,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// Free data of who asked for it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// sha256 over the schema id, a newline and the canonical JSON of all other members.
    pub digest: Sha256Hex,
}

/// The WordPress below a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotTemplate {
    /// Key of the template.
    pub key: String,
    /// `$wp_version`.
    pub wordpress_version: String,
    /// `PHP_VERSION`.
    pub php_version: String,
}

/// A mount below a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMount {
    /// Where the guest sees it.
    pub target: String,
    /// What the guest may do.
    pub mode: MountAccess,
    /// Names that take no part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The directory of the host.
    pub source: InodeId,
    /// What it held: sha256 over paths, inodes, sizes, times, modes and owners.
    pub baseline_sha256: Sha256Hex,
}

/// One kept layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotLayer {
    /// `content`, or `mount-` and the position of its mount; the directory beside this document.
    pub name: String,
    /// Entries of its list `<name>.jsonl`.
    pub entries: u64,
    /// Digest of its list, in which each file stands with its own.
    pub list_sha256: Sha256Hex,
    /// Bytes of its files.
    pub bytes: u64,
    /// Sockets, FIFOs and devices that were left out.
    #[serde(default)]
    pub left_out: u64,
}
