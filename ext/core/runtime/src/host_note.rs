//! Facts about the host recorded at the start of a run, from which the cause of a supervisor's
//! death is derived later.

use serde::{Deserialize, Serialize};
use std::fs;

/// Boot id of the host, and number of processes that its OOM killer has killed since boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostNote {
    pub(crate) boot_id: String,
    pub(crate) oom_kills: u64,
}

impl HostNote {
    pub(crate) fn now() -> Self {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self {
            boot_id: boot_id.trim().to_owned(),
            oom_kills: host_oom_kills(),
        }
    }
}

/// Returns the number of processes that the OOM killer of this host has killed since boot; 0 if
/// the kernel does not count them (before Linux 4.13).
#[must_use]
pub fn host_oom_kills() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}
