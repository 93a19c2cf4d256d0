//! A message server in memory that checks the rules of the protocol.

use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use wp_codebox_cluster::bus::{
    Answer, Answering, Bus, BusError, Changed, Delivery, Events, ObjectName, Pulled, RecordWatch,
};
use wp_codebox_cluster::host::HostRecord;
use wp_codebox_cluster::names::{Capability, NodeName, Priority, Queue, RunKey, SubmitterName};
use wp_codebox_cluster::record::{End, Record, Revision, State, Versioned};
use wp_codebox_contracts::{RunId, Sha256Hex};

pub const TASK: &str = "5555555555555555555555555555555555555555555555555555555555555555";

pub fn submitter() -> SubmitterName {
    SubmitterName::new("team").unwrap()
}

/// Returns the id of the run of a submitter with this name.
pub fn run_id(submitter: &SubmitterName, name: &str) -> RunId {
    let digest = Sha256::digest(format!("{submitter} {name}"));
    RunId::from_digest(&Sha256Hex::from_bytes(&digest.into()))
}

pub fn queue() -> Queue {
    Queue {
        capability: Capability::new("default").unwrap(),
        priority: Priority::Normal,
        submitter: submitter(),
    }
}

pub fn record(run: &RunId, max_tries: u32) -> Record {
    record_in(&queue(), run, max_tries)
}

/// Returns the record of a run in a queue.
pub fn record_in(queue: &Queue, run: &RunId, max_tries: u32) -> Record {
    let key = RunKey {
        submitter: queue.submitter.clone(),
        run: run.clone(),
    };
    let task: Sha256Hex = serde_json::from_value(TASK.into()).unwrap();
    Record::submitted(
        key,
        queue.clone(),
        task,
        max_tries,
        "2026-01-01T00:00:00Z".to_owned(),
    )
}

struct Message {
    number: u64,
    /// `None`: the message cannot be read.
    key: Option<RunKey>,
    queue: Queue,
    /// Number of the delivery that waits for an answer.
    delivered: Option<u64>,
    deliveries: u64,
}

#[derive(Default)]
struct Inner {
    revision: u64,
    records: BTreeMap<RunKey, (Record, u64)>,
    messages: Vec<Message>,
    ids: BTreeSet<String>,
    hosts: BTreeMap<NodeName, (HostRecord, u64)>,
    objects: BTreeMap<(SubmitterName, String), Vec<u8>>,
    /// Further queues that are set up.
    queues: Vec<Queue>,
    /// Records that no program can read.
    unreadable: BTreeMap<RunKey, u64>,
}

