//! Threads for blocking work, shared between the parties for which it is done.
//!
//! A party with much work does not delay the others: a free thread goes to the one that has the
//! fewest, and none has all of them.

use crate::actor::Actor;
use crate::connection::Origin;
use crate::core::Core;
use crate::extension::{Extension, SandboxId};
use crate::problem::{ApiResult, Problem};
use crate::shares::Shares;
use crate::store::{SandboxRecord, Store};
use std::ops::Deref;
use std::sync::Arc;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

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
    records: Arc<Shares<Party>>,
    calls: Arc<Shares<Party>>,
    waits: Arc<Shares<Party>>,
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

/// The core, for work that is done for one party.
#[derive(Clone)]
pub(crate) struct CoreFor {
    core: Arc<Core>,
    party: Party,
}

impl CoreFor {
    pub(crate) fn new(core: &Arc<Core>, party: Party) -> Self {
        Self {
            core: Arc::clone(core),
            party,
        }
    }

    /// Runs blocking work on a thread of a pool. Waits while the party or all have as many as they
    /// may have.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        pool: Pool,
        work: impl FnOnce(&Core) -> T + Send + 'static,
    ) -> ApiResult<T> {
        let threads = match pool {
            Pool::Records => &self.core.pools.records,
            Pool::Calls => &self.core.pools.calls,
            Pool::Waits => &self.core.pools.waits,
        };
        let permit = threads.acquire(&self.party).await;
        let core = Arc::clone(&self.core);
        let done = tokio::task::spawn_blocking(move || {
            let result = work(&core);
            drop(permit);
            result
        });
        done.await.map_err(|error| {
            if error.is_panic() {
                Problem::new(
                    ErrorCode::Internal,
                    "a call failed because of a defect of the service; the service's log has the detail",
                )
            } else {
                Problem::new(
                    ErrorCode::ServiceUnavailable,
                    "the service is stopping; repeat the request later",
                )
            }
        })
    }

    /// Runs work on the records.
    pub(crate) async fn records<T: Send + 'static, E>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, E> + Send + 'static,
    ) -> ApiResult<T>
    where
        E: Send + 'static,
        Problem: From<E>,
    {
        Ok(self
            .blocking(Pool::Records, |core| work(&core.store))
            .await??)
    }

    /// Calls the extension of a sandbox.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        pool: Pool,
        record: &SandboxRecord,
        work: impl FnOnce(&dyn Extension, &SandboxId) -> Result<T, ErrorBody> + Send + 'static,
    ) -> ApiResult<T> {
        let extension = self.core.extension(&record.extension)?;
        let id = record.provision.sandbox.clone();
        Ok(self
            .blocking(pool, move |_| work(extension.as_ref(), &id))
            .await??)
    }
}

impl Deref for CoreFor {
    type Target = Arc<Core>;

    fn deref(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Core {
    /// Runs blocking work of the service itself.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        pool: Pool,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> ApiResult<T> {
        CoreFor::new(self, Party::Service)
            .blocking(pool, work)
            .await
    }

    /// Runs work on the records for the service itself.
    pub(crate) async fn records<T: Send + 'static, E>(
        self: &Arc<Self>,
        work: impl FnOnce(&Store) -> Result<T, E> + Send + 'static,
    ) -> ApiResult<T>
    where
        E: Send + 'static,
        Problem: From<E>,
    {
        CoreFor::new(self, Party::Service).records(work).await
    }

    /// Calls the extension of a sandbox for its owner.
    pub(crate) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        pool: Pool,
        record: &SandboxRecord,
        work: impl FnOnce(&dyn Extension, &SandboxId) -> Result<T, ErrorBody> + Send + 'static,
    ) -> ApiResult<T> {
        let owner = Party::Actor(record.owner().clone());
        CoreFor::new(self, owner).call(pool, record, work).await
    }
}
