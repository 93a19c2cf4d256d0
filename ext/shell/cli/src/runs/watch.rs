//! Sleeps until the content of a run directory changes.
//!
//! inotify reports every write to the journal, every renamed record, and the close of the journal
//! when a supervisor dies. The sleep has a time limit, so a missed event only causes a delay. The
//! kernel limits inotify instances and watches per user. If other processes have used them up, each
//! sleep ends after a short time limit instead.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use wp_codebox_runs::signals::on_end;

/// Maximum duration of one sleep while inotify reports changes.
const LONGEST: Duration = Duration::from_millis(1000);
/// Maximum duration of one sleep when inotify is unavailable.
const BLIND: Duration = Duration::from_millis(200);
/// Delay after the first change, so that fast output is read in pages and not line by line.
const SHORTEST: Duration = Duration::from_millis(20);

/// Reason why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// The directory changed.
    Changed,
    /// The time limit passed without a change.
    Time,
    /// A signal such as Ctrl-C arrived.
    Interrupted,
}

/// Watch on one directory, and on the signals SIGINT, SIGTERM and SIGHUP.
pub(super) struct Watch {
    /// inotify descriptor; `None` if the kernel's limit for this user is reached.
    changes: Option<OwnedFd>,
    interrupts: OwnedFd,
}

impl Watch {
    pub(super) fn begin(directory: &Path) -> io::Result<Self> {
        let changes = match notices(directory) {
            Ok(changes) => Some(changes),
            // inotify(7): EMFILE and ENFILE if no instance, ENOSPC if no watch is available.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOSPC | Errno::NOMEM) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            changes,
            interrupts: interrupts()?,
        })
    }

    /// Sleeps until the directory changes, a signal arrives or the time limit passes.
    pub(super) fn wait(&mut self) -> io::Result<Woken> {
        let longest = if self.changes.is_some() {
            LONGEST
        } else {
            BLIND
        };
        if let Some(woken) = self.poll(longest, Attention::Both)? {
            if woken == Woken::Changed {
                // More changes usually follow at once: wait a little, so that the caller reads all
                // of them together.
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

    /// Discards the inotify events that have arrived. No change is lost: the caller reads the
    /// directory next.
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

/// What ends a sleep before its time limit: a change of the directory or a signal (`Both`), or only
/// a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attention {
    Both,
    Signals,
}

/// Returns a pipe that becomes readable with the first SIGINT, SIGTERM or SIGHUP.
fn interrupts() -> io::Result<OwnedFd> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // Move the write end into the callback: if it were closed here, the pipe would become readable
    // as if a signal had arrived.
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
    fn watch_wakes_on_a_journal_change_and_otherwise_after_its_timeout() {
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
        // A busy machine can delay a single wake-up, so only the fastest of ten must be in time.
        assert!(woken.min().unwrap() < LONGEST / 2);
        assert_eq!(watch.wait().unwrap(), Woken::Time);
    }

    /// When a process dies, the kernel closes its files, which inotify reports at once.
    #[test]
    fn watch_wakes_when_the_last_writer_closes_the_journal() {
        let temp = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(temp.path().join("events.jsonl")).unwrap();
        let mut watch = Watch::begin(temp.path()).unwrap();
        drop(file);
        assert_eq!(watch.wait().unwrap(), Woken::Changed);
    }

    /// Environment variable of a child process whose inotify limit is used up.
    const USED_UP: &str = "CODEBOX_TEST_USED_UP";

    /// If the environment has [`USED_UP`], inotify is unavailable and the wait ends only with its
    /// time limit. Otherwise inotify reports the change.
    #[test]
    fn journal_watch_polls_only_if_inotify_is_unavailable() {
        let temp = tempfile::tempdir().unwrap();
        let mut watch = Watch::begin(temp.path()).unwrap();
        let used_up = std::env::var_os(USED_UP).is_some();
        assert_eq!(watch.changes.is_none(), used_up);
        std::fs::write(temp.path().join("events.jsonl"), "x").unwrap();
        let wanted = if used_up { Woken::Time } else { Woken::Changed };
        assert_eq!(watch.wait().unwrap(), wanted);
    }

    #[test]
    fn journal_watch_polls_without_error_when_an_inotify_limit_is_exhausted() {
        // Run the test above in a new user namespace, whose inotify limits are separate from the
        // host's.
        for budget in ["instances", "watches"] {
            let script = format!(
                "echo 0 > /proc/sys/user/max_inotify_{budget} && exec \"$0\" --exact \
                 runs::watch::tests::journal_watch_polls_only_if_inotify_is_unavailable"
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
