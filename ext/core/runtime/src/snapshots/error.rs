//! Error type of snapshots.

use wp_codebox_artifacts::LayerSnapshotError;
use wp_codebox_contracts::CodedError;

/// Reason why a snapshot cannot be created, found or used.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A layer could not be copied, or its files are not those in its list.
    #[error(transparent)]
    #[code(transparent)]
    Layer(#[from] LayerSnapshotError),
    /// A file of the snapshot cannot be created or read.
    #[error("this process cannot {what}: {source}")]
    #[code(
        StateDirInvalid,
        hint = "check free space of the state directory; `wp-codebox gc` removes old snapshots"
    )]
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
    #[code(SnapshotNotFound)]
    NotFound {
        /// The name, id or prefix that the caller gave.
        reference: String,
    },
    /// The document or a file of the snapshot is invalid or does not have the stated digest.
    #[error("the snapshot {id} cannot be used: {why}; use another snapshot")]
    #[code(SnapshotInvalid)]
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
    #[code(SnapshotInvalid)]
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
    #[code(SandboxInUse)]
    InUse {
        /// Id of the locked snapshot.
        id: String,
    },
    /// The metadata of the snapshot exceed the limits of canonical JSON.
    #[error("the snapshot's metadata exceed a limit of canonical JSON: {why}; give less metadata")]
    #[code(InputInvalid)]
    Metadata {
        /// Which limit of canonical JSON the metadata exceed.
        why: String,
    },
}

pub(super) fn io(what: &'static str) -> impl Fn(std::io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { what, source }
}
