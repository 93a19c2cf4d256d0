//! Records of runs and heartbeats of nodes: the last message of a subject is the value, its number in
//! the stream the revision.

use super::api::{Publication, Stored};
use super::connection::{Connection, LIMIT};
use super::failure::{CallError, number};
use super::layout;
use crate::bus::{BusError, Changed};
use crate::host::HostRecord;
use crate::names::{NodeName, RunKey, SubmitterName};
use crate::record::{Record, Revision, Versioned};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::{Instant, sleep};

/// Largest record in bytes.
pub(super) const LARGEST_RECORD: u64 = 64 * 1024;
/// Largest heartbeat in bytes.
pub(super) const LARGEST_HOST: u64 = 16 * 1024;
/// First and last pause between two reads after a conflict. Each is twice the one before; together
/// they make two seconds.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(1024);
/// A range of message numbers is read in up to `AT_ONCE` parts at once, each of at least `PART`
/// numbers.
const AT_ONCE: u64 = 32;
const PART: u64 = 16;
/// Number of message numbers that one call of [`read`] in [`ended`] covers.
const IN_A_ROW: u64 = 16 * 1024;

/// Returns the record with this key.
pub(super) async fn get(
    connection: &Connection,
    key: &RunKey,
) -> Result<Option<Versioned<Record>>, BusError> {
    let stream = layout::records_stream(&key.submitter);
    let last = connection.last(&stream, &layout::record(key)).await;
    match last.map_err(|error| error.into_bus(&stream))? {
        Some(stored) => record(key, &stored).map(Some),
        None => Ok(None),
    }
}

/// Reads a record; its key must be the one under which it is stored, and its queue one of the same
/// submitter. A submitter can store any value as its record, and nodes put messages into the queue
/// that a record names.
fn record(key: &RunKey, stored: &Stored) -> Result<Versioned<Record>, BusError> {
    let what = format!("the record of {}", key.run);
    let read: Versioned<Record> = value(&what, stored)?;
    let wrong = if read.value.key != *key {
        "it has the key of another run"
    } else if read.value.queue.submitter != key.submitter {
        "it names a queue of another submitter"
    } else {
        return Ok(read);
    };
    Err(BusError::Unreadable {
        what,
        detail: wrong.to_owned(),
    })
}

fn value<T: DeserializeOwned>(what: &str, stored: &Stored) -> Result<Versioned<T>, BusError> {
    serde_json::from_slice(&stored.data)
        .map(|value| Versioned {
            value,
            revision: Revision(stored.sequence),
        })
        .map_err(|error| BusError::Unreadable {
            what: what.to_owned(),
            detail: error.to_string(),
        })
}

/// Creates a record. A quarter of the stream is left for changes of the records in it: a run whose
/// end cannot be stored would be run again.
pub(super) async fn create(connection: &Connection, record: &Record) -> Result<Revision, BusError> {
    let stream = layout::records_stream(&record.key.submitter);
    let info = info(connection, &record.key.submitter).await?;
    let used = info["state"]["bytes"].as_u64().unwrap_or_default();
    let limit = info["config"]["max_bytes"].as_u64().unwrap_or(u64::MAX);
    if used > limit / 4 * 3 {
        return Err(BusError::Full {
            detail: format!(
                "{stream} uses {used} of its {limit} bytes; new runs are refused above three quarters"
            ),
        });
    }
    put(connection, record, Revision(0)).await
}

/// Returns what the server tells about the stream of a submitter's records.
async fn info(connection: &Connection, of: &SubmitterName) -> Result<Value, BusError> {
    let stream = layout::records_stream(of);
    let told = connection
        .call(&format!("STREAM.INFO.{stream}"), &Value::Null)
        .await;
    told.map_err(|error| error.into_bus(&stream))
}

/// Replaces the record whose revision is `at`; 0 stands for no record.
pub(super) async fn put(
    connection: &Connection,
    record: &Record,
    at: Revision,
) -> Result<Revision, BusError> {
    let stream = layout::records_stream(&record.key.submitter);
    let payload = encoded(
        &format!("the record of {}", record.key.run),
        record,
        LARGEST_RECORD,
    )?;
    let published = connection
        .publish_at(Publication {
            stream: stream.clone(),
            subject: layout::record(&record.key),
            payload,
            message_id: None,
            expected: Some(at.0),
        })
        .await;
    let (error, repeated) = match published {
        Ok(sequence) => return Ok(Revision(sequence)),
        Err(failed) => failed,
    };
    let error = error.into_bus(&stream);
    if error != BusError::Changed {
        return Err(error);
    }
    match conflicting(connection, &record.key, at).await {
        // An earlier try had no answer. If that try stored the record, it caused the conflict.
        Ok(Some(present)) if repeated && present.value == *record => Ok(present.revision),
        Ok(_) | Err(BusError::Unreadable { .. }) => Err(error),
        Err(failed) => Err(failed),
    }
}

