//! Delivers events to webhooks, from the durable queue of each webhook.
//!
//! A delivery is a POST of the event's document with the header `WP-Codebox-Signature: t=T,v1=S`:
//! `S` is the HMAC-SHA256 of `T.BODY` with the webhook's key, in hexadecimal. Every answer from 200
//! to 299 ends it. After a crash between the answer and its record, a delivery arrives twice; a
//! receiver recognizes it by the id of the event.
//!
//! A webhook gets its events in order, one at a time. After a failure all of them wait: the pause
//! belongs to the webhook and grows until an event is accepted. An event is given up after
//! [`ATTEMPTS`] attempts. Two pools of permits bound the attempts at the same time, and no actor
//! holds all permits of one: webhooks that accepted their last event do not wait for the others.

use crate::access::may_read;
use crate::auth::{Principal, Scopes};
use crate::clock::now_ms;
use crate::core::Core;
use crate::problem::ApiResult;
use crate::shares::Shares;
use crate::store::{Attempt, Delivery, DueWebhook, Event, Store, StoreResult};
use crate::webhook_target::{Lookup, TargetResolver, WebhookTargets, dns};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Client;
use sha2::Sha256;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinSet};
use wp_codebox_contracts::{ErrorBody, ErrorCode, hex};

/// Header of the signature.
pub(crate) const SIGNATURE: &str = "WP-Codebox-Signature";
/// Attempts for one delivery.
const ATTEMPTS: u32 = 8;
/// Longest pause of a webhook between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// Time for one attempt.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Attempts at the same time in each of the two pools.
const AT_ONCE: usize = 32;
/// Attempts at the same time in each pool for webhooks of one actor.
const AT_ONCE_EACH: usize = 8;
/// Pause when nothing is due.
const IDLE: Duration = Duration::from_secs(60);
/// Pause after the records could not be read or written.
const RECORDS_PAUSE: Duration = Duration::from_secs(1);

/// Delivers until the server stops.
pub(crate) async fn run(core: Arc<Core>) -> Result<(), ErrorBody> {
    let deliverer = Arc::new(Deliverer {
        client: client(&core.webhook_targets, dns)?,
        answering: Shares::new(AT_ONCE, AT_ONCE_EACH),
        others: Shares::new(AT_ONCE, AT_ONCE_EACH),
        core: Arc::clone(&core),
    });
    let mut stopping = core.stopping.subscribe();
    let mut workers = Workers::default();
    loop {
        let wait = match deliverer.start_due(&mut workers).await {
            Ok(wait) => wait,
            Err(problem) => {
                eprintln!("wp-codebox serve: webhooks: {}", problem.body());
                RECORDS_PAUSE
            }
        };
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
            () = core.deliver.notified() => {}
            () = tokio::time::sleep(wait) => {}
            Some(ended) = workers.tasks.join_next_with_id() => {
                let task = ended.map_or_else(|error| error.id(), |(task, ())| task);
                workers.webhooks.remove(&task);
            }
        }
    }
}

/// One task for each webhook with events that are due.
#[derive(Debug, Default)]
struct Workers {
    tasks: JoinSet<()>,
    webhooks: HashMap<Id, String>,
}

struct Deliverer {
    core: Arc<Core>,
    client: Client,
    /// Permits of webhooks that accepted their last event.
    answering: Arc<Shares<String>>,
    /// Permits of new webhooks and of those that did not.
    others: Arc<Shares<String>>,
}

impl Deliverer {
    /// Starts a task for each webhook that is due, and returns the time until another one is.
    async fn start_due(self: &Arc<Self>, workers: &mut Workers) -> ApiResult<Duration> {
        let most = self.core.config.webhook_queue;
        let ((due, next), removed) = self
            .core
            .records(move |store| {
                let removed = store.trim_deliveries(most)?;
                Ok::<_, crate::store::StoreError>((store.due_webhooks()?, removed))
            })
            .await?;
        self.core.metrics.deliveries_dropped.add_many(removed);
        for webhook in due {
            if workers.webhooks.values().any(|known| *known == webhook.id) {
                continue;
            }
            let id = webhook.id.clone();
            let task = workers.tasks.spawn(Arc::clone(self).deliver_all(webhook));
            workers.webhooks.insert(task.id(), id);
        }
        let until = next.map(|next| u64::try_from(next - now_ms()).unwrap_or_default());
        Ok(until.map_or(IDLE, |ms| Duration::from_millis(ms).min(IDLE)))
    }

    /// Delivers the events of a webhook until none waits or an attempt fails.
    async fn deliver_all(self: Arc<Self>, mut webhook: DueWebhook) {
        loop {
            match self.deliver_next(&webhook).await {
                Ok(Some(answers)) => webhook.answers = answers,
                Ok(None) => return,
                Err(problem) => {
                    eprintln!(
                        "wp-codebox serve: webhook {}: {}",
                        webhook.id,
                        problem.body()
                    );
                    return tokio::time::sleep(RECORDS_PAUSE).await;
                }
            }
        }
    }

