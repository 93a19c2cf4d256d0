//! Counters of the requests to a preview.

use std::sync::atomic::{AtomicU64, Ordering};

/// Totals of the requests to a preview.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of requests to which the guest responded.
    pub served: u64,
    /// Number of requests that the forwarder refused before the guest was contacted: wrong host,
    /// missing token, malformed.
    pub refused: u64,
    /// Number of requests to which the guest sent no valid response.
    pub failed: u64,
    /// Number of connections closed because of the connection limit.
    pub turned_away: u64,
}

/// Counters of an open preview, which all connections increase.
#[derive(Debug, Default)]
pub(super) struct RequestCounters {
    served: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    turned_away: AtomicU64,
}

impl RequestCounters {
    pub(super) fn served(&self) {
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            served: self.served.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            turned_away: self.turned_away.load(Ordering::Relaxed),
        }
    }
}