/// Waits until the change that caused a conflict can be read, and returns the record. The leader of a
/// replicated stream refuses a compare-and-set as soon as it has proposed another change, which it
/// stores when a majority has it; a read in between returns the value before it. If no majority
/// comes, the value stays as it was.
async fn conflicting(
    connection: &Connection,
    key: &RunKey,
    at: Revision,
) -> Result<Option<Versioned<Record>>, BusError> {
    let mut pause = SHORTEST_PAUSE;
    loop {
        let present = get(connection, key).await?;
        let revision = present.as_ref().map_or(0, |present| present.revision.0);
        if revision != at.0 || pause > LONGEST_PAUSE {
            return Ok(present);
        }
        sleep(pause).await;
        pause *= 2;
    }
}

/// Removes a record, unless it changed after the revision `at`.
pub(super) async fn remove(
    connection: &Connection,
    key: &RunKey,
    at: Revision,
) -> Result<(), BusError> {
    let stream = layout::records_stream(&key.submitter);
    let before = Some(at.0.saturating_add(1));
    let purged = connection
        .purge(&stream, &layout::record(key), before)
        .await;
    purged.map_err(|error| error.into_bus(&stream))
}

/// Messages of a range of numbers, in their order.
struct Range {
    messages: Vec<Stored>,
    /// Last number of the range.
    end: u64,
    /// Whether the stream has later messages.
    is_partial: bool,
}

/// Reads at most `most` changes after a revision, and returns the submitter's records that they
/// changed. A record that another program wrote does not hide the others; [`get`] reports it.
pub(super) async fn changed(
    connection: &Connection,
    of: &SubmitterName,
    after: Revision,
    most: u64,
) -> Result<Changed, BusError> {
    let state = info(connection, of).await?;
    let last = last_number(&state);
    // If `after` is larger, the operator has created the stream anew and its numbers begin again.
    let after = if after.0 <= last { after.0 } else { 0 };
    let range = read(connection, of, after, after.saturating_add(most), last).await?;
    let (mut records, mut unreadable) = (Vec::new(), Vec::new());
    for stored in &range.messages {
        // Subjects of other programs name no run.
        let Some(key) = layout::key_of(&stored.subject) else {
            continue;
        };
        match record(&key, stored) {
            Ok(read) => records.push(read),
            Err(error) => unreadable.push((key, error)),
        }
    }
    Ok(Changed {
        records,
        unreadable,
        until: Revision(range.end),
        is_partial: range.is_partial,
    })
}

/// Returns the runs whose end was stored more than `age` ago, by the clock of the server.
pub(super) async fn ended(
    connection: &Connection,
    of: &SubmitterName,
    age: Duration,
) -> Result<Vec<(RunKey, Revision)>, BusError> {
    let stream = layout::records_stream(of);
    let info = info(connection, of).await?;
    let now = time_of(&stream, info["ts"].as_str().unwrap_or_default())?;
    let age = time::Duration::try_from(age).unwrap_or(time::Duration::MAX);
    // The age reaches back before the earliest possible time, so no run is that old.
    let Some(latest) = now.checked_sub(age) else {
        return Ok(Vec::new());
    };
    let (mut after, last) = (0, last_number(&info));
    let mut ended = Vec::new();
    loop {
        let range = read(connection, of, after, after.saturating_add(IN_A_ROW), last).await?;
        for stored in &range.messages {
            if time_of(&stream, &stored.time)? > latest {
                return Ok(ended);
            }
            let record = readable(stored).filter(|record| record.value.is_terminal());
            ended.extend(record.map(|record| (record.value.key, record.revision)));
        }
        if !range.is_partial {
            return Ok(ended);
        }
        after = range.end;
    }
}

fn last_number(info: &Value) -> u64 {
    info["state"]["last_seq"].as_u64().unwrap_or_default()
}

/// Reads the messages with the numbers from `after` + 1 to `end`; `last` is the last one of the stream.
/// The stream has the last message of each subject only, so most numbers of a busy stream have none,
/// and a message that is replaced during the read gets a number after `last`.
async fn read(
    connection: &Connection,
    of: &SubmitterName,
    after: u64,
    end: u64,
    last: u64,
) -> Result<Range, BusError> {
    let (stream, subjects) = (layout::records_stream(of), layout::records(of));
    let end = end.min(last);
    let step = ((end - after.min(end)) / AT_ONCE).max(PART);
    let starts = std::iter::successors(Some(after), |start| start.checked_add(step));
    let parts = starts.take_while(|start| *start < end).map(|start| {
        let (stream, subjects) = (stream.as_str(), subjects.as_str());
        async move {
            let (mut found, mut from) = (Vec::new(), start + 1);
            let until = end.min(start.saturating_add(step));
            while from <= until {
                let next = connection.next(stream, subjects, from).await;
                match next.map_err(|error| error.into_bus(stream))? {
                    Some(stored) if stored.sequence <= until => {
                        from = stored.sequence + 1;
                        found.push(stored);
                    }
                    Some(_) | None => break,
                }
            }
            Ok(found)
        }
    });
    let mut messages = Vec::new();
    let mut parts = stream::iter(parts).buffered(AT_ONCE as usize);
    while let Some(part) = parts.next().await {
        messages.extend(part?);
    }
    Ok(Range {
        messages,
        end,
        is_partial: end < last,
    })
}

