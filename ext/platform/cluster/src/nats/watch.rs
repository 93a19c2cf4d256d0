//! Follows a record, and the events of a run.

use super::connection::{Connection, Task};
use super::{layout, records};
use crate::bus::{BusError, Events, RecordWatch};
use crate::names::RunKey;
use crate::record::{Record, Revision, Versioned};
use async_nats::Subscriber;
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};

/// Time after which a record is read again without an announcement of a change. The removal of a
/// record is not announced, and an announcement is lost while the connection is lost.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Largest number of messages that wait for the caller.
const WAITING: usize = 256;

/// Passes the messages of a subscription on. The subscription lives in a task of the connection,
/// because its end needs the connection's runtime.
pub(super) struct Feed {
    messages: mpsc::Receiver<Bytes>,
    _task: Task,
}

impl Feed {
    pub(super) fn open(connection: &Connection, subject: &str) -> Result<Self, BusError> {
        let subscribed = connection.block_on(connection.subscribe(subject));
        let subscriber = subscribed.map_err(|error| error.into_bus(subject))?;
        let (sender, messages) = mpsc::channel(WAITING);
        Ok(Self {
            messages,
            _task: connection.spawn(pass(subscriber, sender)),
        })
    }

    /// Returns the next message; `None` at the deadline, and for good after the connection has closed.
    async fn next(&mut self, deadline: Instant) -> Option<Bytes> {
        match timeout_at(deadline, self.messages.recv()).await {
            Ok(Some(message)) => Some(message),
            Ok(None) => {
                tokio::time::sleep_until(deadline).await;
                None
            }
            Err(_) => None,
        }
    }

    fn drain(&mut self) {
        while self.messages.try_recv().is_ok() {}
    }
}

async fn pass(mut subscriber: Subscriber, to: mpsc::Sender<Bytes>) {
    while let Some(message) = subscriber.next().await {
        if to.send(message.payload).await.is_err() {
            return;
        }
    }
}

/// Changes of one record. The server announces each stored revision, but an announcement can be
/// forged: every account that may use the interface for streams can let its answers go to the
/// subject of the announcements. The value is therefore always read from the leader of the stream.
pub(super) struct Changes {
    connection: Arc<Connection>,
    key: RunKey,
    hints: Feed,
    losses: watch::Receiver<u64>,
    returned: Option<Revision>,
    /// Whether the record may have changed since it was read.
    stale: bool,
}

impl Changes {
    pub(super) fn open(connection: &Arc<Connection>, key: &RunKey) -> Result<Self, BusError> {
        Ok(Self {
            hints: Feed::open(connection, &layout::change(key))?,
            losses: connection.losses(),
            connection: Arc::clone(connection),
            key: key.clone(),
            returned: None,
            stale: true,
        })
    }

    async fn changed(&mut self, wait: Duration) -> Result<Option<Versioned<Record>>, BusError> {
        let connection = Arc::clone(&self.connection);
        let deadline = Instant::now() + wait;
        loop {
            if self.stale {
                self.hints.drain();
                self.losses.mark_unchanged();
                let present = records::get(&connection, &self.key).await?;
                let present = present.ok_or_else(|| BusError::Missing {
                    what: format!("record of {}", self.key.run),
                })?;
                self.stale = false;
                if self.returned.is_none_or(|last| present.revision > last) {
                    self.returned = Some(present.revision);
                    return Ok(Some(present));
                }
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            let again = now + LOOK_AGAIN;
            let until = deadline.min(again);
            self.stale = tokio::select! {
                hint = self.hints.next(until) => hint.is_some() || until == again,
                lost = self.losses.changed() => lost.is_ok(),
            };
        }
    }
}

impl RecordWatch for Changes {
    fn next(&mut self, wait: Duration) -> Result<Option<Versioned<Record>>, BusError> {
        let connection = Arc::clone(&self.connection);
        connection.block_on(self.changed(wait))
    }
}

/// Events of one run.
pub(super) struct EventFeed {
    connection: Arc<Connection>,
    feed: Feed,
}

impl EventFeed {
    pub(super) fn open(connection: &Arc<Connection>, key: &RunKey) -> Result<Self, BusError> {
        Ok(Self {
            feed: Feed::open(connection, &layout::events(key))?,
            connection: Arc::clone(connection),
        })
    }
}

impl Events for EventFeed {
    fn next(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        let deadline = Instant::now() + wait;
        let message = self.connection.block_on(self.feed.next(deadline));
        Ok(message.map(|message| message.to_vec()))
    }
}
