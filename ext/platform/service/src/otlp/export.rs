//! Sends the spans of the queue to the collector.

use super::document::document;
use super::{Finished, Queue};
use crate::metrics::Metrics;
use reqwest::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Maximum number of spans in one request.
const BATCH: usize = 512;
/// Time for one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two requests, in which further spans arrive.
const PAUSE: Duration = Duration::from_secs(1);
/// Time to export the queued spans when the server stops.
const LAST: Duration = Duration::from_secs(2);

/// Exports spans until the server stops, and then those that are still queued. A request that fails
/// is not repeated: its spans count as dropped.
///
/// # Errors
/// When the HTTP client cannot be made.
pub(crate) async fn run(
    metrics: Arc<Metrics>,
    mut stopping: watch::Receiver<bool>,
    mut queue: Queue,
) -> Result<(), ErrorBody> {
    let client = client()?;
    let address = queue.endpoint.traces();
    loop {
        let mut batch = Vec::new();
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => break,
            received = queue.receiver.recv_many(&mut batch, BATCH) => if received == 0 { return Ok(()) },
        }
        send(&metrics, &client, &address, &batch).await;
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => break,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
    let rest = async {
        loop {
            let mut batch = Vec::new();
            while batch.len() < BATCH
                && let Ok(span) = queue.receiver.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                return;
            }
            send(&metrics, &client, &address, &batch).await;
        }
    };
    let _ = tokio::time::timeout(LAST, rest).await;
    Ok(())
}

fn client() -> Result<Client, ErrorBody> {
    Client::builder()
        .user_agent("wp-codebox")
        .redirect(reqwest::redirect::Policy::none())
        .timeout(TIMEOUT)
        .no_proxy()
        .tls_backend_preconfigured(crate::tls::client_config(None)?)
        .build()
        .map_err(|error| {
            let message = format!(
                "the HTTP client for the OpenTelemetry collector cannot be created: {error}"
            );
            ErrorBody::new(ErrorCode::Internal, message)
        })
}

async fn send(metrics: &Metrics, client: &Client, address: &str, batch: &[Finished]) {
    let body = document(batch).to_string();
    let answer = client
        .post(address)
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await;
    let counter = match answer {
        Ok(answer) if answer.status().is_success() => &metrics.spans_exported,
        Ok(_) | Err(_) => &metrics.spans_dropped,
    };
    counter.add_many(u64::try_from(batch.len()).unwrap_or(u64::MAX));
}
