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
    /// file descriptors in flight over unix sockets with the sender's limit, so the supervisor's
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

/// Limits of a run that asks for none.
const DEFAULT: Limits = Limits {
    wall_clock_ms: 15 * 60 * 1000,
    processes: 128,
    memory_bytes: 1024 * MIB,
    disk_bytes: 512 * MIB,
    output_bytes: 8 * MIB,
    cpu_milli: None,
};

impl Default for Limits {
    fn default() -> Self {
        DEFAULT
    }
}

/// One of the limits of a run.
#[derive(Debug)]
pub struct LimitField {
    /// Name of the field in a request.
    pub name: &'static str,
    /// Value of a run that asks for none; `None`: such a run is not limited.
    pub default: Option<u64>,
    /// Smallest and largest value.
    pub range: (u64, u64),
    /// Finds the field in a request.
    pub member: fn(&mut LimitsRequest) -> &mut Option<u64>,
}

/// All limits of a run.
pub const LIMIT_FIELDS: [LimitField; 6] = [
    LimitField {
        name: "wall_clock_ms",
        default: Some(DEFAULT.wall_clock_ms),
        range: (100, 24 * 3600 * 1000),
        member: |limits| &mut limits.wall_clock_ms,
    },
    LimitField {
        name: "processes",
        default: Some(DEFAULT.processes),
        range: (4, 4096),
        member: |limits| &mut limits.processes,
    },
    LimitField {
        name: "memory_bytes",
        default: Some(DEFAULT.memory_bytes),
        range: (64 * MIB, 64 * 1024 * MIB),
        member: |limits| &mut limits.memory_bytes,
    },
    LimitField {
        name: "disk_bytes",
        default: Some(DEFAULT.disk_bytes),
        range: (MIB, 64 * 1024 * MIB),
        member: |limits| &mut limits.disk_bytes,
    },
    LimitField {
        name: "output_bytes",
        default: Some(DEFAULT.output_bytes),
        range: (1024, 256 * MIB),
        member: |limits| &mut limits.output_bytes,
    },
    LimitField {
        name: "cpu_milli",
        default: DEFAULT.cpu_milli,
        range: CPU_MILLI,
        member: |limits| &mut limits.cpu_milli,
    },
];

impl LimitField {
    /// Returns the value of this limit in a request.
    #[must_use]
    pub fn of(&self, request: &LimitsRequest) -> Option<u64> {
        *(self.member)(&mut request.clone())
    }

    /// Returns whether a run that asks for nothing would have a value above the ceiling.
    #[must_use]
    pub fn exceeds_by_default(&self, ceiling: u64) -> bool {
        self.default.unwrap_or(u64::MAX) > ceiling
    }
}

impl From<Limits> for LimitsRequest {
    fn from(limits: Limits) -> Self {
        Self {
            wall_clock_ms: Some(limits.wall_clock_ms),
            processes: Some(limits.processes),
            memory_bytes: Some(limits.memory_bytes),
            disk_bytes: Some(limits.disk_bytes),
            output_bytes: Some(limits.output_bytes),
            cpu_milli: limits.cpu_milli,
        }
    }
}

impl LimitsRequest {
    /// Returns these limits, and those of `other` where a limit is absent.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut both = self.clone();
        for field in &LIMIT_FIELDS {
            let member = (field.member)(&mut both);
            *member = member.or(field.of(other));
        }
        both
    }

    /// Bounds these limits by `ceilings`: an absent limit whose default is above its ceiling becomes
    /// the ceiling.
    ///
    /// # Errors
    /// If a limit is above its ceiling.
    pub fn bound_by(&mut self, ceilings: &Self) -> Result<(), AboveCeiling> {
        for field in &LIMIT_FIELDS {
            let Some(ceiling) = field.of(ceilings) else {
                continue;
            };
            let asked = (field.member)(self);
            match *asked {
                Some(value) if value > ceiling => {
                    return Err(AboveCeiling {
                        field: field.name,
                        value,
                        ceiling,
                    });
                }
                Some(_) => {}
                None => *asked = field.exceeds_by_default(ceiling).then_some(ceiling),
            }
        }
        Ok(())
    }

    /// Fills in defaults for absent limits; fails when a value is outside its range.
    pub fn resolve(&self) -> Result<Limits, LimitError> {
        for field in &LIMIT_FIELDS {
            let (min, max) = field.range;
            if let Some(value) = field.of(self)
                && !(min..=max).contains(&value)
            {
                return Err(LimitError {
                    field: field.name,
                    value,
                    min,
                    max,
                });
            }
        }
        Ok(Limits {
            wall_clock_ms: self.wall_clock_ms.unwrap_or(DEFAULT.wall_clock_ms),
            processes: self.processes.unwrap_or(DEFAULT.processes),
            memory_bytes: self.memory_bytes.unwrap_or(DEFAULT.memory_bytes),
            disk_bytes: self.disk_bytes.unwrap_or(DEFAULT.disk_bytes),
            output_bytes: self.output_bytes.unwrap_or(DEFAULT.output_bytes),
            cpu_milli: self.cpu_milli,
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
