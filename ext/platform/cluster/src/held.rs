//! Runs that this process holds: it has received the message of the run and still works on it.

use crate::bus::Delivery;
use crate::names::RunKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why this process must stop a run before the run's task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The submitter cancelled the run.
    Cancelled,
    /// Another process has claimed it, or its record is gone.
    Lost,
}

type Callback = Box<dyn FnOnce(Interruption) + Send>;

/// A run that this process has.
pub struct HeldRun {
    /// Message of the run.
    pub(crate) delivery: Arc<dyn Delivery>,
    state: Mutex<HeldState>,
}

#[derive(Default)]
struct HeldState {
    epoch: Option<u64>,
    interruption: Option<Interruption>,
    callback: Option<Callback>,
}

impl HeldRun {
    /// Returns the key of the run.
    #[must_use]
    pub fn key(&self) -> &RunKey {
        self.delivery.key()
    }

    /// Calls `end` once when the run must end, or now if it must end already. A second call of this
    /// method replaces `end`.
    pub fn when_interrupted(&self, end: impl FnOnce(Interruption) + Send + 'static) {
        let mut state = self.state();
        match state.interruption {
            None => state.callback = Some(Box::new(end)),
            Some(why) => {
                drop(state);
                end(why);
            }
        }
    }

    /// Returns why the run must end, if it must.
    #[must_use]
    pub fn interruption(&self) -> Option<Interruption> {
        self.state().interruption
    }

    pub(crate) fn interrupt(&self, why: Interruption) {
        let mut state = self.state();
        if state.interruption.is_some() {
            return;
        }
        state.interruption = Some(why);
        let callback = state.callback.take();
        drop(state);
        if let Some(callback) = callback {
            callback(why);
        }
    }

    pub(crate) fn claimed(&self, epoch: u64) {
        self.state().epoch = Some(epoch);
    }

    /// Returns the epoch of the claim; `None` before the claim.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.state().epoch
    }

    fn state(&self) -> MutexGuard<'_, HeldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All runs that this process has.
#[derive(Default)]
pub struct HeldRuns {
    runs: Mutex<BTreeMap<RunKey, Arc<HeldRun>>>,
}

impl HeldRuns {
    /// Adds the run of a message; `None` if this process has that run already.
    pub(crate) fn add(&self, delivery: &Arc<dyn Delivery>) -> Option<Entry<'_>> {
        let key = delivery.key().clone();
        let mut runs = self.runs();
        if runs.contains_key(&key) {
            return None;
        }
        let run = Arc::new(HeldRun {
            delivery: Arc::clone(delivery),
            state: Mutex::default(),
        });
        runs.insert(key.clone(), Arc::clone(&run));
        Some(Entry {
            held: self,
            key,
            run,
        })
    }

    /// Returns the runs that this process has now.
    pub(crate) fn list(&self) -> Vec<(RunKey, Arc<HeldRun>)> {
        let runs = self.runs();
        let rows = runs.iter().map(|(key, run)| (key.clone(), Arc::clone(run)));
        rows.collect()
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.runs().len()
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunKey, Arc<HeldRun>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a run in [`HeldRuns`] until this value is dropped.
pub(crate) struct Entry<'a> {
    held: &'a HeldRuns,
    key: RunKey,
    pub(crate) run: Arc<HeldRun>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.held.runs().remove(&self.key);
    }
}
