//! Cancellation of a run: kills all registered guests. A guest that is registered after the
//! cancellation is killed at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reason for cancelling a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// A caller requested the cancellation.
    Asked,
    /// The caller disconnected, and the run is attached: it ends when its caller disconnects.
    CallerGone,
    /// The supervisor received a signal.
    Signal,
}

impl CancelReason {
    /// Returns the reason as a sentence, which goes into the run's record.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            CancelReason::Asked => "the caller cancelled the run",
            CancelReason::CallerGone => "the caller of this attached run is gone",
            CancelReason::Signal => "the supervisor received a signal to stop",
        }
    }
}

type Kill = Box<dyn Fn() + Send>;

/// Handle of a registered guest, for [`Cancellation::forget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct CancelHook(u64);

#[derive(Default)]
struct Inner {
    reason: Option<CancelReason>,
    kills: Vec<(u64, Kill)>,
    named: u64,
}

/// Whether a run is cancelled, and how to kill its guests. Shared by the thread that executes the
/// run and the thread that receives requests.
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

    /// Cancels the run: stores the reason and kills the registered guests. If the run is cancelled
    /// already, the first reason remains.
    pub fn cancel(&self, reason: CancelReason) {
        let mut inner = self.lock();
        inner.reason.get_or_insert(reason);
        for (_, kill) in &inner.kills {
            kill();
        }
    }

    /// Returns the reason if the run was cancelled.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        self.lock().reason
    }

    /// Registers the function that kills one guest. If the run is already cancelled, calls the
    /// function immediately.
    pub fn on_cancel(&self, kill: Kill) -> CancelHook {
        let mut inner = self.lock();
        if inner.reason.is_some() {
            kill();
        }
        inner.named += 1;
        let name = inner.named;
        inner.kills.push((name, kill));
        CancelHook(name)
    }

    /// Unregisters a guest that has ended, so that a cancellation does not try to kill it.
    pub fn forget(&self, hook: CancelHook) {
        self.lock().kills.retain(|(name, _)| *name != hook.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_cancel_calls_all_registered_hooks_and_a_hook_registered_later_is_called_at_once() {
        let kills = Arc::new(AtomicUsize::new(0));
        let hook = |kills: &Arc<AtomicUsize>| -> Kill {
            let kills = Arc::clone(kills);
            Box::new(move || {
                kills.fetch_add(1, Ordering::SeqCst);
            })
        };
        let cancellation = Cancellation::default();
        let dead = cancellation.on_cancel(hook(&kills));
        cancellation.forget(dead);
        let first = cancellation.on_cancel(hook(&kills));
        let second = cancellation.on_cancel(hook(&kills));
        cancellation.cancel(CancelReason::CallerGone);
        assert_eq!(kills.load(Ordering::SeqCst), 2);
        cancellation.forget(first);
        cancellation.cancel(CancelReason::Signal);
        assert_eq!(cancellation.reason(), Some(CancelReason::CallerGone));
        assert_eq!(kills.load(Ordering::SeqCst), 3);
        cancellation.forget(second);
        let late = cancellation.on_cancel(hook(&kills));
        assert_eq!(kills.load(Ordering::SeqCst), 4);
        cancellation.forget(late);
    }
}
