//! Error type of snapshots.

use wp_codebox_artifacts::LayerSnapshotError;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Reason why a snapshot cannot be created, found or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A layer could not be copied or differs from its list.
    #[error(transparent)]
    Layer(#[from] LayerSnapshotError),
    /// A file of the snapshot cannot be created or read.
    #[error("cannot {what}: {source}")]
    Io {
        /// Attempted operation.
        what: &'static str,
        /// Error of the failed operation.
        #[source]
        source: std::io::Error,
    },
    /// No snapshot matches the reference.
    #[error("there is no snapshot {reference:?}; `wp-codebox sandbox snapshots` lists them")]
    NotFound {
        /// Reference as the caller gave it.
        reference: String,
    },
    /// The snapshot does not match its digests.
    #[error("snapshot {id} cannot be used: {why}")]
    Invalid {
        /// Id of the snapshot.
        id: String,
        /// Description of the mismatch.
        why: String,
    },
    /// A sandbox uses the snapshot.
    #[error("snapshot {id} is in use by a sandbox")]
    InUse {
        /// Id of the snapshot.
        id: String,
    },
    /// The metadata of the snapshot have no canonical form.
    #[error("the metadata of the snapshot is too large or too deep: {why}")]
    Metadata {
        /// Description of the error.
        why: String,
    },
}

impl SnapshotError {
    /// Returns the stable error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Layer(error) => error.code(),
            Self::Io { .. } => ErrorCode::StateDirInvalid,
            Self::NotFound { .. } => ErrorCode::SnapshotNotFound,
            Self::Invalid { .. } => ErrorCode::SnapshotInvalid,
            Self::InUse { .. } => ErrorCode::SandboxInUse,
            Self::Metadata { .. } => ErrorCode::InputInvalid,
        }
    }

    /// Returns the error as the body sent to callers.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let body = ErrorBody::new(self.code(), self.to_string());
        match self {
            Self::Layer(error) => error.body(),
            Self::Io { .. } => body.hint(
                "check free space of the state directory; `wp-codebox gc` removes old snapshots",
            ),
            Self::NotFound { .. }
            | Self::Invalid { .. }
            | Self::InUse { .. }
            | Self::Metadata { .. } => body,
        }
    }
}

pub(super) fn io(what: &'static str) -> impl Fn(std::io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { what, source }
}
