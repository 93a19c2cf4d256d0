//! The document `wp-codebox/service-sandbox/v1`.

use crate::clock::rfc3339;
use crate::problem::{ApiResult, Problem};
use crate::store::SandboxRecord;
use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;
use wp_codebox_contracts::hex;

/// Longest time in seconds for which `Prefer: wait` is granted.
const LONGEST_WAIT: u64 = 300;

/// Returns the document of a sandbox. `consumer` comes from the request that is being answered,
/// because the record does not contain it.
pub(super) fn sandbox(record: &SandboxRecord, consumer: Option<&Value>) -> Value {
    let request = &record.provision;
    let id = record.id();
    let mut document = json!({
        "schema": "wp-codebox/service-sandbox/v1",
        "id": id,
        "profile": {
            "id": request.profile_id,
            "version": request.profile_version,
            "sha256": request.profile_sha256,
        },
        "extension": record.extension,
        "state": record.state,
        "scope": request.scope,
        "actor": request.actor,
        "created_at": rfc3339(record.created_ms),
        "ttl_ms": request.ttl_ms,
        "route": record.route,
    });
    let mut member = |name: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            document[name] = value;
        }
    };
    member("host", record.host.as_ref().map(|host| json!(host)));
    member("expires_at", record.expires_at.as_ref().map(|at| json!(at)));
    member("reason", record.reason.as_ref().map(|reason| json!(reason)));
    member(
        "account",
        record.account.as_ref().map(|account| json!(account)),
    );
    member("idempotency_key", record.key.as_ref().map(|key| json!(key)));
    member(
        "instead_of",
        request.instead_of.as_ref().map(|id| json!(id)),
    );
    member("snapshot", request.snapshot.as_ref().map(|id| json!(id)));
    member("quote", Some(record.quote.clone()));
    member("usage", record.usage.as_ref().map(|usage| json!(usage)));
    member(
        "cleanup",
        record.cleanup.as_ref().map(|report| json!(report)),
    );
    member("consumer", consumer.cloned());
    let reachable = record
        .reachability
        .as_ref()
        .filter(|_| record.state.is_usable());
    member(
        "reachability",
        reachable.map(|reachability| {
            let mut told = json!({
                "kind": "control-api",
                "files_url": format!("/v1/sandboxes/{id}/files"),
            });
            if reachability.exec {
                told["exec_url"] = json!(format!("/v1/sandboxes/{id}/exec"));
            }
            if let Some(preview) = &reachability.preview_url {
                told["preview_url"] = json!(preview);
            }
            told
        }),
    );
    document
}

/// Returns the answer with a document and its entity tag; 304 if the client has the same copy.
pub(super) fn tagged(headers: &HeaderMap, document: &Value) -> Response {
    let body = document.to_string();
    let digest = hex(&Sha256::digest(body.as_bytes()));
    let tag = format!("\"{}\"", digest.get(..32).unwrap_or_default());
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Json(document).into_response(),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// Reads `Prefer: wait=N`; other preferences are ignored, as RFC 7240 asks.
pub(super) fn wait(headers: &HeaderMap) -> ApiResult<Option<Duration>> {
    for value in headers.get_all("prefer") {
        let value = value
            .to_str()
            .map_err(|_| Problem::invalid("the header Prefer must be ASCII"))?;
        for preference in value.split(',') {
            let preference = preference.split(';').next().unwrap_or_default().trim();
            let Some((name, seconds)) = preference.split_once('=') else {
                continue;
            };
            if !name.trim().eq_ignore_ascii_case("wait") {
                continue;
            }
            let seconds: u64 = seconds.trim().parse().map_err(|_| {
                Problem::invalid("the header Prefer must be wait=N with a number of seconds")
            })?;
            return Ok(Some(Duration::from_secs(seconds.min(LONGEST_WAIT))));
        }
    }
    Ok(None)
}

/// Adds the header `Preference-Applied` to the answer if the request waited.
pub(super) fn waited(mut response: Response, wait: Option<Duration>) -> Response {
    let Some(wait) = wait else {
        return response;
    };
    if let Ok(value) = HeaderValue::from_str(&format!("wait={}", wait.as_secs())) {
        let name = HeaderName::from_static("preference-applied");
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_of_the_prefer_header_is_found_among_other_preferences_and_capped_at_300_seconds() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(text));
            wait(&headers)
        };
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(read("respond-async, wait=7").unwrap(), seconds(7));
        assert_eq!(read("wait=100000").unwrap(), seconds(300));
        assert_eq!(read("respond-async").unwrap(), None);
        assert!(read("wait=soon").is_err());
    }
}
