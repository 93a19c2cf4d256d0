//! The HTTP API: the table of operations, and the handlers by resource.
//!
//! [`OPERATIONS`] is the only list of operations. The router, the checks before each handler and
//! the OpenAPI document are made from it, so they cannot differ. Handlers read requests and write
//! answers; they get every object from the crate's module `access`, which checks who may use it.

mod body;
mod catalog;
mod create;
mod document;
mod events;
mod exec;
mod files;
mod health;
mod hosts;
mod operation;
mod prices;
mod query;
mod runs;
mod sandboxes;
mod snapshots;
mod table;
mod webhooks;

pub(crate) use body::receive_small;
pub(crate) use events::STREAM;
pub(crate) use exec::LINES;
pub(crate) use operation::{Access, Body, Operation};
pub(crate) use query::{Args, Kind, Parameter};
pub(crate) use table::OPERATIONS;

use crate::access::{ServerState, admit};
use crate::problem::Problem;
use axum::Router;
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use wp_codebox_contracts::ErrorCode;

/// Returns the router of all operations.
pub(crate) fn router(state: ServerState) -> Router {
    let mut router = Router::new();
    for operation in OPERATIONS {
        let guarded = (operation.handler)(operation.verb.filter()).route_layer(
            axum::middleware::from_fn_with_state((state.clone(), operation), admit),
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
        .with_state(state)
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
