//! The upper directory of an overlay kept as a layer of its own, so that a later guest can begin
//! where this one was.
//!
//! A kept layer is an overlay *lower*: files and links as they lay there, a whiteout for each
//! deletion, an opaque mark on each directory that replaced another one. A guest that began on a
//! kept layer is kept merged with it, so a layer lies directly on the mount's source, however
//! often that went on.
//!
//! Invariants: everything is reached by descriptor beneath the two directories; special files of
//! the guest are never opened, a whiteout takes their place and they are listed; modes lose what
//! is beyond 0777 and keep their owner's right to read. Every entry is listed with its digest,
//! and a layer that differs in anything from its list is refused.

mod copy;
mod row;
mod verify;

pub use copy::{KeptLayer, keep_layer};
pub use row::{KeptEntry, KeptNode};
pub use verify::verify_layer;

use crate::capture::{Exceeded, ListError};
use crate::patch::shown_name;
use rustix::io::Errno;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Why a layer cannot be kept or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// There is more than may be kept.
    #[error("the state has more than {limit} {what}")]
    Limit {
        /// `entries`, `bytes`, `bytes in one file`, `bytes in one path` or `directory levels`.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// Something could not be read.
    #[error("{path:?} of the state could not be read: {source}")]
    Read {
        /// Path below the layer.
        path: String,
        /// The cause.
        #[source]
        source: Errno,
    },
    /// Something could not be written.
    #[error("{path:?} of the state could not be written: {source}")]
    Write {
        /// Path below the layer.
        path: String,
        /// The cause.
        #[source]
        source: Errno,
    },
    /// The overlay used a feature that cannot be kept.
    #[error("{path:?} uses the overlay feature {feature:?}, which cannot be kept")]
    OverlayFeature {
        /// Path below the layer.
        path: String,
        /// Attribute name.
        feature: &'static str,
    },
    /// It was written to while it was copied.
    #[error("files of the sandbox changed while they were copied: a program still runs in it")]
    Moving,
    /// A kept layer is not what its list says.
    #[error("{path:?} is not what was kept: {what}")]
    Differs {
        /// Path below the layer.
        path: String,
        /// How.
        what: &'static str,
    },
}

impl KeepError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Limit { .. } => ErrorCode::CaptureLimit,
            Self::Read { .. } | Self::OverlayFeature { .. } => ErrorCode::RunFailed,
            Self::Write { .. } => ErrorCode::StateDirInvalid,
            Self::Moving => ErrorCode::SandboxInUse,
            Self::Differs { .. } => ErrorCode::SnapshotInvalid,
        }
    }

    /// As it crosses a border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let body = ErrorBody::new(self.code(), self.to_string());
        match self {
            Self::Write { .. } => body.hint(
                "check free space of the state directory; `wp-codebox gc` removes old snapshots",
            ),
            Self::Moving => body.hint("wait until its programs have ended, or stop them"),
            Self::Limit { .. }
            | Self::Read { .. }
            | Self::OverlayFeature { .. }
            | Self::Differs { .. } => body,
        }
    }
}

impl From<Exceeded> for KeepError {
    fn from(Exceeded { what, limit }: Exceeded) -> Self {
        Self::Limit { what, limit }
    }
}

fn read_failed(path: &[u8]) -> impl Fn(Errno) -> KeepError + '_ {
    move |source| KeepError::Read {
        path: shown_name(path),
        source,
    }
}

fn write_failed(path: &[u8]) -> impl Fn(Errno) -> KeepError + '_ {
    move |source| KeepError::Write {
        path: shown_name(path),
        source,
    }
}

fn listing(path: &[u8], error: ListError) -> KeepError {
    match error {
        ListError::Exceeded(exceeded) => exceeded.into(),
        ListError::Io(source) => read_failed(path)(source),
    }
}

fn feature(path: &[u8], feature: &'static str) -> KeepError {
    KeepError::OverlayFeature {
        path: shown_name(path),
        feature,
    }
}

fn differs(path: &[u8], what: &'static str) -> KeepError {
    KeepError::Differs {
        path: shown_name(path),
        what,
    }
}

#[cfg(test)]
mod tests;
