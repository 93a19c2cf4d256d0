//! Registered hosts, as `host-record/v1` without their load, which is counted from the sandboxes.

use super::events::{self, NewEvent};
use super::{Store, StoreResult};
use crate::actor::Actor;
use rusqlite::{OptionalExtension, params};
use serde_json::json;
use wp_codebox_routing::{HostRecord, HostState};

impl Store {
    /// Returns all hosts, sorted by id, each with the number of sandboxes that it has.
    pub(crate) fn hosts(&self) -> StoreResult<Vec<HostRecord>> {
        let used = self.count_hosts()?;
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT document FROM hosts ORDER BY id")?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        let mut hosts = Vec::new();
        for row in rows {
            let mut host: HostRecord = serde_json::from_str(&row?)?;
            let count = used.iter().find(|(id, _)| id == host.id.as_str());
            host.used = count.map_or(0, |(_, count)| u32::try_from(*count).unwrap_or(u32::MAX));
            hosts.push(host);
        }
        Ok(hosts)
    }

    /// Stores a host, in place of an earlier one with its id, and writes the event `kind`.
    pub(crate) fn put_host(&self, host: &HostRecord, kind: &str, actor: &Actor) -> StoreResult<()> {
        self.write(|tx| {
            tx.prepare_cached(
                "INSERT INTO hosts (id, document) VALUES (?1, ?2)
                 ON CONFLICT (id) DO UPDATE SET document = excluded.document",
            )?
            .execute(params![host.id.as_str(), serde_json::to_string(host)?])?;
            events::insert(tx, &about(kind, actor, host))?;
            Ok(())
        })
    }

    /// Stores the state that a health check found, unless the host was removed, is draining, or has
    /// that state already. `reason` says why the host cannot be used; the event contains it.
    pub(crate) fn change_host(
        &self,
        host: &HostRecord,
        kind: &str,
        reason: Option<&str>,
        actor: &Actor,
    ) -> StoreResult<()> {
        self.write(|tx| {
            let found = tx
                .prepare_cached("SELECT document FROM hosts WHERE id = ?1")?
                .query_row([host.id.as_str()], |row| row.get::<_, String>(0))
                .optional()?;
            let Some(found) = found else { return Ok(()) };
            let found: HostRecord = serde_json::from_str(&found)?;
            if found.state == HostState::Draining || found.state == host.state {
                return Ok(());
            }
            let changed = HostRecord {
                state: host.state,
                ..found
            };
            tx.prepare_cached("UPDATE hosts SET document = ?2 WHERE id = ?1")?
                .execute(params![host.id.as_str(), serde_json::to_string(&changed)?])?;
            let mut event = about(kind, actor, &changed);
            if let Some(reason) = reason {
                event.data["reason"] = json!(reason);
            }
            events::insert(tx, &event)?;
            Ok(())
        })
    }

    /// Removes a host; returns whether it existed.
    pub(crate) fn remove_host(&self, host: &HostRecord, actor: &Actor) -> StoreResult<bool> {
        self.write(|tx| {
            let removed = tx.execute("DELETE FROM hosts WHERE id = ?1", [host.id.as_str()])?;
            if removed > 0 {
                events::insert(tx, &about("host.removed", actor, host))?;
            }
            Ok(removed > 0)
        })
    }
}

fn about<'a>(kind: &'a str, actor: &'a Actor, host: &HostRecord) -> NewEvent<'a> {
    NewEvent {
        kind,
        actor,
        sandbox: None,
        consumer: None,
        data: json!({"host": host.id, "extension": host.extension, "state": host.state}),
    }
}
