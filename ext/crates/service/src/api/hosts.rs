//! Handlers of hosts.

use super::body::Json as Input;
use super::guard::Caller;
use crate::core::Core;
use crate::problem::{ApiResult, Problem};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use wp_codebox_contracts::ErrorCode;
use wp_codebox_routing::{HostRecord, HostState};

async fn all(core: &Arc<Core>) -> ApiResult<Vec<HostRecord>> {
    let hosts = core.records(|store| store.hosts()).await?;
    Ok(hosts.into_iter().map(|host| core.measured(host)).collect())
}

async fn one(core: &Arc<Core>, id: &str) -> ApiResult<HostRecord> {
    let hosts = all(core).await?;
    hosts
        .into_iter()
        .find(|host| host.id.as_str() == id)
        .ok_or_else(|| Problem::not_found("host"))
}

pub(super) async fn list(State(core): State<Arc<Core>>, _: Caller) -> ApiResult<Json<Value>> {
    Ok(Json(json!({
        "schema": "wp-codebox/service-host-list/v1",
        "hosts": all(&core).await?,
    })))
}

pub(super) async fn get(
    State(core): State<Arc<Core>>,
    _: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    Ok(Json(json!(one(&core, &id).await?)))
}

pub(super) async fn register(
    State(core): State<Arc<Core>>,
    caller: Caller,
    body: Input<Value>,
) -> ApiResult<Response> {
    let host = HostRecord::parse(&body.value).map_err(|error| error.body())?;
    // Without its extension the host would get no sandbox, and nothing would say why.
    core.extension(host.extension.as_str())
        .map_err(|_| Problem::not_found("extension"))?;
    let host = HostRecord { used: 0, ..host };
    let (stored, actor) = (host.clone(), caller.principal.actor);
    core.records(move |store| store.put_host(&stored, "host.registered", &actor))
        .await?;
    core.deliver.notify_one();
    Ok((
        StatusCode::CREATED,
        Json(json!(one(&core, host.id.as_str()).await?)),
    )
        .into_response())
}

pub(super) async fn drain(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let host = HostRecord {
        state: HostState::Draining,
        ..one(&core, &id).await?
    };
    let (stored, actor) = (
        HostRecord {
            used: 0,
            ..host.clone()
        },
        caller.principal.actor,
    );
    core.records(move |store| store.put_host(&stored, "host.draining", &actor))
        .await?;
    core.deliver.notify_one();
    Ok(Json(json!(host)))
}

pub(super) async fn remove(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<StatusCode> {
    let host = one(&core, &id).await?;
    if host.used > 0 {
        let message = format!(
            "the host has {} sandboxes; drain it and wait until they have ended",
            host.used
        );
        return Err(Problem::new(ErrorCode::SandboxInUse, message));
    }
    let actor = caller.principal.actor;
    core.records(move |store| store.remove_host(&host, &actor))
        .await?;
    core.deliver.notify_one();
    Ok(StatusCode::NO_CONTENT)
}
