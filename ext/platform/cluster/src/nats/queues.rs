//! Messages of tasks: a work queue for each submitter, with one durable consumer per queue.

use super::api::Publication;
use super::connection::{Connection, LIMIT, TRY, Task};
use super::failure::{CallError, RequestError};
use super::{layout, tokens};
use crate::bus::{BusError, Delivery, Pulled};
use crate::names::{Queue, RunKey};
use async_nats::{StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Times after a hint at which waiting nodes are woken once more. A subscriber gets a message when a
/// server has received it; its stream stores it a moment later, and its consumer, which another
/// server may lead, learns of it a moment after that.
const ECHOES: [Duration; 3] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
];

/// Puts a message into a queue that is set up.
pub(super) async fn publish(
    connection: &Connection,
    queue: &Queue,
    key: &RunKey,
    message_id: &str,
) -> Result<(), BusError> {
    let payload = serde_json::to_vec(key).map_err(|error| BusError::Unreadable {
        what: "the key of a run".to_owned(),
        detail: error.to_string(),
    })?;
    let published = connection
        .publish(Publication {
            stream: layout::tasks_stream(&queue.submitter),
            subject: layout::task(queue),
            payload: Bytes::from(payload),
            message_id: Some(message_id.to_owned()),
            expected: None,
        })
        .await;
    match published {
        Ok(_) => Ok(()),
        Err(error) => Err(error.into_bus(&shown(queue))),
    }
}

/// Returns the number of messages of a queue that have no answer yet: those that wait, and those
/// that a node has.
pub(super) async fn unanswered(connection: &Connection, queue: &Queue) -> Result<u64, BusError> {
    let stream = layout::tasks_stream(&queue.submitter);
    let operation = format!("CONSUMER.INFO.{stream}.{}", layout::consumer(queue));
    let answered = connection.call(&operation, &Value::Null).await;
    let info: Value = answered.map_err(|error: CallError| error.into_bus(&shown(queue)))?;
    let count = |member: &str| {
        info[member].as_u64().ok_or_else(|| BusError::Unreadable {
            what: format!("the state of the queue {}", shown(queue)),
            detail: format!("it has no {member}"),
        })
    };
    Ok(count("num_pending")? + count("num_ack_pending")?)
}

/// Returns the queues that are set up.
pub(super) async fn list(connection: &Connection) -> Result<Vec<Queue>, BusError> {
    let streams = connection
        .names("STREAM.NAMES", "streams", json!({}))
        .await
        .map_err(|error| error.into_bus("the list of streams"))?;
    let mut queues = Vec::new();
    for stream in streams {
        let Some(submitter) = layout::submitter_of_tasks(&stream) else {
            continue;
        };
        let operation = format!("CONSUMER.NAMES.{stream}");
        let names = connection
            .names(&operation, "consumers", json!({}))
            .await
            .map_err(|error| error.into_bus(&stream))?;
        let found = names.iter().map(String::as_str);
        queues.extend(found.filter_map(|name| layout::queue_of(&submitter, name)));
    }
    queues.sort();
    Ok(queues)
}

