//! Handlers about the server itself.

use super::guard::Caller;
use crate::core::{Core, Pool};
use crate::metrics::TEXT;
use crate::problem::{ApiResult, Problem};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use wp_codebox_contracts::ErrorCode;

pub(super) async fn healthz() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Answers without details, because everybody may ask; `whoami` and the log have them.
pub(super) async fn readyz(State(core): State<Arc<Core>>) -> ApiResult<StatusCode> {
    let not_ready = || {
        Problem::new(
            ErrorCode::ServiceUnavailable,
            "this service takes no requests for sandboxes now; its log says why",
        )
    };
    if core.is_stopping() {
        return Err(not_ready());
    }
    core.records(|store| store.last_event()).await?;
    let host = core.blocking(Pool::Calls, |core| core.host.ready()).await?;
    match host {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error) => {
            eprintln!("wp-codebox serve: not ready: {error}");
            Err(not_ready())
        }
    }
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

pub(super) async fn describe(State(core): State<Arc<Core>>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, core.description).into_response()
}

pub(super) async fn metrics(State(core): State<Arc<Core>>, _: Caller) -> ApiResult<Response> {
    let text = core
        .blocking(Pool::Records, |core| -> ApiResult<String> {
            let store = &core.store;
            let states = store.count_states()?;
            let (queued, last) = (store.count_deliveries()?, store.last_event()?);
            Ok(core.metrics.text(&states, queued, last))
        })
        .await??;
    Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response())
}
