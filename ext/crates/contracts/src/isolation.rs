//! The isolation report: what was asked for, what was observed in the guest.

use crate::words;
use serde::{Deserialize, Serialize};

words! {
    /// Overall level.
    #[derive(PartialOrd, Ord)]
    pub enum IsolationLevel {
        /// Not enough: the run is refused.
        None = "none",
        /// No private file-system view.
        Reduced = "reduced",
        /// Everything of the design.
        Full = "full",
    }
}

impl IsolationLevel {
    /// What a guest of this level asks of an axis.
    #[must_use]
    pub const fn requested(self, axis: IsolationAxis) -> Enforcement {
        match (self, axis) {
            (Self::None, _) => Enforcement::NotEnforced,
            (Self::Full, IsolationAxis::Cpu | IsolationAxis::Identity) => Enforcement::BestEffort,
            (Self::Full, _) => Enforcement::Enforced,
            (Self::Reduced, _) => self.least(axis),
        }
    }

    /// What must be observed on an axis for a guest to count as this level.
    #[must_use]
    pub const fn least(self, axis: IsolationAxis) -> Enforcement {
        use IsolationAxis as Axis;
        match (self, axis) {
            (Self::None, _) => Enforcement::NotEnforced,
            // Without a cgroup a sum over processes can only be polled.
            // A kernel uid of its own needs root or a range of subordinate ids.
            (Self::Full | Self::Reduced, Axis::Memory | Axis::Cpu | Axis::Identity) => {
                Enforcement::BestEffort
            }
            (Self::Full, _) => Enforcement::Enforced,
            (Self::Reduced, Axis::Network | Axis::Syscalls | Axis::Privileges) => {
                Enforcement::Enforced
            }
            // The host's tree, processes and per-user counters stay shared.
            (Self::Reduced, Axis::Files | Axis::Processes | Axis::Pids | Axis::Disk) => {
                Enforcement::BestEffort
            }
        }
    }
}

words! {
    /// What is isolated.
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

words! {
    /// How well an axis is enforced, least first.
    #[derive(PartialOrd, Ord)]
    pub enum Enforcement {
        /// Not at all.
        NotEnforced = "not-enforced",
        /// By polling or per process only.
        BestEffort = "best-effort",
        /// By the kernel, seen from inside the guest.
        Enforced = "enforced",
    }
}

/// One axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisReport {
    /// Which.
    pub axis: IsolationAxis,
    /// What the run asked for.
    pub requested: Enforcement,
    /// What was observed.
    pub enforced: Enforcement,
    /// The mechanism.
    pub by: String,
    /// What the probe saw.
    pub evidence: String,
}

/// What probes inside this guest, on this kernel, saw before the first untrusted byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationReport {
    /// `wp-codebox/isolation-report/v1`.
    pub schema: String,
    /// Overall level.
    pub level: IsolationLevel,
    /// Kernel release.
    pub kernel: String,
    /// Landlock ABI; 0 when absent.
    #[serde(rename = "landlockAbi")]
    pub landlock_abi: u32,
    /// One row per axis.
    pub axes: Vec<AxisReport>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_level_never_needs_less() {
        for &axis in IsolationAxis::ALL {
            let least = |level: IsolationLevel| level.least(axis);
            assert!(least(IsolationLevel::Full) >= least(IsolationLevel::Reduced));
            assert!(least(IsolationLevel::Reduced) > least(IsolationLevel::None));
            assert!(IsolationLevel::Full.requested(axis) >= least(IsolationLevel::Full));
        }
    }
}
