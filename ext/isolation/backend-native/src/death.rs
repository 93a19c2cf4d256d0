//! Finds which process of a guest ended first, and with which exit code or signal, when the guest
//! ended without being killed by the supervisor.
//!
//! If the launcher has reported the end of the guest's first process, that process ended first,
//! because the launcher lived longer. Without a report, the spawner (the process that may start
//! launchers) ended first if it has ended, because its end kills the launcher. Otherwise the
//! launcher ended first.

use crate::channel::Received;
use crate::channel::poll_in;
use crate::guest::Guest;
use crate::spawn::ProcessEnd;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{GuestDeath, GuestProcess};

/// Maximum wait, after the guest's first process has ended, for the launcher to report that end and
/// to exit itself.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_secs(1);

impl Guest {
    /// Returns which process of the guest ended first and how; later calls return the same value.
    /// Call it only when the guest is dead.
    pub fn cause_of_death(&mut self) -> GuestDeath {
        if let Some(death) = &self.death {
            return death.clone();
        }
        let until = Instant::now() + EXIT_REPORT_TIMEOUT;
        self.drain_messages(until);
        let left = until.saturating_duration_since(Instant::now());
        let ended = poll_in(self.process.pidfd(), left);
        let launcher = ended.then(|| self.process.wait().ok()).flatten();
        let spawner = match launcher {
            // The launcher has ended, but its exit status is unknown: the spawner, which would
            // report that status, may have ended.
            None if ended => self.process.spawners_end(until),
            Some(_) | None => None,
        };
        let death = GuestDeath {
            host_oom_kills: self.shared.oom_kills(),
            failure: self.launched.failure.clone(),
            ..derive_cause(self.launched.over, spawner, launcher)
        };
        self.death = Some(death.clone());
        death
    }

    /// Processes the guest's messages until the channel is closed or `until` has passed.
    fn drain_messages(&mut self, until: Instant) {
        loop {
            match self.channel.receive() {
                Received::Message(reply, fds) => self.launched.handle_reply(*reply, fds),
                Received::Malformed => {}
                Received::Empty if self.channel.wait(until) => {}
                Received::Empty | Received::Closed => return,
            }
        }
    }
}

fn derive_cause(
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
    fn cause_of_guest_death_is_taken_from_the_first_process_else_the_spawner_else_the_launcher() {
        let killed = Some(ProcessEnd {
            code: None,
            signal: Some(9),
            user_us: 0,
            system_us: 0,
        });
        let of = |over, spawner, launcher| {
            let death = derive_cause(over, spawner, launcher);
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
