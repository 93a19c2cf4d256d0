//! Monotonic clock. The caller and the supervisor read the same clock of the kernel, so the
//! supervisor can measure the duration of a run from the time at which the caller was asked for the
//! run.

use rustix::time::{ClockId, clock_gettime};

/// Returns the current `CLOCK_MONOTONIC` time in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, rest) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or_default() * 1_000_000_000 + rest.unwrap_or_default()
}
