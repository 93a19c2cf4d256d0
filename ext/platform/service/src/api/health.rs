//! Handlers about the server itself.

use crate::access::{Caller, PublicState};
use crate::metrics::TEXT;
use crate::problem::ApiResult;
use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

pub(super) async fn healthz() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Answers without details, because everybody may ask; `whoami` and the log have them.
pub(super) async fn readyz(state: PublicState) -> ApiResult<StatusCode> {
    state.check_ready().await.map(|()| StatusCode::NO_CONTENT)
}

pub(super) async fn whoami(caller: Caller) -> Json<Value> {
    let principal = caller.principal;
    let mut document = json!({
        "schema": "wp-codebox/service-whoami/v1",
        "actor": principal.actor,
        "scopes": principal.scopes,
    });
    if let Some(account) = &principal.account {
        document["account"] = json!(account);
    }
    if let Some((rate_per_minute, concurrency)) = principal.limits {
        document["limits"] =
            json!({"rate_per_minute": rate_per_minute, "concurrency": concurrency});
    }
    Json(document)
}

pub(super) async fn describe(state: PublicState) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, state.description()).into_response()
}

pub(super) async fn metrics(caller: Caller) -> ApiResult<Response> {
    let text = caller.metrics().await?;
    Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response())
}
