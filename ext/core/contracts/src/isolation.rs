//! The isolation report: requested and observed isolation of a guest.

use crate::string_enum;
use serde::{Deserialize, Serialize};

string_enum! {
    /// Overall isolation level of a guest.
    #[derive(PartialOrd, Ord)]
    pub enum IsolationLevel {
        /// Insufficient: the run is refused.
        None = "none",
        /// Some mechanisms are missing: the guest shares the host's file tree and processes.
        Reduced = "reduced",
        /// All isolation mechanisms are in force.
        Full = "full",
    }
}

impl IsolationLevel {
    /// Returns the enforcement that the supervisor requests on an axis for a guest of this level.
    #[must_use]
    pub const fn requested(self, axis: IsolationAxis) -> Enforcement {
        match (self, axis) {
            (Self::None, _) => Enforcement::NotEnforced,
            (Self::Full, IsolationAxis::Cpu | IsolationAxis::Identity) => Enforcement::BestEffort,
            (Self::Full, _) => Enforcement::Enforced,
            (Self::Reduced, _) => self.least(axis),
        }
    }

    /// Returns the minimum enforcement that must be observed on an axis for a guest to have
    /// this level.
    #[must_use]
    pub const fn least(self, axis: IsolationAxis) -> Enforcement {
        use IsolationAxis as Axis;
        match (self, axis) {
            (Self::None, _) => Enforcement::NotEnforced,
            // Both levels must also work on hosts without cgroups: there, the supervisor can only poll
            // the memory and CPU time of all processes together. Both must also work without root
            // and without a subordinate id range: one of these is needed to give a guest its own
            // kernel uid. Before Linux 6.6 only root can limit the size of a guest's files.
            (
                Self::Full | Self::Reduced,
                Axis::Memory | Axis::Cpu | Axis::Identity | Axis::Disk,
            ) => Enforcement::BestEffort,
            (Self::Full, _) => Enforcement::Enforced,
            (Self::Reduced, Axis::Network | Axis::Syscalls | Axis::Privileges) => {
                Enforcement::Enforced
            }
            // At `reduced`, the guest shares the file tree, processes and per-user counters of
            // the host.
            (Self::Reduced, Axis::Files | Axis::Processes | Axis::Pids) => Enforcement::BestEffort,
        }
    }
}

string_enum! {
    /// Aspect of a guest's isolation with a separate row in the report.
    #[derive(PartialOrd, Ord)]
    #[allow(missing_docs)]
    pub enum IsolationAxis {
        Files = "files",
        Processes = "processes",
        Network = "network",
        Syscalls = "syscalls",
        Privileges = "privileges",
        Memory = "memory",
        Cpu = "cpu",
        Pids = "pids",
        Disk = "disk",
        Identity = "identity",
    }
}

string_enum! {
    /// How well an isolation axis is enforced, weakest first.
    #[derive(PartialOrd, Ord)]
    pub enum Enforcement {
        /// The isolation axis is not enforced at all.
        NotEnforced = "not-enforced",
        /// Enforced by the supervisor's polling, or by the kernel for each process but not for all of
        /// the guest's processes together.
        BestEffort = "best-effort",
        /// Enforced by the kernel, as observed inside the guest.
        Enforced = "enforced",
    }
}

/// Report of one isolation axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisReport {
    /// Isolation axis that the row describes.
    pub axis: IsolationAxis,
    /// Enforcement that the run requested.
    pub requested: Enforcement,
    /// Enforcement that the probe observed.
    pub enforced: Enforcement,
    /// Kernel mechanism that enforces the axis.
    pub by: String,
    /// What the probe observed, as text for readers.
    pub evidence: String,
}

/// Results of the probes that ran inside one guest before the guest received untrusted code or
/// data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationReport {
    /// Schema id, `wp-codebox/isolation-report/v1`.
    pub schema: String,
    /// Overall isolation level that the probes observed.
    pub level: IsolationLevel,
    /// Release of the host's kernel.
    pub kernel: String,
    /// Landlock ABI version; 0 without Landlock.
    #[serde(rename = "landlockAbi")]
    pub landlock_abi: u32,
    /// One row per isolation axis.
    pub axes: Vec<AxisReport>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolation_level_full_requires_at_least_the_enforcement_of_level_reduced() {
        for &axis in IsolationAxis::ALL {
            let least = |level: IsolationLevel| level.least(axis);
            assert!(least(IsolationLevel::Full) >= least(IsolationLevel::Reduced));
            assert!(least(IsolationLevel::Reduced) > least(IsolationLevel::None));
            assert!(IsolationLevel::Full.requested(axis) >= least(IsolationLevel::Full));
        }
    }
}
