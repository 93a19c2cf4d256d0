//! Objects: numbered parts of one size, and a description that is stored last and makes the object
//! complete.
//!
//! The subject of a part follows from the object's name and the number of the part. So a second
//! upload replaces parts by the same content, and the next upload or the removal of the object also
//! reaches the parts of an upload that was broken off.

use super::api::Publication;
use super::connection::Connection;
use super::failure::CallError;
use super::layout;
use crate::bus::{BusError, ObjectName};
use crate::names::SubmitterName;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Size of a part in bytes, except the last one. All programs of a cluster use the same size.
pub(super) const PART: usize = 128 * 1024;
/// Number of parts on their way at the same time.
const IN_FLIGHT: usize = 8;
/// Number of descriptions that are read at the same time.
const AT_ONCE: usize = 32;

/// Member of a stream's metadata with the limit of one object in bytes.
pub(super) const OBJECT_LIMIT: &str = "codebox-object-bytes";

/// Description of an object.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    bytes: u64,
    parts: u64,
}

async fn end(
    connection: &Connection,
    of: &SubmitterName,
    name: &str,
) -> Result<Option<End>, BusError> {
    let stream = layout::objects_stream(of);
    let last = connection
        .last(&stream, &layout::object_end(of, name))
        .await;
    let Some(stored) = last.map_err(|error| error.into_bus(&stream))? else {
        return Ok(None);
    };
    serde_json::from_slice(&stored.data)
        .map(Some)
        .map_err(|error| BusError::Unreadable {
            what: format!("the description of the object {name}"),
            detail: error.to_string(),
        })
}

/// Returns whether an object is complete: its description is there, and every part. A removal in the
/// middle of an upload leaves a description without the first parts.
pub(super) async fn has(
    connection: &Connection,
    of: &SubmitterName,
    name: &ObjectName,
) -> Result<bool, BusError> {
    let (stream, text) = (layout::objects_stream(of), name.to_text());
    let all = format!("{}.>", layout::object(of, &text));
    let found = connection.subjects(&stream, &all).await;
    let found = found.map_err(|error| error.into_bus(&stream))?;
    let found: BTreeSet<String> = found.into_iter().map(|(subject, _)| subject).collect();
    if !found.contains(&layout::object_end(of, &text)) {
        return Ok(false);
    }
    let is_complete = |end: End| {
        (0..end.parts).all(|number| found.contains(&layout::object_part(of, name, number)))
    };
    Ok(end(connection, of, &text).await?.is_some_and(is_complete))
}

/// Returns the limit of one object in bytes.
pub(super) async fn limit(connection: &Connection, of: &SubmitterName) -> Result<u64, BusError> {
    let stream = layout::objects_stream(of);
    let operation = format!("STREAM.INFO.{stream}");
    let answered = connection.call(&operation, &Value::Null).await;
    let info: Value = answered.map_err(|error: CallError| error.into_bus(&stream))?;
    let limit = info["config"]["metadata"][OBJECT_LIMIT].as_str();
    Ok(limit.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX))
}

/// Stores an object of at most `limit` bytes.
pub(super) fn put(
    connection: &Arc<Connection>,
    of: &SubmitterName,
    name: &ObjectName,
    limit: u64,
    content: &mut (dyn Read + Send),
) -> Result<(), BusError> {
    let mut on_the_way = VecDeque::new();
    let sent = send_parts(connection, of, name, limit, content, &mut on_the_way);
    // After a failure, too, wait for the parts on their way: they must not arrive after a later
    // upload.
    let arrived = on_the_way
        .into_iter()
        .map(|part| arrived(connection, part))
        .fold(Ok(()), Result::and);
    let end = sent?;
    arrived?;
    let payload = Bytes::from(json!(end).to_string());
    let subject = layout::object_end(of, &name.to_text());
    connection.block_on(store(connection, of, subject, payload))
}

fn send_parts(
    connection: &Arc<Connection>,
    of: &SubmitterName,
    name: &ObjectName,
    limit: u64,
    content: &mut (dyn Read + Send),
    on_the_way: &mut VecDeque<JoinHandle<Result<(), BusError>>>,
) -> Result<End, BusError> {
    let mut end = End { bytes: 0, parts: 0 };
    loop {
        let part = part(name, content)?;
        if part.is_empty() {
            return Ok(end);
        }
        end.bytes += part.len() as u64;
        if end.bytes > limit {
            let name = name.to_text();
            return Err(BusError::TooLarge { name, limit });
        }
        if on_the_way.len() == IN_FLIGHT
            && let Some(first) = on_the_way.pop_front()
        {
            arrived(connection, first)?;
        }
        let subject = layout::object_part(of, name, end.parts);
        let (to, of) = (Arc::clone(connection), of.clone());
        on_the_way.push_back(connection.start(async move { store(&to, &of, subject, part).await }));
        end.parts += 1;
    }
}

