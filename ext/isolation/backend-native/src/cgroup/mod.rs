//! The cgroup of a run: kernel limits and counters for all processes of a guest together.
//!
//! Each run has one cgroup; its guests use it one after the other, never at the same time. The
//! launcher joins the cgroup before it reads its plan, so all its descendants are members. The
//! kernel's memory limit is `memory_bytes + disk_bytes`, because files on the guest's scratch tmpfs
//! are charged to the cgroup as well. The supervisor polls the memory of the guest's processes plus the
//! kernel memory charged to them, and kills the guest when the sum exceeds `memory_bytes`. Without
//! a cgroup it polls only the memory of the processes.
//!
//! Before a process creates a cgroup, it writes the paths to a record ([`Intent`]), so a later call
//! can find and remove cgroups that a crash leaves behind. The `cgroup.procs` files are opened when
//! the cgroup is created, because the kernel checks a move with the credentials of the process that
//! opened the file: a supervisor started by root has dropped root before a guest starts.

mod group;
mod intent;
mod meter;
mod parents;

pub(crate) use group::Evidence;
pub use group::RunCgroup;
pub use intent::{Intent, ReapedCgroups, reap_cgroups, remove_cgroups};
pub(crate) use meter::Meter;
pub use parents::{CgroupError, CgroupParents};
use wp_codebox_contracts::GroupUse;

/// Whether a cgroup counts and limits the memory of a guest.
#[derive(Debug)]
pub enum Cgroup {
    /// The guest runs in the cgroup of its run.
    Group(RunCgroup),
    /// There is no cgroup: the supervisor polls the guest's memory, and resource limits apply per
    /// process.
    None {
        /// Why no cgroup can be used: one clause for the isolation report.
        reason: String,
    },
}

impl Cgroup {
    /// Returns what the kernel has counted for the cgroup so far.
    #[must_use]
    pub fn used(&self) -> Option<GroupUse> {
        match self {
            Self::Group(group) => Some(group.used()),
            Self::None { .. } => None,
        }
    }

    /// Returns [`Cgroup::None`] with the given reason.
    #[must_use]
    pub fn none(reason: impl Into<String>) -> Self {
        Self::None {
            reason: reason.into(),
        }
    }
}
