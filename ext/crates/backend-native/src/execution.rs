//! What an execution is asked for, and how it ends.

use rustix::io::Errno;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecRequest};

/// Most launched programs at once.
pub const LAUNCHED: usize = 64;

/// One execution as wanted.
#[derive(Debug, Clone)]
pub struct ExecCall<'a> {
    /// Program, environment, directory.
    pub request: &'a ExecRequest,
    /// Bytes for its standard input, which is then closed; empty: end of file at once.
    pub stdin: &'a [u8],
    /// When the whole guest is killed.
    pub deadline: Instant,
    /// Bytes of stdout and stderr together that are passed on; the rest is read and dropped.
    pub output_limit: u64,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecEnd {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Its own time was up, and it was killed with what it had started; the guest lives.
    Stopped,
    /// The deadline passed; the guest is dead.
    TimedOut,
    /// The guest was over its memory limit and is dead.
    MemoryLimit,
    /// The guest wrote more than its disk limit and is dead.
    DiskLimit,
    /// It was cancelled through a [`crate::GuestKiller`]; the guest is dead.
    Cancelled,
    /// The guest died for another reason.
    GuestDied,
}

/// What an execution came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// How it ended.
    pub end: ExecEnd,
    /// Wall clock.
    pub duration: Duration,
    /// User CPU, microseconds; 0 when it did not end by itself.
    pub user_us: u64,
    /// System CPU, microseconds.
    pub system_us: u64,
    /// Largest resident set of a single process, bytes.
    pub max_rss_bytes: u64,
    /// Bytes it wrote, passed on or not.
    pub output_bytes: u64,
    /// Whether it wrote more than `output_limit`.
    pub output_truncated: bool,
    /// Whether it failed while one of its processes was within a tenth of the memory limit (a
    /// process that meets its data limit fails by itself, before the sum is over), or after
    /// the kernel ended one for want of memory.
    pub memory_pressure: bool,
    /// Whether the scratch file system was full when it ended or while it ran.
    pub disk_full: bool,
}

/// Why there is no execution.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// Arguments and environment are too large.
    #[error(
        "arguments and environment together are larger than 256 KiB; pass large data through a file or standard input"
    )]
    TooLarge,
    /// The guest is dead.
    #[error("the sandbox is gone")]
    Gone,
    /// Its descriptors cannot be passed now.
    #[error(
        "the program's descriptors cannot be passed to the sandbox: other processes of this user have used up the kernel's budget for that; the sandbox lives, try again"
    )]
    Busy,
    /// As many programs run beside each other as may.
    #[error(
        "{} programs run in the sandbox already; end one of them first",
        LAUNCHED
    )]
    TooMany,
    /// The program cannot be started.
    #[error("program {program:?} could not be started in the sandbox: {step} failed ({})", std::io::Error::from_raw_os_error(*.errno))]
    NotStarted {
        /// Its name as given.
        program: String,
        /// `chdir`, `lookup`, `fork`, `execve`, `limits`, `terminal` or `input`.
        step: String,
        /// errno.
        errno: i32,
    },
    /// The host ran out of something.
    #[error("an execution could not be prepared: {source}")]
    Host {
        /// Why.
        #[from]
        source: Errno,
    },
}

impl ExecError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
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
    /// As it crosses a process border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}
