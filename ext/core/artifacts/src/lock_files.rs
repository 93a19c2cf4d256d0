//! A number of places as locks on files in a directory.
//!
//! The kernel releases a lock when its descriptor is closed, so also when the process ends for any
//! reason. The files are empty and are never removed: removing one would race with the next process
//! that locks it.

use crate::Dir;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

impl Dir {
    /// Locks the first of the `count` files `KIND-N` that no process has locked; `None` if all are
    /// locked. Creates missing files with mode 0600.
    pub fn lock_first_free(&self, kind: &str, count: u32) -> Result<Option<OwnedFd>, Errno> {
        for number in 0..count {
            let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o600);
            let file = openat(self, format!("{kind}-{number}"), flags, mode)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(file)),
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
