//! Handlers of snapshots.

use super::body::Json as Input;
use super::document::sandbox as document;
use crate::access::Caller;
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use wp_codebox_contracts::ErrorCode;

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

pub(super) async fn take(
    caller: Caller,
    Path(id): Path<String>,
    body: Input<SnapshotInput>,
) -> ApiResult<Response> {
    let sandbox = caller.usable_sandbox(&id).await?;
    if !sandbox.has_snapshots()? {
        let message =
            "the extension of this sandbox takes no snapshots; GET /v1/extensions shows which do";
        return Err(Problem::new(ErrorCode::CommandUnsupported, message));
    }
    let (name, actor) = (body.value.name, caller.principal.actor.clone());
    let snapshot = sandbox
        .call(Pool::Waits, move |extension, id| {
            extension.snapshot(id, name.as_deref(), &actor)
        })
        .await?;
    let data = json!({"snapshot": snapshot.get("id"), "name": snapshot.get("name")});
    sandbox.noted("sandbox.snapshot", data, |_| {}).await?;
    Ok((StatusCode::CREATED, Json(snapshot)).into_response())
}

pub(super) async fn restore(
    caller: Caller,
    Path(id): Path<String>,
    body: Input<RestoreInput>,
) -> ApiResult<Json<Value>> {
    let sandbox = caller.usable_sandbox(&id).await?;
    let found = caller.snapshot(&body.value.snapshot).await?;
    if found.extension != sandbox.record().extension {
        let message = "the snapshot belongs to another extension than the sandbox; create a new sandbox from the snapshot instead";
        return Err(Problem::new(ErrorCode::InputInvalid, message));
    }
    let (snapshot, actor) = (body.value.snapshot.clone(), caller.principal.actor.clone());
    sandbox
        .call(Pool::Waits, move |extension, id| {
            extension.restore(id, &snapshot, &actor)
        })
        .await?;
    let data = json!({"snapshot": body.value.snapshot});
    let sandbox = sandbox.noted("sandbox.restored", data, |_| {}).await?;
    Ok(Json(document(sandbox.record(), None)))
}

pub(super) async fn list(caller: Caller) -> ApiResult<Json<Value>> {
    let found = caller.snapshots().await?;
    let rows: Vec<Value> = found
        .iter()
        .map(|found| {
            json!({"extension": found.extension, "host": found.known_host(), "snapshot": found.row})
        })
        .collect();
    Ok(Json(json!({
        "schema": "wp-codebox/service-snapshot-list/v1",
        "snapshots": rows,
    })))
}

pub(super) async fn remove(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    caller.snapshot(&id).await?.remove(id).await.map(Json)
}