fn readable(stored: &Stored) -> Option<Versioned<Record>> {
    record(&layout::key_of(&stored.subject)?, stored).ok()
}

/// Reads a time of the server.
fn time_of(stream: &str, text: &str) -> Result<OffsetDateTime, BusError> {
    OffsetDateTime::parse(text, &Rfc3339).map_err(|error| BusError::Unreadable {
        what: format!("a time of {stream}"),
        detail: error.to_string(),
    })
}

/// Stores a heartbeat. Only the last one counts, so no revision is compared.
pub(super) async fn beat(connection: &Connection, host: &HostRecord) -> Result<Revision, BusError> {
    let node = &host.claimant.node;
    let payload = encoded(&format!("the heartbeat of {node}"), host, LARGEST_HOST)?;
    store_host(connection, node, payload).await
}

/// Removes a heartbeat. An empty message replaces it: purging a subject of this stream needs a right on
/// the whole stream, with which a node could remove the heartbeats of others.
pub(super) async fn remove_host(connection: &Connection, node: &NodeName) -> Result<(), BusError> {
    store_host(connection, node, Bytes::new()).await.map(drop)
}

async fn store_host(
    connection: &Connection,
    node: &NodeName,
    payload: Bytes,
) -> Result<Revision, BusError> {
    let published = connection
        .publish(Publication {
            stream: layout::HOSTS.to_owned(),
            subject: layout::host(node),
            payload,
            message_id: None,
            expected: None,
        })
        .await;
    published
        .map(Revision)
        .map_err(|error| error.into_bus(layout::HOSTS))
}

/// Returns the heartbeat of a node, if the node has one that can be read.
pub(super) async fn host(
    connection: &Connection,
    node: &NodeName,
) -> Result<Option<Versioned<HostRecord>>, BusError> {
    let subject = layout::host(node);
    let last = connection.last(layout::HOSTS, &subject).await;
    let last = last.map_err(|error| error.into_bus(layout::HOSTS))?;
    Ok(last.as_ref().and_then(heartbeat))
}

/// Reads a heartbeat of the node that its subject names; `None` after the node has left.
fn heartbeat(stored: &Stored) -> Option<Versioned<HostRecord>> {
    let read: Versioned<HostRecord> = value("a heartbeat", stored).ok()?;
    (layout::host(&read.value.claimant.node) == stored.subject).then_some(read)
}

/// Returns the heartbeats that can be read, by the names of their nodes. A submitter may not read the
/// list of subjects, which comes with the token of the stream, so the messages are read in their
/// order. A heartbeat that is replaced meanwhile is read again, because its number becomes higher.
pub(super) async fn hosts(connection: &Connection) -> Result<Vec<Versioned<HostRecord>>, BusError> {
    let deadline = Instant::now() + LIMIT;
    let mut latest: BTreeMap<String, Option<Versioned<HostRecord>>> = BTreeMap::new();
    let mut from = 1;
    loop {
        let next = connection.next(layout::HOSTS, layout::HOST_SUBJECTS, from);
        let next = next.await.map_err(|error| error.into_bus(layout::HOSTS))?;
        let Some(stored) = next else {
            return Ok(latest.into_values().flatten().collect());
        };
        if Instant::now() > deadline {
            return Err(BusError::Unreachable {
                detail: "new heartbeats come faster than the server returns them".to_owned(),
            });
        }
        from = stored.sequence + 1;
        let read = heartbeat(&stored);
        latest.insert(stored.subject, read);
    }
}

fn encoded(name: &str, value: &impl serde::Serialize, limit: u64) -> Result<Bytes, BusError> {
    let unreadable = |error: serde_json::Error| BusError::Unreadable {
        what: name.to_owned(),
        detail: error.to_string(),
    };
    let bytes = serde_json::to_vec(value).map_err(unreadable)?;
    match bytes.len() as u64 > limit {
        true => Err(BusError::TooLarge {
            name: name.to_owned(),
            limit,
        }),
        false => Ok(Bytes::from(bytes)),
    }
}

/// Returns whether an error of the interface says that there is no such stream or consumer.
pub(super) fn is_absent(error: &CallError) -> bool {
    matches!(
        error.number(),
        Some(number::STREAM_NOT_FOUND | number::CONSUMER_NOT_FOUND)
    )
}
