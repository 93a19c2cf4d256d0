//! Why a snapshot cannot be made, found or used.

use wp_codebox_artifacts::KeepError;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Why a snapshot cannot be made, found or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A layer could not be kept or is not what it was.
    #[error(transparent)]
    Layer(#[from] KeepError),
    /// A file of it cannot be made or read.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is none.
    #[error("there is no snapshot {reference:?}; `wp-codebox sandbox snapshots` lists them")]
    NotFound {
        /// As given.
        reference: String,
    },
    /// It is not what its digests say.
    #[error("snapshot {id} cannot be used: {why}")]
    Invalid {
        /// Which.
        id: String,
        /// Why.
        why: String,
    },
    /// A sandbox uses it.
    #[error("snapshot {id} is in use by a sandbox")]
    InUse {
        /// Which.
        id: String,
    },
    /// Its facts have no canonical form.
    #[error("the metadata of the snapshot is too large or too deep: {why}")]
    Metadata {
        /// Why.
        why: String,
    },
}

impl SnapshotError {
    /// The stable code.
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

    /// As it crosses a border.
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
