//! One program that a run starts, its bounds, and its end.

use crate::backend::{ExecutionEnd, ExecutionResult};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, GuestPath};

/// Phase in which components are loaded, before anything of the run's own.
pub const COMPONENTS: &str = "components";

/// One program the run starts.
#[derive(Debug, Clone)]
pub struct Call {
    /// Registry command id, or `check`.
    pub command: String,
    /// Arguments as the bundle shows them.
    pub args: Vec<String>,
    /// [`COMPONENTS`], `workflow`, `agent` or `check`.
    pub phase: &'static str,
    /// Program and arguments in the guest.
    pub argv: Vec<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Working directory in the guest.
    pub cwd: GuestPath,
    /// Standard input; none closes it.
    pub stdin: Option<Vec<u8>>,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// When the whole guest is ended.
    pub deadline: Instant,
    /// After which time only this program is ended, with what it started.
    pub timeout: Duration,
}

/// What became of a call.
#[derive(Debug, Clone)]
pub struct Step {
    /// How the program ended.
    pub result: ExecutionResult,
    /// Redacted.
    pub stdout: String,
    /// Redacted.
    pub stderr: String,
    /// Which of the two are not all that the program printed.
    pub cut: Cut,
}

impl Step {
    /// Exit code, 128 + signal when killed, none when it came to no exit.
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

/// Bytes that each stream had, where the text that is kept is not all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// Of standard output.
    pub stdout: Option<u64>,
    /// Of standard error.
    pub stderr: Option<u64>,
}

impl Cut {
    /// Whether a stream is not whole.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

/// Why the work stopped early.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// The run's time is over.
    Timeout,
    /// Somebody cancelled it.
    Cancelled,
    /// It failed.
    Failed(ErrorBody),
    /// The agent stopped before it was done; what it did is worth a look.
    Partial(ErrorBody),
    /// Something outside the agent's reach is in its way.
    Blocked(ErrorBody),
    /// What the guest left cannot be captured; there are no changes to look at.
    Uncaptured(ErrorBody),
}
