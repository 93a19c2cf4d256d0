//! Why a capture failed.

use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Why a capture failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The change set is larger than a bundle may be.
    #[error(
        "the change set has more than {limit} {what}; let the agent change less, or exclude generated directories in the mount"
    )]
    Limit {
        /// `entries`, `bytes`, `bytes in one file` or `directory levels`.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// A directory or file could not be read.
    #[error("{path:?} of the {side} could not be read")]
    Io {
        /// `baseline` or `result`.
        side: &'static str,
        /// Path below the mount.
        path: String,
        /// The cause.
        #[source]
        source: rustix::io::Errno,
    },
    /// The overlay used a feature that cannot be captured.
    #[error("{path:?} uses the overlay feature {feature:?}, which cannot be captured")]
    OverlayFeature {
        /// Path below the mount.
        path: String,
        /// Attribute name.
        feature: &'static str,
    },
}

impl CaptureError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Limit { .. } => ErrorCode::CaptureLimit,
            Self::Io { .. } | Self::OverlayFeature { .. } => ErrorCode::RunFailed,
        }
    }
    /// As it crosses a border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}
