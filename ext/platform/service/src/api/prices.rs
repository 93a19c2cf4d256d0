//! Handlers of routes, quotes and meters.

use super::body::Json as Input;
use super::create::Ttl;
use crate::access::Caller;
use crate::problem::{ApiResult, Problem};
use crate::profile::ProfileDocument;
use axum::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use wp_codebox_routing::Decision;

/// Maximum number of reasons in the answer to a dry run of the routing.
const REASONS: usize = 1000;

/// Body of a request for a dry run of the routing or for a price quote.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteInput {
    profile: String,
    snapshot: Option<String>,
    ttl: Option<Ttl>,
}

async fn decision(caller: &Caller, input: &RouteInput) -> ApiResult<(ProfileDocument, Decision)> {
    let profile = caller.profile(&input.profile).await?;
    let decision = caller.decide(&profile, input.snapshot.as_deref()).await?;
    Ok((profile, decision))
}

pub(super) async fn route(caller: Caller, body: Input<RouteInput>) -> ApiResult<Json<Value>> {
    let (_, decision) = decision(&caller, &body.value).await?;
    Ok(Json(decision.document(REASONS)))
}

pub(super) async fn quote(caller: Caller, body: Input<RouteInput>) -> ApiResult<Json<Value>> {
    let (profile, decision) = decision(&caller, &body.value).await?;
    let Some(choice) = &decision.chosen else {
        let error = decision.error();
        return Err(error.map_or_else(|| Problem::not_found("route"), Problem::from));
    };
    let duration_ms = match &body.value.ttl {
        None => profile.ttl_default_ms,
        Some(ttl) => ttl.milliseconds()?,
    };
    if duration_ms > profile.ttl_max_ms {
        return Err(Problem::invalid(
            "ttl is longer than the profile allows; give a shorter ttl",
        ));
    }
    let (profile_id, version) = (profile.id.clone(), profile.version.clone());
    let gpus = profile.route.needs.gpus;
    let (quote, estimate) = caller
        .quote(
            choice.extension.as_str(),
            duration_ms,
            gpus,
            move |extension| extension.estimate(&profile, duration_ms),
        )
        .await?;
    let mut document = json!({
        "schema": "wp-codebox/service-quote/v1",
        "profile": {"id": profile_id, "version": version},
        "extension": choice.extension,
        "host": choice.host,
        "duration_ms": duration_ms,
        "estimate": estimate,
    });
    if !quote.is_null() {
        document["quote"] = quote;
    }
    Ok(Json(document))
}

pub(super) async fn meters(caller: Caller) -> ApiResult<Json<Value>> {
    let before = caller.args.number("after");
    let before = before.and_then(|at| i64::try_from(at).ok());
    let found = caller
        .sandboxes(before, |record| record.state.is_final())
        .await?;
    let rows: Vec<Value> = found
        .rows
        .iter()
        .map(|record| {
            let mut row = json!({
                "sandbox": record.id(),
                "profile": record.profile_id(),
                "extension": record.extension,
                "actor": record.owner(),
                "state": record.state,
                "creations": 1,
                "usage": record.usage.clone().unwrap_or_default(),
            });
            if !record.quote.is_null() {
                row["quote"] = record.quote.clone();
            }
            if let Some(account) = &record.account {
                row["account"] = json!(account);
            }
            row
        })
        .collect();
    let mut document = json!({"schema": "wp-codebox/service-meter-list/v1", "meters": rows});
    if let Some(next) = found.next {
        document["next"] = json!(next);
    }
    let balance = caller.balance().await?;
    if !balance.is_null() {
        document["balance"] = balance;
    }
    Ok(Json(document))
}
