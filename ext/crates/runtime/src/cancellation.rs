//! Cancellation: a flag that ends whatever guest is alive now, and every later one at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why a run is being cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// The caller asked for it.
    Asked,
    /// The caller of an attached run is gone.
    CallerGone,
    /// The supervisor got a signal.
    Signal,
}

impl CancelReason {
    /// A sentence for the record.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            CancelReason::Asked => "the caller cancelled the run",
            CancelReason::CallerGone => "the caller of this attached run is gone",
            CancelReason::Signal => "the supervisor was told to stop",
        }
    }
}

type Kill = Box<dyn Fn() + Send>;

#[derive(Default)]
struct Inner {
    reason: Option<CancelReason>,
    kill: Option<Kill>,
    turn: u64,
}

/// Whose way to be ended it was that was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancelTurn(u64);

/// Shared between the thread that runs and the one that listens.
#[derive(Default)]
pub struct Cancellation {
    inner: Mutex<Inner>,
}

impl std::fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cancellation({:?})", self.reason())
    }
}

impl Cancellation {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels; the first reason stays. The guest alive now is ended.
    pub fn cancel(&self, reason: CancelReason) {
        let mut inner = self.lock();
        inner.reason.get_or_insert(reason);
        if let Some(kill) = &inner.kill {
            kill();
        }
    }

    /// The reason, once there is one.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        self.lock().reason
    }

    /// Names what ends the guest alive now; it is called at once when the run is cancelled already.
    pub fn on_cancel(&self, kill: Kill) -> CancelTurn {
        let mut inner = self.lock();
        if inner.reason.is_some() {
            kill();
        }
        inner.kill = Some(kill);
        inner.turn += 1;
        CancelTurn(inner.turn)
    }

    /// That guest is alive no more. One that took its place meanwhile is ended as before.
    pub fn clear(&self, turn: CancelTurn) {
        let mut inner = self.lock();
        if turn == CancelTurn(inner.turn) {
            inner.kill = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn ends_the_living_and_the_next() {
        let kills = Arc::new(AtomicUsize::new(0));
        let hook = |kills: &Arc<AtomicUsize>| -> Kill {
            let kills = Arc::clone(kills);
            Box::new(move || {
                kills.fetch_add(1, Ordering::SeqCst);
            })
        };
        let cancellation = Cancellation::default();
        let first = cancellation.on_cancel(hook(&kills));
        cancellation.clear(first);
        // A guest that took another one's place is ended, also once the other one is gone.
        let replaced = cancellation.on_cancel(hook(&kills));
        let last = cancellation.on_cancel(hook(&kills));
        cancellation.clear(replaced);
        cancellation.cancel(CancelReason::CallerGone);
        cancellation.cancel(CancelReason::Signal);
        assert_eq!(cancellation.reason(), Some(CancelReason::CallerGone));
        assert_eq!(kills.load(Ordering::SeqCst), 2);
        cancellation.clear(last);
        cancellation.on_cancel(hook(&kills));
        assert_eq!(kills.load(Ordering::SeqCst), 3);
    }
}
