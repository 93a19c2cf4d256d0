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

/// Highest limits of a run where the operator sets none.
pub const DEFAULT_MAX_LIMITS: LimitsRequest = LimitsRequest {
    wall_clock_ms: Some(8 * 3600 * 1000),
    processes: None,
    memory_bytes: Some(16 * 1024 * MIB),
    disk_bytes: Some(16 * 1024 * MIB),
    output_bytes: None,
    cpu_milli: None,
};

/// A limit of a request that is above its ceiling.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limits.{field} is {value}, but may be at most {ceiling}")]
pub struct AboveCeiling {
    /// Name of the limit.
    pub field: &'static str,
    /// Requested value.
    pub value: u64,
    /// Highest accepted value.
    pub ceiling: u64,
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
    /// Returns these limits, and those of `other` where a limit is absent.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            wall_clock_ms: self.wall_clock_ms.or(other.wall_clock_ms),
            processes: self.processes.or(other.processes),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            disk_bytes: self.disk_bytes.or(other.disk_bytes),
            output_bytes: self.output_bytes.or(other.output_bytes),
            cpu_milli: self.cpu_milli.or(other.cpu_milli),
        }
    }

    /// Bounds these limits by `ceilings`: an absent limit whose default is above its ceiling becomes
    /// the ceiling.
    ///
    /// # Errors
    /// If a limit is above its ceiling.
    pub fn bound_by(&mut self, ceilings: &Self) -> Result<(), AboveCeiling> {
        let d = Limits::default();
        let rows = [
            (
                "wall_clock_ms",
                &mut self.wall_clock_ms,
                d.wall_clock_ms,
                ceilings.wall_clock_ms,
            ),
            (
                "processes",
                &mut self.processes,
                d.processes,
                ceilings.processes,
            ),
            (
                "memory_bytes",
                &mut self.memory_bytes,
                d.memory_bytes,
                ceilings.memory_bytes,
            ),
            (
                "disk_bytes",
                &mut self.disk_bytes,
                d.disk_bytes,
                ceilings.disk_bytes,
            ),
            (
                "output_bytes",
                &mut self.output_bytes,
                d.output_bytes,
                ceilings.output_bytes,
            ),
            // A run without a CPU limit may use every processor.
            (
                "cpu_milli",
                &mut self.cpu_milli,
                d.cpu_milli.unwrap_or(u64::MAX),
                ceilings.cpu_milli,
            ),
        ];
        for (field, asked, default, ceiling) in rows {
            let Some(ceiling) = ceiling else { continue };
            match *asked {
                Some(value) if value > ceiling => {
                    return Err(AboveCeiling {
                        field,
                        value,
                        ceiling,
                    });
                }
                Some(_) => {}
                None => *asked = (default > ceiling).then_some(ceiling),
            }
        }
        Ok(())
    }

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
    fn limit_above_its_ceiling_is_refused_and_an_absent_one_is_lowered_to_the_ceiling() {
        let ceilings = LimitsRequest {
            memory_bytes: Some(512 * MIB),
            processes: Some(4096),
            ..Default::default()
        };
        let mut absent = LimitsRequest::default();
        absent.bound_by(&ceilings).unwrap();
        assert_eq!(
            (absent.memory_bytes, absent.processes),
            (Some(512 * MIB), None)
        );
        let asks = |memory_bytes| LimitsRequest {
            memory_bytes: Some(memory_bytes),
            ..Default::default()
        };
        asks(512 * MIB).bound_by(&ceilings).unwrap();
        let error = asks(512 * MIB + 1).bound_by(&ceilings).unwrap_err();
        assert_eq!((error.field, error.ceiling), ("memory_bytes", 512 * MIB));
        asks(u64::MAX).bound_by(&LimitsRequest::default()).unwrap();
    }

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
