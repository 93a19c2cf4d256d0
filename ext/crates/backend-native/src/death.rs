//! Which process of a guest ended first, and with which exit code or signal, when the runner did
//! not end the guest.
//!
//! The launcher reports the end of the guest's first process in a message; the exit statuses of
//! launcher and spawner come from their parents. Each of them is killed when its parent ends, so
//! the message decides first, then the spawner's status, then the launcher's.

use crate::channel::Received;
use crate::channel::poll_in;
use crate::guest::Guest;
use crate::spawn::ProcessEnd;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{GuestDeath, GuestProcess};

/// Time for the launcher to tell the end and to end itself. The first process is seen to be dead
/// before that.
const AFTERMATH: Duration = Duration::from_secs(1);

impl Guest {
    /// Why it died; the same answer at every call. Only for a guest that is dead.
    pub fn cause_of_death(&mut self) -> GuestDeath {
        if let Some(death) = &self.death {
            return death.clone();
        }
        let until = Instant::now() + AFTERMATH;
        self.hear_out(until);
        let left = until.saturating_duration_since(Instant::now());
        // When the spawner is gone too, nothing reports the launcher's exit status.
        let ended = poll_in(self.process.pidfd(), left);
        let launcher = ended.then(|| self.process.wait().ok()).flatten();
        let spawner = match launcher {
            None if ended => self.process.spawners_end(until),
            Some(_) | None => None,
        };
        let death = GuestDeath {
            host_oom_kills: self.shared.oom_kills(),
            failure: self.launched.failure.clone(),
            ..judge(self.launched.over, spawner, launcher)
        };
        self.death = Some(death.clone());
        death
    }

    /// Takes every message until the channel is closed.
    fn hear_out(&mut self, until: Instant) {
        loop {
            match self.channel.receive() {
                Received::Message(reply, fds) => self.launched.hear(*reply, fds),
                Received::Garbage => {}
                Received::Empty if self.channel.wait(until) => {}
                Received::Empty | Received::Closed => return,
            }
        }
    }
}

fn judge(
    over: Option<(Option<i32>, Option<i32>)>,
    spawner: Option<ProcessEnd>,
    launcher: Option<ProcessEnd>,
) -> GuestDeath {
    let status = |end: ProcessEnd| (end.code, end.signal);
    let first = over.map(|status| (GuestProcess::First, status));
    let spawner = spawner.map(|end| (GuestProcess::Spawner, status(end)));
    let launcher = launcher.map(|end| (GuestProcess::Launcher, status(end)));
    let ended = first.or(spawner).or(launcher);
    let (process, (code, signal)) = ended.unwrap_or_default();
    GuestDeath {
        process,
        code,
        signal,
        ..GuestDeath::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reported_end_decides_before_the_spawners_and_the_launchers_status() {
        let killed = Some(ProcessEnd {
            code: None,
            signal: Some(9),
            user_us: 0,
            system_us: 0,
        });
        let of = |over, spawner, launcher| {
            let death = judge(over, spawner, launcher);
            (death.process, death.code, death.signal)
        };
        let failed = Some((Some(125), None));
        assert_eq!(
            of(failed, killed, killed),
            (GuestProcess::First, Some(125), None)
        );
        assert_eq!(
            of(None, killed, killed),
            (GuestProcess::Spawner, None, Some(9))
        );
        assert_eq!(
            of(None, None, killed),
            (GuestProcess::Launcher, None, Some(9))
        );
        assert_eq!(of(None, None, None), (GuestProcess::Unknown, None, None));
    }
}
