//! The message server: NATS JetStream.
//!
//! | stream | subjects of stored messages | what it has |
//! |---|---|---|
//! | `CODEBOX_T_<submitter>` | `tasks.<capability>.<priority>.<submitter>` | messages with keys of runs; a work queue |
//! | `CODEBOX_R_<submitter>` | `records.<submitter>.<run>` | records of runs |
//! | `CODEBOX_O_<submitter>` | `objects.<submitter>.<name>.…` | task documents, layers, results |
//! | `CODEBOX_HOSTS` | `hosts.<node>` | heartbeats |
//!
//! Streams listen on these subjects with a random token before them (`tokens.rs`).
//!
//! Without a stream: requests on `secrets.<submitter>.<run>`, events on `events.<submitter>.<run>`, and
//! the server's announcements of stored records on `changes.<submitter>.<run>`.
//!
//! A replaced message of a subject is gone: the streams of records, objects and hosts have one message
//! per subject.
//!
//! Records are read with `STREAM.MSG.GET`, which the leader of the stream answers, and the streams have
//! no direct reads, which every replica answers: a read after a failed compare-and-set would return
//! the value before it. A conflict is returned only when the change that caused it can be read, too
//! (`records.rs`). During an election an earlier leader may answer once more with an old value;
//! then the compare-and-set that follows fails again, because it needs a majority.

mod api;
mod connection;
mod failure;
mod layout;
mod objects;
mod options;
mod permissions;
mod plan;
mod queues;
mod records;
mod secrets;
mod setup;
mod strict;
mod tokens;
mod version;
mod watch;

pub use options::{Credentials, NatsOptions, OptionsError, Party};
pub use permissions::{Permissions, permissions};
pub use plan::{Limits, Setup, Shrink};
pub use setup::{SetupError, SetupReport, setup};

use crate::bus::{
    Answer, Answering, Bus, BusError, Changed, Events, ObjectName, Pulled, RecordWatch,
};
use crate::host::HostRecord;
use crate::names::{NodeName, Queue, RunKey, SubmitterName};
use crate::record::{Record, Revision, Versioned};
use bytes::Bytes;
use connection::Connection;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A connection to NATS. The client connects again by itself; every method has a time limit of 10 s
/// or the given one, after which it fails with [`BusError::Unreachable`].
///
/// The methods block. They must not be called on a thread of an asynchronous runtime.
pub struct NatsBus {
    connection: Arc<Connection>,
    /// Queues that this process has found to exist.
    known: Mutex<HashSet<Queue>>,
    hints: Mutex<Option<queues::Hints>>,
    /// Number of the last hint that a call of `wait_for_message` has seen.
    hinted: Mutex<u64>,
}

impl NatsBus {
    /// Connects.
    ///
    /// # Errors
    /// [`BusError::Unreachable`] if no server answers within 10 s, [`BusError::Denied`] if it refuses the
    /// credentials, [`BusError::ServerTooOld`], [`BusError::ServerNotStrict`].
    pub fn connect(options: &NatsOptions) -> Result<Self, BusError> {
        Ok(Self {
            connection: Arc::new(Connection::open(options)?),
            known: Mutex::default(),
            hints: Mutex::default(),
            hinted: Mutex::default(),
        })
    }
}

