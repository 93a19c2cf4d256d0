//! Handlers of hosts.

use super::body::Json as Input;
use crate::access::Caller;
use crate::problem::{ApiResult, Problem};
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_routing::{HostRecord, HostState};

async fn one(caller: &Caller, id: &str) -> ApiResult<HostRecord> {
    let hosts = caller.hosts().await?;
    hosts
        .into_iter()
        .find(|host| host.id.as_str() == id)
        .ok_or_else(|| Problem::not_found("host"))
}

pub(super) async fn list(caller: Caller) -> ApiResult<Json<Value>> {
    Ok(Json(json!({
        "schema": "wp-codebox/service-host-list/v1",
        "hosts": caller.hosts().await?,
    })))
}

pub(super) async fn get(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    Ok(Json(json!(one(&caller, &id).await?)))
}

pub(super) async fn register(caller: Caller, body: Input<Value>) -> ApiResult<Response> {
    let host = HostRecord::parse(&body.value).map_err(ErrorBody::from)?;
    // Without its extension the host would get no sandbox, and nothing would say why.
    if !caller.has_extension(host.extension.as_str()) {
        return Err(Problem::not_found("extension"));
    }
    let id = host.id.to_string();
    let host = HostRecord { used: 0, ..host };
    caller.put_host(host, "host.registered").await?;
    let stored = one(&caller, &id).await?;
    Ok((StatusCode::CREATED, Json(json!(stored))).into_response())
}

pub(super) async fn drain(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let host = HostRecord {
        state: HostState::Draining,
        ..one(&caller, &id).await?
    };
    let stored = HostRecord {
        used: 0,
        ..host.clone()
    };
    caller.put_host(stored, "host.draining").await?;
    Ok(Json(json!(host)))
}

pub(super) async fn remove(caller: Caller, Path(id): Path<String>) -> ApiResult<StatusCode> {
    let host = one(&caller, &id).await?;
    if host.used > 0 {
        let message = format!(
            "the host has {} sandboxes; drain it and wait until they have ended",
            host.used
        );
        return Err(Problem::new(ErrorCode::SandboxInUse, message));
    }
    caller.remove_host(host).await?;
    Ok(StatusCode::NO_CONTENT)
}
