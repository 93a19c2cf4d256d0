//! Errors of starting a spawner, the process that starts launchers under a uid of their own.

use std::io;

/// Reason why no spawner could be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnerError {
    /// Every guest id of the configured range is in use.
    #[error(
        "all {count} guest ids from {first} on are in use; wait until a sandbox ends, or configure more ids"
    )]
    Exhausted {
        /// First id of the configured range.
        first: u32,
        /// Number of ids in the configured range.
        count: u32,
    },
    /// The spawner reported that one of its steps failed.
    #[error("guests cannot have a kernel uid of their own, because the process that starts guests failed in step {step} at {subject}{}; remove the cause, or accept the runner's uid with --identity auto", cause(*.errno))]
    Step {
        /// Name of the failed step.
        step: String,
        /// What the step worked on: a path or a mechanism.
        subject: String,
        /// Errno of the failed step; 0 when none applies.
        errno: i32,
    },
    /// A system call of the supervisor failed, or the spawner ended early.
    #[error(
        "the process that starts guests under a kernel uid of their own could not be started: {what} failed: {source}"
    )]
    Host {
        /// Failed operation, for the error message.
        what: &'static str,
        /// Error of the operation.
        source: io::Error,
    },
}

/// Returns the text of an errno for an error message; empty when the errno is 0.
fn cause(errno: i32) -> String {
    match errno {
        0 => String::new(),
        errno => format!(" ({})", io::Error::from_raw_os_error(errno)),
    }
}

pub(super) fn host(what: &'static str) -> impl Fn(io::Error) -> SpawnerError {
    move |source| SpawnerError::Host { what, source }
}

pub(super) fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}
