//! Threads for blocking work, shared between the parties for which it is done.
//!
//! A party with much work does not delay the others: a free thread goes to the one that has the
//! fewest, and none has all of them.

use crate::actor::Actor;
use crate::auth::Origin;
use crate::shares::Shares;
use std::sync::Arc;

/// Threads for the records. One connection to the database serves all, so more threads would only
/// wait for it, and in no fair order.
const RECORDS: usize = 8;
/// Threads for short calls to extensions and the host.
const CALLS: usize = 64;
/// Threads for calls that wait until a sandbox is ready or has ended.
const WAITS: usize = 256;

/// Maximum number of blocking threads of a server's runtime: the three pools, and 248 for programs
/// that run for clients and for other work.
pub(crate) const THREADS: usize = RECORDS + CALLS + WAITS + 248;

/// Kind of blocking work. A kind that blocks long has threads of its own, so it cannot keep the
/// others waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pool {
    /// Reads and writes of the records.
    Records,
    /// Short calls to extensions and the host.
    Calls,
    /// Calls that wait for a sandbox.
    Waits,
}

/// For whom work is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    /// The service itself.
    Service,
    /// A client, or the owner of a sandbox that the service starts or ends.
    Actor(Actor),
    /// A client before its request is authenticated.
    Peer(Origin),
}

/// Permits for the threads of each pool.
#[derive(Debug)]
pub(crate) struct Pools {
    pub records: Arc<Shares<Party>>,
    pub calls: Arc<Shares<Party>>,
    pub waits: Arc<Shares<Party>>,
}

impl Default for Pools {
    fn default() -> Self {
        let pool = |total: usize| Shares::new(total, total / 4 * 3);
        Self {
            records: pool(RECORDS),
            calls: pool(CALLS),
            waits: pool(WAITS),
        }
    }
}
