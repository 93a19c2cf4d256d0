//! Requests for secrets: request and reply between a node and the process that submitted a run.

use super::connection::{Connection, Task};
use super::failure::RequestError;
use super::layout;
use crate::bus::{Answer, Answering, BusError};
use crate::names::RunKey;
use async_nats::Subscriber;
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;

/// Sends a request for secrets; fails at once if no process has registered for the run.
pub(super) async fn ask(
    connection: &Connection,
    key: &RunKey,
    request: &[u8],
    wait: Duration,
) -> Result<Vec<u8>, BusError> {
    let subject = layout::secrets(key);
    let request = Bytes::copy_from_slice(request);
    match connection.exchange(&subject, None, request, wait).await {
        Ok(message) => Ok(message.payload.to_vec()),
        Err(RequestError::NoResponder) => Err(BusError::Unreachable {
            detail: format!(
                "the process that submitted the run {} does not listen for requests",
                key.run
            ),
        }),
        Err(error) => Err(error.into_bus(&subject)),
    }
}

/// The registration of a function; dropping this value ends the task that calls the function.
struct Registered {
    _connection: Arc<Connection>,
    _task: Task,
}

impl Answering for Registered {}

/// Registers a function that answers.
pub(super) fn answer(
    connection: &Arc<Connection>,
    key: &RunKey,
    answer: Answer,
) -> Result<Box<dyn Answering>, BusError> {
    let subject = layout::secrets(key);
    let subscribed = connection.block_on(connection.subscribe(&subject));
    let subscriber = subscribed.map_err(|error| error.into_bus(&subject))?;
    let client = connection.client().clone();
    let task = connection.spawn(serve(subscriber, client, Arc::new(answer)));
    Ok(Box::new(Registered {
        _connection: Arc::clone(connection),
        _task: task,
    }))
}

async fn serve(mut requests: Subscriber, client: async_nats::Client, answer: Arc<Answer>) {
    while let Some(request) = requests.next().await {
        let Some(reply) = request.reply else {
            continue;
        };
        let answer = Arc::clone(&answer);
        // The function may read files or ask the server, so it gets a thread that may block.
        let answered = tokio::task::spawn_blocking(move || answer(&request.payload));
        if let Ok(Some(bytes)) = answered.await {
            // The asking node repeats the request if the connection is lost now.
            let _ = client.publish(reply, Bytes::from(bytes)).await;
        }
    }
}
