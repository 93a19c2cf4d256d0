//! Which client may use which object.
//!
//! A handler of the API gets a [`Caller`] and nothing else of the server: the records, the
//! extensions and the machine are behind private fields of this module. So every object of a
//! handler (a sandbox, a run, a bundle, a snapshot, an event) went through [`Principal::may`], and a
//! new handler cannot leave the check out. An object that the client may not use and one that does
//! not exist get the same answer.

mod admit;
mod artifacts;
mod charged;
mod create;
mod events;
mod machine;
mod owner;
mod runs;
mod sandboxes;
mod share;
mod snapshots;
mod webhooks;

pub(crate) use admit::admit;
pub(crate) use create::NewSandbox;
pub(crate) use events::{EventPages, Follow, may_read};
pub(crate) use machine::PublicState;
pub(crate) use owner::Owner;
pub(crate) use runs::NewRun;
pub(crate) use sandboxes::Sandbox;

use crate::api::Args;
use crate::auth::{Principal, Scope};
use crate::config::Bounds;
use crate::core::Core;
use crate::core::CoreFor;
use crate::problem::{ApiResult, Problem};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::sync::Arc;
use wp_codebox_contracts::ErrorCode;

/// State of the router. Handlers can name the type, but only this module can open it.
#[derive(Clone)]
pub(crate) struct ServerState(Arc<Core>);

impl ServerState {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self(Arc::clone(core))
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.0.config.bounds
    }
}

/// The client of a request: who it is, its checked query parameters, and the objects that it may
/// use for the operation of this request.
#[derive(Clone)]
pub(crate) struct Caller {
    core: CoreFor,
    /// Scope of the operation; `None` for an operation that needs only a token.
    scope: Option<Scope>,
    pub principal: Principal,
    pub args: Args,
}

impl Caller {
    /// Returns the same client for a second scope that an operation needs besides its own.
    pub(crate) fn with(&self, scope: Scope) -> Self {
        Self {
            scope: Some(scope),
            ..self.clone()
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.core.config.bounds
    }

    fn may(&self, owner: &Owner) -> bool {
        self.scope
            .is_some_and(|scope| self.principal.may(scope, owner))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            Problem::new(
                ErrorCode::Internal,
                "the operation has no caller; this is a defect of the table of operations",
            )
        })
    }
}
