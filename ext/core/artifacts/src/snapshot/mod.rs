//! Snapshots of an overlay's upper directory as separate layers, so that a later guest can start
//! from the saved state.
//!
//! A snapshot layer is an overlay *lower* directory: it has the files and links of the upper
//! directory, a whiteout for each deletion, and the opaque attribute on each directory that
//! replaced an entry of the mount's source. If the guest itself started on a snapshot layer, the
//! new layer merges that layer and the guest's upper directory. A snapshot layer is therefore
//! always mounted directly over the mount's source, however many snapshots preceded it.
//!
//! Invariants: all access is by descriptor beneath the given directories. Special files of the
//! guest are never opened; a whiteout replaces each and the result lists it. Modes are reduced to
//! 0777 and always include read permission for the owner. Every entry is listed with its digest,
//! and a layer that differs from its list in any way is refused.

mod copy;
mod row;
mod special;
mod verify;

pub use copy::{LayerSnapshot, snapshot_layer};
pub use row::{SnapshotEntry, SnapshotNode};
pub use special::mark_special_files;
pub use verify::verify_layer;

use crate::capture::{Exceeded, ListError};
use crate::patch::shown_name;
use rustix::io::Errno;
use wp_codebox_contracts::CodedError;

/// Reason why a layer snapshot cannot be made or used.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum LayerSnapshotError {
    /// The guest's files exceed a limit of snapshots.
    #[error(
        "the files that the sandbox changed have more than {limit} {what}, so no snapshot can be made; delete generated files in the sandbox"
    )]
    #[code(CaptureLimit)]
    Limit {
        /// Limited quantity: `entries`, `bytes`, `bytes in one file`, `bytes in one path` or
        /// `directory levels`.
        what: &'static str,
        /// Value of the exceeded limit, in the unit that `what` names.
        limit: u64,
    },
    /// An entry could not be read.
    #[error("the snapshot could not read {path:?} in the sandbox: {source}")]
    #[code(RunFailed)]
    Read {
        /// Path of the unreadable entry, relative to the overlay.
        path: String,
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
    /// An entry could not be written.
    #[error("the entry {path:?} could not be written to the snapshot: {source}")]
    #[code(
        StateDirInvalid,
        hint = "check free space of the state directory; `wp-codebox gc` removes old snapshots"
    )]
    Write {
        /// Path of the entry that could not be written, relative to the layer.
        path: String,
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
    /// An entry has an overlay attribute whose effect a snapshot cannot reproduce.
    #[error(
        "no snapshot can be made, because {path:?} in the sandbox has the overlay attribute {feature:?}; create that entry again without it"
    )]
    #[code(RunFailed)]
    OverlayFeature {
        /// Path of the entry with the overlay attribute, relative to the overlay.
        path: String,
        /// Name of the overlay attribute, e.g. `redirect`.
        feature: &'static str,
    },
    /// A process wrote to the upper directory during the copy.
    #[error(
        "files of the sandbox changed while the snapshot copied them, so no snapshot was made; a program in the sandbox still writes"
    )]
    #[code(
        SandboxInUse,
        hint = "wait until the sandbox's programs have ended, or stop them"
    )]
    Moving,
    /// The files of a snapshot layer are not those in its list of entries.
    #[error(
        "the entry {path:?} differs from the snapshot layer's list of entries: {what}; make a new snapshot"
    )]
    #[code(SnapshotInvalid)]
    Differs {
        /// Path of the differing entry, relative to the layer.
        path: String,
        /// How it differs from the list, e.g. in its content.
        what: &'static str,
    },
}

impl From<Exceeded> for LayerSnapshotError {
    fn from(Exceeded { what, limit }: Exceeded) -> Self {
        Self::Limit { what, limit }
    }
}

fn read_failed(path: &[u8]) -> impl Fn(Errno) -> LayerSnapshotError + '_ {
    move |source| LayerSnapshotError::Read {
        path: shown_name(path),
        source,
    }
}

fn write_failed(path: &[u8]) -> impl Fn(Errno) -> LayerSnapshotError + '_ {
    move |source| LayerSnapshotError::Write {
        path: shown_name(path),
        source,
    }
}

fn listing(path: &[u8], error: ListError) -> LayerSnapshotError {
    match error {
        ListError::Exceeded(exceeded) => exceeded.into(),
        ListError::Io(source) => read_failed(path)(source),
    }
}

fn feature(path: &[u8], feature: &'static str) -> LayerSnapshotError {
    LayerSnapshotError::OverlayFeature {
        path: shown_name(path),
        feature,
    }
}

fn differs(path: &[u8], what: &'static str) -> LayerSnapshotError {
    LayerSnapshotError::Differs {
        path: shown_name(path),
        what,
    }
}

#[cfg(test)]
mod tests;
