//! Lifetime of a held sandbox (one kept open for clients). No function here reads a clock: the
//! caller passes the current time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Hold, HoldEnd};
use wp_codebox_runtime::rfc3339;

/// Times at which a held sandbox ends.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    /// Start of the lifetime, on the monotonic clock and on the system clock.
    anchor: (Instant, SystemTime),
    pub(super) expires: Instant,
    max: Instant,
    idle: Option<Duration>,
    used: Instant,
}

impl Lease {
    /// Starts the lifetime at the time `anchor`, given on the monotonic and on the system clock.
    pub(super) fn begin(hold: &Hold, anchor: (Instant, SystemTime)) -> Self {
        let now = anchor.0;
        let max = later(now, hold.max_ttl_ms);
        Self {
            anchor,
            expires: later(now, hold.ttl_ms).min(max),
            max,
            idle: hold.idle_ms.map(Duration::from_millis),
            used: now,
        }
    }

    /// Records that a client used the sandbox, which restarts the idle time.
    pub(super) fn touch(&mut self, now: Instant) {
        self.used = now;
    }

    /// Returns why the sandbox must end, or `None` while it may continue. A sandbox in which a
    /// client's program runs is not idle.
    pub(super) fn over(&self, now: Instant, in_use: Use) -> Option<HoldEnd> {
        if now >= self.expires {
            return Some(HoldEnd::Expired);
        }
        match (self.idle, in_use) {
            (Some(idle), Use::Nobody) if now >= self.used + idle => Some(HoldEnd::Idle),
            _ => None,
        }
    }

    /// Returns the time at which the lifetime must be checked again at the latest.
    pub(super) fn next(&self, in_use: Use) -> Instant {
        match (self.idle, in_use) {
            (Some(idle), Use::Nobody) => self.expires.min(self.used + idle),
            _ => self.expires,
        }
    }

    /// Sets the end of the lifetime to `ttl_ms` from now. Fails if `ttl_ms` is 0 or that time is
    /// after the end of the maximum lifetime.
    pub(super) fn extend(&mut self, now: Instant, ttl_ms: u64) -> Result<(), ErrorBody> {
        let wanted = later(now, ttl_ms);
        if ttl_ms == 0 || wanted > self.max {
            let left = self.max.saturating_duration_since(now).as_millis();
            return Err(ErrorBody::new(
                ErrorCode::InputInvalid,
                format!("the remaining lifetime must be from 1 to {left} ms: choose a value in this range or start a new sandbox"),
            )
            .with("maxExpiresAt", self.text(self.max)));
        }
        self.expires = wanted;
        Ok(())
    }

    /// Converts a time of the monotonic clock to the text form that documents contain.
    pub(super) fn text(&self, at: Instant) -> String {
        let (instant, wall) = self.anchor;
        let wall = if at >= instant {
            wall + (at - instant)
        } else {
            wall - (instant - at)
        };
        let since = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        rfc3339(since.as_secs(), since.subsec_millis())
    }

    pub(super) fn expires_at(&self) -> String {
        self.text(self.expires)
    }

    pub(super) fn max_expires_at(&self) -> String {
        self.text(self.max)
    }

    pub(super) fn used_at(&self) -> String {
        self.text(self.used)
    }
}

/// Whether a program of a client runs in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Nobody,
    Somebody,
}

fn later(from: Instant, ms: u64) -> Instant {
    // A limit of about a hundred years counts as unlimited and does not overflow any clock.
    from + Duration::from_millis(ms).min(Duration::from_secs(3_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(ttl_ms: u64, max_ttl_ms: u64, idle_ms: Option<u64>) -> Hold {
        Hold {
            ttl_ms,
            max_ttl_ms,
            idle_ms,
            preview: None,
            identity: None,
            snapshot: None,
        }
    }

    #[test]
    fn lease_ends_at_its_expiry_and_is_never_extended_beyond_the_maximum() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let anchor = (begin, UNIX_EPOCH);
        let mut lease = Lease::begin(&hold(1000, 3000, None), anchor);
        assert_eq!(lease.over(at(999), Use::Nobody), None);
        assert_eq!(lease.over(at(1000), Use::Somebody), Some(HoldEnd::Expired));
        assert_eq!(lease.expires_at(), "1970-01-01T00:00:01.000Z");
        lease.extend(at(500), 2500).unwrap();
        assert_eq!(lease.over(at(2999), Use::Nobody), None);
        for (now, ms) in [(500, 2501), (500, u64::MAX), (500, 0), (3000, 1)] {
            let refused = lease.extend(at(now), ms).unwrap_err();
            assert_eq!(refused.code, ErrorCode::InputInvalid);
            assert_eq!(lease.expires, at(3000));
        }
        // An extension may also shorten the remaining time.
        lease.extend(at(600), 1).unwrap();
        assert_eq!(lease.over(at(601), Use::Somebody), Some(HoldEnd::Expired));
        let beyond = Lease::begin(&hold(9000, 3000, None), anchor);
        assert_eq!(beyond.expires, at(3000));
        Lease::begin(&hold(u64::MAX, u64::MAX, None), anchor);
    }

    #[test]
    fn lease_ends_as_idle_after_the_idle_time_without_use() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut lease = Lease::begin(&hold(9000, 9000, Some(100)), (begin, UNIX_EPOCH));
        assert_eq!(lease.over(at(99), Use::Nobody), None);
        assert_eq!(lease.over(at(100), Use::Nobody), Some(HoldEnd::Idle));
        assert_eq!(lease.over(at(5000), Use::Somebody), None);
        lease.touch(at(90));
        assert_eq!(lease.over(at(189), Use::Nobody), None);
        assert_eq!(lease.next(Use::Nobody), at(190));
        assert_eq!(lease.next(Use::Somebody), at(9000));
    }
}
