//! The isolation report: what was asked for, what was observed in the guest.

use serde::{Deserialize, Serialize};

/// Overall level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationLevel {
    /// Not enough: the run is refused.
    None,
    /// No private file-system view.
    Reduced,
    /// Everything of the design.
    Full,
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

    /// As policies and reports write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reduced => "reduced",
            Self::Full => "full",
        }
    }
}

/// What is isolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum IsolationAxis {
    Files,
    Processes,
    Network,
    Syscalls,
    Privileges,
    Memory,
    Cpu,
    Pids,
    Disk,
    Identity,
}

impl IsolationAxis {
    /// Every axis, in the order of a report.
    pub const ALL: [Self; 10] = [
        Self::Files,
        Self::Processes,
        Self::Network,
        Self::Syscalls,
        Self::Privileges,
        Self::Memory,
        Self::Cpu,
        Self::Pids,
        Self::Disk,
        Self::Identity,
    ];

    /// As policies and reports write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Processes => "processes",
            Self::Network => "network",
            Self::Syscalls => "syscalls",
            Self::Privileges => "privileges",
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
            Self::Disk => "disk",
            Self::Identity => "identity",
        }
    }
}

/// How well an axis is enforced, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcement {
    /// Not at all.
    NotEnforced,
    /// By polling or per process only.
    BestEffort,
    /// By the kernel, seen from inside the guest.
    Enforced,
}

impl Enforcement {
    /// As policies and reports write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotEnforced => "not-enforced",
            Self::BestEffort => "best-effort",
            Self::Enforced => "enforced",
        }
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
    fn names_are_those_of_the_documents() {
        for axis in IsolationAxis::ALL {
            assert_eq!(serde_json::to_value(axis).unwrap(), axis.name());
        }
        for level in [
            IsolationLevel::None,
            IsolationLevel::Reduced,
            IsolationLevel::Full,
        ] {
            assert_eq!(serde_json::to_value(level).unwrap(), level.name());
        }
        for word in [
            Enforcement::NotEnforced,
            Enforcement::BestEffort,
            Enforcement::Enforced,
        ] {
            assert_eq!(serde_json::to_value(word).unwrap(), word.name());
        }
    }

    #[test]
    fn a_higher_level_never_needs_less() {
        for axis in IsolationAxis::ALL {
            let least = |level: IsolationLevel| level.least(axis);
            assert!(least(IsolationLevel::Full) >= least(IsolationLevel::Reduced));
            assert!(least(IsolationLevel::Reduced) > least(IsolationLevel::None));
            assert!(IsolationLevel::Full.requested(axis) >= least(IsolationLevel::Full));
        }
    }
}
