//! One entry of a kept layer, as its list has it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use wp_codebox_contracts::Sha256Hex;

/// What lies at a path of a kept layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum KeptNode {
    /// A directory; the root is the one with an empty path.
    Directory {
        /// Permission bits.
        mode: u32,
        /// Whether it hides what its source has there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        opaque: bool,
    },
    /// A regular file.
    File {
        /// Permission bits.
        mode: u32,
        /// Size.
        bytes: u64,
        /// Digest of its content.
        sha256: Sha256Hex,
    },
    /// A symbolic link.
    Link {
        /// Its text, base64.
        target: String,
    },
    /// The name is gone.
    Gone {},
}

impl KeptNode {
    pub(super) fn link(text: &[u8]) -> Self {
        Self::Link {
            target: STANDARD.encode(text),
        }
    }
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptEntry {
    /// Path below the layer, base64: names are bytes.
    path: String,
    /// What lies there.
    pub node: KeptNode,
}

impl KeptEntry {
    pub(super) fn new(path: &[u8], node: KeptNode) -> Self {
        Self {
            path: STANDARD.encode(path),
            node,
        }
    }

    /// Path below the layer; none when the list was tampered with.
    #[must_use]
    pub fn path(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.path).ok()
    }
}