/// Locks, also after a thread panicked while it held the lock: the mutexes protect a cache and a
/// counter, whose every value is valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bus for NatsBus {
    fn record(&self, key: &RunKey) -> Result<Option<Versioned<Record>>, BusError> {
        let connection = &self.connection;
        connection.block_on(records::get(connection, key))
    }

    fn create_record(&self, record: &Record) -> Result<Revision, BusError> {
        let connection = &self.connection;
        connection.block_on(records::create(connection, record))
    }

    fn update_record(&self, record: &Record, at: Revision) -> Result<Revision, BusError> {
        let connection = &self.connection;
        connection.block_on(records::put(connection, record, at))
    }

    fn remove_record(&self, key: &RunKey, at: Revision) -> Result<(), BusError> {
        let connection = &self.connection;
        connection.block_on(records::remove(connection, key, at))
    }

    fn changed_records(
        &self,
        of: &SubmitterName,
        after: Revision,
        most: u64,
    ) -> Result<Changed, BusError> {
        let connection = &self.connection;
        connection.block_on(records::changed(connection, of, after, most))
    }

    fn ended_runs(
        &self,
        of: &SubmitterName,
        age: Duration,
    ) -> Result<Vec<(RunKey, Revision)>, BusError> {
        let connection = &self.connection;
        connection.block_on(records::ended(connection, of, age))
    }

    fn watch(&self, key: &RunKey) -> Result<Box<dyn RecordWatch>, BusError> {
        Ok(Box::new(watch::Changes::open(&self.connection, key)?))
    }

    fn publish(&self, queue: &Queue, key: &RunKey, message_id: &str) -> Result<(), BusError> {
        let connection = &self.connection;
        // A stream keeps a message that no consumer takes for ever, so the queue must exist.
        if !lock(&self.known).contains(queue) {
            connection.block_on(queues::unanswered(connection, queue))?;
            lock(&self.known).insert(queue.clone());
        }
        connection.block_on(queues::publish(connection, queue, key, message_id))
    }

    fn queues(&self) -> Result<Vec<Queue>, BusError> {
        let connection = &self.connection;
        connection.block_on(queues::list(connection))
    }

    fn pull(&self, queue: &Queue) -> Result<Pulled, BusError> {
        let connection = &self.connection;
        connection.block_on(queues::pull(connection, queue))
    }

    fn wait_for_message(&self, wait: Duration) -> Result<(), BusError> {
        let deadline = Instant::now() + wait;
        let mut receiver = {
            let mut hints = lock(&self.hints);
            match hints.as_ref() {
                Some(open) => open.receiver(),
                None => {
                    *hints = Some(queues::Hints::open(&self.connection)?);
                    // A message may have come before the subscription.
                    return Ok(());
                }
            }
        };
        let seen = *lock(&self.hinted);
        let arrived = async {
            // An error says that the connection is closed; then the time limit ends the wait.
            receiver
                .wait_for(|count| *count != seen)
                .await
                .map(|count| *count)
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self
            .connection
            .block_on(async { tokio::time::timeout(left, arrived).await });
        if let Ok(Ok(count)) = waited {
            *lock(&self.hinted) = count;
        }
        Ok(())
    }

    fn is_empty(&self, queue: &Queue) -> Result<bool, BusError> {
        let connection = &self.connection;
        let unanswered = connection.block_on(queues::unanswered(connection, queue))?;
        Ok(unanswered == 0)
    }

    fn beat(&self, host: &HostRecord) -> Result<Revision, BusError> {
        let connection = &self.connection;
        connection.block_on(records::beat(connection, host))
    }

    fn host(&self, node: &NodeName) -> Result<Option<Versioned<HostRecord>>, BusError> {
        let connection = &self.connection;
        connection.block_on(records::host(connection, node))
    }

    fn hosts(&self) -> Result<Vec<Versioned<HostRecord>>, BusError> {
        let connection = &self.connection;
        connection.block_on(records::hosts(connection))
    }

    fn remove_host(&self, host: &NodeName) -> Result<(), BusError> {
        let connection = &self.connection;
        connection.block_on(records::remove_host(connection, host))
    }

    fn has_object(&self, of: &SubmitterName, name: &ObjectName) -> Result<bool, BusError> {
        let connection = &self.connection;
        connection.block_on(objects::has(connection, of, name))
    }

    fn put_object(
        &self,
        of: &SubmitterName,
        name: &ObjectName,
        content: &mut (dyn Read + Send),
    ) -> Result<(), BusError> {
        // The limit is read each time: the operator may change it while this process runs.
        let limit = self
            .connection
            .block_on(objects::limit(&self.connection, of))?;
        objects::put(&self.connection, of, name, limit, content)
    }

    fn get_object(
        &self,
        of: &SubmitterName,
        name: &ObjectName,
        to: &mut (dyn Write + Send),
    ) -> Result<(), BusError> {
        objects::get(&self.connection, of, name, to)
    }

    fn objects(&self, of: &SubmitterName) -> Result<Vec<(String, u64)>, BusError> {
        let connection = &self.connection;
        connection.block_on(objects::list(connection, of))
    }

    fn remove_object(&self, of: &SubmitterName, name: &str) -> Result<(), BusError> {
        let connection = &self.connection;
        connection.block_on(objects::remove(connection, of, name))
    }

    fn ask(&self, key: &RunKey, request: &[u8], wait: Duration) -> Result<Vec<u8>, BusError> {
        let connection = &self.connection;
        connection.block_on(secrets::ask(connection, key, request, wait))
    }

    fn answer(&self, key: &RunKey, answer: Answer) -> Result<Box<dyn Answering>, BusError> {
        secrets::answer(&self.connection, key, answer)
    }

    fn emit(&self, key: &RunKey, event: &[u8]) -> Result<(), BusError> {
        let subject = layout::events(key);
        let sent = self
            .connection
            .send(subject.clone(), Bytes::copy_from_slice(event));
        self.connection
            .block_on(sent)
            .map_err(|error| error.into_bus(&subject))
    }

    fn follow(&self, key: &RunKey) -> Result<Box<dyn Events>, BusError> {
        Ok(Box::new(watch::EventFeed::open(&self.connection, key)?))
    }
}
