//! Why a guest ended that nothing had asked to end.

use crate::ErrorBody;
use serde::{Deserialize, Serialize};

/// A process without which a guest cannot live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestProcess {
    /// The guest's first process; pid 1 at level `full`.
    First,
    /// The launcher, the parent of the first; or the outer sandbox around it.
    Launcher,
    /// The process that starts launchers for guests with a kernel uid of their own.
    Spawner,
    /// None of them was seen to end.
    #[default]
    Unknown,
}

/// Which process ended first, and by what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GuestDeath {
    /// Which.
    pub process: GuestProcess,
    /// Its exit code, when it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What it gave as its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<DeathFailure>,
    /// Processes that the kernel of this host ended for want of memory while the guest lived, in
    /// or out of it: a hint, no cause.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_oom_kills: u64,
}

/// The step that failed in the process that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeathFailure {
    /// Which, e.g. `channel`.
    pub step: String,
    /// What it was about, e.g. `poll`.
    pub subject: String,
    /// errno; 0 when none applies.
    pub errno: i32,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Names of the signals that end a process which does not handle them, as Linux numbers them.
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
    /// `error` with this as its `data.death`.
    #[must_use]
    pub fn told_in(&self, error: ErrorBody) -> ErrorBody {
        match serde_json::to_value(self) {
            Ok(value) => error.with("death", value),
            Err(_) => error,
        }
    }
}

impl std::fmt::Display for GuestDeath {
    /// One clause, e.g. `the sandbox's first process was ended by signal 9 (SIGKILL)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.process {
            GuestProcess::First => "the sandbox's first process",
            GuestProcess::Launcher => "the sandbox's launcher",
            GuestProcess::Spawner => "the process that starts sandboxes",
            GuestProcess::Unknown => {
                "the sandbox does not answer, and none of its own processes was seen to end"
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
                "; while it lived the kernel ended one process of this host for want of memory",
            ),
            more => write!(
                f,
                "; while it lived the kernel ended {more} processes of this host for want of memory"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn each_death_is_one_clause_that_names_process_and_cause() {
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
                "the sandbox's first process was ended by signal 9 (SIGKILL); while it lived the \
                 kernel ended one process of this host for want of memory",
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
                "the sandbox does not answer, and none of its own processes was seen to end",
            ),
        ] {
            assert_eq!(death.to_string(), said);
        }
    }

    #[test]
    fn an_error_carries_what_is_known_and_no_more() {
        let death = GuestDeath {
            process: GuestProcess::Launcher,
            signal: Some(9),
            ..GuestDeath::default()
        };
        let error = death.told_in(ErrorBody::new(ErrorCode::RunFailed, "it ended"));
        assert_eq!(
            serde_json::to_value(error).unwrap()["data"],
            serde_json::json!({"death": {"process": "launcher", "signal": 9}})
        );
    }
}
