//! One program that a run executes, its time limits and its result.

use crate::backend::{ExecutionEnd, ExecutionResult};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, GuestPath};

/// Name of the phase in which the guest loads the run's components (plugins of the host, for
/// example). It precedes the phases in which the run executes commands.
pub const COMPONENTS: &str = "components";

/// A program that the run executes, and how the bundle records it.
#[derive(Debug, Clone)]
pub struct Call {
    /// Id of the registry command that the program carries out, or `check`.
    pub command: String,
    /// Arguments of the registry command, as the bundle records them.
    pub args: Vec<String>,
    /// Phase of the run: [`COMPONENTS`], `workflow`, `agent` or `check`.
    pub phase: &'static str,
    /// Path and arguments of the program in the guest.
    pub argv: Vec<String>,
    /// Environment variables of the program, in addition to those that every program in the guest
    /// gets.
    pub env: BTreeMap<String, String>,
    /// Working directory in the guest.
    pub cwd: GuestPath,
    /// Standard input of the program; `None` means empty.
    pub stdin: Option<Vec<u8>>,
}

/// Time limits of a program: the deadline of its guest and the maximum run time of the program
/// itself.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Time at which the whole guest is killed.
    pub deadline: Instant,
    /// Maximum run time of the program. When it has passed, the program and its child processes are
    /// killed.
    pub timeout: Duration,
}

/// How one program ended, and its output.
#[derive(Debug, Clone)]
pub struct Step {
    /// How the program ended, and what was observed about it.
    pub result: ExecutionResult,
    /// Standard output of the program, with secrets redacted; it may be incomplete.
    pub stdout: String,
    /// Standard error of the program, with secrets redacted; it may be incomplete.
    pub stderr: String,
    /// Which output streams are stored incompletely, and their full sizes.
    pub cut: Cut,
}

impl Step {
    /// Returns the program's exit code, or 128 + signal number if a signal killed it, or `None` if
    /// neither applies.
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
    /// Full size of standard output, if the stored text is incomplete.
    pub stdout: Option<u64>,
    /// Full size of standard error, if the stored text is incomplete.
    pub stderr: Option<u64>,
}

impl Cut {
    /// Returns whether the stored text of at least one stream is incomplete.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

/// Why a run ended before all of its programs were executed.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// The deadline of the run passed.
    Timeout,
    /// The run was cancelled.
    Cancelled,
    /// An error made it impossible to continue.
    Failed(ErrorBody),
    /// The agent stopped before it was done; its changes may still be useful.
    Partial(ErrorBody),
    /// The agent cannot continue, for a reason that it cannot remove itself.
    Blocked(ErrorBody),
    /// The guest's changes could not be captured, so there are none to review.
    Uncaptured(ErrorBody),
}
