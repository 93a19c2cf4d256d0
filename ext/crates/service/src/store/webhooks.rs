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

/// A delivery that is due.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub webhook: Webhook,
    pub event: u64,
    /// Number of attempts so far.
    pub attempts: u32,
}

impl Store {
    pub(crate) fn insert_webhook(&self, webhook: &Webhook) -> StoreResult<()> {
        self.write(|tx| {
            tx.execute(
                "INSERT INTO webhooks (id, token, document) VALUES (?1, ?2, ?3)",
                params![webhook.id, webhook.token, serde_json::to_string(webhook)?],
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

    /// Returns up to `limit` deliveries that are due, and the time of the next one that is not.
    pub(crate) fn due(&self, limit: usize) -> StoreResult<(Vec<Delivery>, Option<i64>)> {
        let connection = self.lock();
        let now = now_ms();
        let mut statement = connection.prepare_cached(
            "SELECT w.document, d.event, d.attempts FROM deliveries d JOIN webhooks w ON w.id = d.webhook
             WHERE d.next_ms <= ?1 ORDER BY d.next_ms, d.event LIMIT ?2",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![now, limit], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
        })?;
        let mut due = Vec::new();
        for row in rows {
            let (webhook, event, attempts) = row?;
            due.push(Delivery {
                webhook: serde_json::from_str(&webhook)?,
                event,
                attempts,
            });
        }
        let next = connection
            .prepare_cached("SELECT min(next_ms) FROM deliveries WHERE next_ms > ?1")?
            .query_row([now], |row| row.get::<_, Option<i64>>(0))
            .optional()?;
        Ok((due, next.flatten()))
    }

    /// Removes a delivery that succeeded or was given up.
    pub(crate) fn finish_delivery(&self, delivery: &Delivery) -> StoreResult<()> {
        self.write(|tx| {
            tx.execute(
                "DELETE FROM deliveries WHERE webhook = ?1 AND event = ?2",
                params![delivery.webhook.id, delivery.event],
            )?;
            Ok(())
        })
    }

    /// Stores that a delivery failed and is due again at `next_ms`.
    pub(crate) fn retry_delivery(&self, delivery: &Delivery, next_ms: i64) -> StoreResult<()> {
        self.write(|tx| {
            tx.execute(
                "UPDATE deliveries SET attempts = attempts + 1, next_ms = ?3 WHERE webhook = ?1 AND event = ?2",
                params![delivery.webhook.id, delivery.event, next_ms],
            )?;
            Ok(())
        })
    }

    /// Returns the number of queued deliveries.
    pub(crate) fn count_deliveries(&self) -> StoreResult<u64> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT count(*) FROM deliveries")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}

/// Queues an event for every webhook that wants its type.
pub(super) fn queue(tx: &Transaction<'_>, event: u64, kind: &str) -> StoreResult<()> {
    tx.prepare_cached(
        "INSERT INTO deliveries (webhook, event, attempts, next_ms)
         SELECT w.id, ?1, 0, ?2 FROM webhooks w
         WHERE json_array_length(w.document, '$.types') = 0
            OR EXISTS (SELECT 1 FROM json_each(w.document, '$.types') WHERE value = ?3)",
    )?
    .execute(params![event, now_ms(), kind])?;
    Ok(())
}
