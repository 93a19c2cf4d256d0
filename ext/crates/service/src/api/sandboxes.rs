//! Handlers of sandboxes.

use super::body::Json as Input;
use super::create::{self, CreateInput, Ttl};
use super::document::{sandbox, tagged, wait, waited};
use super::guard::Caller;
use super::records::{noted, rows, usable, visible};
use super::snapshots;
use crate::auth::{Principal, Scope};
use crate::core::{Core, Pool};
use crate::lifecycle;
use crate::problem::{ApiResult, Problem};
use crate::store::{Claim, IdempotencyKey, ListRows, SandboxRecord};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use wp_codebox_contracts::ErrorCode;

pub(super) async fn create(
    State(core): State<Arc<Core>>,
    caller: Caller,
    headers: HeaderMap,
    body: Input<CreateInput>,
) -> ApiResult<Response> {
    let principal = caller.principal;
    let wait = wait(&headers)?;
    let key = idempotency_key(&headers, &principal, body.sha256)?;
    let consumer = body.value.consumer()?;
    let known = match key.clone() {
        None => None,
        Some(key) => core.records(move |store| store.claim(&key)).await?,
    };
    let (record, claim) = match known {
        Some(claim) => create::claimed(&core, claim).await?,
        None => {
            let reference = body.value.reference().to_owned();
            let scope = Scope::SandboxesCreate;
            let profile = create::profile(&core, &principal, scope, &reference).await?;
            let account = body.value.account(&principal)?;
            let provision = create::provision(body.value, &profile, &principal)?;
            let host = match &provision.snapshot {
                None => None,
                Some(id) => snapshots::host(&core, &principal, id).await?,
            };
            let place = create::Placed {
                profile: &profile,
                account,
                snapshot_host: host,
            };
            let actor = principal.actor.clone();
            create::store(&core, provision, place, key, consumer.clone(), actor).await?
        }
    };
    answer(&core, record, &claim, consumer.as_ref(), wait).await
}

