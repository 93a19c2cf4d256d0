//! One row in the list of entries of a snapshot layer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use wp_codebox_contracts::Sha256Hex;

/// Type and content of an entry of a snapshot layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum SnapshotNode {
    /// A directory. The root has an empty path.
    Directory {
        /// Permission bits of the directory.
        mode: u32,
        /// Whether the directory hides the contents of the directory at the same path in the
        /// mount's source.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        opaque: bool,
    },
    /// A regular file.
    File {
        /// Permission bits of the file.
        mode: u32,
        /// Size of the file in bytes.
        bytes: u64,
        /// SHA-256 of the file's content.
        sha256: Sha256Hex,
    },
    /// A symbolic link.
    Link {
        /// Target of the link in base64.
        target: String,
    },
    /// A whiteout: the entry at the same path in the mount's source counts as deleted.
    Gone {},
}

impl SnapshotNode {
    pub(super) fn link(text: &[u8]) -> Self {
        Self::Link {
            target: STANDARD.encode(text),
        }
    }
}

/// Path and node of one entry in a snapshot layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEntry {
    /// Path relative to the layer, in base64, because file names need not be UTF-8.
    path: String,
    /// Type, mode and content digest of the entry.
    pub node: SnapshotNode,
}

impl SnapshotEntry {
    pub(super) fn new(path: &[u8], node: SnapshotNode) -> Self {
        Self {
            path: STANDARD.encode(path),
            node,
        }
    }

    /// Returns the path relative to the layer, or `None` if it is not valid base64.
    #[must_use]
    pub fn path(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.path).ok()
    }
}
