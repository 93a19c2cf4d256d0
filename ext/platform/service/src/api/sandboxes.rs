//! Handlers of sandboxes.

use super::body::Json as Input;
use super::create::{self, CreateInput, Ttl};
use super::document::{sandbox as document, tagged, wait, waited};
use crate::access::{Caller, NewSandbox, Sandbox};
use crate::auth::{Principal, Scope};
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use crate::store::{Claim, IdempotencyKey, ListRows};
use axum::Json;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use wp_codebox_contracts::ErrorCode;

pub(super) async fn create(
    caller: Caller,
    headers: HeaderMap,
    body: Input<CreateInput>,
) -> ApiResult<Response> {
    let wait = wait(&headers)?;
    let key = idempotency_key(&headers, &caller.principal, body.sha256)?;
    let consumer = body.value.consumer()?;
    let known = match &key {
        None => None,
        Some(key) => caller.claimed(key).await?,
    };
    let (sandbox, claim) = match known {
        Some(known) => known,
        None => {
            let profile = caller.profile(body.value.reference()).await?;
            let account = caller.account(body.value.account())?;
            let provision = create::provision(body.value, &profile, &caller.principal)?;
            let new = NewSandbox {
                provision,
                profile: &profile,
                account,
                key,
                consumer: consumer.clone(),
            };
            caller.create(new).await?
        }
    };
    answer(sandbox, &claim, consumer.as_ref(), wait).await
}

/// Answers a creation: 202, or 201 when the client waited and the sandbox is ready.
async fn answer(
    sandbox: Sandbox,
    claim: &Claim,
    consumer: Option<&Value>,
    wait: Option<Duration>,
) -> ApiResult<Response> {
    let sandbox = match wait {
        None => sandbox,
        Some(wait) => sandbox.settled(wait).await?,
    };
    let record = sandbox.record();
    let status = match record.state.is_usable() && wait.is_some() {
        true => StatusCode::CREATED,
        false => StatusCode::ACCEPTED,
    };
    let mut response = (status, Json(document(record, consumer))).into_response();
    let headers = response.headers_mut();
    if let Ok(location) = HeaderValue::from_str(&format!("/v1/sandboxes/{}", record.id())) {
        headers.insert(header::LOCATION, location);
    }
    if matches!(claim, Claim::Same(_)) {
        let name = HeaderName::from_static("idempotency-replayed");
        headers.insert(name, HeaderValue::from_static("true"));
    }
    Ok(waited(response, wait))
}

fn idempotency_key(
    headers: &HeaderMap,
    principal: &Principal,
    body_sha256: String,
) -> ApiResult<Option<IdempotencyKey>> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let key = value.as_bytes();
    if !(1..=255).contains(&key.len()) || !key.iter().all(u8::is_ascii_graphic) {
        return Err(Problem::invalid(
            "Idempotency-Key must be 1 to 255 visible ASCII characters",
        ));
    }
    Ok(Some(IdempotencyKey {
        token: principal.token.clone(),
        key: String::from_utf8_lossy(key).into_owned(),
        body_sha256,
    }))
}

pub(super) async fn list(caller: Caller) -> ApiResult<Json<Value>> {
    let args = &caller.args;
    let found = if let Some(key) = args.text("idempotency_key") {
        let rows = caller.sandbox_of_key(key).await?.into_iter().collect();
        ListRows { rows, next: None }
    } else {
        let before = args.number("after").and_then(|at| i64::try_from(at).ok());
        let (state, profile) = (
            args.text("state").map(str::to_owned),
            args.text("profile").map(str::to_owned),
        );
        caller
            .sandboxes(before, move |record| {
                state
                    .as_deref()
                    .is_none_or(|state| record.state.as_str() == state)
                    && profile
                        .as_deref()
                        .is_none_or(|id| record.profile_id() == id)
            })
            .await?
    };
    let rows: Vec<Value> = found.rows.iter().map(|row| document(row, None)).collect();
    let mut list = json!({
        "schema": "wp-codebox/service-sandbox-list/v1",
        "sandboxes": rows,
    });
    if let Some(next) = found.next {
        list["next"] = json!(next);
    }
    Ok(Json(list))
}

pub(super) async fn get(
    caller: Caller,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let wait = wait(&headers)?;
    let sandbox = caller.sandbox(&id).await?;
    let sandbox = match wait {
        None => sandbox,
        Some(wait) => sandbox.settled(wait).await?,
    };
    let shown = tagged(&headers, &document(sandbox.record(), None));
    Ok(waited(shown, wait))
}

pub(super) async fn destroy(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let sandbox = caller.sandbox(&id).await?;
    let reason = caller.args.text("reason").unwrap_or("it was destroyed");
    let sandbox = sandbox.destroyed(reason.to_owned()).await?;
    Ok(Json(document(sandbox.record(), None)))
}

pub(super) async fn recreate(
    caller: Caller,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let wait = wait(&headers)?;
    let sandbox = caller.sandbox(&id).await?;
    let creator = caller.with(Scope::SandboxesCreate);
    let record = sandbox.record();
    let reference = format!(
        "{}@{}",
        record.profile_id(),
        record.provision.profile_version
    );
    let profile = creator.profile(&reference).await?;
    // The new sandbox starts from the profile text in the old record, so that text must be current.
    if profile.sha256 != record.provision.profile_sha256 {
        return Err(Problem::new(
            ErrorCode::PreconditionFailed,
            "the profile changed since the sandbox was made; create a new sandbox",
        ));
    }
    if let Some(snapshot) = &record.provision.snapshot {
        creator.snapshot(snapshot).await?;
    }
    let mut provision = record.provision.clone();
    provision.sandbox = create::new_id()?;
    provision.instead_of = Some(record.provision.sandbox.clone());
    provision.host = None;
    let new = NewSandbox {
        provision,
        profile: &profile,
        account: sandbox.payer()?,
        key: None,
        consumer: None,
    };
    creator.check_recreation(&sandbox, &profile).await?;
    sandbox.destroyed("it is recreated".to_owned()).await?;
    let (sandbox, claim) = creator.create(new).await?;
    answer(sandbox, &claim, None, wait).await
}

/// Body of a request that extends the lifetime.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtendInput {
    ttl: Ttl,
}

pub(super) async fn extend_ttl(
    caller: Caller,
    Path(id): Path<String>,
    body: Input<ExtendInput>,
) -> ApiResult<Json<Value>> {
    let ttl_ms = body.value.ttl.milliseconds()?;
    let sandbox = caller.usable_sandbox(&id).await?;
    sandbox.reserve_longer(ttl_ms).await?;
    let actor = caller.principal.actor.clone();
    let expires_at = sandbox
        .call(Pool::Calls, move |extension, id| {
            extension.extend_ttl(id, ttl_ms, &actor)?;
            Ok(extension.view(id)?.expires_at)
        })
        .await?;
    let (data, at) = (
        json!({"ttl_ms": ttl_ms, "expires_at": expires_at}),
        expires_at,
    );
    let sandbox = sandbox
        .noted("sandbox.ttl_extended", data, move |record| {
            if at.is_some() {
                record.expires_at = at;
            }
        })
        .await?;
    Ok(Json(document(sandbox.record(), None)))
}

pub(super) async fn journal(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let sandbox = caller.sandbox(&id).await?;
    let after = caller.args.number("after").unwrap_or_default();
    let events = sandbox
        .call(Pool::Calls, move |extension, id| {
            extension.events(id, after)
        })
        .await?;
    Ok(Json(json!({
        "schema": "wp-codebox/service-journal/v1",
        "sandbox": sandbox.record().id(),
        "events": events,
    })))
}
