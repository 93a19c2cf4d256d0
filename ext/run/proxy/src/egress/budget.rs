//! Counts what an egress bridge has used of its limits: requests per minute, bytes of each request
//! and bytes of all requests together.

use super::config::BridgeLimits;
use super::denial::Reason;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Limits of one bridge and how much all its connections together have used of them.
pub(super) struct Budget {
    pub limits: BridgeLimits,
    sent: AtomicU64,
    received: AtomicU64,
    tokens: Mutex<Tokens>,
}

/// Token bucket that limits the requests per minute. It starts full and is refilled evenly over
/// time.
struct Tokens {
    left: f64,
    at: Instant,
}

impl Budget {
    pub(super) fn new(limits: BridgeLimits) -> Self {
        Self {
            limits,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            tokens: Mutex::new(Tokens {
                left: f64::from(limits.requests_per_minute),
                at: Instant::now(),
            }),
        }
    }

    /// Takes one token for a new request; fails when none is left.
    pub(super) fn begin(&self) -> Result<(), Reason> {
        let most = f64::from(self.limits.requests_per_minute);
        let now = Instant::now();
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.duration_since(tokens.at).as_secs_f64();
        tokens.left = (tokens.left + passed * most / 60.0).min(most);
        tokens.at = now;
        if tokens.left < 1.0 {
            return Err(Reason::RateLimited);
        }
        tokens.left -= 1.0;
        Ok(())
    }

    /// Counts bytes sent by the guest. `sum` is the number of bytes of this request so far, of
    /// which `new` are not counted in the bridge's total yet. Fails above the limit of the request
    /// or of the bridge.
    pub(super) fn sent(&self, sum: u64, new: u64) -> Result<(), Reason> {
        if sum > self.limits.request_bytes {
            return Err(Reason::RequestTooLarge);
        }
        match added(&self.sent, new) > self.limits.run_request_bytes {
            true => Err(Reason::RunRequestLimit),
            false => Ok(()),
        }
    }

    /// Counts bytes received from hosts. `sum` is the number of bytes of this response so far, of
    /// which `new` are not counted in the bridge's total yet. Fails above the limit of the response
    /// or of the bridge.
    pub(super) fn received(&self, sum: u64, new: u64) -> Result<(), Reason> {
        if sum > self.limits.response_bytes {
            return Err(Reason::ResponseTooLarge);
        }
        match added(&self.received, new) > self.limits.run_response_bytes {
            true => Err(Reason::RunResponseLimit),
            false => Ok(()),
        }
    }
}

/// Adds `new` to the counter and returns its new value.
fn added(sum: &AtomicU64, new: u64) -> u64 {
    sum.fetch_add(new, Ordering::Relaxed).saturating_add(new)
}
