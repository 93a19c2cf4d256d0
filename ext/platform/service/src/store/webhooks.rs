//! Webhooks and the durable queue of their deliveries.

use super::{Store, StoreResult};
use crate::clock::now_ms;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

/// A webhook as it is stored. The secret signs the deliveries, so it cannot be stored as a digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Webhook {
    /// Id.
    pub id: String,
    /// Address to which events are sent.
    pub url: String,
    /// Types of events; empty: all types.
    #[serde(default)]
    pub types: Vec<String>,
    /// Key of the signature, in hexadecimal.
    pub secret: String,
    /// Id of the token that created it and whose rights limit the events; empty for the
    /// administrator of the machine.
    pub token: String,
    /// Actor that created it.
    pub actor: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}

/// A webhook whose next event may be tried now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DueWebhook {
    pub id: String,
    pub actor: String,
    /// Whether it accepted the last event that was sent to it.
    pub answers: bool,
}

/// The oldest waiting event of a webhook.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub webhook: Webhook,
    /// Whether the webhook accepted the last event that was sent to it.
    pub answers: bool,
    /// Attempts in a row that failed, of all events of the webhook.
    pub failures: u32,
    pub event: u64,
    /// Number of attempts of this event so far.
    pub attempts: u32,
}

/// What an attempt changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The endpoint accepted the event.
    Done,
    /// Nothing was sent: the event does not exist any more, or the webhook may not have it.
    Skipped,
    /// The endpoint did not accept it. The webhook waits until `next_ms`.
    Failed { next_ms: i64 },
    /// Like `Failed`, and the event is removed.
    GivenUp { next_ms: i64 },
}

impl Store {
    pub(crate) fn insert_webhook(&self, webhook: &Webhook) -> StoreResult<()> {
        self.write(|tx| {
            tx.execute(
                "INSERT INTO webhooks (id, token, actor, document) VALUES (?1, ?2, ?3, ?4)",
                params![
                    webhook.id,
                    webhook.token,
                    webhook.actor,
                    serde_json::to_string(webhook)?
                ],
            )?;
            Ok(())
        })
    }

