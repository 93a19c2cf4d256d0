//! Resource limits: the limits a caller may request, and the limits in force for a run.

use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;

/// Requested limits; an absent field takes its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsRequest {
    /// Maximum wall clock time of the whole run, in milliseconds.
    pub wall_clock_ms: Option<u64>,
    /// Maximum number of concurrent processes.
    pub processes: Option<u64>,
    /// Maximum memory of all processes together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Maximum total size of the files that the guest writes, in bytes.
    pub disk_bytes: Option<u64>,
    /// Maximum captured output of one execution, stdout and stderr together, in bytes.
    pub output_bytes: Option<u64>,
    /// Maximum CPU time of all processes together per elapsed time, in thousandths of a processor:
    /// 1500 is one processor and a half. Absent: no limit.
    pub cpu_milli: Option<u64>,
}

/// Resource limits in force for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum wall clock time of the whole run, in milliseconds.
    pub wall_clock_ms: u64,
    /// Maximum number of concurrent processes.
    pub processes: u64,
    /// Maximum memory of all processes together, in bytes. Files are not counted here.
    pub memory_bytes: u64,
    /// Maximum total size of the files that the guest writes, in bytes. The files occupy host
    /// memory, so the memory cgroup's limit is `memory_bytes + disk_bytes`.
    pub disk_bytes: u64,
    /// Maximum captured output of one execution, stdout and stderr together, in bytes.
    pub output_bytes: u64,
    /// Maximum CPU time of all processes together per elapsed time, in thousandths of a processor;
    /// absent: no limit. A host without a CPU controller for the run's cgroup refuses the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u64>,
}

/// Smallest and largest value of the limit `cpu_milli`.
pub const CPU_MILLI: (u64, u64) = (50, 1_024_000);

/// Limits that no run can change. The kernel counts these resources per host user: guests that
/// share the kernel uid of the state directory's owner must stay far below that user's own
/// limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedLimits {
    /// Open files of a program (RLIMIT_NOFILE). Distributions start programs with this soft
    /// limit, so common software works within it. The kernel compares the number of a uid's
    /// file descriptors in flight over unix sockets with the sender's limit, so the runner's
    /// limit must be well above this one.
    pub open_files: u64,
    /// Maximum queued signals and POSIX timers of a guest; counted per user namespace since Linux
    /// 5.14.
    pub queued_signals: u64,
    /// Maximum locked memory of a guest in bytes: enough for programs that lock cryptographic
    /// keys in memory.
    pub locked_bytes: u64,
    /// Maximum inotify instances of a guest; the host allows 128 per uid by default.
    pub inotify_instances: u64,
    /// Maximum inotify watches of a guest.
    pub inotify_watches: u64,
}

/// Fixed limits in every guest; the last two only at level `full`.
pub const FIXED_LIMITS: FixedLimits = FixedLimits {
    open_files: 1024,
    queued_signals: 1024,
    locked_bytes: MIB,
    inotify_instances: 16,
    inotify_watches: 65_536,
};

/// Error for a limit outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limits.{field} is {value}, but must be from {min} to {max}")]
pub struct LimitError {
    /// Name of the limit that is outside its range.
    pub field: &'static str,
    /// Requested value.
    pub value: u64,
    /// Smallest accepted value.
    pub min: u64,
    /// Largest accepted value.
    pub max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall_clock_ms: 15 * 60 * 1000,
            processes: 128,
            memory_bytes: 1024 * MIB,
            disk_bytes: 512 * MIB,
            output_bytes: 8 * MIB,
            cpu_milli: None,
        }
    }
}

impl LimitsRequest {
    /// Fills in defaults for absent limits; fails when a value is outside its range.
    pub fn resolve(&self) -> Result<Limits, LimitError> {
        let d = Limits::default();
        let pick = |field, given: Option<u64>, default, min, max| match given {
            None => Ok(default),
            Some(value) if (min..=max).contains(&value) => Ok(value),
            Some(value) => Err(LimitError {
                field,
                value,
                min,
                max,
            }),
        };
        Ok(Limits {
            wall_clock_ms: pick(
                "wall_clock_ms",
                self.wall_clock_ms,
                d.wall_clock_ms,
                100,
                24 * 3600 * 1000,
            )?,
            processes: pick("processes", self.processes, d.processes, 4, 4096)?,
            memory_bytes: pick(
                "memory_bytes",
                self.memory_bytes,
                d.memory_bytes,
                64 * MIB,
                64 * 1024 * MIB,
            )?,
            disk_bytes: pick(
                "disk_bytes",
                self.disk_bytes,
                d.disk_bytes,
                MIB,
                64 * 1024 * MIB,
            )?,
            output_bytes: pick(
                "output_bytes",
                self.output_bytes,
                d.output_bytes,
                1024,
                256 * MIB,
            )?,
            cpu_milli: match self.cpu_milli {
                None => None,
                given => Some(pick("cpu_milli", given, 0, CPU_MILLI.0, CPU_MILLI.1)?),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_at_its_minimum_is_accepted_and_a_limit_below_its_minimum_is_refused() {
        assert_eq!(
            LimitsRequest::default().resolve().unwrap(),
            Limits::default()
        );
        let low = LimitsRequest {
            processes: Some(3),
            ..Default::default()
        };
        assert_eq!(low.resolve().unwrap_err().field, "processes");
        let edge = LimitsRequest {
            processes: Some(4),
            ..Default::default()
        };
        assert_eq!(edge.resolve().unwrap().processes, 4);
    }
}
