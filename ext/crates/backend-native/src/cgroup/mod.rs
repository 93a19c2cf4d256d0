//! The control group of a run: limits and counts that the kernel itself keeps for all
//! processes of a guest together.
//!
//! One group per run; its guests live one after the other, never side by side. The
//! launcher is a member before it reads its plan, so everything it makes is too. The
//! kernel's memory limit is `memory_bytes + disk_bytes`: files on the guest's scratch are
//! memory of the group as well. The part of the processes and of the kernel for them is polled,
//! and the guest is ended when it is above `memory_bytes`; without a group only that of the
//! processes is seen.
//!
//! Whoever makes a group writes down first where ([`Intent`]): what a crash leaves is found
//! and removed by a later call. Descriptors for moving processes are opened when the group
//! is made, because the kernel judges a move by who opened them: a runner that was started
//! by root has given root up by the time a guest starts.

mod group;
mod intent;
mod meter;
mod place;

pub use group::RunCgroup;
pub use intent::{Intent, LeftCgroups, reap_cgroups, remove_cgroups};
pub(crate) use meter::Meter;
pub use place::{CgroupError, CgroupPlace};

/// What counts and limits a guest's memory.
#[derive(Debug)]
pub enum Cgroup {
    /// A group of its own.
    Group(RunCgroup),
    /// Polling and per-process limits.
    None {
        /// Why there is no group, one clause.
        reason: String,
    },
}

impl Cgroup {
    /// No group, for this reason.
    #[must_use]
    pub fn none(reason: impl Into<String>) -> Self {
        Self::None {
            reason: reason.into(),
        }
    }
}
