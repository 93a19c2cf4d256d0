//! Handlers of profiles and extensions.

use crate::access::Caller;
use crate::problem::{ApiResult, Problem};
use crate::profile::ProfileDocument;
use axum::Json;
use axum::extract::Path;
use serde_json::{Value, json};

pub(super) async fn profiles(caller: Caller) -> ApiResult<Json<Value>> {
    let rows: Vec<Value> = caller.profiles().await?.iter().map(row).collect();
    Ok(Json(json!({
        "schema": "wp-codebox/service-profile-list/v1",
        "profiles": rows,
    })))
}

pub(super) async fn profile(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let profile = caller.profile(&id).await?;
    let mut document = row(&profile);
    document["schema"] = json!("wp-codebox/service-profile/v1");
    document["document"] = profile.document;
    Ok(Json(document))
}

fn row(profile: &ProfileDocument) -> Value {
    json!({
        "id": profile.id,
        "version": profile.version,
        "sha256": profile.sha256,
        "description": profile.document.get("description").and_then(Value::as_str).unwrap_or_default(),
        "ttl_default_ms": profile.ttl_default_ms,
        "ttl_max_ms": profile.ttl_max_ms,
    })
}

pub(super) async fn extensions(caller: Caller) -> Json<Value> {
    Json(json!({
        "schema": "wp-codebox/service-extension-list/v1",
        "extensions": caller.capabilities(),
    }))
}

pub(super) async fn extension(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let found = caller
        .capabilities()
        .into_iter()
        .find(|row| row.extension.as_str() == id);
    found
        .map(|row| Json(json!(row)))
        .ok_or_else(|| Problem::not_found("extension"))
}
