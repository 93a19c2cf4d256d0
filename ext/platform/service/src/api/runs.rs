//! Handlers of runs and artifacts: the documents of the command line, unchanged.

use super::body::Json as Input;
use super::create::new_id;
use super::query::Args;
use crate::access::{Caller, NewRun};
use crate::host::Page;
use crate::problem::ApiResult;
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// In lists of runs and artifacts, `after` is the number of rows to skip.
fn page(args: &Args) -> Page {
    let offset = args.number("after").unwrap_or_default();
    Page {
        offset: usize::try_from(offset).unwrap_or(usize::MAX),
        limit: args.limit(),
    }
}

pub(super) async fn list(caller: Caller) -> ApiResult<Json<Value>> {
    caller.runs(page(&caller.args)).await.map(Json)
}

pub(super) async fn get(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    caller.run(&id).await?.view().await.map(Json)
}

pub(super) async fn events(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let after = caller.args.number("after").unwrap_or_default();
    caller.run(&id).await?.events(after).await.map(Json)
}

pub(super) async fn start(caller: Caller, body: Input<Value>) -> ApiResult<Response> {
    let profile = match caller.args.text("profile") {
        None => None,
        Some(reference) => Some(caller.profile(reference).await?),
    };
    let new = NewRun {
        id: new_id()?,
        task: body.value,
        profile,
        account: caller.account(caller.args.text("account"))?,
    };
    let handle = caller.start_run(new).await?;
    Ok((StatusCode::ACCEPTED, Json(handle)).into_response())
}

pub(super) async fn cancel(caller: Caller, Path(id): Path<String>) -> ApiResult<Response> {
    let reason = caller
        .args
        .text("reason")
        .unwrap_or("cancelled through the service")
        .to_owned();
    let answer = caller.run(&id).await?.cancel(reason).await?;
    Ok((StatusCode::ACCEPTED, Json(answer)).into_response())
}

pub(super) async fn artifacts(caller: Caller) -> ApiResult<Json<Value>> {
    caller.artifacts(page(&caller.args)).await.map(Json)
}

pub(super) async fn artifact(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    caller.artifact(&id).await?.view().await.map(Json)
}

pub(super) async fn verify(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    caller.artifact(&id).await?.verify().await.map(Json)
}
