//! Waits for a child process with a time limit.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::process::{Child, ExitStatus};
use std::time::Instant;

/// Waits for the end of a process until a time, then kills it and returns `None`. The process never
/// outlives this call, also if it cannot be watched.
pub(crate) fn wait_until(mut child: Child, until: Instant) -> io::Result<Option<ExitStatus>> {
    let ended = has_ended(&child, until);
    if !matches!(ended, Ok(true)) {
        child.kill()?;
    }
    let status = child.wait()?;
    ended.map(|ended| ended.then_some(status))
}

fn has_ended(child: &Child, until: Instant) -> io::Result<bool> {
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
