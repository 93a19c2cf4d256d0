//! Snapshots that a client may use. A snapshot belongs to the sandbox of which it was taken: its
//! owner is the owner of that sandbox.

use super::{Caller, Owner};
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use crate::store::SandboxRecord;
use serde_json::Value;
use wp_codebox_contracts::ErrorCode;

/// A snapshot that its client may use for the operation of the request.
pub(crate) struct Snapshot {
    caller: Caller,
    pub extension: String,
    /// `None`: the service has no record of the sandbox.
    of: Option<SandboxRecord>,
    /// Row of `sandbox-snapshot-list/v1`.
    pub row: Value,
}

impl Caller {
    pub(crate) async fn snapshot(&self, id: &str) -> ApiResult<Snapshot> {
        let mut all = self.snapshots().await?.into_iter();
        all.find(|found| found.row.get("id").and_then(Value::as_str) == Some(id))
            .ok_or_else(|| {
                Problem::new(
                    ErrorCode::SnapshotNotFound,
                    "there is no such snapshot, or this token may not use it; GET /v1/snapshots lists the snapshots of this token",
                )
            })
    }

    /// Returns the snapshots of sandboxes that the client may use.
    pub(crate) async fn snapshots(&self) -> ApiResult<Vec<Snapshot>> {
        let caller = self.clone();
        self.core
            .blocking(Pool::Calls, move |core| -> ApiResult<Vec<Snapshot>> {
                let mut found = Vec::new();
                for capabilities in core.capabilities() {
                    if !capabilities.snapshot {
                        continue;
                    }
                    let id = capabilities.extension.to_string();
                    for row in core.extension(&id)?.snapshots()? {
                        let of = match row.get("run_id").and_then(Value::as_str) {
                            None => None,
                            Some(sandbox) => core.store.sandbox(sandbox)?,
                        };
                        let owner = of.as_ref().map_or_else(Owner::unknown, Owner::of);
                        if caller.may(&owner) {
                            found.push(Snapshot {
                                caller: caller.clone(),
                                extension: id.clone(),
                                of,
                                row,
                            });
                        }
                    }
                }
                Ok(found)
            })
            .await?
    }
}

impl Snapshot {
    /// Returns the host of the sandbox of which the snapshot was taken, if that is known.
    pub(crate) fn known_host(&self) -> Option<&str> {
        self.of.as_ref()?.host.as_deref()
    }

    /// Returns the host that stores the snapshot.
    pub(super) async fn host(&self) -> ApiResult<Option<String>> {
        if let Some(host) = self.known_host() {
            return Ok(Some(host.to_owned()));
        }
        let hosts = self.caller.core.records(|store| store.hosts()).await?;
        let host = hosts
            .into_iter()
            .find(|host| host.extension.as_str() == self.extension);
        Ok(host.map(|host| host.id.to_string()))
    }

    /// Removes the snapshot: `sandbox-snapshot-removal/v1`.
    pub(crate) async fn remove(self, id: String) -> ApiResult<Value> {
        let core = &self.caller.core;
        let extension = core.extension(&self.extension)?;
        let actor = self.caller.principal.actor.clone();
        let removal = core.blocking(Pool::Waits, move |_| extension.remove_snapshot(&id, &actor));
        Ok(removal.await??)
    }
}
