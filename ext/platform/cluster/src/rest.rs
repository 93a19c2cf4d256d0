//! The pause (rest) of a node that cannot run tasks. The node gives each run back, and the run's
//! message would come to it again at once: without a rest, a node with a full disk uses up the
//! tries of every task before another node gets one.

use crate::work::Worked;
use std::time::{Duration, Instant};

/// Longest time for which a node takes no runs.
const LONGEST: Duration = Duration::from_secs(60);

/// For how long a node takes no runs.
#[derive(Debug)]
pub(crate) struct Rest {
    first: Duration,
    until: Option<Instant>,
    /// Number of runs that the node gave up since it ran one to its end.
    given_up: u32,
}

impl Rest {
    /// Returns the rest of a node that has given up no run. `first` is the rest after the first run
    /// that it gives up; each further run doubles the rest, up to a minute.
    pub(crate) const fn new(first: Duration) -> Self {
        Self {
            first,
            until: None,
            given_up: 0,
        }
    }

    /// Returns how long the node still takes no runs; `None` if it takes runs.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Takes note of what became of a message.
    pub(crate) fn note(&mut self, now: Instant, worked: &Worked) {
        match worked {
            Worked::Released(_) => {
                let factor = 2_u32.saturating_pow(self.given_up);
                self.until = now.checked_add(self.first.saturating_mul(factor).min(LONGEST));
                self.given_up = self.given_up.saturating_add(1);
            }
            Worked::Ran(_) => *self = Self::new(self.first),
            Worked::Ended(_)
            | Worked::Nothing
            | Worked::Held
            | Worked::NotListed
            | Worked::Unreadable(_)
            | Worked::Fenced => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::End;
    use wp_codebox_contracts::{ErrorBody, ErrorCode};

    /// A node rests, which means that it claims no run, after it could not execute one and released
    /// it.
    #[test]
    fn rest_doubles_up_to_a_minute_with_each_released_run_and_ends_with_the_next_executed_run() {
        let (start, first) = (Instant::now(), Duration::from_secs(2));
        let error = || ErrorBody::new(ErrorCode::StateDirInvalid, "the disk is full");
        let mut rest = Rest::new(first);
        assert_eq!(rest.left(start), None);
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            rest.note(start, &Worked::Released(error()));
            assert_eq!(rest.left(start), Some(Duration::from_secs(seconds)));
            assert_eq!(rest.left(start + Duration::from_secs(seconds)), None);
        }
        rest.note(start, &Worked::Held);
        assert!(rest.left(start).is_some());
        rest.note(start, &Worked::Ran(End::Error { error: error() }));
        assert_eq!(rest.left(start), None);
        rest.note(start, &Worked::Released(error()));
        assert_eq!(rest.left(start), Some(first));
    }
}
