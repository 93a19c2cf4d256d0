//! What the table of operations says about one operation.

use super::query::Parameter;
use crate::access::ServerState;
use crate::auth::Scope;
use axum::routing::{MethodFilter, MethodRouter};

/// HTTP method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    pub(crate) const fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Delete => MethodFilter::DELETE,
        }
    }

    /// Returns the name of the method in an OpenAPI path item.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
        }
    }
}

/// Who may use an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    /// Everybody who can connect.
    Public,
    /// Every valid token.
    Token,
    /// Tokens with this scope.
    Scope(Scope),
}

/// Body of a request or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// No body.
    None,
    /// JSON of the schema in `abilities/schemas` with this short name.
    Json(&'static str),
    /// JSON without a schema in this product.
    AnyJson,
    /// Bytes of a file.
    Bytes,
    /// Lines of JSON.
    Lines,
    /// Server-sent events.
    Events,
    /// Text of Prometheus.
    Metrics,
}

/// An operation of the API.
pub(crate) struct Operation {
    pub verb: Verb,
    pub path: &'static str,
    /// Unique name, from which generated clients make their function names.
    pub id: &'static str,
    pub tag: &'static str,
    pub summary: &'static str,
    pub access: Access,
    pub query: &'static [Parameter],
    pub headers: &'static [Parameter],
    pub body: Body,
    pub answers: &'static [(u16, Body)],
    pub handler: fn(MethodFilter) -> MethodRouter<ServerState>,
}
