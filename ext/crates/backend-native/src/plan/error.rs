//! Errors of building a plan.

use super::settings::AGENTS;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPath, InvalidGuestPath};

/// Reason why no plan can be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A string is not a valid guest path.
    #[error("{source}")]
    Path {
        /// Invalid path and cause.
        #[from]
        source: InvalidGuestPath,
    },
    /// The target is not allowed for mounts.
    #[error(
        "mount target {target} cannot be mounted; use a directory below /workspace, or below /wordpress/wp-content such as /wordpress/wp-content/plugins/<slug>"
    )]
    Target {
        /// Target.
        target: GuestPath,
    },
    /// Two mount targets overlap.
    #[error("mount targets {first} and {second} overlap; mount them apart or only the outer one")]
    Overlap {
        /// First target.
        first: GuestPath,
        /// Second target.
        second: GuestPath,
    },
    /// The target of a staged file is not allowed.
    #[error(
        "staged file target {target} must lie below /run/codebox/staged or /workspace, outside every mount"
    )]
    Staged {
        /// Target.
        target: GuestPath,
    },
    /// The target of a program directory is not allowed.
    #[error("programs of agents are shown one level below {AGENTS}, not at {target}")]
    Programs {
        /// Target.
        target: GuestPath,
    },
    /// The fields of a mount contradict each other.
    #[error("mount {target} is inconsistent: {rule}")]
    Mount {
        /// Target.
        target: GuestPath,
        /// Violated rule.
        rule: &'static str,
    },
}

impl PlanError {
    /// Returns the stable error code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Path { .. } | Self::Target { .. } | Self::Programs { .. } => {
                ErrorCode::MountTargetInvalid
            }
            Self::Overlap { .. } => ErrorCode::MountTargetOverlap,
            Self::Staged { .. } => ErrorCode::InputInvalid,
            Self::Mount { .. } => ErrorCode::MountInvalid,
        }
    }
    /// Converts the error for transfer to another process.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}
