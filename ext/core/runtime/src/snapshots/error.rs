//! Error type of snapshots.

use wp_codebox_artifacts::LayerSnapshotError;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Reason why a snapshot cannot be created, found or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A layer could not be copied, or its files are not those in its list.
    #[error(transparent)]
    Layer(#[from] LayerSnapshotError),
    /// A file of the snapshot cannot be created or read.
    #[error("this process cannot {what}: {source}")]
    Io {
        /// What was attempted, e.g. `open the snapshot`.
        what: &'static str,
        /// I/O error of the failed operation.
        #[source]
        source: std::io::Error,
    },
    /// No snapshot has this name or id, or several ids start with `reference`.
    #[error(
        "the name or id {reference:?} does not match exactly one snapshot; `wp-codebox sandbox snapshots` lists all"
    )]
    NotFound {
        /// The name, id or prefix that the caller gave.
        reference: String,
    },
    /// The document or a file of the snapshot is invalid or does not have the stated digest.
    #[error("the snapshot {id} cannot be used: {why}; use another snapshot")]
    Invalid {
        /// Id of the snapshot that cannot be used.
        id: String,
        /// What is wrong with the snapshot, in one sentence.
        why: String,
    },
    /// A newer version of this program made the snapshot.
    #[error(
        "the snapshot {id} has the format {schema:?}, which this program does not know; use the newer wp-codebox that made it"
    )]
    Newer {
        /// Id of the snapshot.
        id: String,
        /// Schema id in the snapshot's document.
        schema: String,
    },
    /// Another process holds the lock of the snapshot: a sandbox uses it, so it cannot be removed,
    /// or it is being removed, so no sandbox can use it.
    #[error(
        "another process has locked the snapshot {id}, to use it in a sandbox or to remove it; try again later"
    )]
    InUse {
        /// Id of the locked snapshot.
        id: String,
    },
    /// The metadata of the snapshot exceed the limits of canonical JSON.
    #[error("the snapshot's metadata exceed a limit of canonical JSON: {why}; give less metadata")]
    Metadata {
        /// Which limit of canonical JSON the metadata exceed.
        why: String,
    },
}

impl SnapshotError {
    /// Returns the machine-readable code of this error, which later versions keep.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Layer(error) => error.code(),
            Self::Io { .. } => ErrorCode::StateDirInvalid,
            Self::NotFound { .. } => ErrorCode::SnapshotNotFound,
            Self::Invalid { .. } | Self::Newer { .. } => ErrorCode::SnapshotInvalid,
            Self::InUse { .. } => ErrorCode::SandboxInUse,
            Self::Metadata { .. } => ErrorCode::InputInvalid,
        }
    }

    /// Returns code and message of this error as the JSON body that callers receive.
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
            | Self::Newer { .. }
            | Self::InUse { .. }
            | Self::Metadata { .. } => body,
        }
    }
}

pub(super) fn io(what: &'static str) -> impl Fn(std::io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { what, source }
}
