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