    /// Lists the webhooks of a token.
    pub(crate) fn webhooks(&self, token: &str) -> StoreResult<Vec<Webhook>> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT document FROM webhooks WHERE token = ?1 ORDER BY id")?;
        let rows = statement.query_map([token], |row| row.get::<_, String>(0))?;
        let mut webhooks = Vec::new();
        for row in rows {
            webhooks.push(serde_json::from_str(&row?)?);
        }
        Ok(webhooks)
    }

    /// Removes a webhook of a token with its deliveries; returns whether it existed.
    pub(crate) fn remove_webhook(&self, token: &str, id: &str) -> StoreResult<bool> {
        self.write(|tx| {
            let removed = tx.execute(
                "DELETE FROM webhooks WHERE token = ?1 AND id = ?2",
                params![token, id],
            )?;
            Ok(removed > 0)
        })
    }

    /// Returns the webhooks that have waiting events and no pause, and the end of the next pause.
    pub(crate) fn due_webhooks(&self) -> StoreResult<(Vec<DueWebhook>, Option<i64>)> {
        let connection = self.lock();
        let now = now_ms();
        let mut statement = connection.prepare_cached(
            "SELECT id, actor, answers FROM webhooks
             WHERE waiting > 0 AND next_ms <= ?1 ORDER BY next_ms, id",
        )?;
        let rows = statement.query_map([now], |row| {
            Ok(DueWebhook {
                id: row.get(0)?,
                actor: row.get(1)?,
                answers: row.get(2)?,
            })
        })?;
        let due = rows.collect::<Result<_, _>>()?;
        let next = connection
            .prepare_cached("SELECT min(next_ms) FROM webhooks WHERE waiting > 0 AND next_ms > ?1")?
            .query_row([now], |row| row.get(0))?;
        Ok((due, next))
    }

    /// Returns the oldest waiting event of a webhook.
    pub(crate) fn next_delivery(&self, webhook: &str) -> StoreResult<Option<Delivery>> {
        let connection = self.lock();
        let row = connection
            .prepare_cached(
                "SELECT w.document, w.answers, w.failures, d.event, d.attempts
                 FROM deliveries d JOIN webhooks w ON w.id = d.webhook
                 WHERE d.webhook = ?1 ORDER BY d.event LIMIT 1",
            )?
            .query_row([webhook], |row| {
                let document: String = row.get(0)?;
                Ok((document, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })
            .optional()?;
        let Some((document, answers, failures, event, attempts)) = row else {
            return Ok(None);
        };
        Ok(Some(Delivery {
            webhook: serde_json::from_str(&document)?,
            answers,
            failures,
            event,
            attempts,
        }))
    }

    /// Stores the end of an attempt.
    pub(crate) fn record_attempt(&self, delivery: &Delivery, attempt: Attempt) -> StoreResult<()> {
        let (webhook, event) = (&delivery.webhook.id, delivery.event);
        self.write(|tx| {
            match attempt {
                Attempt::Done | Attempt::Skipped | Attempt::GivenUp { .. } => tx
                    .prepare_cached("DELETE FROM deliveries WHERE webhook = ?1 AND event = ?2")?
                    .execute(params![webhook, event])?,
                Attempt::Failed { .. } => tx
                    .prepare_cached(
                        "UPDATE deliveries SET attempts = attempts + 1
                         WHERE webhook = ?1 AND event = ?2",
                    )?
                    .execute(params![webhook, event])?,
            };
            match attempt {
                Attempt::Done if !delivery.answers => tx
                    .prepare_cached("UPDATE webhooks SET answers = 1, failures = 0 WHERE id = ?1")?
                    .execute([webhook])?,
                Attempt::Done | Attempt::Skipped => 0,
                Attempt::Failed { next_ms } | Attempt::GivenUp { next_ms } => tx
                    .prepare_cached(
                        "UPDATE webhooks SET answers = 0, failures = failures + 1, next_ms = ?2
                         WHERE id = ?1",
                    )?
                    .execute(params![webhook, next_ms])?,
            };
            Ok(())
        })
    }

    /// Removes the oldest events of webhooks of which more than `most` wait, and returns their
    /// number.
    pub(crate) fn trim_deliveries(&self, most: u64) -> StoreResult<u64> {
        let excess: Vec<(String, i64)> = {
            let connection = self.lock();
            let mut statement = connection
                .prepare_cached("SELECT id, waiting - ?1 FROM webhooks WHERE waiting > ?1")?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let rows = statement.query_map([most], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<Result<_, _>>()?
        };
        if excess.is_empty() {
            return Ok(0);
        }
        self.write(|tx| {
            let mut removed = 0;
            for (webhook, count) in &excess {
                removed += tx
                    .prepare_cached(
                        "DELETE FROM deliveries WHERE webhook = ?1 AND event IN
                         (SELECT event FROM deliveries WHERE webhook = ?1 ORDER BY event LIMIT ?2)",
                    )?
                    .execute(params![webhook, count])?;
            }
            Ok(u64::try_from(removed).unwrap_or_default())
        })
    }

    /// Returns the number of waiting deliveries.
    pub(crate) fn count_deliveries(&self) -> StoreResult<u64> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT coalesce(sum(waiting), 0) FROM webhooks")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}

/// Queues an event for every webhook that wants its type.
pub(super) fn queue(tx: &Transaction<'_>, event: u64, kind: &str) -> StoreResult<()> {
    tx.prepare_cached(
        "INSERT INTO deliveries (webhook, event, attempts)
         SELECT w.id, ?1, 0 FROM webhooks w
         WHERE json_array_length(w.document, '$.types') = 0
            OR EXISTS (SELECT 1 FROM json_each(w.document, '$.types') WHERE value = ?2)",
    )?
    .execute(params![event, kind])?;
    Ok(())
}
