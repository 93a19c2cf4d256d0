//! The service: one HTTP API for sandboxes of many kinds.
//!
//! A client asks for a sandbox of a profile. Routing decides in which extension and on which host it
//! runs, the record of it is durable before the answer, and every change of state is an event with
//! an actor. Sandboxes run in an [`Extension`]; the crate itself starts no process. Only the
//! command line depends on this crate.
#![forbid(unsafe_code)]

mod access;
mod actor;
mod api;
mod auth;
mod clock;
mod config;
pub mod conformance;
mod connection;
mod core;
mod credits;
mod deliver;
mod extension;
mod host;
mod lifecycle;
mod listener;
mod metrics;
mod openapi;
mod otlp;
mod pools;
mod problem;
mod profile;
mod remote;
mod run_watch;
mod server;
mod shares;
mod store;
mod tls;
mod trust;
mod upkeep;
mod webhook_target;

pub use actor::{Actor, ActorClass, ActorError};
pub use auth::{Grant, NewToken, Scope, ScopeError, Scopes, TokenSpec, TokenStore};
pub use config::{Bounds, ServiceConfig};
pub use extension::{
    CleanupReport, Ended, ExecEnd, ExecOutput, ExecRequest, Extension, Provision, Reachability,
    SandboxId, SandboxState, SandboxUsage, SandboxView, SetupMetadata,
};
pub use host::{Host, Page, PlannedRun, Requester, RunOrder, RunProgress, RunSelection};
pub use listener::{Listener, SocketAccess};
pub use otlp::OtlpEndpoint;
pub use profile::ProfileDocument;
pub use remote::{Remote, RemoteTarget};
pub use server::Service;
pub use store::TokenRow;
pub use webhook_target::WebhookTargets;

/// Returns the OpenAPI document of the API as JSON text.
#[must_use]
pub fn openapi() -> &'static str {
    openapi::text()
}
