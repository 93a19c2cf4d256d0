//! Handlers of runs and artifacts: the documents of the command line, unchanged.

use super::body::Json as Input;
use super::guard::Caller;
use super::query::Args;
use crate::core::{Core, Pool};
use crate::host::{Host, Page};
use crate::problem::ApiResult;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::sync::Arc;
use wp_codebox_contracts::ErrorBody;

async fn ask(
    core: &Arc<Core>,
    work: impl FnOnce(&dyn Host) -> Result<Value, ErrorBody> + Send + 'static,
) -> ApiResult<Json<Value>> {
    let document = core
        .blocking(Pool::Calls, move |core| work(core.host.as_ref()))
        .await??;
    Ok(Json(document))
}

/// In lists of runs and artifacts, `after` is the number of rows to skip.
fn page(args: &Args) -> Page {
    let offset = args.number("after").unwrap_or_default();
    Page {
        offset: usize::try_from(offset).unwrap_or(usize::MAX),
        limit: args.limit(),
    }
}

pub(super) async fn list(State(core): State<Arc<Core>>, caller: Caller) -> ApiResult<Json<Value>> {
    let page = page(&caller.args);
    ask(&core, move |host| host.runs(page)).await
}

pub(super) async fn get(
    State(core): State<Arc<Core>>,
    _: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    ask(&core, move |host| host.run(&id)).await
}

pub(super) async fn events(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let after = caller.args.number("after").unwrap_or_default();
    ask(&core, move |host| host.run_events(&id, after)).await
}

pub(super) async fn start(
    State(core): State<Arc<Core>>,
    caller: Caller,
    body: Input<Value>,
) -> ApiResult<Response> {
    let (task, actor) = (body.value, caller.principal.actor);
    let handle = ask(&core, move |host| host.start_run(&task, &actor)).await?;
    Ok((StatusCode::ACCEPTED, handle).into_response())
}

pub(super) async fn cancel(
    State(core): State<Arc<Core>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let Caller { principal, args } = caller;
    let reason = args
        .text("reason")
        .unwrap_or("cancelled through the service")
        .to_owned();
    let answer = ask(&core, move |host| {
        host.cancel_run(&id, &principal.actor, &reason)
    })
    .await?;
    Ok((StatusCode::ACCEPTED, answer).into_response())
}

pub(super) async fn artifacts(
    State(core): State<Arc<Core>>,
    caller: Caller,
) -> ApiResult<Json<Value>> {
    let page = page(&caller.args);
    ask(&core, move |host| host.artifacts(page)).await
}

pub(super) async fn artifact(
    State(core): State<Arc<Core>>,
    _: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    ask(&core, move |host| host.artifact(&id)).await
}

pub(super) async fn verify(
    State(core): State<Arc<Core>>,
    _: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    ask(&core, move |host| host.verify_artifact(&id)).await
}
