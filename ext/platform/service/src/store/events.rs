//! Events of the service: an append-only list with increasing ids.

use super::record::SandboxRecord;
use super::{Store, StoreResult, webhooks};
use crate::actor::Actor;
use crate::clock::{now_ms, rfc3339};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde_json::{Value, json};

/// An event to write.
#[derive(Debug)]
pub(crate) struct NewEvent<'a> {
    pub kind: &'a str,
    pub actor: &'a Actor,
    pub sandbox: Option<&'a SandboxRecord>,
    pub consumer: Option<&'a Value>,
    pub data: Value,
}

impl<'a> NewEvent<'a> {
    /// Creates an event about a sandbox.
    pub(crate) fn of(kind: &'a str, actor: &'a Actor, sandbox: &'a SandboxRecord) -> Self {
        Self {
            kind,
            actor,
            sandbox: Some(sandbox),
            consumer: None,
            data: json!({}),
        }
    }
}

/// A stored event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub id: u64,
    pub time_ms: i64,
    pub kind: String,
    pub actor: String,
    pub sandbox: Option<String>,
    /// Profile and owner of the sandbox; they decide which tokens may read the event.
    pub profile: Option<String>,
    pub owner: Option<String>,
    pub consumer: Option<String>,
    pub data: String,
}

impl Event {
    /// Returns the document `wp-codebox/service-event/v1`.
    pub(crate) fn document(&self) -> Value {
        let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
        let mut document = json!({
            "schema": "wp-codebox/service-event/v1",
            "id": self.id,
            "time": rfc3339(self.time_ms),
            "type": self.kind,
            "actor": self.actor,
        });
        if let Some(sandbox) = &self.sandbox {
            document["sandbox"] = json!(sandbox);
        }
        if let Some(profile) = &self.profile {
            document["profile"] = json!(profile);
        }
        if let Some(consumer) = &self.consumer {
            document["consumer"] = parsed(consumer);
        }
        document["data"] = parsed(&self.data);
        document
    }
}

/// Selection of events.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventFilter {
    /// Only events of this sandbox.
    pub sandbox: Option<String>,
}

impl Store {
    /// Returns up to `limit` events after `after`, in order.
    pub(crate) fn events(
        &self,
        after: u64,
        filter: &EventFilter,
        limit: usize,
    ) -> StoreResult<Vec<Event>> {
        const COLUMNS: &str =
            "SELECT id, time_ms, type, actor, sandbox, profile, owner, consumer, data FROM events";
        let connection = self.lock();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let rows: Vec<Event> = match &filter.sandbox {
            Some(sandbox) => connection
                .prepare_cached(&format!(
                    "{COLUMNS} WHERE sandbox = ?1 AND id > ?2 ORDER BY id LIMIT ?3"
                ))?
                .query_map(params![sandbox, after, limit], event)?
                .collect::<Result<_, _>>()?,
            None => connection
                .prepare_cached(&format!("{COLUMNS} WHERE id > ?1 ORDER BY id LIMIT ?2"))?
                .query_map(params![after, limit], event)?
                .collect::<Result<_, _>>()?,
        };
        Ok(rows)
    }

    /// Returns one event, if it is still stored.
    pub(crate) fn event(&self, id: u64) -> StoreResult<Option<Event>> {
        Ok(self
            .events(id.saturating_sub(1), &EventFilter::default(), 1)?
            .into_iter()
            .find(|event| event.id == id))
    }

    /// Returns the id of the newest event, 0 if there never was one.
    pub(crate) fn last_event(&self) -> StoreResult<u64> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT coalesce(max(id), 0) FROM events")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Returns the id of the oldest stored event, 0 if there is none.
    pub(crate) fn first_event(&self) -> StoreResult<u64> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT coalesce(min(id), 0) FROM events")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Removes all but the newest `keep` events.
    pub(crate) fn prune_events(&self, keep: u64) -> StoreResult<usize> {
        let last = self.last_event()?;
        self.write(|tx| {
            Ok(tx.execute(
                "DELETE FROM events WHERE id <= ?1",
                [i64::try_from(last.saturating_sub(keep)).unwrap_or_default()],
            )?)
        })
    }
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        id: row.get(0)?,
        time_ms: row.get(1)?,
        kind: row.get(2)?,
        actor: row.get(3)?,
        sandbox: row.get(4)?,
        profile: row.get(5)?,
        owner: row.get(6)?,
        consumer: row.get(7)?,
        data: row.get(8)?,
    })
}

/// Writes an event and queues its deliveries, in the transaction of the change that it reports.
pub(super) fn insert(tx: &Transaction<'_>, event: &NewEvent<'_>) -> StoreResult<u64> {
    tx.prepare_cached(
        "INSERT INTO events (time_ms, type, actor, sandbox, profile, owner, consumer, data)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        now_ms(),
        event.kind,
        event.actor.to_string(),
        event.sandbox.map(SandboxRecord::id),
        event.sandbox.map(SandboxRecord::profile_id),
        event.sandbox.map(|sandbox| sandbox.owner().to_string()),
        event.consumer.map(ToString::to_string),
        event.data.to_string(),
    ])?;
    let id = u64::try_from(tx.last_insert_rowid()).unwrap_or_default();
    webhooks::queue(tx, id, event.kind)?;
    Ok(id)
}

/// Returns the `consumer` of the request for a sandbox, from the sandbox's oldest stored event.
pub(super) fn consumer(tx: &Transaction<'_>, sandbox: &str) -> StoreResult<Option<Value>> {
    let text: Option<Option<String>> = tx
        .prepare_cached("SELECT consumer FROM events WHERE sandbox = ?1 ORDER BY id LIMIT 1")?
        .query_row([sandbox], |row| row.get(0))
        .optional()?;
    Ok(text
        .flatten()
        .map(|text| serde_json::from_str(&text))
        .transpose()?)
}
