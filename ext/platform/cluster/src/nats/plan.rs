//! Settings of the streams and consumers of a cluster.

use super::objects::{OBJECT_LIMIT, PART};
use super::{layout, records};
use crate::names::{Capability, Priority, Queue, SubmitterName};
use serde_json::{Map, Value, json};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
/// Time within which the server drops a message whose id it has seen.
const DUPLICATES: u64 = 120 * SECOND;
/// Largest number of messages of a queue that are delivered and wait for an answer.
const DELIVERED: u64 = 10_000;
/// Time after which the last heartbeat of a node that never came back is removed. Whether a node is
/// alive does not depend on it.
const HOST_AGE: u64 = 24 * 3600 * SECOND;
/// Largest message of a queue in bytes.
const LARGEST_MESSAGE: u64 = 1024;
/// Space for subject and headers in the largest message that a server must accept.
pub(super) const OVERHEAD: usize = 4096;

/// Bounds of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of messages in each queue.
    pub queue_messages: u64,
    /// Maximum size of the messages of each submitter together, in bytes.
    pub task_bytes: u64,
    /// Maximum size of the records of each submitter together, in bytes.
    pub record_bytes: u64,
    /// Maximum size of the objects of each submitter together, in bytes.
    pub objects_bytes: u64,
    /// Maximum size of one object in bytes.
    pub object_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue_messages: 10_000,
            task_bytes: 64 << 20,
            record_bytes: 64 << 20,
            objects_bytes: 4 << 30,
            object_bytes: 2 << 30,
        }
    }
}

/// Whether a setup may lower bounds and replicas of what exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shrink {
    /// Fails before it changes anything.
    Refuse,
    /// Lowers them. The server keeps what is stored, and refuses new messages until there is room.
    Allow,
}

/// Streams, consumers and limits that a cluster shall have.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Number of servers that store each message: 1, 3 or 5.
    pub replicas: u8,
    /// Capabilities of nodes. Each submitter gets three queues for each.
    pub capabilities: Vec<Capability>,
    /// Submitters. Each gets a stream of messages, one of records and one of objects.
    pub submitters: Vec<SubmitterName>,
    /// Bounds.
    pub limits: Limits,
    /// Time within which a node must answer a message or report that it still works on it. After
    /// that, the server delivers the message to another node.
    pub answer_wait: Duration,
    /// Whether bounds may become lower.
    pub shrink: Shrink,
}

/// A stream or consumer to create.
pub(super) struct Part {
    /// Name for reports and error texts.
    pub shown: String,
    /// Request that returns it.
    pub info: String,
    /// Request that creates it.
    pub create: String,
    /// Request that changes it.
    pub update: String,
    /// Stream of a consumer.
    pub stream: Option<String>,
    /// Subjects under which a stream stores messages; `None` for a consumer.
    pub subjects: Option<String>,
    /// Settings, for a stream without those that its token determines.
    pub config: Map<String, Value>,
    /// Settings that are bounds: they may become higher, but lower only with [`Shrink::Allow`].
    pub bounds: &'static [&'static str],
    /// Settings that cannot change.
    pub fixed: &'static [&'static str],
}

/// Returns the streams and consumers of a setup.
pub(super) fn parts(wanted: &Setup) -> Vec<Part> {
    let limits = &wanted.limits;
    let mut parts = vec![stream(
        wanted,
        layout::HOSTS,
        layout::HOST_SUBJECTS,
        json!({
            "retention": "limits",
            "max_msgs_per_subject": 1, "max_age": HOST_AGE,
            "max_bytes": 16 << 20, "max_msg_size": records::LARGEST_HOST + 1024,
        }),
    )];
    for submitter in &wanted.submitters {
        parts.push(stream(
            wanted,
            &layout::tasks_stream(submitter),
            &layout::tasks(submitter),
            json!({
                "retention": "workqueue",
                "max_msgs_per_subject": limits.queue_messages, "discard_new_per_subject": true,
                "max_bytes": limits.task_bytes, "max_msg_size": LARGEST_MESSAGE,
            }),
        ));
        let records = layout::records(submitter);
        parts.push(stream(
            wanted,
            &layout::records_stream(submitter),
            &records,
            json!({
                "retention": "limits",
                "max_msgs_per_subject": 1, "max_bytes": limits.record_bytes,
                "max_msg_size": records::LARGEST_RECORD + 1024,
                "republish": {
                    "src": records,
                    "dest": format!("changes.{submitter}.{{{{wildcard(1)}}}}"),
                    "headers_only": true,
                },
            }),
        ));
        parts.push(stream(
            wanted,
            &layout::objects_stream(submitter),
            &layout::object(submitter, ">"),
            json!({
                "retention": "limits",
                "max_msgs_per_subject": 1, "max_bytes": limits.objects_bytes,
                "max_msg_size": PART + OVERHEAD,
                "metadata": {OBJECT_LIMIT: limits.object_bytes.to_string()},
            }),
        ));
    }
    for submitter in &wanted.submitters {
        for capability in &wanted.capabilities {
            for priority in Priority::ALL {
                parts.push(consumer(
                    wanted,
                    &Queue {
                        capability: capability.clone(),
                        priority: *priority,
                        submitter: submitter.clone(),
                    },
                ));
            }
        }
    }
    parts
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn stream(wanted: &Setup, name: &str, subjects: &str, settings: Value) -> Part {
    let mut config = object(json!({
        "name": name, "storage": "file", "num_replicas": wanted.replicas, "discard": "new",
        "duplicate_window": DUPLICATES, "allow_direct": false, "allow_rollup_hdrs": false,
    }));
    config.extend(object(settings));
    Part {
        shown: name.to_owned(),
        info: format!("STREAM.INFO.{name}"),
        create: format!("STREAM.CREATE.{name}"),
        update: format!("STREAM.UPDATE.{name}"),
        stream: None,
        subjects: Some(subjects.to_owned()),
        config,
        bounds: &[
            "num_replicas",
            "max_bytes",
            "max_msgs_per_subject",
            "max_msg_size",
        ],
        fixed: &["storage", "retention"],
    }
}

fn consumer(wanted: &Setup, queue: &Queue) -> Part {
    let answer_wait = u64::try_from(wanted.answer_wait.as_nanos()).unwrap_or(u64::MAX);
    let (name, filter) = (layout::consumer(queue), layout::task(queue));
    let tasks = layout::tasks_stream(&queue.submitter);
    let create = format!("CONSUMER.CREATE.{tasks}.{name}.{filter}");
    Part {
        shown: format!("{tasks}/{name}"),
        info: format!("CONSUMER.INFO.{tasks}.{name}"),
        update: create.clone(),
        create,
        stream: Some(tasks),
        subjects: None,
        config: object(json!({
            "name": name, "durable_name": name, "filter_subject": filter,
            "ack_policy": "explicit", "ack_wait": answer_wait, "max_deliver": -1,
            "max_ack_pending": DELIVERED, "deliver_policy": "all", "replay_policy": "instant",
        })),
        bounds: &[],
        fixed: &["filter_subject", "ack_policy"],
    }
}
