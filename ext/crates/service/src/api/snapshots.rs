//! Handlers of snapshots. A snapshot belongs to the sandbox of which it was taken: a principal that
//! may not use that sandbox cannot learn that the snapshot exists.

use super::body::Json as Input;
use super::document::sandbox;
use super::guard::Caller;
use super::records::{noted, usable};
use crate::auth::{Principal, Scope};
use crate::core::{Core, Pool};
use crate::problem::{ApiResult, Problem};
use crate::store::SandboxRecord;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use wp_codebox_contracts::{ErrorCode, HostId};

/// Body of a snapshot.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotInput {
    name: Option<String>,
}

/// Body of a restore.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreInput {
    snapshot: String,
}

/// A snapshot with its extension and the record of its sandbox.
struct Found {
    extension: String,
    /// `None`: the sandbox was not made by this service.
    of: Option<SandboxRecord>,
    row: Value,
}

pub(super) async fn take(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
    body: Input<SnapshotInput>,
) -> ApiResult<Response> {
    let principal = caller.principal;
    let record = usable(&core, &principal, Scope::SnapshotsWrite, &id).await?;
    if !core.extension(&record.extension)?.capabilities().snapshot {
        let message =
            "the extension of this sandbox takes no snapshots; GET /v1/extensions shows which do";
        return Err(Problem::new(ErrorCode::CommandUnsupported, message));
    }
    let (name, actor) = (body.value.name, principal.actor.clone());
    let snapshot = core
        .call(Pool::Waits, &record, move |extension, id| {
            extension.snapshot(id, name.as_deref(), &actor)
        })
        .await?;
    let data = json!({"snapshot": snapshot.get("id"), "name": snapshot.get("name")});
    noted(&core, &record, "sandbox.snapshot", &principal, data, |_| {}).await?;
    Ok((StatusCode::CREATED, Json(snapshot)).into_response())
}

pub(super) async fn restore(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
    body: Input<RestoreInput>,
) -> ApiResult<Json<Value>> {
    let principal = caller.principal;
    let record = usable(&core, &principal, Scope::SandboxesWrite, &id).await?;
    let found = one(
        &core,
        &principal,
        Scope::SandboxesWrite,
        &body.value.snapshot,
    )
    .await?;
    if found.extension != record.extension {
        let message = "the snapshot belongs to another extension than the sandbox; create a new sandbox from the snapshot instead";
        return Err(Problem::new(ErrorCode::InputInvalid, message));
    }
    let (snapshot, actor) = (body.value.snapshot.clone(), principal.actor.clone());
    core.call(Pool::Waits, &record, move |extension, id| {
        extension.restore(id, &snapshot, &actor)
    })
    .await?;
    let data = json!({"snapshot": body.value.snapshot});
    let record = noted(&core, &record, "sandbox.restored", &principal, data, |_| {}).await?;
    Ok(Json(sandbox(&record, None)))
}

pub(super) async fn list(State(core): State<Arc<Core>>, caller: Caller) -> ApiResult<Json<Value>> {
    let rows: Vec<Value> = all(&core, &caller.principal, Scope::SandboxesRead)
        .await?
        .into_iter()
        .map(|found| {
            let host = found.of.as_ref().and_then(|record| record.host.clone());
            json!({"extension": found.extension, "host": host, "snapshot": found.row})
        })
        .collect();
    Ok(Json(json!({
        "schema": "wp-codebox/service-snapshot-list/v1",
        "snapshots": rows,
    })))
}

pub(super) async fn remove(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let found = one(&core, &caller.principal, Scope::SnapshotsWrite, &id).await?;
    let extension = core.extension(&found.extension)?;
    let actor = caller.principal.actor;
    let removal = core
        .blocking(Pool::Waits, move |_| extension.remove_snapshot(&id, &actor))
        .await??;
    Ok(Json(removal))
}

/// Returns the host that stores a snapshot.
pub(super) async fn host(
    core: &Arc<Core>,
    principal: &Principal,
    id: &str,
) -> ApiResult<Option<HostId>> {
    let found = one(core, principal, Scope::SandboxesCreate, id).await?;
    let extension = found.extension.clone();
    let of = found.of.and_then(|record| record.host);
    let host = match of {
        Some(host) => Some(host),
        None => {
            let hosts = core.records(|store| store.hosts()).await?;
            let host = hosts
                .into_iter()
                .find(|host| host.extension.as_str() == extension);
            host.map(|host| host.id.to_string())
        }
    };
    Ok(host.and_then(|host| HostId::new(host.as_str()).ok()))
}

async fn one(core: &Arc<Core>, principal: &Principal, scope: Scope, id: &str) -> ApiResult<Found> {
    let found = all(core, principal, scope).await?;
    found
        .into_iter()
        .find(|found| found.row.get("id").and_then(Value::as_str) == Some(id))
        .ok_or_else(|| {
            Problem::new(
                ErrorCode::SnapshotNotFound,
                "there is no such snapshot, or this token may not use it; GET /v1/snapshots lists the snapshots of this token",
            )
        })
}

/// Returns the snapshots whose sandboxes the principal may use for `scope`.
async fn all(core: &Arc<Core>, principal: &Principal, scope: Scope) -> ApiResult<Vec<Found>> {
    let principal = principal.clone();
    core.blocking(Pool::Calls, move |core| -> ApiResult<Vec<Found>> {
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
                let may = match &of {
                    Some(record) => principal.may_use(scope, record),
                    None => principal.token.is_empty(),
                };
                if may {
                    let extension = id.clone();
                    found.push(Found { extension, of, row });
                }
            }
        }
        Ok(found)
    })
    .await?
}
