//! Why a spawner cannot be had.

use std::io;

/// Why there is no spawner.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnerError {
    /// Every id of the range is in use.
    #[error("all {count} guest ids from {first} are in use: no sandbox can have one of its own")]
    Exhausted {
        /// First id.
        first: u32,
        /// How many.
        count: u32,
    },
    /// A step failed.
    #[error("guests cannot have a kernel uid of their own: step {step} failed at {subject}{}", cause(*.errno))]
    Step {
        /// Which.
        step: String,
        /// What it was about.
        subject: String,
        /// errno, 0 when none applies.
        errno: i32,
    },
    /// This host ran out of something, or the process ended.
    #[error("the process that starts guests failed at {what}: {source}")]
    Host {
        /// What was tried.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// In words, where a number says it.
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
