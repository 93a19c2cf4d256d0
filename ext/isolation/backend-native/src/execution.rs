//! Input and result types of an execution.

use rustix::io::Errno;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CodedError, ErrorCode, ExecRequest};

/// Maximum number of programs started with [`crate::Guest::launch_program`] that run at the same
/// time in one guest.
pub const MAX_LAUNCHED: usize = 64;

/// Parameters of one execution.
#[derive(Debug, Clone)]
pub struct ExecCall<'a> {
    /// Program, arguments, environment and working directory.
    pub request: &'a ExecRequest,
    /// Bytes for standard input, which is closed afterwards; an empty slice means immediate end of
    /// file.
    pub stdin: &'a [u8],
    /// Time at which the whole guest is killed if the program has not exited.
    pub deadline: Instant,
    /// Maximum number of bytes of stdout and stderr together that reach the caller. Further output
    /// is read and dropped.
    pub output_limit: u64,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecEnd {
    /// The program exited with this code.
    Exited(i32),
    /// A signal ended the program.
    Signaled(i32),
    /// The program still ran at `stop_at` of [`crate::Guest::exec_until`]; it and its descendants
    /// were killed, the guest lives.
    Stopped,
    /// [`ExecCall::deadline`] passed; the guest is dead.
    TimedOut,
    /// The guest exceeded its memory limit and is dead.
    MemoryLimit,
    /// The guest exceeded its disk limit and is dead.
    DiskLimit,
    /// The guest had too many locks, TCP sockets or file descriptors and is dead.
    KernelObjects,
    /// A caller cancelled the guest through a [`crate::GuestKiller`]; the guest is dead.
    Cancelled,
    /// The guest ended for a reason that no other variant names, for example because its pid 1 was
    /// killed.
    GuestDied,
}

/// Result of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// How the execution ended.
    pub end: ExecEnd,
    /// Wall-clock time of the execution.
    pub duration: Duration,
    /// User CPU time of the program in microseconds; 0 unless pid 1 reported the exit.
    pub user_us: u64,
    /// System CPU time of the program in microseconds; 0 unless pid 1 reported the exit.
    pub system_us: u64,
    /// Largest resident set size that a single process of the program reached, in bytes.
    pub max_rss_bytes: u64,
    /// Bytes of stdout and stderr together, including those dropped above `output_limit`.
    pub output_bytes: u64,
    /// Whether the output exceeded `output_limit`.
    pub output_truncated: bool,
    /// Whether memory probably ran out. True if the guest exceeded its memory limit. Also true if
    /// the program failed and, before that, one of its processes used at least 90 % of the limit or
    /// the kernel OOM-killed a process of the guest: a process that reaches its RLIMIT_DATA fails
    /// by itself before the sum of all processes exceeds the limit.
    pub memory_pressure: bool,
    /// Whether the guest's scratch file system was found full at some time since the guest started.
    pub disk_full: bool,
}

/// Reason why a program could not be started in a guest.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// Arguments and environment do not fit into one packet to the guest.
    #[error(
        "the program's arguments and environment together are larger than 256 KiB; pass large data through a file or standard input"
    )]
    TooLarge,
    /// The guest is dead, so it can neither start a program nor signal one.
    #[error("the sandbox has ended, so no program can be started or signalled in it")]
    Gone,
    /// The limit on this user's descriptors in flight (sent, not received yet), or the kernel's
    /// memory, was used up until the deadline for sending the request.
    #[error(
        "the request could not be sent to the sandbox, because this user's descriptors in flight or the kernel's memory are used up; try again later"
    )]
    Busy,
    /// The maximum number of concurrently running programs, [`MAX_LAUNCHED`], is reached.
    #[error(
        "the sandbox runs {} programs already, the most that it may run at once; end one of them first",
        MAX_LAUNCHED
    )]
    TooMany,
    /// Pid 1 could not start the program.
    #[error("{}", not_started(program, step, *errno))]
    NotStarted {
        /// Name of the program as requested.
        program: String,
        /// Failed step: `input`, `fork`, `chdir`, `limits`, `lookup`, `execve`, `terminal` or
        /// `start` (no `execve` before the deadline).
        step: String,
        /// Errno of the failed step.
        errno: i32,
    },
    /// The supervisor could not create the program's pipes, for example for lack of descriptors.
    #[error(
        "the runner could not create the pipes of a program: {source}; check its limit on open files"
    )]
    Host {
        /// Errno of the system call.
        #[from]
        source: Errno,
    },
}

fn not_started(program: &str, step: &str, errno: i32) -> String {
    if (step, errno) == ("lookup", libc::ENOENT) {
        return format!("program {program:?} was not found in the sandbox");
    }
    let error = std::io::Error::from_raw_os_error(errno);
    format!(
        "program {program:?} could not be started in the sandbox: the step `{step}` failed ({error})"
    )
}

impl CodedError for ExecError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::TooLarge => ErrorCode::InputInvalid,
            Self::Busy => ErrorCode::Busy,
            Self::TooMany => ErrorCode::SandboxInUse,
            Self::NotStarted { step, errno, .. }
                if step == "lookup" || (step == "execve" && *errno == libc::ENOENT) =>
            {
                ErrorCode::AgentProgramMissing
            }
            Self::Gone | Self::NotStarted { .. } | Self::Host { .. } => ErrorCode::RunFailed,
        }
    }
}
