//! Records of runs that clients started, and the owners of all runs of this service.
//!
//! A native sandbox is a run with the same id, so the owner of such a run is in the record of its
//! sandbox.

use super::{Store, StoreResult};
use crate::access::Owner;
use crate::actor::Actor;
use crate::clock::now_ms;
use crate::extension::{SandboxId, SandboxUsage};
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wp_codebox_contracts::string_enum;

string_enum! {
    /// What the service knows of a run.
    pub(crate) enum RunState {
        /// Its record exists; the start was not confirmed.
        Starting = "starting",
        /// It was started and is followed until its end.
        Running = "running",
        /// It has ended, or it will never start; its reservation is closed.
        Ended = "ended",
    }
}

/// Everything that the service stores of a run. The rest is in the run's own directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    pub id: SandboxId,
    pub state: RunState,
    /// Actor who asked for the run.
    pub actor: Actor,
    /// Id of the profile that bounds it, if one was named.
    pub profile: Option<String>,
    /// Account that pays, if any.
    pub account: Option<String>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// The price quoted before the run started, `meter-quote/v1`; null without a price table.
    pub quote: Value,
    /// Whether the run was started.
    pub started: bool,
    /// What it used, once it has ended.
    pub usage: Option<SandboxUsage>,
}

impl Store {
    pub(crate) fn insert_run(&self, record: &RunRecord) -> StoreResult<()> {
        self.write(|tx| {
            tx.execute(
                "INSERT INTO runs (id, state, owner, profile, updated_ms, document)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    record.id.as_str(),
                    record.state.as_str(),
                    record.actor.to_string(),
                    record.profile,
                    now_ms(),
                    serde_json::to_string(record)?,
                ],
            )?;
            Ok(())
        })
    }

    pub(crate) fn update_run(&self, record: &RunRecord) -> StoreResult<()> {
        self.write(|tx| {
            tx.execute(
                "UPDATE runs SET state = ?2, updated_ms = ?3, document = ?4 WHERE id = ?1",
                params![
                    record.id.as_str(),
                    record.state.as_str(),
                    now_ms(),
                    serde_json::to_string(record)?,
                ],
            )?;
            Ok(())
        })
    }

    pub(crate) fn run(&self, id: &str) -> StoreResult<Option<RunRecord>> {
        let connection = self.lock();
        let text: Option<String> = connection
            .prepare_cached("SELECT document FROM runs WHERE id = ?1")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
    }

    /// Returns the records of runs that have not ended.
    pub(crate) fn living_runs(&self) -> StoreResult<Vec<RunRecord>> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT document FROM runs WHERE state IN ('starting', 'running') ORDER BY serial",
        )?;
        let mut found = statement.query([])?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            rows.push(serde_json::from_str(
                row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?,
            )?);
        }
        Ok(rows)
    }

    /// Returns the owner of a run; [`Owner::unknown`] if no record of this service names the run.
    pub(crate) fn owner_of_run(&self, id: &str) -> StoreResult<Owner> {
        let connection = self.lock();
        let found = connection
            .prepare_cached(
                "SELECT owner, profile FROM runs WHERE id = ?1 UNION ALL
                 SELECT owner, json_extract(document, '$.provision.profile_id') FROM sandboxes WHERE id = ?1",
            )?
            .query_row([id], |row| Ok(Owner::new(row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(found.unwrap_or_else(Owner::unknown))
    }

    /// Calls `each` with id and owner of every run of this service. `actor` restricts the search to
    /// the runs of one actor.
    pub(crate) fn run_owners(
        &self,
        actor: Option<&Actor>,
        mut each: impl FnMut(String, &Owner),
    ) -> StoreResult<()> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(match actor {
            Some(_) => {
                "SELECT id, owner, profile FROM runs WHERE owner = ?1 UNION ALL
                 SELECT id, owner, json_extract(document, '$.provision.profile_id') FROM sandboxes
                 WHERE owner = ?1"
            }
            None => {
                "SELECT id, owner, profile FROM runs WHERE ?1 IS NULL UNION ALL
                 SELECT id, owner, json_extract(document, '$.provision.profile_id') FROM sandboxes"
            }
        })?;
        let mut found = statement.query([actor.map(ToString::to_string)])?;
        while let Some(row) = found.next()? {
            each(row.get(0)?, &Owner::new(row.get(1)?, row.get(2)?));
        }
        Ok(())
    }

    /// Removes records of runs that ended before `before_ms`.
    pub(crate) fn prune_runs(&self, before_ms: i64) -> StoreResult<usize> {
        self.write(|tx| {
            Ok(tx.execute(
                "DELETE FROM runs WHERE state = 'ended' AND updated_ms < ?1",
                [before_ms],
            )?)
        })
    }
}