/// A request of a node that a test can delay or let fail.
#[derive(Debug, Clone, PartialEq)]
pub enum Request<'a> {
    Changes(&'a SubmitterName),
    Record(&'a RunKey),
    Hosts,
    Pull(&'a Queue),
    IsEmpty(&'a Queue),
}

type Hook = Arc<dyn Fn(Request<'_>) -> Result<(), BusError> + Send + Sync>;

/// The server. Its methods panic when a rule of the protocol is broken.
#[derive(Clone, Default)]
pub struct Memory {
    inner: Arc<(Mutex<Inner>, Condvar)>,
    hook: Option<Hook>,
}

pub fn unreachable() -> BusError {
    BusError::Unreachable {
        detail: "a test says so".to_owned(),
    }
}

impl Memory {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.0.lock().unwrap()
    }

    /// Returns the server as it is seen by a process for which `hook` runs before each request.
    pub fn seen_through(
        &self,
        hook: impl Fn(Request<'_>) -> Result<(), BusError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            hook: Some(Arc::new(hook)),
        }
    }

    fn before(&self, request: Request<'_>) -> Result<(), BusError> {
        self.hook.as_ref().map_or(Ok(()), |hook| hook(request))
    }

    /// Sets a queue up.
    pub fn add_queue(&self, queue: &Queue) {
        self.inner().queues.push(queue.clone());
    }

    /// Puts messages that cannot be read into a queue.
    pub fn publish_unreadable(&self, queue: &Queue, count: usize) {
        let mut inner = self.inner();
        for _ in 0..count {
            inner.revision += 1;
            let number = inner.revision;
            inner.messages.push(Message {
                number,
                key: None,
                queue: queue.clone(),
                delivered: None,
                deliveries: 0,
            });
        }
        self.inner.1.notify_all();
    }

    /// Replaces a record by one that cannot be read.
    pub fn damage(&self, key: &RunKey) {
        let mut inner = self.inner();
        inner.revision += 1;
        let revision = inner.revision;
        inner.records.remove(key);
        inner.unreadable.insert(key.clone(), revision);
    }

    /// Returns the number of the last heartbeat of a node.
    pub fn beat_of(&self, node: &str) -> u64 {
        self.inner().hosts[&NodeName::new(node).unwrap()].0.beat
    }

    /// Makes every message without an answer available again, as the server does after a time.
    pub fn redeliver(&self) {
        for message in &mut self.inner().messages {
            message.delivered = None;
        }
        self.inner.1.notify_all();
    }

    /// Removes all messages, as an operator might.
    pub fn lose_messages(&self) {
        self.inner().messages.clear();
    }

    pub fn present(&self, key: &RunKey) -> Record {
        self.inner().records[key].0.clone()
    }

    pub fn message_count(&self) -> usize {
        self.inner().messages.len()
    }

    fn change(&self, record: &Record, at: Option<u64>) -> Result<Revision, BusError> {
        let mut inner = self.inner();
        let present = inner.records.get(&record.key);
        if present.map(|(_, revision)| *revision) != at {
            return Err(BusError::Changed);
        }
        if let Some((present, _)) = present {
            assert!(!present.is_terminal(), "a terminal record was changed");
            assert!(record.epoch >= present.epoch, "the epoch fell");
        }
        if let State::Terminal {
            end: End::Result { .. },
            ..
        } = &record.state
        {
            let name = ObjectName::Result {
                run: record.key.run.clone(),
                epoch: record.epoch,
            };
            let object = (record.key.submitter.clone(), name.to_text());
            assert!(
                inner.objects.contains_key(&object),
                "the record names a result that is not stored"
            );
        }
        inner.revision += 1;
        let revision = inner.revision;
        let value = (record.clone(), revision);
        inner.records.insert(record.key.clone(), value);
        self.inner.1.notify_all();
        Ok(Revision(revision))
    }
}

struct Delivered {
    server: Memory,
    key: RunKey,
    number: u64,
    deliveries: u64,
}

impl Delivery for Delivered {
    fn key(&self) -> &RunKey {
        &self.key
    }
    fn deliveries(&self) -> u64 {
        self.deliveries
    }
    fn ack(&self) -> Result<(), BusError> {
        let mut inner = self.server.inner();
        let is_terminal = |(record, _): &(Record, u64)| record.is_terminal();
        assert!(
            inner.records.get(&self.key).is_none_or(is_terminal),
            "a message was removed before its run had ended"
        );
        inner
            .messages
            .retain(|message| message.number != self.number);
        Ok(())
    }
    fn retry(&self, _: Duration) -> Result<(), BusError> {
        let mut inner = self.server.inner();
        let is_this = |message: &Message| {
            message.number == self.number && message.delivered == Some(self.deliveries)
        };
        if let Some(at) = inner.messages.iter().position(is_this) {
            // The messages that wait are delivered before one that was given back for a while.
            let mut message = inner.messages.remove(at);
            message.delivered = None;
            inner.messages.push(message);
        }
        Ok(())
    }
    fn working(&self) -> Result<(), BusError> {
        Ok(())
    }
}

struct Watching {
    server: Memory,
    key: RunKey,
    seen: u64,
}

impl RecordWatch for Watching {
    fn next(&mut self, wait: Duration) -> Result<Option<Versioned<Record>>, BusError> {
        let until = Instant::now() + wait;
        let mut inner = self.server.inner();
        loop {
            if let Some((record, revision)) = inner.records.get(&self.key)
                && *revision > self.seen
            {
                self.seen = *revision;
                return Ok(Some(Versioned {
                    value: record.clone(),
                    revision: Revision(*revision),
                }));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            inner = self.server.inner.1.wait_timeout(inner, left).unwrap().0;
        }
    }
}

struct NoEvents;

impl Events for NoEvents {
    fn next(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        std::thread::sleep(wait);
        Ok(None)
    }
}

impl Answering for NoEvents {}

fn damaged(key: &RunKey) -> BusError {
    BusError::Unreadable {
        what: format!("the record of {}", key.run),
        detail: "a test damaged it".to_owned(),
    }
}

impl Bus for Memory {
    fn record(&self, key: &RunKey) -> Result<Option<Versioned<Record>>, BusError> {
        self.before(Request::Record(key))?;
        let inner = self.inner();
        if inner.unreadable.contains_key(key) {
            return Err(damaged(key));
        }
        let row = inner.records.get(key);
        Ok(row.map(|(record, revision)| Versioned {
            value: record.clone(),
            revision: Revision(*revision),
        }))
    }
    fn create_record(&self, record: &Record) -> Result<Revision, BusError> {
        self.change(record, None)
    }
    fn update_record(&self, record: &Record, at: Revision) -> Result<Revision, BusError> {
        self.change(record, Some(at.0))
    }
    fn remove_record(&self, key: &RunKey, at: Revision) -> Result<(), BusError> {
        let mut inner = self.inner();
        let removes = |(_, revision): &(Record, u64)| *revision <= at.0;
        if inner.records.get(key).is_some_and(removes) {
            inner.records.remove(key);
        }
        Ok(())
    }
    fn changed_records(
        &self,
        of: &SubmitterName,
        after: Revision,
        most: u64,
    ) -> Result<Changed, BusError> {
        self.before(Request::Changes(of))?;
        let inner = self.inner();
        let rows = inner.records.iter();
        let rows = rows.filter(|(key, (_, revision))| key.submitter == *of && *revision > after.0);
        let mut records: Vec<Versioned<Record>> = rows
            .map(|(_, (record, revision))| Versioned {
                value: record.clone(),
                revision: Revision(*revision),
            })
            .collect();
        records.sort_by_key(|row| row.revision);
        let most = usize::try_from(most).unwrap();
        let is_partial = records.len() > most;
        records.truncate(most);
        let unreadable = inner.unreadable.iter();
        let unreadable: Vec<(&RunKey, &u64)> = unreadable
            .filter(|(key, revision)| key.submitter == *of && **revision > after.0)
            .collect();
        let read = records.last().map_or(after, |row| row.revision);
        let last = unreadable.iter().map(|(_, revision)| **revision).max();
        Ok(Changed {
            until: if is_partial {
                read
            } else {
                read.max(Revision(last.unwrap_or_default()))
            },
            unreadable: unreadable
                .iter()
                .map(|(key, _)| ((*key).clone(), damaged(key)))
                .collect(),
            records,
            is_partial,
        })
    }
    fn ended_runs(
        &self,
        of: &SubmitterName,
        _: Duration,
    ) -> Result<Vec<(RunKey, Revision)>, BusError> {
        let inner = self.inner();
        let rows = inner.records.iter();
        let rows = rows.filter(|(key, (record, _))| key.submitter == *of && record.is_terminal());
        Ok(rows
            .map(|(key, (_, revision))| (key.clone(), Revision(*revision)))
            .collect())
    }
    fn watch(&self, key: &RunKey) -> Result<Box<dyn RecordWatch>, BusError> {
        Ok(Box::new(Watching {
            server: self.clone(),
            key: key.clone(),
            seen: 0,
        }))
    }
    fn publish(&self, queue: &Queue, key: &RunKey, message_id: &str) -> Result<(), BusError> {
        let mut inner = self.inner();
        if !inner.ids.insert(message_id.to_owned()) {
            return Ok(());
        }
        inner.revision += 1;
        let number = inner.revision;
        inner.messages.push(Message {
            number,
            key: Some(key.clone()),
            queue: queue.clone(),
            delivered: None,
            deliveries: 0,
        });
        self.inner.1.notify_all();
        Ok(())
    }
    fn queues(&self) -> Result<Vec<Queue>, BusError> {
        let mut queues = self.inner().queues.clone();
        queues.push(queue());
        Ok(queues)
    }
    fn pull(&self, queue: &Queue) -> Result<Pulled, BusError> {
        self.before(Request::Pull(queue))?;
        let mut inner = self.inner();
        let mut messages = inner.messages.iter_mut();
        let next = messages.find(|row| row.queue == *queue && row.delivered.is_none());
        let Some(message) = next else {
            return Ok(Pulled::Empty);
        };
        let Some(key) = message.key.clone() else {
            let number = message.number;
            inner.messages.retain(|message| message.number != number);
            return Ok(Pulled::Removed {
                problem: BusError::Unreadable {
                    what: "a message".to_owned(),
                    detail: "a test damaged it".to_owned(),
                },
            });
        };
        message.deliveries += 1;
        message.delivered = Some(message.deliveries);
        Ok(Pulled::Message(Arc::new(Delivered {
            server: self.clone(),
            key,
            number: message.number,
            deliveries: message.deliveries,
        })))
    }
    fn wait_for_message(&self, wait: Duration) -> Result<(), BusError> {
        let inner = self.inner();
        let _ = self
            .inner
            .1
            .wait_timeout(inner, wait.min(Duration::from_millis(20)));
        Ok(())
    }
    fn is_empty(&self, queue: &Queue) -> Result<bool, BusError> {
        self.before(Request::IsEmpty(queue))?;
        let inner = self.inner();
        Ok(inner.messages.iter().all(|message| message.queue != *queue))
    }
    fn beat(&self, host: &HostRecord) -> Result<Revision, BusError> {
        let mut inner = self.inner();
        inner.revision += 1;
        let revision = inner.revision;
        let node = host.claimant.node.clone();
        inner.hosts.insert(node, (host.clone(), revision));
        Ok(Revision(revision))
    }
    fn host(&self, node: &NodeName) -> Result<Option<Versioned<HostRecord>>, BusError> {
        let inner = self.inner();
        let row = inner.hosts.get(node);
        Ok(row.map(|(host, revision)| Versioned {
            value: host.clone(),
            revision: Revision(*revision),
        }))
    }
    fn hosts(&self) -> Result<Vec<Versioned<HostRecord>>, BusError> {
        self.before(Request::Hosts)?;
        let inner = self.inner();
        let rows = inner.hosts.values();
        Ok(rows
            .map(|(host, revision)| Versioned {
                value: host.clone(),
                revision: Revision(*revision),
            })
            .collect())
    }
    fn remove_host(&self, host: &NodeName) -> Result<(), BusError> {
        self.inner().hosts.remove(host);
        Ok(())
    }
    fn has_object(&self, of: &SubmitterName, name: &ObjectName) -> Result<bool, BusError> {
        let object = (of.clone(), name.to_text());
        Ok(self.inner().objects.contains_key(&object))
    }
    fn put_object(
        &self,
        of: &SubmitterName,
        name: &ObjectName,
        content: &mut (dyn Read + Send),
    ) -> Result<(), BusError> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).unwrap();
        let object = (of.clone(), name.to_text());
        self.inner().objects.insert(object, bytes);
        Ok(())
    }
    fn get_object(
        &self,
        of: &SubmitterName,
        name: &ObjectName,
        to: &mut (dyn Write + Send),
    ) -> Result<(), BusError> {
        let object = (of.clone(), name.to_text());
        let Some(bytes) = self.inner().objects.get(&object).cloned() else {
            return Err(BusError::Missing {
                what: name.to_text(),
            });
        };
        to.write_all(&bytes).unwrap();
        Ok(())
    }
    fn objects(&self, of: &SubmitterName) -> Result<Vec<(String, u64)>, BusError> {
        let inner = self.inner();
        let rows = inner.objects.iter().filter(|((owner, _), _)| owner == of);
        Ok(rows
            .map(|((_, name), bytes)| (name.clone(), bytes.len() as u64))
            .collect())
    }
    fn remove_object(&self, of: &SubmitterName, name: &str) -> Result<(), BusError> {
        self.inner().objects.remove(&(of.clone(), name.to_owned()));
        Ok(())
    }
    fn ask(&self, _: &RunKey, _: &[u8], _: Duration) -> Result<Vec<u8>, BusError> {
        Err(BusError::Unreachable {
            detail: "nobody answers".to_owned(),
        })
    }
    fn answer(&self, _: &RunKey, _: Answer) -> Result<Box<dyn Answering>, BusError> {
        Ok(Box::new(NoEvents))
    }
    fn emit(&self, _: &RunKey, _: &[u8]) -> Result<(), BusError> {
        Ok(())
    }
    fn follow(&self, _: &RunKey) -> Result<Box<dyn Events>, BusError> {
        Ok(Box::new(NoEvents))
    }
}