    /// Delivers the oldest event of a webhook. Returns whether the webhook answers; `None` if no
    /// event waits, or the webhook pauses after a failure.
    async fn deliver_next(&self, webhook: &DueWebhook) -> ApiResult<Option<bool>> {
        let core = &self.core;
        let permits = match webhook.answers {
            true => &self.answering,
            false => &self.others,
        };
        let _permit = permits.acquire(&webhook.actor).await;
        let id = webhook.id.clone();
        let next = core.records(move |store| with_event(store, &id)).await?;
        let Some((delivery, event)) = next else {
            return Ok(None);
        };
        let attempt = match event {
            None => Attempt::Skipped,
            Some(event) => match self.send(&delivery, &event).await {
                Ok(()) => Attempt::Done,
                Err(reason) => self.failed(&delivery, &reason),
            },
        };
        let answers = match attempt {
            Attempt::Done => Some(true),
            Attempt::Skipped => Some(webhook.answers),
            Attempt::Failed { .. } | Attempt::GivenUp { .. } => None,
        };
        match attempt {
            Attempt::Done => core.metrics.deliveries_done.add(),
            Attempt::Skipped => {}
            Attempt::Failed { .. } => core.metrics.deliveries_failed.add(),
            Attempt::GivenUp { .. } => core.metrics.deliveries_given_up.add(),
        }
        core.records(move |store| store.record_attempt(&delivery, attempt))
            .await?;
        Ok(answers)
    }

    /// Sends an event; the error says why the endpoint did not accept it.
    async fn send(&self, delivery: &Delivery, event: &Event) -> Result<(), String> {
        let webhook = &delivery.webhook;
        // An address in the URL is not resolved, so it is checked here.
        let url = self.core.webhook_targets.parse(&webhook.url);
        let url = url.map_err(|error| error.to_string())?;
        let body = event.document().to_string();
        let seconds = now_ms() / 1000;
        let signature = sign(&webhook.secret, seconds, &body)
            .ok_or_else(|| "its key cannot sign".to_owned())?;
        let request = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .header("wp-codebox-event", event.kind.as_str())
            .header(
                "wp-codebox-delivery",
                format!("{}-{}", webhook.id, event.id),
            )
            .header(SIGNATURE, format!("t={seconds},v1={signature}"))
            .body(body);
        let response = request.send().await.map_err(|error| cause(&error))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("its endpoint answered {}", status.as_u16())),
        }
    }

    fn failed(&self, delivery: &Delivery, reason: &str) -> Attempt {
        let failures = delivery.failures.saturating_add(1);
        let pause = pause(self.core.config.webhook_pause, failures);
        let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        let next_ms = now_ms().saturating_add(pause);
        if delivery.attempts.saturating_add(1) < ATTEMPTS {
            return Attempt::Failed { next_ms };
        }
        eprintln!(
            "wp-codebox serve: webhook {}: event {} was not delivered in {ATTEMPTS} attempts: {reason}",
            delivery.webhook.id, delivery.event
        );
        Attempt::GivenUp { next_ms }
    }
}

fn client(targets: &Arc<WebhookTargets>, lookup: Lookup) -> Result<Client, ErrorBody> {
    Client::builder()
        .dns_resolver(Arc::new(TargetResolver {
            targets: Arc::clone(targets),
            lookup,
        }))
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

/// Returns the oldest delivery of a webhook and its event; without the event if it was pruned, or
/// if the token of the webhook may not read it.
fn with_event(store: &Store, webhook: &str) -> StoreResult<Option<(Delivery, Option<Event>)>> {
    let Some(delivery) = store.next_delivery(webhook)? else {
        return Ok(None);
    };
    let event = readable(store, &delivery)?;
    Ok(Some((delivery, event)))
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

/// Returns the innermost error, without the URL, which may contain a key.
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", TIMEOUT.as_secs());
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Returns the signature of a body.
pub(crate) fn sign(secret: &str, seconds: i64, body: &str) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(format!("{seconds}.").as_bytes());
    mac.update(body.as_bytes());
    Some(hex(&mac.finalize().into_bytes()))
}

/// Returns the pause of a webhook after a number of failed attempts in a row: four times as long
/// after each.
fn pause(first: Duration, failures: u32) -> Duration {
    let factor = 4_u32.saturating_pow(failures.saturating_sub(1));
    first.saturating_mul(factor).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::BoxFuture;
    use std::io;
    use std::net::SocketAddr;

    #[test]
    fn pauses_between_delivery_attempts_grow_fourfold_up_to_one_hour() {
        let seconds = |failures| pause(Duration::from_secs(5), failures).as_secs();
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

    #[tokio::test]
    async fn name_that_resolves_to_this_machine_gets_no_connection_unless_the_operator_allows_it() {
        fn lookup(_: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
            Box::pin(async { Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))]) })
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://rebound.example:{port}/");
        let mut targets = WebhookTargets::default();
        let refused = client(&Arc::new(targets.clone()), lookup).unwrap();
        let error = refused.post(&url).send().await.unwrap_err();
        assert!(cause(&error).contains("loopback"), "{}", cause(&error));
        assert_eq!(
            listener.accept().unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        targets.allow("rebound.example").unwrap();
        let allowed = client(&Arc::new(targets), lookup).unwrap();
        let sending = tokio::spawn(async move { allowed.post(&url).send().await });
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        drop(listener.accept().await.unwrap());
        sending.await.unwrap().unwrap_err();
    }
}
