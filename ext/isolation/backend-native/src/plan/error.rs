//! Errors of building a launch plan.

use super::settings::AGENTS;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPath, InvalidGuestPath};

/// Reason why no launch plan can be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A string is not a valid guest path.
    #[error("{source}")]
    Path {
        /// The invalid path and what is wrong with it.
        #[from]
        source: InvalidGuestPath,
    },
    /// The request mounts a directory at a guest path where mounts are not allowed.
    #[error(
        "the mount target {target} is not allowed; use a directory below /workspace, below /wordpress/wp-content such as /wordpress/wp-content/plugins/<slug>, below /tmp, or in a new top-level directory such as /harness"
    )]
    Target {
        /// Guest path at which the directory was to be mounted.
        target: GuestPath,
    },
    /// One mount's guest path lies at or below that of another mount.
    #[error("mount targets {first} and {second} overlap; mount them apart or only the outer one")]
    Overlap {
        /// Guest path of the first mount.
        first: GuestPath,
        /// Guest path of the second mount.
        second: GuestPath,
    },
    /// A staged file (a single host file shown in the guest) may not lie at this guest path.
    #[error(
        "staged file target {target} must lie below /run/codebox/staged or where a mount may lie, outside every mount"
    )]
    Staged {
        /// Guest path of the staged file.
        target: GuestPath,
    },
    /// A directory of agent programs may not lie at this guest path.
    #[error("agent programs must be mounted one level below {AGENTS}, not at {target}")]
    Programs {
        /// Guest path of the program directory.
        target: GuestPath,
    },
    /// The fields of a mount contradict each other.
    #[error("the settings of mount {target} are not valid: {rule}")]
    Mount {
        /// Guest path of the mount.
        target: GuestPath,
        /// What is wrong with the mount, for the error message.
        rule: &'static str,
    },
}

impl PlanError {
    /// Returns the error's public code, which stays the same across releases.
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
    /// Returns public code and message, for sending to another process.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}
