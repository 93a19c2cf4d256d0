//! Runs the parts of a test run in sandboxes of their own.

use super::results::Shard;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use wp_codebox_contracts::{DEFAULT_MAX_RUNS, ErrorBody, ErrorCode, RunRequest};
use wp_codebox_runs::Supervisors;

/// Runs the requests, several at the same time, and returns their results in order.
/// `parallel` is the number of sandboxes at one time; without it, one for each processor, at most the
/// default limit of runs. Calls `ended` with the position and result of each.
pub fn run_shards(
    supervisors: &Supervisors,
    requests: &[RunRequest],
    parallel: Option<u16>,
    ended: &(dyn Fn(usize, &Shard) + Sync),
) -> Result<Vec<Shard>, ErrorBody> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let most = usize::try_from(DEFAULT_MAX_RUNS).unwrap_or(1);
    let parallel = parallel.map_or(processors.min(most), usize::from);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Shard>>> = Mutex::new(requests.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..parallel.min(requests.len()) {
            scope.spawn(|| {
                while let Some((index, request)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    requests.get(index).map(|request| (index, request))
                } {
                    let shard = Shard::of(supervisors.run(request, || {}));
                    ended(index, &shard);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(slot) = done.get_mut(index) {
                        *slot = Some(shard);
                    }
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter()
        .map(|shard| {
            shard.ok_or_else(|| ErrorBody::new(ErrorCode::Internal, "a sandbox has no result"))
        })
        .collect()
}
