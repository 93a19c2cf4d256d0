//! Delivers events to webhooks, from the durable queue of the records.
//!
//! A delivery is a POST of the event's document with the header `WP-Codebox-Signature: t=T,v1=S`:
//! `S` is the HMAC-SHA256 of `T.BODY` with the webhook's key, in hexadecimal. Every answer from 200
//! to 299 ends it. After a failure the next attempt is later, at most [`ATTEMPTS`] in all. After a
//! crash between the answer and its record, a delivery arrives twice; a receiver recognizes it by
//! the id of the event.

use crate::access::may_read;
use crate::auth::{Principal, Scopes};
use crate::clock::now_ms;
use crate::core::Core;
use crate::problem::ApiResult;
use crate::store::{Delivery, Event, Store, StoreResult};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Client;
use sha2::Sha256;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use wp_codebox_contracts::{ErrorBody, ErrorCode, hex};

/// Header of the signature.
pub(crate) const SIGNATURE: &str = "WP-Codebox-Signature";
/// Attempts for one delivery.
const ATTEMPTS: u32 = 8;
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// Time for one attempt.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Deliveries at the same time.
const AT_ONCE: usize = 16;
/// Pause when nothing is due.
const IDLE: Duration = Duration::from_secs(60);

/// Delivers until the server stops.
pub(crate) async fn run(core: Arc<Core>) -> Result<(), ErrorBody> {
    let client = client()?;
    let mut stopping = core.stopping.subscribe();
    loop {
        let wait = match round(&core, &client).await {
            Ok(wait) => wait,
            Err(problem) => {
                eprintln!("wp-codebox serve: webhooks: {}", problem.body());
                Duration::from_secs(1)
            }
        };
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
            () = core.deliver.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
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
                "the HTTP client for webhooks cannot be created: {error}; check the host's certificates"
            );
            ErrorBody::new(ErrorCode::Internal, message)
        })
}

/// Attempts everything that is due, and returns the time until something else is.
async fn round(core: &Arc<Core>, client: &Client) -> ApiResult<Duration> {
    loop {
        let (due, next) = core.records(|store| store.due(AT_ONCE)).await?;
        if due.is_empty() {
            let until = next.map(|next| u64::try_from(next - now_ms()).unwrap_or_default());
            return Ok(until.map_or(IDLE, |ms| Duration::from_millis(ms).min(IDLE)));
        }
        let mut tasks = JoinSet::new();
        let mut busy = HashSet::new();
        for delivery in due {
            // One event at a time for each webhook, so that they arrive in order if none fails.
            if busy.insert(delivery.webhook.id.clone()) {
                tasks.spawn(one(Arc::clone(core), client.clone(), delivery));
            }
        }
        while let Some(done) = tasks.join_next().await {
            if let Ok(result) = done {
                result?;
            }
        }
        if core.is_stopping() {
            return Ok(IDLE);
        }
    }
}

async fn one(core: Arc<Core>, client: Client, delivery: Delivery) -> ApiResult<()> {
    let wanted = delivery.clone();
    let event = core.records(move |store| readable(store, &wanted)).await?;
    let done = match &event {
        // The event was pruned, or the webhook's token may no longer read it.
        None => Ok(()),
        Some(event) => attempt(&client, &delivery, event).await,
    };
    let attempts = delivery.attempts.saturating_add(1);
    let given_up = attempts >= ATTEMPTS;
    match (&done, given_up) {
        (Ok(()), _) => core.metrics.deliveries_done.add(),
        (Err(()), true) => {
            core.metrics.deliveries_given_up.add();
            eprintln!(
                "wp-codebox serve: webhook {}: event {} was not delivered in {attempts} attempts",
                delivery.webhook.id, delivery.event
            );
        }
        (Err(()), false) => core.metrics.deliveries_failed.add(),
    }
    let pause = pause(core.config.webhook_pause, attempts);
    core.records(move |store| match done.is_ok() || given_up {
        true => store.finish_delivery(&delivery),
        false => {
            let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
            store.retry_delivery(&delivery, now_ms().saturating_add(pause))
        }
    })
    .await
}

/// Returns the event of a delivery if the token of its webhook may still read it.
fn readable(store: &Store, delivery: &Delivery) -> StoreResult<Option<Event>> {
    let Some(event) = store.event(delivery.event)? else {
        return Ok(None);
    };
    let webhook = &delivery.webhook;
    let Ok(actor) = webhook.actor.parse() else {
        return Ok(None);
    };
    let scopes = match webhook.token.as_str() {
        "" => Scopes::everything(),
        token => match store.token(token)? {
            Some((row, _)) if row.is_valid(now_ms()) => row.scopes,
            _ => return Ok(None),
        },
    };
    let principal = Principal {
        token: webhook.token.clone(),
        actor,
        account: None,
        scopes,
        limits: None,
    };
    Ok(Some(event).filter(|event| may_read(&principal, event)))
}

async fn attempt(client: &Client, delivery: &Delivery, event: &Event) -> Result<(), ()> {
    let body = event.document().to_string();
    let seconds = now_ms() / 1000;
    let signature = sign(&delivery.webhook.secret, seconds, &body).ok_or(())?;
    let request = client
        .post(&delivery.webhook.url)
        .header("content-type", "application/json")
        .header("wp-codebox-event", event.kind.as_str())
        .header(
            "wp-codebox-delivery",
            format!("{}-{}", delivery.webhook.id, event.id),
        )
        .header(SIGNATURE, format!("t={seconds},v1={signature}"))
        .body(body);
    match request.send().await {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(_) | Err(_) => Err(()),
    }
}

/// Returns the signature of a body.
pub(crate) fn sign(secret: &str, seconds: i64, body: &str) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(format!("{seconds}.").as_bytes());
    mac.update(body.as_bytes());
    Some(hex(&mac.finalize().into_bytes()))
}

/// Returns the pause after a number of failed attempts: four times as long after each.
fn pause(first: Duration, attempts: u32) -> Duration {
    let factor = 4_u32.saturating_pow(attempts.saturating_sub(1));
    first.saturating_mul(factor).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_delivery_attempts_grow_fourfold_up_to_one_hour() {
        let seconds = |attempts| pause(Duration::from_secs(5), attempts).as_secs();
        assert_eq!(
            (1..=8).map(seconds).collect::<Vec<_>>(),
            [5, 20, 80, 320, 1280, 3600, 3600, 3600]
        );
    }

    #[test]
    fn signature_is_the_hmac_of_time_and_body() {
        // Computed with: printf '1700000000.{}' | openssl dgst -sha256 -hmac 00ff
        let known = "1f6c6b182ea25fc88e7ba6bc80b8a08d2ee9c15cee6dd8a949713629e953db4b";
        let signature = sign("00ff", 1_700_000_000, "{}").unwrap();
        assert_eq!(signature, known);
        assert_ne!(sign("00ff", 1_700_000_001, "{}").unwrap(), signature);
    }
}
