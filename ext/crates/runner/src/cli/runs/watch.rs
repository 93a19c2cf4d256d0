//! Sleeping until something happens in a run directory.
//!
//! The kernel tells of every write to the journal and of every renamed record, and also when a
//! supervisor that died gives its journal up. Whatever it does not tell is found at the end of a
//! bounded sleep, so a lost notice costs time, not truth.

use crate::cli::signals::on_end;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// Longest sleep.
const LONGEST: Duration = Duration::from_millis(1000);
/// Shortest, so that a torrent of output is read in pages and not line by line.
const SHORTEST: Duration = Duration::from_millis(20);

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// Something in the directory changed.
    Changed,
    /// Nothing did, for long enough to look all the same.
    Time,
    /// Ctrl-C, or the like.
    Interrupted,
}

/// One directory, and the signals that end a follower.
pub(super) struct Watch {
    changes: OwnedFd,
    interrupts: OwnedFd,
}

impl Watch {
    pub(super) fn begin(directory: &Path) -> io::Result<Self> {
        let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let wanted = WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF;
        inotify::add_watch(&changes, directory, wanted)?;
        Ok(Self {
            changes,
            interrupts: interrupts()?,
        })
    }

    /// Sleeps until the directory changes, a signal comes or the time is up.
    pub(super) fn wait(&mut self) -> io::Result<Woken> {
        if let Some(woken) = self.poll(LONGEST, Attention::Both)? {
            if woken == Woken::Changed {
                // More is coming: one look for all of it.
                if self.poll(SHORTEST, Attention::Signals)? == Some(Woken::Interrupted) {
                    return Ok(Woken::Interrupted);
                }
                self.drain();
            }
            return Ok(woken);
        }
        Ok(Woken::Time)
    }

    fn poll(&self, time: Duration, attention: Attention) -> io::Result<Option<Woken>> {
        let time = Timespec::try_from(time).map_err(io::Error::other)?;
        let changes = match attention {
            Attention::Both => PollFlags::IN,
            Attention::Signals => PollFlags::empty(),
        };
        let mut ready = [
            PollFd::new(&self.interrupts, PollFlags::IN),
            PollFd::new(&self.changes, changes),
        ];
        match poll(&mut ready, Some(&time)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let [interrupts, changes] = &ready;
        Ok(if !interrupts.revents().is_empty() {
            Some(Woken::Interrupted)
        } else if !changes.revents().is_empty() {
            Some(Woken::Changed)
        } else {
            None
        })
    }

    /// What changed does not matter: the look that follows sees all of it.
    fn drain(&self) {
        let mut bytes = [0_u8; 4096];
        while rustix::io::read(&self.changes, &mut bytes).is_ok_and(|read| read > 0) {}
    }
}

/// What a sleep listens for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attention {
    Both,
    Signals,
}

/// A pipe that becomes readable with the first SIGINT, SIGTERM or SIGHUP.
fn interrupts() -> io::Result<OwnedFd> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // Kept by the callback: its end would be a signal as well.
    on_end(move || {
        let _ = rustix::io::write(&write, b"!");
    })?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_change_wakes_and_silence_does_not() {
        let temp = tempfile::tempdir().unwrap();
        let mut watch = Watch::begin(temp.path()).unwrap();
        let began = Instant::now();
        assert_eq!(watch.wait().unwrap(), Woken::Time);
        assert!(began.elapsed() >= LONGEST);
        let woken = (0..10).map(|_| {
            std::fs::write(temp.path().join("events.jsonl"), "x").unwrap();
            let began = Instant::now();
            assert_eq!(watch.wait().unwrap(), Woken::Changed);
            began.elapsed()
        });
        // A machine that stands still makes any one of them late.
        assert!(woken.min().unwrap() < LONGEST / 2);
        assert_eq!(watch.wait().unwrap(), Woken::Time);
    }

    /// A writer that is gone closes what it held: that is how a death is noticed at once.
    #[test]
    fn a_writer_that_is_gone_wakes() {
        let temp = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(temp.path().join("events.jsonl")).unwrap();
        let mut watch = Watch::begin(temp.path()).unwrap();
        drop(file);
        assert_eq!(watch.wait().unwrap(), Woken::Changed);
    }
}
