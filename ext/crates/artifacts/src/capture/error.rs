//! Error type of a capture.

use super::budget::{Exceeded, ListError};
use crate::patch::shown_name;
use rustix::io::Errno;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

pub(super) const BASELINE: &str = "baseline";
pub(super) const RESULT: &str = "result";

/// Reason why a capture failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The change set exceeds a limit of bundles.
    #[error(
        "the change set has more than {limit} {what}; let the agent change less, or exclude generated directories in the mount"
    )]
    Limit {
        /// Limited quantity: `entries`, `bytes`, `bytes in one file`, `bytes in one path` or
        /// `directory levels`.
        what: &'static str,
        /// Limit that was exceeded.
        limit: u64,
    },
    /// A directory or file could not be read.
    #[error("{path:?} of the {side} could not be read: {source}")]
    Io {
        /// `baseline` or `result`.
        side: &'static str,
        /// Path below the mount.
        path: String,
        /// Error of the failed operation.
        #[source]
        source: rustix::io::Errno,
    },
    /// The overlay used a feature that the capture does not support.
    #[error("{path:?} uses the overlay feature {feature:?}, which cannot be captured")]
    OverlayFeature {
        /// Path below the mount.
        path: String,
        /// Name of the overlay attribute.
        feature: &'static str,
    },
}

impl CaptureError {
    /// Returns the stable error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Limit { .. } => ErrorCode::CaptureLimit,
            Self::Io { .. } | Self::OverlayFeature { .. } => ErrorCode::RunFailed,
        }
    }
    /// Returns the error as the body sent to callers.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
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
