//! Errors of building a launch plan.

use super::settings::AGENTS;
use wp_codebox_contracts::{CodedError, GuestPath, InvalidGuestPath};

/// Reason why no launch plan can be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
pub enum PlanError {
    /// A string is not a valid guest path.
    #[error("{source}")]
    #[code(MountTargetInvalid)]
    Path {
        /// The invalid path and what is wrong with it.
        #[from]
        source: InvalidGuestPath,
    },
    /// The request mounts a directory at a guest path where mounts are not allowed.
    #[error(
        "the mount target {target} is not allowed; use a directory below /workspace, below /wordpress/wp-content such as /wordpress/wp-content/plugins/<slug>, below /tmp, or in a new top-level directory such as /harness"
    )]
    #[code(MountTargetInvalid)]
    Target {
        /// Guest path at which the directory was to be mounted.
        target: GuestPath,
    },
    /// One mount's guest path lies at or below that of another mount.
    #[error("mount targets {first} and {second} overlap; mount them apart or only the outer one")]
    #[code(MountTargetOverlap)]
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
    #[code(InputInvalid)]
    Staged {
        /// Guest path of the staged file.
        target: GuestPath,
    },
    /// A directory of agent programs may not lie at this guest path.
    #[error("agent programs must be mounted one level below {AGENTS}, not at {target}")]
    #[code(MountTargetInvalid)]
    Programs {
        /// Guest path of the program directory.
        target: GuestPath,
    },
    /// The fields of a mount contradict each other.
    #[error("the settings of mount {target} are not valid: {rule}")]
    #[code(MountInvalid)]
    Mount {
        /// Guest path of the mount.
        target: GuestPath,
        /// What is wrong with the mount, for the error message.
        rule: &'static str,
    },
}