/// Takes a message without waiting. If the reply of the server is lost, the message is not: the
/// server delivers it again after the time for an answer.
pub(super) async fn pull(connection: &Arc<Connection>, queue: &Queue) -> Result<Pulled, BusError> {
    let consumer = layout::consumer(queue);
    let stream = layout::tasks_stream(&queue.submitter);
    let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
    let request = Bytes::from_static(br#"{"batch":1,"no_wait":true}"#);
    let answered = connection.next_message(&subject, request, LIMIT).await;
    let message = match answered {
        Ok(message) => message,
        // A consumer without a leader does not listen either, so check whether it exists.
        Err(RequestError::NoResponder) => {
            unanswered(connection, queue).await?;
            return Err(RequestError::NoResponder.into_bus(&shown(queue)));
        }
        Err(error) => return Err(error.into_bus(&shown(queue))),
    };
    if let Some(status) = message.status.filter(|status| *status != StatusCode::OK) {
        return match status {
            StatusCode::NOT_FOUND | StatusCode::TIMEOUT => Ok(Pulled::Empty),
            other => Err(BusError::Unreachable {
                detail: format!("{}: status {other}", shown(queue)),
            }),
        };
    }
    let Some(reply) = message.reply else {
        return Err(BusError::Unreadable {
            what: format!("a message of the queue {}", shown(queue)),
            detail: "it has no subject for an answer".to_owned(),
        });
    };
    let read: Result<RunKey, _> = serde_json::from_slice(&message.payload);
    let delivery = |key| Message {
        connection: Arc::clone(connection),
        reply: reply.to_string(),
        deliveries: deliveries(&reply),
        key,
    };
    let problem = match read {
        Ok(key) if key.submitter == queue.submitter => {
            return Ok(Pulled::Message(Arc::new(delivery(key))));
        }
        Ok(_) => "it names a run of another submitter".to_owned(),
        Err(error) => error.to_string(),
    };
    // Without this answer, the server would deliver the unreadable message for ever.
    answer(connection, &reply, Bytes::from_static(b"+TERM")).await?;
    Ok(Pulled::Removed {
        problem: unreadable(queue, problem),
    })
}

/// Returns how often a message was delivered, from the subject for its answer:
/// `$JS.ACK.<stream>.<consumer>.<deliveries>.…`, or with domain and account before the stream.
fn deliveries(reply: &str) -> u64 {
    let parts: Vec<&str> = reply.split('.').collect();
    let at = if parts.len() < 11 { 4 } else { 6 };
    let count = parts.get(at).and_then(|count| count.parse().ok());
    count.unwrap_or(1)
}

fn unreadable(queue: &Queue, detail: String) -> BusError {
    BusError::Unreadable {
        what: format!(
            "a message, which is now removed from the queue {},",
            shown(queue)
        ),
        detail,
    }
}

fn shown(queue: &Queue) -> String {
    layout::task(queue)
}

/// Answers a message; returns when the server has confirmed it.
async fn answer(connection: &Connection, reply: &str, answer: Bytes) -> Result<(), BusError> {
    let mut left = 2;
    loop {
        let confirmed = connection.exchange(reply, None, answer.clone(), TRY).await;
        match confirmed {
            Err(RequestError::NoResponder | RequestError::Silent { .. }) if left > 0 => left -= 1,
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into_bus("the answer to a message")),
        }
    }
}

/// A message that this process has.
struct Message {
    connection: Arc<Connection>,
    /// Subject on which the server expects the answer.
    reply: String,
    key: RunKey,
    deliveries: u64,
}

impl Delivery for Message {
    fn key(&self) -> &RunKey {
        &self.key
    }

    fn deliveries(&self) -> u64 {
        self.deliveries
    }

    fn ack(&self) -> Result<(), BusError> {
        let acked = answer(&self.connection, &self.reply, Bytes::from_static(b"+ACK"));
        self.connection.block_on(acked)
    }

    fn retry(&self, after: Duration) -> Result<(), BusError> {
        let nanoseconds = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let text = format!("-NAK {}", json!({"delay": nanoseconds}));
        let returned = answer(&self.connection, &self.reply, Bytes::from(text));
        self.connection.block_on(returned)
    }

    fn working(&self) -> Result<(), BusError> {
        let worked = answer(&self.connection, &self.reply, Bytes::from_static(b"+WPI"));
        self.connection.block_on(worked)
    }
}

/// Wakes callers that wait for messages.
pub(super) struct Hints {
    count: watch::Receiver<u64>,
    _task: Task,
}

impl Hints {
    pub(super) fn open(connection: &Arc<Connection>) -> Result<Self, BusError> {
        let subjects = tokens::any(layout::TASK_SUBJECTS);
        let subscribed = connection.block_on(connection.subscribe(&subjects));
        let subscriber = subscribed.map_err(|error| error.into_bus(&subjects))?;
        let (sender, count) = watch::channel(0);
        let losses = connection.losses();
        Ok(Self {
            count,
            _task: connection.spawn(wake(subscriber, losses, sender)),
        })
    }

    /// Returns a receiver that changes when a message may have come.
    pub(super) fn receiver(&self) -> watch::Receiver<u64> {
        self.count.clone()
    }
}

/// Counts hints: messages, their echoes, and losses of the connection, during which hints are lost.
async fn wake(
    mut subscriber: Subscriber,
    mut losses: watch::Receiver<u64>,
    count: watch::Sender<u64>,
) {
    let mut hinted = Instant::now();
    let mut echoes: &[Duration] = &[];
    loop {
        let echo = echoes.first().map(|after| hinted + *after);
        tokio::select! {
            message = subscriber.next() => match message {
                Some(_) => {
                    // Messages that come together give one hint.
                    while let Some(Some(_)) = subscriber.next().now_or_never() {}
                    hinted = Instant::now();
                    echoes = &ECHOES;
                }
                None => return,
            },
            lost = losses.changed() => match lost {
                Ok(()) => {
                    hinted = Instant::now();
                    echoes = &ECHOES;
                }
                Err(_) => return,
            },
            () = sleep_until(echo.unwrap_or(hinted)), if echo.is_some() => {
                echoes = echoes.get(1..).unwrap_or_default();
            }
        }
        count.send_modify(|count| *count += 1);
    }
}
