//! One program that a run executes, its time limits and its result.

use crate::backend::{ExecutionEnd, ExecutionResult};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, GuestPath};

/// Phase in which components are loaded, before the commands of the run.
pub const COMPONENTS: &str = "components";

/// One program that the run executes.
#[derive(Debug, Clone)]
pub struct Call {
    /// Registry command id, or `check`.
    pub command: String,
    /// Arguments as the artifact bundle records them.
    pub args: Vec<String>,
    /// [`COMPONENTS`], `workflow`, `agent` or `check`.
    pub phase: &'static str,
    /// Program and arguments in the guest.
    pub argv: Vec<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Working directory in the guest.
    pub cwd: GuestPath,
    /// Standard input; `None` closes it.
    pub stdin: Option<Vec<u8>>,
}

/// Time limits of one program.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Time at which the whole guest is killed.
    pub deadline: Instant,
    /// Timeout after which only this program and its child processes are killed.
    pub timeout: Duration,
}

/// Result of one program.
#[derive(Debug, Clone)]
pub struct Step {
    /// How the program ended.
    pub result: ExecutionResult,
    /// Redacted standard output.
    pub stdout: String,
    /// Redacted standard error.
    pub stderr: String,
    /// Streams whose stored text is incomplete.
    pub cut: Cut,
}

impl Step {
    /// Returns the exit code, 128 + signal number after a signal, or `None` if the program did
    /// not exit.
    pub fn exit_code(&self) -> Option<i32> {
        match self.result.end {
            ExecutionEnd::Exited { code } => Some(code),
            ExecutionEnd::Signalled { signal } => Some(128 + signal),
            ExecutionEnd::NotStarted { .. }
            | ExecutionEnd::TimedOut
            | ExecutionEnd::Cancelled
            | ExecutionEnd::LimitReached { .. }
            | ExecutionEnd::GuestDied { .. } => None,
        }
    }
}

/// Total size in bytes of each stream whose stored text is incomplete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// Size of standard output.
    pub stdout: Option<u64>,
    /// Size of standard error.
    pub stderr: Option<u64>,
}

impl Cut {
    /// Returns whether any stream is incomplete.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

/// Reason why a run stopped early.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// The deadline of the run passed.
    Timeout,
    /// The run was cancelled.
    Cancelled,
    /// The run failed.
    Failed(ErrorBody),
    /// The agent stopped before it was done; its changes may still be useful.
    Partial(ErrorBody),
    /// A condition that the agent cannot change prevents it from continuing.
    Blocked(ErrorBody),
    /// The changes of the guest cannot be captured, so there are none to review.
    Uncaptured(ErrorBody),
}
