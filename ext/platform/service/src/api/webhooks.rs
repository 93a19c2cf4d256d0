//! Handlers of webhooks. The deliveries are in [`crate::deliver`].

use super::body::Json as Input;
use crate::access::Caller;
use crate::auth::random;
use crate::clock::{now_ms, rfc3339};
use crate::problem::{ApiResult, Problem};
use crate::store::Webhook;
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use wp_codebox_contracts::{ErrorCode, hex};

/// Maximum number of webhooks of one token.
const MOST: usize = 32;
/// Types of events that a webhook can select.
pub(crate) const TYPES: &[&str] = &[
    "sandbox.requested",
    "sandbox.provisioning",
    "sandbox.ready",
    "sandbox.active",
    "sandbox.expired",
    "sandbox.failed",
    "sandbox.destroying",
    "sandbox.destroyed",
    "sandbox.ttl_extended",
    "sandbox.snapshot",
    "sandbox.restored",
    "route.decided",
    "host.registered",
    "host.ready",
    "host.draining",
    "host.down",
    "host.removed",
];

/// Body of a new webhook.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookInput {
    url: String,
    #[serde(default)]
    types: Vec<String>,
}

fn document(webhook: &Webhook) -> Value {
    json!({
        "schema": "wp-codebox/service-webhook/v1",
        "id": webhook.id,
        "url": webhook.url,
        "types": webhook.types,
        "actor": webhook.actor,
        "created_at": rfc3339(webhook.created_ms),
    })
}

pub(super) async fn create(caller: Caller, body: Input<WebhookInput>) -> ApiResult<Response> {
    let principal = &caller.principal;
    let WebhookInput { url, types } = body.value;
    caller.check_webhook_url(&url)?;
    if types.len() > TYPES.len() || types.iter().any(|kind| !TYPES.contains(&kind.as_str())) {
        let message = format!("types may contain only: {}", TYPES.join(", "));
        return Err(Problem::invalid(message));
    }
    if caller.webhooks().await?.len() >= MOST {
        return Err(Problem::new(
            ErrorCode::ServiceRateLimited,
            "this token has 32 webhooks, the limit; remove one first",
        ));
    }
    let webhook = Webhook {
        id: format!("hook_{}", hex(&random::<12>()?)),
        url,
        types,
        secret: hex(&random::<32>()?),
        token: principal.token.clone(),
        actor: principal.actor.to_string(),
        created_ms: now_ms(),
    };
    let mut answer = document(&webhook);
    answer["secret"] = json!(webhook.secret);
    caller.add_webhook(webhook).await?;
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

pub(super) async fn list(caller: Caller) -> ApiResult<Json<Value>> {
    let rows: Vec<Value> = caller.webhooks().await?.iter().map(document).collect();
    Ok(Json(json!({
        "schema": "wp-codebox/service-webhook-list/v1",
        "webhooks": rows,
    })))
}

pub(super) async fn remove(caller: Caller, Path(id): Path<String>) -> ApiResult<StatusCode> {
    caller.remove_webhook(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
