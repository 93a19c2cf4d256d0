//! Handlers of webhooks. The deliveries are in [`crate::deliver`].

use super::body::Json as Input;
use crate::access::Caller;
use crate::auth::random;
use crate::clock::{now_ms, rfc3339};
use crate::problem::{ApiResult, Problem};
use crate::store::Webhook;
use axum::Json;
use axum::extract::Path;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::IpAddr;
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
    if !is_target(&url) {
        return Err(Problem::invalid(
            "url must be https, or http to a loopback address, without user, password and fragment, of at most 2048 bytes",
        ));
    }
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

/// Returns whether deliveries may go to an address: encrypted, or within this machine.
fn is_target(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else {
        return false;
    };
    let Some(authority) = uri.authority() else {
        return false;
    };
    let plain = url.len() <= 2048 && !authority.as_str().contains('@') && !url.contains('#');
    let host = authority.host().trim_matches(['[', ']']);
    plain
        && match uri.scheme_str() {
            Some("https") => !host.is_empty(),
            Some("http") => {
                let address = host.parse::<IpAddr>();
                host == "localhost" || address.is_ok_and(|address| address.is_loopback())
            }
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_url_must_be_https_or_loopback_without_credentials_or_fragment() {
        for url in [
            "https://hooks.example/x?y=1",
            "http://127.0.0.1:8080/",
            "http://[::1]/x",
            "http://localhost/x",
        ] {
            assert!(is_target(url), "{url}");
        }
        for url in [
            "http://hooks.example/",
            "http://10.0.0.1/",
            "http://127.0.0.1.example/",
            "https://user:password@hooks.example/",
            "http://127.0.0.1@hooks.example/",
            "https://hooks.example/#x",
            "ftp://127.0.0.1/",
            "/x",
            "",
        ] {
            assert!(!is_target(url), "{url}");
        }
    }
}
