//! One program that a run starts, and what becomes of it.

use crate::run::kept::Cut;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ExecutionId, GuestPath};
use wp_codebox_runtime::{ExecutionEnd, ExecutionResult};

/// Phase in which components are loaded, before anything of the run's own.
pub(crate) const COMPONENTS: &str = "components";

/// One program the run starts.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Registry command id, or `check`.
    pub command: String,
    /// Arguments as the bundle shows them.
    pub args: Vec<String>,
    /// [`COMPONENTS`], `workflow`, `agent` or `check`.
    pub phase: &'static str,
    /// Program and arguments in the guest.
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: GuestPath,
    pub stdin: Option<Vec<u8>>,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// When the whole guest is ended.
    pub deadline: Instant,
    /// After which time only this program is ended, with what it started.
    pub timeout: Duration,
}

/// What became of a call.
#[derive(Debug, Clone)]
pub(crate) struct Step {
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
    pub(crate) fn exit_code(&self) -> Option<i32> {
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

/// A command that the runner carries out itself and that has begun.
pub(crate) struct Carried {
    pub id: ExecutionId,
    pub args: Vec<String>,
    pub started_at: String,
}
