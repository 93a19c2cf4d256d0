//! Error type of layers and its mapping to error codes.

use crate::bus::BusError;
use rustix::io::Errno;
use wp_codebox_artifacts::{RemovalError, TreeError};
use wp_codebox_contracts::{CodedError, Sha256Hex};

/// Reason why a layer could not be packed, stored, fetched or unpacked.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum LayerError {
    /// The directory to pack is too large, has special files, or cannot be read.
    #[error(transparent)]
    #[code(transparent)]
    Source(#[from] TreeError),
    /// The directory to pack changed meanwhile.
    #[error(
        "the entry {path:?} of a mounted directory changed while it was read; submit the task again"
    )]
    #[code(BaselineChanged)]
    Changed {
        /// Path of the entry, relative to the directory.
        path: String,
    },
    /// The temporary file with the layer could not be written or read.
    #[error(
        "the temporary file of a layer cannot be {step}: {source}; check space of the directory for temporary files"
    )]
    #[code(SandboxStartFailed)]
    Temporary {
        /// Failed operation: `created`, `written` or `read`.
        step: &'static str,
        /// I/O error of the operation.
        #[source]
        source: std::io::Error,
    },
    /// The layer is not in the format of layers.
    #[error("the layer is damaged: {detail}")]
    #[code(ClusterUnreadable)]
    Damaged {
        /// What is wrong.
        detail: String,
    },
    /// The layer's content has another digest than its name.
    #[error("the layer (an archive of files) has the digest {found} instead of {expected}")]
    #[code(ClusterUnreadable)]
    Digest {
        /// Digest in the name.
        expected: Sha256Hex,
        /// Digest of the content.
        found: Sha256Hex,
    },
    /// The layer exceeds a limit of mounts.
    #[error("the layer has more than {limit} {what}")]
    #[code(ClusterObjectTooLarge)]
    TooLarge {
        /// Limited quantity, e.g. `entries`.
        what: &'static str,
        /// Value of the limit, in the unit that `what` names.
        limit: u64,
    },
    /// The layer could not be unpacked to disk.
    #[error(
        "the layer's entry {path:?} could not be written: {source}; check space and inodes of the directory of layers"
    )]
    #[code(SandboxStartFailed)]
    Write {
        /// Path of the entry, relative to the layer; empty for the layer itself.
        path: String,
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
    /// The directory of layers cannot be used.
    #[error(
        "the directory of layers (archives of files) cannot be {step}: {source}; check its owner and mode"
    )]
    #[code(StateDirInvalid)]
    Cache {
        /// Failed operation, such as `opened` or `locked`.
        step: &'static str,
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
    /// A layer that is no longer needed could not be removed.
    #[error(transparent)]
    #[code(transparent)]
    Removal(#[from] RemovalError),
    /// The message server refused or failed.
    #[error(transparent)]
    #[code(transparent)]
    Bus(#[from] BusError),
}

/// Returns a file name for messages: at most 200 characters, control characters escaped.
pub(super) fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    text.chars()
        .take(200)
        .flat_map(|c| -> Box<dyn Iterator<Item = char>> {
            match c.is_control() {
                true => Box::new(c.escape_default()),
                false => Box::new(std::iter::once(c)),
            }
        })
        .collect()
}
