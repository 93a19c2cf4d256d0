//! Checks before every handler: token, limits, scope and query parameters.

use super::{Caller, ServerState};
use crate::api::{Access, Args, Operation, receive_small};
use crate::auth::Origin;
use crate::auth::{Peer, Permit, authenticate};
use crate::connection::ConnectionPermit;
use crate::core::Core;
use crate::core::CoreFor;
use crate::otlp::{Kind, Parent, Span, Status};
use crate::pools::{Party, Pool};
use crate::problem::{ApiResult, Problem};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use wp_codebox_contracts::ErrorCode;

/// Admits a request or answers why not.
pub(crate) async fn admit(
    State((state, operation)): State<(ServerState, &'static Operation)>,
    mut request: Request,
    next: Next,
) -> Response {
    let core = state.0;
    let (began, began_at) = (Instant::now(), SystemTime::now());
    let parent = Parent::of(request.headers());
    let mut actor = None;
    let admitted = match receive_small(&mut request, &core.config.bounds).await {
        Err(problem) => Err(problem),
        Ok(()) => check(&core, operation, &mut request).await,
    };
    if let Some(caller) = request.extensions().get::<Caller>() {
        actor = Some(caller.principal.actor.to_string());
    }
    let mut response = match admitted {
        Err(problem) => problem.into_response(),
        Ok(permit) => hold(next.run(request).await, permit),
    };
    response.headers_mut().insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    let time = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let status = response.status().as_u16();
    core.metrics.request(operation.id, status, time);
    if core.tracer.is_on() {
        core.end_span(span(operation, parent, began_at, status, actor));
    }
    response
}

/// Returns the trace span of a request, which ends with the head of the answer. Its attributes have
/// the names of OpenTelemetry's conventions for HTTP servers.
fn span(
    operation: &Operation,
    parent: Parent,
    began: SystemTime,
    status: u16,
    actor: Option<String>,
) -> Span {
    let mut texts = vec![
        ("http.request.method", operation.verb.name().to_uppercase()),
        ("http.route", operation.path.to_owned()),
    ];
    texts.extend(actor.map(|actor| ("wp_codebox.actor", actor)));
    Span {
        parent,
        name: operation.id,
        kind: Kind::Server,
        began,
        status: match status >= 500 {
            true => Status::Error,
            false => Status::Unset,
        },
        texts,
        numbers: vec![("http.response.status_code", i64::from(status))],
    }
}

async fn check(
    core: &Arc<Core>,
    operation: &'static Operation,
    request: &mut Request,
) -> ApiResult<Option<Permit>> {
    let scope = match operation.access {
        Access::Public => {
            Args::parse(request.uri(), operation.query)?;
            return Ok(None);
        }
        Access::Token => None,
        Access::Scope(scope) => Some(scope),
    };
    let Some(peer) = request.extensions().get::<Peer>().copied() else {
        return Err(Problem::new(
            ErrorCode::Internal,
            "the connection has no peer; this is a defect of the listener",
        ));
    };
    let headers = request.headers().clone();
    let principal = CoreFor::new(core, Party::Peer(Origin::from(&peer)))
        .blocking(Pool::Records, move |core| {
            authenticate(&core.store, core.own_uid, peer, &headers)
        })
        .await??;
    if let Some(connection) = request.extensions().get::<ConnectionPermit>() {
        connection.authenticated(&core.clients, &principal.actor)?;
    }
    let permit = match principal.limits {
        None => None,
        Some(limits) => {
            let now = Instant::now();
            Some(core.throttle.enter(&principal.token, limits.into(), now)?)
        }
    };
    if let Some(scope) = scope
        && !principal.scopes.allow_any(scope)
    {
        let message = format!(
            "this token does not have the scope {}; ask an administrator for a token with it",
            scope.as_str()
        );
        return Err(Problem::new(ErrorCode::ServiceScopeMissing, message));
    }
    let args = Args::parse(request.uri(), operation.query)?;
    request.extensions_mut().insert(Caller {
        core: CoreFor::new(core, Party::Actor(principal.actor.clone())),
        scope,
        principal,
        args,
    });
    Ok(permit)
}

/// Keeps the permit until the body was sent: a stream counts as a request in progress.
fn hold(response: Response, permit: Option<Permit>) -> Response {
    let Some(permit) = permit else {
        return response;
    };
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _held = &permit;
            frame
        }))
    })
}
