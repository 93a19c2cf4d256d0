//! Permits that several owners share, for example the actors of a service.
//!
//! A free permit goes to the waiting owner that holds the fewest, and no owner holds more than a
//! bound below the total. So an owner that always wants more takes no permit that another one needs,
//! and one whose permits stay in use for long leaves some for the others.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Permits of several owners.
#[derive(Debug)]
pub(crate) struct Shares<K: Clone + Eq + Hash> {
    /// Maximum number of permits of one owner.
    each: usize,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K: Clone + Eq + Hash> {
    free: usize,
    /// Owners that hold a permit or wait for one.
    owners: HashMap<K, Owner<K>>,
    /// Grows with each grant and each new owner.
    clock: u64,
}

#[derive(Debug)]
struct Owner<K: Clone + Eq + Hash> {
    held: usize,
    /// Value of `clock` when the owner got its last permit, or came.
    last: u64,
    waiting: VecDeque<oneshot::Sender<Share<K>>>,
}

/// A permit. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct Share<K: Clone + Eq + Hash> {
    of: Arc<Shares<K>>,
    key: K,
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// Creates `total` permits, of which one owner holds at most `each`.
    pub(crate) fn new(total: usize, each: usize) -> Arc<Self> {
        Arc::new(Self {
            each: each.max(1),
            state: Mutex::new(State {
                free: total,
                owners: HashMap::new(),
                clock: 0,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a permit if one is free and the owner may have it.
    pub(crate) fn try_acquire(self: &Arc<Self>, key: &K) -> Option<Share<K>> {
        let mut state = self.lock();
        if state.free == 0 || state.owner(key).held >= self.each {
            state.forget(key);
            return None;
        }
        state.take(key);
        drop(state);
        Some(self.share(key))
    }

    /// Waits for a permit. Dropping the future gives up the place in the queue.
    pub(crate) async fn acquire(self: &Arc<Self>, key: &K) -> Share<K> {
        loop {
            let waiting = {
                let mut state = self.lock();
                let (sender, receiver) = oneshot::channel();
                state.owner(key).waiting.push_back(sender);
                receiver
            };
            self.grant();
            // A sender is dropped only with its permits, so this receives a permit.
            if let Ok(share) = waiting.await {
                return share;
            }
        }
    }

    fn share(self: &Arc<Self>, key: &K) -> Share<K> {
        Share {
            of: Arc::clone(self),
            key: key.clone(),
        }
    }

    /// Gives free permits to waiting owners.
    fn grant(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            let Some((key, sender)) = state.next(self.each) else {
                return;
            };
            drop(state);
            // The value comes back, and is dropped here, if its receiver is gone.
            drop(sender.send(self.share(&key)));
        }
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn owner(&mut self, key: &K) -> &mut Owner<K> {
        self.owners.entry(key.clone()).or_insert_with(|| {
            self.clock += 1;
            Owner {
                held: 0,
                last: self.clock,
                waiting: VecDeque::new(),
            }
        })
    }

    fn take(&mut self, key: &K) {
        self.free -= 1;
        self.clock += 1;
        let now = self.clock;
        let owner = self.owner(key);
        owner.held += 1;
        owner.last = now;
    }

    /// Takes a permit for the waiting owner that holds the fewest; of several, the one that waits
    /// longest for its next one.
    fn next(&mut self, each: usize) -> Option<(K, oneshot::Sender<Share<K>>)> {
        while self.free > 0 {
            let waiting = self.owners.iter_mut();
            let (key, owner) = waiting
                .filter(|(_, owner)| !owner.waiting.is_empty() && owner.held < each)
                .min_by_key(|(_, owner)| (owner.held, owner.last))?;
            let (key, sender) = (key.clone(), owner.waiting.pop_front());
            match sender {
                Some(sender) if !sender.is_closed() => {
                    self.take(&key);
                    return Some((key, sender));
                }
                // The wait was given up.
                _ => self.forget(&key),
            }
        }
        None
    }

    fn forget(&mut self, key: &K) {
        if let Some(owner) = self.owners.get(key)
            && owner.held == 0
            && owner.waiting.is_empty()
        {
            self.owners.remove(key);
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        state.free += 1;
        if let Some(owner) = state.owners.get_mut(&self.key) {
            owner.held = owner.held.saturating_sub(1);
        }
        state.forget(&self.key);
        drop(state);
        self.of.grant();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn one_owner_gets_at_most_its_bound_and_another_one_the_rest() {
        let shares = Shares::new(3, 2);
        let first = shares.try_acquire(&"a").unwrap();
        let _second = shares.try_acquire(&"a").unwrap();
        assert!(shares.try_acquire(&"a").is_none());
        let _other = shares.try_acquire(&"b").unwrap();
        assert!(shares.try_acquire(&"c").is_none(), "no permit is left");
        drop(first);
        shares.try_acquire(&"a").unwrap();
    }

    #[test]
    fn free_permit_goes_to_the_waiting_owner_that_holds_the_fewest() {
        let shares = Shares::new(2, 2);
        let first = shares.try_acquire(&"a").unwrap();
        let second = shares.try_acquire(&"a").unwrap();
        let mut again = Box::pin(shares.acquire(&"a"));
        assert!(again.as_mut().now_or_never().is_none());
        let mut other = Box::pin(shares.acquire(&"b"));
        assert!(other.as_mut().now_or_never().is_none());
        drop(first);
        assert!(again.as_mut().now_or_never().is_none());
        let got = other.as_mut().now_or_never().unwrap();
        drop(second);
        again.as_mut().now_or_never().unwrap();
        drop(got);
    }

    #[test]
    fn owners_with_equal_permits_take_turns() {
        let shares = Shares::new(1, 1);
        let mut held = Some(shares.try_acquire(&"a").unwrap());
        let mut waiting: Vec<_> = ["a", "a", "a", "b", "b", "b"]
            .iter()
            .map(|key| (*key, Box::pin(shares.acquire(key))))
            .collect();
        for (_, future) in &mut waiting {
            assert!(future.as_mut().now_or_never().is_none());
        }
        let mut order = String::new();
        while !waiting.is_empty() {
            drop(held.take());
            waiting.retain_mut(|(key, future)| match future.as_mut().now_or_never() {
                Some(share) => {
                    held = Some(share);
                    order.push_str(key);
                    false
                }
                None => true,
            });
        }
        assert_eq!(order, "ababab");
    }

    #[test]
    fn abandoned_wait_loses_no_permit() {
        let shares = Shares::new(1, 1);
        let held = shares.try_acquire(&"a").unwrap();
        let mut waiting = Box::pin(shares.acquire(&"b"));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        // The permit was granted to the future, which is dropped before it receives it.
        drop(waiting);
        let held = shares.try_acquire(&"c").unwrap();
        let mut waiting = Box::pin(shares.acquire(&"b"));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        drop(held);
        shares.try_acquire(&"c").unwrap();
        assert_eq!(shares.lock().owners.len(), 0);
    }
}
