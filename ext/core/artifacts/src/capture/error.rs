//! Error type of a capture.

use super::budget::{Exceeded, ListError};
use crate::patch::shown_name;
use rustix::io::Errno;
use wp_codebox_contracts::CodedError;

pub(super) const BASELINE: &str = "baseline";
pub(super) const RESULT: &str = "result";

/// Reason why a capture failed.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum CaptureError {
    /// The guest's changes exceed a limit of bundles.
    #[error(
        "the change set has more than {limit} {what}; let the agent change less, or exclude generated directories in the mount"
    )]
    #[code(CaptureLimit)]
    Limit {
        /// Limited quantity: `entries`, `bytes`, `bytes in one file`, `bytes in one path` or
        /// `directory levels`.
        what: &'static str,
        /// Value of the exceeded limit, in the unit that `what` names.
        limit: u64,
    },
    /// A directory or file could not be read.
    #[error(
        "the changes could not be captured, because {path:?} in the mount's {side} (baseline: before the run, result: after it) cannot be read: {source}"
    )]
    #[code(RunFailed)]
    Io {
        /// State of the mount to which the entry belongs: `baseline` (before the run) or `result`
        /// (after the run).
        side: &'static str,
        /// Path of the entry that could not be read, relative to the mount.
        path: String,
        /// Error number of the system call that failed.
        #[source]
        source: rustix::io::Errno,
    },
    /// An entry has an overlay attribute whose effect the capture cannot determine.
    #[error(
        "the changes could not be captured, because {path:?} has the overlay attribute {feature:?}; run again and let no program in the sandbox set it"
    )]
    #[code(RunFailed)]
    OverlayFeature {
        /// Path of the entry with the overlay attribute, relative to the mount.
        path: String,
        /// Name of the overlay attribute, e.g. `redirect`.
        feature: &'static str,
    },
}

impl From<Exceeded> for CaptureError {
    fn from(Exceeded { what, limit }: Exceeded) -> Self {
        Self::Limit { what, limit }
    }
}

pub(super) fn io(side: &'static str, path: &[u8], source: Errno) -> CaptureError {
    CaptureError::Io {
        side,
        path: shown_name(path),
        source,
    }
}

pub(super) fn listing(side: &'static str, path: &[u8], error: ListError) -> CaptureError {
    match error {
        ListError::Exceeded(exceeded) => exceeded.into(),
        ListError::Io(source) => io(side, path, source),
    }
}

pub(super) fn feature(path: &[u8], feature: &'static str) -> CaptureError {
    CaptureError::OverlayFeature {
        path: shown_name(path),
        feature,
    }
}
