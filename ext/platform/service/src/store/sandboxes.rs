//! Records of sandboxes and their transitions.

use super::events::{self, NewEvent};
use super::record::SandboxRecord;
use super::{Claim, IdempotencyKey, Store, StoreResult, idempotency};
use crate::actor::Actor;
use crate::clock::now_ms;
use crate::extension::SandboxState;
use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::Value;

/// Condition for sandboxes that are not in a final state.
const LIVING: &str =
    "state IN ('requested', 'provisioning', 'ready', 'active', 'expired', 'destroying')";

/// Living sandboxes of one actor on one host.
#[derive(Debug)]
pub(crate) struct OwnOnHost {
    pub host: String,
    pub count: u32,
    /// Id of the one that was requested first.
    pub oldest: String,
}

/// A page of records, newest first.
#[derive(Debug)]
pub(crate) struct ListRows {
    pub rows: Vec<SandboxRecord>,
    /// Position after the last row, if there may be more.
    pub next: Option<i64>,
}

impl Store {
    /// Stores a new sandbox with its first events. If the idempotency key is taken, stores nothing
    /// and returns the claim of the earlier request.
    pub(crate) fn insert_sandbox(
        &self,
        record: &SandboxRecord,
        key: Option<&IdempotencyKey>,
        consumer: Option<&Value>,
        actor: &Actor,
    ) -> StoreResult<Claim> {
        self.write(|tx| {
            if let Some(key) = key
                && let Some(claim) = idempotency::find(tx, key)?
            {
                return Ok(claim);
            }
            tx.prepare_cached(
                "INSERT INTO sandboxes (id, state, owner, extension, host, updated_ms, document)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                record.id(),
                record.state.as_str(),
                record.owner().to_string(),
                record.extension,
                record.host,
                now_ms(),
                serde_json::to_string(record)?,
            ])?;
            if let Some(key) = key {
                idempotency::insert(tx, key, record.id())?;
            }
            let mut event = NewEvent::of("sandbox.requested", actor, record);
            event.consumer = consumer;
            event.data =
                serde_json::json!({"profile": record.profile_id(), "ttl_ms": record.provision.ttl_ms});
            events::insert(tx, &event)?;
            let mut event = NewEvent::of("route.decided", actor, record);
            event.consumer = consumer;
            event.data = record.route.clone();
            events::insert(tx, &event)?;
            Ok(Claim::New)
        })
    }

    pub(crate) fn sandbox(&self, id: &str) -> StoreResult<Option<SandboxRecord>> {
        read(&self.lock(), id)
    }

    /// Moves a sandbox to `to` if its state is one of `from`, changes the record by `change` and
    /// writes the event `sandbox.<to>`. Returns the record as it is now, and whether it moved.
    pub(crate) fn transition(
        &self,
        id: &str,
        from: &[SandboxState],
        to: SandboxState,
        actor: &Actor,
        change: impl FnOnce(&mut SandboxRecord),
    ) -> StoreResult<Option<(SandboxRecord, bool)>> {
        self.write(|tx| {
            let Some(mut record) = read(tx, id)? else {
                return Ok(None);
            };
            if !from.contains(&record.state) {
                return Ok(Some((record, false)));
            }
            record.state = to;
            change(&mut record);
            // The link has the token of the preview, which ends with the sandbox.
            if let Some(reachability) = record.reachability.as_mut().filter(|_| to.is_final()) {
                reachability.preview_url = None;
            }
            update(tx, &record)?;
            let kind = format!("sandbox.{}", to.as_str());
            let mut event = NewEvent::of(&kind, actor, &record);
            event.data = transition_data(&record);
            let consumer = events::consumer(tx, id)?;
            event.consumer = consumer.as_ref();
            events::insert(tx, &event)?;
            Ok(Some((record, true)))
        })
    }

    /// Changes a record without a change of state, and writes the event `kind` about it.
    pub(crate) fn note(
        &self,
        id: &str,
        kind: &str,
        actor: &Actor,
        data: Value,
        change: impl FnOnce(&mut SandboxRecord),
    ) -> StoreResult<Option<SandboxRecord>> {
        self.write(|tx| {
            let Some(mut record) = read(tx, id)? else {
                return Ok(None);
            };
            change(&mut record);
            update(tx, &record)?;
            let consumer = events::consumer(tx, id)?;
            let mut event = NewEvent::of(kind, actor, &record);
            event.data = data;
            event.consumer = consumer.as_ref();
            events::insert(tx, &event)?;
            Ok(Some(record))
        })
    }

    /// Lists records before the position `before`, newest first, until `limit` of them satisfy
    /// `wanted`. `owner` restricts the search to the records of one actor.
    pub(crate) fn list_sandboxes(
        &self,
        owner: Option<&Actor>,
        before: Option<i64>,
        limit: usize,
        wanted: impl Fn(&SandboxRecord) -> bool,
    ) -> StoreResult<ListRows> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(match owner {
            Some(_) => "SELECT serial, document FROM sandboxes WHERE owner = ?1 AND serial < ?2 ORDER BY serial DESC",
            None => "SELECT serial, document FROM sandboxes WHERE ?1 IS NULL AND serial < ?2 ORDER BY serial DESC",
        })?;
        let owner = owner.map(ToString::to_string);
        let mut found = statement.query(params![owner, before.unwrap_or(i64::MAX)])?;
        let (mut rows, mut last) = (Vec::new(), None);
        while let Some(row) = found.next()? {
            let record: SandboxRecord =
                serde_json::from_str(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)?;
            if !wanted(&record) {
                continue;
            }
            if rows.len() == limit {
                return Ok(ListRows { rows, next: last });
            }
            last = Some(row.get(0)?);
            rows.push(record);
        }
        Ok(ListRows { rows, next: None })
    }

    /// Returns the records of sandboxes that are not in a final state.
    pub(crate) fn living(&self) -> StoreResult<Vec<SandboxRecord>> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&format!(
            "SELECT document FROM sandboxes WHERE {LIVING} ORDER BY serial"
        ))?;
        let mut found = statement.query([])?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            rows.push(serde_json::from_str(
                row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?,
            )?);
        }
        Ok(rows)
    }

    /// Returns the number of sandboxes by state.
    pub(crate) fn count_states(&self) -> StoreResult<Vec<(String, u64)>> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT state, count(*) FROM sandboxes GROUP BY state")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the number of living sandboxes by host.
    pub(crate) fn count_hosts(&self) -> StoreResult<Vec<(String, u64)>> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&format!(
            "SELECT host, count(*) FROM sandboxes WHERE host IS NOT NULL AND {LIVING} GROUP BY host"
        ))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the number of living sandboxes of an actor by host, without hosts that have none.
    pub(crate) fn living_of(&self, owner: &Actor) -> StoreResult<Vec<OwnOnHost>> {
        let connection = self.lock();
        // The sign makes SQLite search by state: an actor can have many more ended sandboxes than
        // there are living ones. `id` is that of the row with the lowest serial.
        let mut statement = connection.prepare_cached(&format!(
            "SELECT host, count(*), id, min(serial) FROM sandboxes
             WHERE +owner = ?1 AND host IS NOT NULL AND {LIVING} GROUP BY host"
        ))?;
        let rows = statement.query_map([owner.to_string()], |row| {
            Ok(OwnOnHost {
                host: row.get(0)?,
                count: row.get(1)?,
                oldest: row.get(2)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes records of sandboxes that ended before `before_ms`, with their idempotency keys.
    pub(crate) fn prune_sandboxes(&self, before_ms: i64) -> StoreResult<usize> {
        self.write(|tx| {
            Ok(tx.execute(
                "DELETE FROM sandboxes WHERE state IN ('failed', 'destroyed') AND updated_ms < ?1",
                [before_ms],
            )?)
        })
    }
}

/// Returns what an event about a transition says besides the new state.
fn transition_data(record: &SandboxRecord) -> Value {
    let mut data = serde_json::Map::new();
    if let Some(reason) = &record.reason {
        data.insert("reason".to_owned(), Value::from(reason.clone()));
    }
    if let Some(at) = &record.expires_at {
        data.insert("expires_at".to_owned(), Value::from(at.clone()));
    }
    if let Some(usage) = record.usage.as_ref().filter(|_| record.state.is_final()) {
        data.insert("usage".to_owned(), serde_json::json!(usage));
    }
    Value::Object(data)
}

fn read(connection: &rusqlite::Connection, id: &str) -> StoreResult<Option<SandboxRecord>> {
    let text: Option<String> = connection
        .prepare_cached("SELECT document FROM sandboxes WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
}

fn update(tx: &Transaction<'_>, record: &SandboxRecord) -> StoreResult<()> {
    tx.prepare_cached(
        "UPDATE sandboxes SET state = ?2, host = ?3, updated_ms = ?4, document = ?5 WHERE id = ?1",
    )?
    .execute(params![
        record.id(),
        record.state.as_str(),
        record.host,
        now_ms(),
        serde_json::to_string(record)?,
    ])?;
    Ok(())
}
