//! Sleeping until something happens in a run directory.
//!
//! The kernel tells of every write to the journal and of every renamed record, and also when a
//! supervisor that died gives its journal up. Whatever it does not tell is found at the end of a
//! bounded sleep, so a lost notice costs time, not truth. inotify instances and watches are counted
//! per user of the host: where others have used them up, only the bounded sleep is left.

use crate::signals::on_end;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// Longest sleep.
const LONGEST: Duration = Duration::from_millis(1000);
/// Longest without notices from the kernel.
const BLIND: Duration = Duration::from_millis(200);
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
    /// Notices of the kernel; none where its budget for them is used up.
    changes: Option<OwnedFd>,
    interrupts: OwnedFd,
}

impl Watch {
    pub(super) fn begin(directory: &Path) -> io::Result<Self> {
        let changes = match notices(directory) {
            Ok(changes) => Some(changes),
            // inotify(7): EMFILE and ENFILE for instances, ENOSPC for watches.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOSPC | Errno::NOMEM) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            changes,
            interrupts: interrupts()?,
        })
    }

    /// Sleeps until the directory changes, a signal comes or the time is up.
    pub(super) fn wait(&mut self) -> io::Result<Woken> {
        let longest = if self.changes.is_some() {
            LONGEST
        } else {
            BLIND
        };
        if let Some(woken) = self.poll(longest, Attention::Both)? {
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
            Attention::Both => self.changes.as_ref(),
            Attention::Signals => None,
        };
        let mut ready = vec![PollFd::new(&self.interrupts, PollFlags::IN)];
        ready.extend(changes.map(|changes| PollFd::new(changes, PollFlags::IN)));
        match poll(&mut ready, Some(&time)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut seen = ready.iter().map(|fd| !fd.revents().is_empty());
        Ok(match (seen.next(), seen.next()) {
            (Some(true), _) => Some(Woken::Interrupted),
            (_, Some(true)) => Some(Woken::Changed),
            (_, Some(false) | None) => None,
        })
    }

    /// What changed does not matter: the look that follows sees all of it.
    fn drain(&self) {
        let mut bytes = [0_u8; 4096];
        let Some(changes) = &self.changes else {
            return;
        };
        while rustix::io::read(changes, &mut bytes).is_ok_and(|read| read > 0) {}
    }
}

fn notices(directory: &Path) -> Result<OwnedFd, Errno> {
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let wanted = WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MOVED_TO
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF;
    inotify::add_watch(&changes, directory, wanted)?;
    Ok(changes)
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

    /// Set in the child of the next test: the budget that is used up.
    const USED_UP: &str = "CODEBOX_TEST_USED_UP";

    /// Without the variable the budgets are whole, and the kernel tells of the change.
    #[test]
    fn a_follower_without_notices_looks_again() {
        let temp = tempfile::tempdir().unwrap();
        let mut watch = Watch::begin(temp.path()).unwrap();
        let used_up = std::env::var_os(USED_UP).is_some();
        assert_eq!(watch.changes.is_none(), used_up);
        std::fs::write(temp.path().join("events.jsonl"), "x").unwrap();
        let wanted = if used_up { Woken::Time } else { Woken::Changed };
        assert_eq!(watch.wait().unwrap(), wanted);
    }

    #[test]
    fn a_used_up_budget_of_inotify_is_no_error() {
        // In a user namespace of its own, whose limits are below the host's.
        for budget in ["instances", "watches"] {
            let script = format!(
                "echo 0 > /proc/sys/user/max_inotify_{budget} && exec \"$0\" --exact \
                 runs::watch::tests::a_follower_without_notices_looks_again"
            );
            let output = std::process::Command::new("unshare")
                .args(["--user", "--map-root-user", "sh", "-c", &script])
                .arg(std::env::current_exe().unwrap())
                .env(USED_UP, budget)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && said.contains("1 passed"),
                "{budget}: {output:?}"
            );
        }
    }
}
