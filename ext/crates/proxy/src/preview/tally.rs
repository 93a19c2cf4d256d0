//! What went through a preview.

use std::sync::atomic::{AtomicU64, Ordering};

/// Sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that the guest answered.
    pub served: u64,
    /// Requests that it never saw: of another host, without the token, malformed.
    pub refused: u64,
    /// Requests that it should have answered and did not.
    pub failed: u64,
    /// Connections for which there was no room.
    pub turned_away: u64,
}

/// The same while it goes on.
#[derive(Debug, Default)]
pub(super) struct Tally {
    served: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    turned_away: AtomicU64,
}

impl Tally {
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