/// Answers a creation: 202, or 201 when the client waited and the sandbox is ready.
async fn answer(
    core: &Arc<Core>,
    record: SandboxRecord,
    claim: &Claim,
    consumer: Option<&Value>,
    wait: Option<Duration>,
) -> ApiResult<Response> {
    let record = match wait {
        None => record,
        Some(wait) => create::settled(core, &record.provision.sandbox, wait).await?,
    };
    let status = match record.state.is_usable() && wait.is_some() {
        true => StatusCode::CREATED,
        false => StatusCode::ACCEPTED,
    };
    let mut response = (status, Json(sandbox(&record, consumer))).into_response();
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

pub(super) async fn list(State(core): State<Arc<Core>>, caller: Caller) -> ApiResult<Json<Value>> {
    let Caller { principal, args } = caller;
    let found = if let Some(key) = args.text("idempotency_key") {
        let (token, key) = (principal.token.clone(), key.to_owned());
        let id = core
            .records(move |store| store.sandbox_of_key(&token, &key))
            .await?;
        let record = match id {
            None => None,
            Some(id) => core.records(move |store| store.sandbox(&id)).await?,
        };
        let rows = record
            .into_iter()
            .filter(|record| principal.may_use(Scope::SandboxesRead, record))
            .collect();
        ListRows { rows, next: None }
    } else {
        let before = args.number("after").and_then(|at| i64::try_from(at).ok());
        let (state, profile) = (
            args.text("state").map(str::to_owned),
            args.text("profile").map(str::to_owned),
        );
        rows(&core, principal, before, args.limit(), move |record| {
            state
                .as_deref()
                .is_none_or(|state| record.state.as_str() == state)
                && profile
                    .as_deref()
                    .is_none_or(|id| record.profile_id() == id)
        })
        .await?
    };
    let rows: Vec<Value> = found.rows.iter().map(|row| sandbox(row, None)).collect();
    let mut document = json!({
        "schema": "wp-codebox/service-sandbox-list/v1",
        "sandboxes": rows,
    });
    if let Some(next) = found.next {
        document["next"] = json!(next);
    }
    Ok(Json(document))
}

pub(super) async fn get(
    State(core): State<Arc<Core>>,
    caller: Caller,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let wait = wait(&headers)?;
    let record = visible(&core, &caller.principal, Scope::SandboxesRead, &id).await?;
    let record = match wait {
        None => record,
        Some(wait) => create::settled(&core, &record.provision.sandbox, wait).await?,
    };
    Ok(waited(tagged(&headers, &sandbox(&record, None)), wait))
}

pub(super) async fn destroy(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let Caller { principal, args } = caller;
    let record = visible(&core, &principal, Scope::SandboxesDestroy, &id).await?;
    let reason = args.text("reason").unwrap_or("it was destroyed").to_owned();
    let record = finished(&core, record, &principal, reason).await?;
    Ok(Json(sandbox(&record, None)))
}

/// Destroys a sandbox in a task of its own: a client that disconnects does not interrupt it.
async fn finished(
    core: &Arc<Core>,
    record: SandboxRecord,
    principal: &Principal,
    reason: String,
) -> ApiResult<SandboxRecord> {
    let (core, actor) = (Arc::clone(core), principal.actor.clone());
    let task =
        tokio::spawn(async move { lifecycle::destroy(&core, &record, &actor, reason).await });
    task.await.map_err(|_| {
        Problem::new(
            ErrorCode::Internal,
            "a defect of the service stopped the removal of the sandbox; repeat the request",
        )
    })?
}

pub(super) async fn recreate(
    State(core): State<Arc<Core>>,
    caller: Caller,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let principal = caller.principal;
    let wait = wait(&headers)?;
    let record = visible(&core, &principal, Scope::SandboxesDestroy, &id).await?;
    let reference = format!(
        "{}@{}",
        record.profile_id(),
        record.provision.profile_version
    );
    let profile = create::profile(&core, &principal, Scope::SandboxesCreate, &reference).await?;
    // The new sandbox starts from the profile text in the old record, so that text must be current.
    if profile.sha256 != record.provision.profile_sha256 {
        return Err(Problem::new(
            ErrorCode::PreconditionFailed,
            "the profile changed since the sandbox was made; create a new sandbox",
        ));
    }
    let host = match &record.provision.snapshot {
        None => None,
        Some(id) => snapshots::host(&core, &principal, id).await?,
    };
    let mut provision = record.provision.clone();
    provision.sandbox = create::new_id()?;
    provision.instead_of = Some(record.provision.sandbox.clone());
    provision.host = None;
    let account = record.account.clone();
    finished(&core, record, &principal, "it is recreated".to_owned()).await?;
    let place = create::Placed {
        profile: &profile,
        account,
        snapshot_host: host,
    };
    let actor = principal.actor.clone();
    let (record, claim) = create::store(&core, provision, place, None, None, actor).await?;
    answer(&core, record, &claim, None, wait).await
}

/// Body of a request that extends the lifetime.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtendInput {
    ttl: Ttl,
}

pub(super) async fn extend_ttl(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
    body: Input<ExtendInput>,
) -> ApiResult<Json<Value>> {
    let principal = caller.principal;
    let ttl_ms = body.value.ttl.milliseconds()?;
    let record = usable(&core, &principal, Scope::SandboxesWrite, &id).await?;
    let paying = record.clone();
    core.blocking(Pool::Records, move |core| {
        core.credits.extend(&paying, ttl_ms)
    })
    .await??;
    let actor = principal.actor.clone();
    let expires_at = core
        .call(Pool::Calls, &record, move |extension, id| {
            extension.extend_ttl(id, ttl_ms, &actor)?;
            Ok(extension.view(id)?.expires_at)
        })
        .await?;
    let (data, at) = (
        json!({"ttl_ms": ttl_ms, "expires_at": expires_at}),
        expires_at,
    );
    let record = noted(
        &core,
        &record,
        "sandbox.ttl_extended",
        &principal,
        data,
        move |record| {
            if at.is_some() {
                record.expires_at = at;
            }
        },
    )
    .await?;
    Ok(Json(sandbox(&record, None)))
}

pub(super) async fn journal(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let Caller { principal, args } = caller;
    let record = visible(&core, &principal, Scope::SandboxesRead, &id).await?;
    let after = args.number("after").unwrap_or_default();
    let events = core
        .call(Pool::Calls, &record, move |extension, id| {
            extension.events(id, after)
        })
        .await?;
    Ok(Json(json!({
        "schema": "wp-codebox/service-journal/v1",
        "sandbox": record.id(),
        "events": events,
    })))
}
