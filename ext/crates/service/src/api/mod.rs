//! The HTTP API: the table of operations, and the handlers by resource.
//!
//! [`OPERATIONS`] is the only list of operations. The router, the checks before each handler and
//! the OpenAPI document are made from it, so they cannot differ.

mod body;
mod catalog;
mod create;
mod document;
mod events;
mod exec;
mod files;
mod guard;
mod health;
mod hosts;
mod operation;
mod prices;
mod query;
mod records;
mod runs;
mod sandboxes;
mod snapshots;
mod table;
mod webhooks;

pub(crate) use events::{STREAM, may_read};
pub(crate) use exec::LINES;
pub(crate) use operation::{Access, Body, Kind, Operation, Parameter};
pub(crate) use table::OPERATIONS;

use crate::core::Core;
use crate::problem::Problem;
use axum::Router;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;
use wp_codebox_contracts::ErrorCode;

/// Returns the router of all operations.
pub(crate) fn router(core: &Arc<Core>) -> Router {
    let mut router = Router::new();
    for operation in OPERATIONS {
        let guarded = (operation.handler)(operation.verb.filter()).route_layer(
            axum::middleware::from_fn_with_state((Arc::clone(core), operation), guard::guard),
        );
        router = router.route(operation.path, guarded);
    }
    router
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(CatchPanicLayer::custom(|_| {
            Problem::new(
                ErrorCode::Internal,
                "the request failed because of a defect of the service; the service's log has the detail",
            )
            .into_response()
        }))
        .with_state(Arc::clone(core))
}

async fn unknown_path() -> Response {
    Problem::not_found("path").into_response()
}

async fn unknown_method() -> Response {
    Problem::new(
        ErrorCode::ServiceMethodNotAllowed,
        "this path does not have this method; /v1/openapi.json lists its methods",
    )
    .into_response()
}