/// Reads the next part; shorter than [`PART`] only at the end of the content.
fn part(name: &ObjectName, content: &mut (dyn Read + Send)) -> Result<Bytes, BusError> {
    let mut part = vec![0; PART];
    let mut filled = 0;
    while let Some(rest) = part.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match content.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(local("read", name, &error)),
        }
    }
    part.truncate(filled);
    Ok(Bytes::from(part))
}

fn local(verb: &str, name: &ObjectName, error: &std::io::Error) -> BusError {
    BusError::Unreadable {
        what: format!("the object {}", name.to_text()),
        detail: format!("this host cannot {verb} it: {error}"),
    }
}

fn arrived(
    connection: &Connection,
    part: JoinHandle<Result<(), BusError>>,
) -> Result<(), BusError> {
    let ended = connection.block_on(part);
    ended.unwrap_or_else(|_| {
        Err(BusError::Unreachable {
            detail: "the connection was closed".to_owned(),
        })
    })
}

async fn store(
    connection: &Connection,
    of: &SubmitterName,
    subject: String,
    payload: Bytes,
) -> Result<(), BusError> {
    let stream = layout::objects_stream(of);
    let published = connection
        .publish(Publication {
            stream: stream.clone(),
            subject,
            payload,
            message_id: None,
            expected: None,
        })
        .await;
    published.map(drop).map_err(|error| error.into_bus(&stream))
}

/// Writes an object to `to`.
pub(super) fn get(
    connection: &Connection,
    of: &SubmitterName,
    name: &ObjectName,
    to: &mut (dyn Write + Send),
) -> Result<(), BusError> {
    let text = name.to_text();
    let missing = || BusError::Missing {
        what: format!("object {text}"),
    };
    let end = connection.block_on(end(connection, of, &text))?;
    let end = end.ok_or_else(missing)?;
    let stream = &layout::objects_stream(of);
    let mut parts = stream::iter(0..end.parts)
        .map(|number| async move {
            connection
                .last(stream, &layout::object_part(of, name, number))
                .await
        })
        .buffered(IN_FLIGHT);
    let mut left = end.bytes;
    while let Some(part) = connection.block_on(parts.next()) {
        let part = part.map_err(|error| error.into_bus(stream))?;
        let part = part.ok_or_else(missing)?;
        left = left
            .checked_sub(part.data.len() as u64)
            .ok_or_else(|| wrong_size(&text))?;
        to.write_all(&part.data)
            .map_err(|error| local("write", name, &error))?;
    }
    match left {
        0 => Ok(()),
        _ => Err(wrong_size(&text)),
    }
}

fn wrong_size(name: &str) -> BusError {
    BusError::Unreadable {
        what: format!("the object {name}"),
        detail: "its parts do not add up to the size in its description".to_owned(),
    }
}

/// Returns names and sizes of the objects of a submitter. An object that is not complete is listed,
/// too, with the space that its parts may take, so that leftovers can be removed.
pub(super) async fn list(
    connection: &Connection,
    of: &SubmitterName,
) -> Result<Vec<(String, u64)>, BusError> {
    let stream = layout::objects_stream(of);
    let subjects = connection
        .subjects(&stream, &layout::object(of, ">"))
        .await
        .map_err(|error| error.into_bus(&stream))?;
    let mut parts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut complete = Vec::new();
    for (subject, _) in &subjects {
        match layout::object_of(of, subject) {
            Some(name) if subject.ends_with(".end") => complete.push(name),
            Some(name) => *parts.entry(name).or_default() += PART as u64,
            None => {}
        }
    }
    let mut sizes: BTreeMap<String, u64> = parts
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect();
    let mut reads = stream::iter(complete)
        .map(|name| async move { (name, end(connection, of, name).await) })
        .buffer_unordered(AT_ONCE);
    while let Some((name, read)) = reads.next().await {
        match read {
            Ok(Some(end)) => sizes.insert(name.to_owned(), end.bytes),
            // The object was removed meanwhile.
            Ok(None) => sizes.remove(name),
            // The object stays listed with the size of its parts, so that it can be removed.
            Err(BusError::Unreadable { .. }) => None,
            Err(error) => return Err(error),
        };
    }
    Ok(sizes.into_iter().collect())
}

/// Removes an object: first its description, so that no reader begins, then its parts.
pub(super) async fn remove(
    connection: &Connection,
    of: &SubmitterName,
    name: &str,
) -> Result<(), BusError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let has_empty_part = name.split('.').any(str::is_empty);
    if !name.bytes().all(is_name) || has_empty_part {
        // A `*` or `>` would remove other objects; no object has such a name.
        return Ok(());
    }
    let stream = layout::objects_stream(of);
    for subject in [
        layout::object_end(of, name),
        format!("{}.part.*", layout::object(of, name)),
    ] {
        let purged = connection.purge(&stream, &subject, None).await;
        purged.map_err(|error| error.into_bus(&stream))?;
    }
    Ok(())
}
