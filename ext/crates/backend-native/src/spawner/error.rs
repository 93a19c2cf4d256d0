//! Errors of starting a spawner.

use std::io;

/// Reason why there is no spawner.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnerError {
    /// Every id of the range is in use.
    #[error("all {count} guest ids from {first} are in use: no sandbox can have one of its own")]
    Exhausted {
        /// First id of the range.
        first: u32,
        /// Number of ids.
        count: u32,
    },
    /// A step of the spawner failed.
    #[error("guests cannot have a kernel uid of their own: step {step} failed at {subject}{}", cause(*.errno))]
    Step {
        /// Name of the step.
        step: String,
        /// Object of the step.
        subject: String,
        /// Error number; 0 when none applies.
        errno: i32,
    },
    /// The host lacks a resource, or the spawner ended.
    #[error("the process that starts guests failed at {what}: {source}")]
    Host {
        /// Failed operation.
        what: &'static str,
        /// Cause.
        source: io::Error,
    },
}

/// Describes an errno; empty when it is 0.
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
