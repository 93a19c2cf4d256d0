//! Error type of layers and its mapping to error codes.

use crate::bus::BusError;
use rustix::io::Errno;
use wp_codebox_artifacts::{RemovalError, TreeError};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Sha256Hex};

/// Reason why a layer could not be packed, stored, fetched or unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The directory to pack is too large, has special files, or cannot be read.
    #[error(transparent)]
    Source(#[from] TreeError),
    /// The directory to pack changed meanwhile.
    #[error(
        "the entry {path:?} of a mounted directory changed while it was read; submit the task again"
    )]
    Changed {
        /// Path of the entry, relative to the directory.
        path: String,
    },
    /// The temporary file with the layer could not be written or read.
    #[error(
        "the temporary file of a layer cannot be {step}: {source}; check space of the directory for temporary files"
    )]
    Temporary {
        /// Failed operation: `created`, `written` or `read`.
        step: &'static str,
        /// I/O error of the operation.
        #[source]
        source: std::io::Error,
    },
    /// The layer is not in the format of layers.
    #[error("the layer is damaged: {detail}")]
    Damaged {
        /// What is wrong.
        detail: String,
    },
    /// The layer's content has another digest than its name.
    #[error("the layer (an archive of files) has the digest {found} instead of {expected}")]
    Digest {
        /// Digest in the name.
        expected: Sha256Hex,
        /// Digest of the content.
        found: Sha256Hex,
    },
    /// The layer exceeds a limit of mounts.
    #[error("the layer has more than {limit} {what}")]
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
    Cache {
        /// Failed operation, such as `opened` or `locked`.
        step: &'static str,
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
    /// A layer that is no longer needed could not be removed.
    #[error(transparent)]
    Removal(#[from] RemovalError),
    /// The message server refused or failed.
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl LayerError {
    /// Returns the error's public code, which stays the same across releases.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Source(error) => error.code(),
            Self::Changed { .. } => ErrorCode::BaselineChanged,
            Self::Damaged { .. } | Self::Digest { .. } => ErrorCode::ClusterUnreadable,
            Self::TooLarge { .. } => ErrorCode::ClusterObjectTooLarge,
            Self::Temporary { .. } | Self::Write { .. } => ErrorCode::SandboxStartFailed,
            Self::Cache { .. } => ErrorCode::StateDirInvalid,
            Self::Removal(error) => error.code(),
            Self::Bus(error) => error.code(),
        }
    }

    /// Returns public code and message with hints.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        match self {
            Self::Source(error) => error.body(),
            Self::Removal(error) => error.body(),
            Self::Bus(error) => error.body(),
            Self::Changed { .. }
            | Self::Damaged { .. }
            | Self::Digest { .. }
            | Self::TooLarge { .. }
            | Self::Temporary { .. }
            | Self::Write { .. }
            | Self::Cache { .. } => ErrorBody::new(self.code(), self.to_string()),
        }
    }
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
