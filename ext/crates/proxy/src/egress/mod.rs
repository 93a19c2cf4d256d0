//! The egress bridge: the only way out of a guest, and what it refuses.
//!
//! A guest has no route. Two sockets listen inside its own network namespace; the bridge
//! accepts on them from outside and speaks HTTP/1.1. Ways in:
//!
//! - **proxy**: `CONNECT host:port`, and `GET http://host/…`. Inside a tunnel only host,
//!   port and the name in the ClientHello can be held, so rules with methods or paths
//!   refuse it, unless the policy says `tls: terminate`: then the bridge ends TLS with a
//!   certificate of an authority that only this guest trusts and judges each request.
//! - **base URL**: `GET /https/<host>[:port]/<path>` (or `/http/…`) sent to the bridge in
//!   the clear; the bridge speaks TLS outward. Method and path rules and secrets hold.
//! - **model**: `POST /model/<path>`, likewise in the clear, to the run's own model.
//! - **site**: `GET http://localhost/…` of a browser, to the site that the run's working guest serves.
//!
//! Invariants: one request per connection, so nothing can be smuggled behind it; a name is
//! resolved once, every answer must be public, and the address judged is the address
//! reached; redirects are handed to the guest and judged when it comes back; a secret's
//! value leaves only towards its own hosts and never comes back; memory per connection is
//! bounded; every request leaves a row in the log.

mod authority;
mod body;
mod budget;
mod config;
mod denial;
mod error;
mod exchange;
mod head;
mod hello;
mod log;
mod model;
mod network;
mod route;
mod secrets;
mod server;
mod session;
mod shared;
mod site;
mod stream;
mod tls;
mod trace;
mod tunnel;
mod upstream;

#[cfg(test)]
mod tests;

pub use config::{BridgeConfig, BridgeLimits, ModelRoute, Network, SecretSwap, Trust};
pub use error::EgressError;
pub use exchange::end_to_end;
pub use log::{EgressDecision, EgressLog, EgressMode, EgressRow};
pub use network::Pending;
#[cfg(test)]
pub use network::{Connect, Resolve};
pub use server::{Bridge, PreparedBridge};
pub use site::{ReachSite, Site};
pub use tls::{client_tls, no_tls};
