//! Records of the service in one SQLite file.
//!
//! Every write is one transaction with `synchronous=FULL`: when a method returns, its effect
//! survives the loss of power. Events are written in the transaction of the change that they
//! report, so their order is the order of the changes and none is lost or invented.

mod error;
mod events;
mod hosts;
mod idempotency;
mod record;
mod runs;
mod sandboxes;
mod schema;
#[cfg(test)]
mod simulation;
mod tokens;
mod webhooks;

pub(crate) use error::{StoreError, StoreResult};
pub(crate) use events::{Event, EventFilter};
pub(crate) use idempotency::{Claim, IdempotencyKey};
pub(crate) use record::SandboxRecord;
pub(crate) use runs::{RunRecord, RunState};
pub(crate) use sandboxes::ListRows;
pub use tokens::TokenRow;
pub(crate) use webhooks::{Attempt, Delivery, DueWebhook, Webhook};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Name of the database file in the service's directory.
pub(crate) const FILE: &str = "service.sqlite";
/// Time to wait for another process that writes, for example `wp-codebox token`.
const BUSY: Duration = Duration::from_secs(10);

/// The records. Methods block; callers in async code use a blocking thread.
pub(crate) struct Store {
    connection: Mutex<Connection>,
    last_event: watch::Sender<u64>,
}

impl Store {
    /// Opens the records of a directory and creates them if they do not exist.
    pub(crate) fn open(directory: &Path) -> StoreResult<Self> {
        let path = directory.join(FILE);
        let failed = |source| StoreError::Open {
            path: path.clone(),
            source,
        };
        let connection = Connection::open(&path).map_err(failed)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        schema::migrate(&connection)?;
        let store = Self {
            connection: Mutex::new(connection),
            last_event: watch::Sender::new(0),
        };
        store.publish()?;
        Ok(store)
    }

    /// A panic while the lock is held rolls its transaction back, so the connection stays usable.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in one transaction that is durable when this method returns.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> StoreResult<T>) -> StoreResult<T> {
        let result = {
            let mut connection = self.lock();
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            result
        };
        self.publish()?;
        Ok(result)
    }

    fn publish(&self) -> StoreResult<()> {
        let last = self.last_event()?;
        self.last_event.send_if_modified(|known| {
            let newer = last > *known;
            *known = last.max(*known);
            newer
        });
        Ok(())
    }

    /// Returns a receiver that changes when there are further events.
    pub(crate) fn watch_events(&self) -> watch::Receiver<u64> {
        self.last_event.subscribe()
    }
}
