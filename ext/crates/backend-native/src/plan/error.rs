//! Why no plan can be made.

use super::settings::AGENTS;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPath, InvalidGuestPath};

/// Why no plan can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A path that is not one.
    #[error("{source}")]
    Path {
        /// Which and why.
        #[from]
        source: InvalidGuestPath,
    },
    /// A target at which nothing may be mounted.
    #[error(
        "mount target {target} cannot be mounted; use a directory below /workspace, or below /wordpress/wp-content such as /wordpress/wp-content/plugins/<slug>"
    )]
    Target {
        /// Which.
        target: GuestPath,
    },
    /// Two mounts cover each other.
    #[error("mount targets {first} and {second} overlap; mount them apart or only the outer one")]
    Overlap {
        /// One.
        first: GuestPath,
        /// The other.
        second: GuestPath,
    },
    /// A staged file's target.
    #[error(
        "staged file target {target} must lie below /run/codebox/staged or /workspace, outside every mount"
    )]
    Staged {
        /// Which.
        target: GuestPath,
    },
    /// A directory of programs somewhere else.
    #[error("programs of agents are shown one level below {AGENTS}, not at {target}")]
    Programs {
        /// Which.
        target: GuestPath,
    },
    /// A mount whose parts contradict each other.
    #[error("mount {target} is inconsistent: {rule}")]
    Mount {
        /// Which.
        target: GuestPath,
        /// What must hold.
        rule: &'static str,
    },
}

impl PlanError {
    /// Stable code.
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
    /// As it crosses a process border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}
