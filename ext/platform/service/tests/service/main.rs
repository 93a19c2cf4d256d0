//! The service over real sockets, with an extension whose sandboxes are directories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helper functions of tests, which clippy does not recognise as such"
)]

mod access;
mod actor_share;
mod bounds;
mod conformance;
mod connections;
mod crash;
mod credits;
mod events;
mod fairness;
mod fake;
mod http;
mod openapi;
mod otlp;
mod sandboxes;
mod server;
mod tenant_rules;
mod tenants;
mod webhook_queues;
mod webhooks;
