//! Why a guest ended although the supervisor did not end it.

use crate::ErrorBody;
use serde::{Deserialize, Serialize};

/// Processes whose end also ends the guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestProcess {
    /// First process of the guest; pid 1 at isolation level `full`.
    First,
    /// The launcher, which is the parent of the guest's first process, or the process wrapper
    /// around the launcher.
    Launcher,
    /// The process that starts launchers for guests with their own kernel uid.
    Spawner,
    /// The supervisor saw none of these processes end.
    #[default]
    Unknown,
}

/// Process whose end also ended the guest, and why that process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GuestDeath {
    /// Process that ended first.
    pub process: GuestProcess,
    /// Exit code, if the process exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Signal, if a signal killed the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Failure that the process reported before it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<DeathFailure>,
    /// Number of OOM kills by this host's kernel during the guest's lifetime, inside or outside
    /// the guest: a possible cause, not a proven one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_oom_kills: u64,
}

/// Failure that the guest's first process, launcher or spawner reported before it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeathFailure {
    /// Name of the step in which the process failed, e.g. `channel`.
    pub step: String,
    /// What failed in the step: a system call, path or mechanism, e.g. `poll`.
    pub subject: String,
    /// errno; 0 when none applies.
    pub errno: i32,
}

// serde's `skip_serializing_if` passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Names and Linux numbers of common signals whose default action ends a process.
const SIGNALS: &[(i32, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (31, "SIGSYS"),
];

impl GuestDeath {
    /// Returns `error` with this death as its `data.death`.
    #[must_use]
    pub fn attach_to(&self, error: ErrorBody) -> ErrorBody {
        match serde_json::to_value(self) {
            Ok(value) => error.with("death", value),
            Err(_) => error,
        }
    }
}

impl std::fmt::Display for GuestDeath {
    /// Writes one clause, e.g. `the sandbox's first process was ended by signal 9 (SIGKILL)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.process {
            GuestProcess::First => "the sandbox's first process",
            GuestProcess::Launcher => "the sandbox's launcher",
            GuestProcess::Spawner => "the process that starts sandboxes",
            GuestProcess::Unknown => {
                "the sandbox does not answer, and whether its first process or its launcher ended is unknown"
            }
        })?;
        match (self.signal, self.code) {
            (Some(signal), _) => {
                write!(f, " was ended by signal {signal}")?;
                if let Some((_, name)) = SIGNALS.iter().find(|(number, _)| *number == signal) {
                    write!(f, " ({name})")?;
                }
            }
            (None, Some(code)) => write!(f, " exited with {code}")?,
            (None, None) if self.process != GuestProcess::Unknown => f.write_str(" ended")?,
            (None, None) => {}
        }
        if let Some(DeathFailure {
            step,
            subject,
            errno,
        }) = &self.failure
        {
            write!(f, ": step {step} failed at {subject}")?;
            if *errno != 0 {
                write!(f, " ({})", std::io::Error::from_raw_os_error(*errno))?;
            }
        }
        match self.host_oom_kills {
            0 => Ok(()),
            1 => f.write_str(
                "; while the sandbox ran, the kernel killed one process of this host because memory ran out",
            ),
            more => write!(
                f,
                "; while the sandbox ran, the kernel killed {more} processes of this host because memory ran out"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn guest_death_message_names_process_and_cause() {
        let failure = DeathFailure {
            step: "channel".to_owned(),
            subject: "sendmsg".to_owned(),
            errno: 105,
        };
        let unknown = GuestDeath::default();
        let first = GuestDeath {
            process: GuestProcess::First,
            ..unknown.clone()
        };
        for (death, said) in [
            (
                GuestDeath {
                    signal: Some(9),
                    host_oom_kills: 1,
                    ..first.clone()
                },
                "the sandbox's first process was ended by signal 9 (SIGKILL); while the sandbox \
                 ran, the kernel killed one process of this host because memory ran out",
            ),
            (
                GuestDeath {
                    code: Some(125),
                    failure: Some(failure),
                    ..first.clone()
                },
                "the sandbox's first process exited with 125: step channel failed at sendmsg \
                 (No buffer space available (os error 105))",
            ),
            (
                GuestDeath {
                    process: GuestProcess::Launcher,
                    signal: Some(40),
                    ..unknown.clone()
                },
                "the sandbox's launcher was ended by signal 40",
            ),
            (
                GuestDeath {
                    process: GuestProcess::Spawner,
                    ..unknown.clone()
                },
                "the process that starts sandboxes ended",
            ),
            (
                unknown,
                "the sandbox does not answer, and whether its first process or its launcher ended is unknown",
            ),
        ] {
            assert_eq!(death.to_string(), said);
        }
    }

    #[test]
    fn error_data_of_a_guest_death_omits_members_without_a_known_value() {
        let death = GuestDeath {
            process: GuestProcess::Launcher,
            signal: Some(9),
            ..GuestDeath::default()
        };
        let error = death.attach_to(ErrorBody::new(ErrorCode::RunFailed, "it ended"));
        assert_eq!(
            serde_json::to_value(error).unwrap()["data"],
            serde_json::json!({"death": {"process": "launcher", "signal": 9}})
        );
    }
}
