//! The egress bridge: a guest's only connection to the network.
//!
//! A guest has no network route. Two sockets listen inside its network namespace; the bridge, a
//! thread of a host process, accepts on them and speaks HTTP/1.1. The guest can address the bridge
//! in four ways:
//!
//! - **proxy**: `CONNECT host:port` and `GET http://host/…`. Inside a tunnel the bridge can check
//!   only host, port and the ClientHello's server name. It therefore refuses tunnels to hosts
//!   whose rules restrict methods or paths, unless the policy says `tls: terminate`: then the
//!   bridge terminates TLS with a certificate of an authority that only this guest trusts, and
//!   checks each request.
//! - **base URL**: `GET /https/<host>[:port]/<path>` (or `/http/…`) sent to the bridge in clear
//!   text; the bridge speaks TLS to the host. Method rules, path rules and secrets apply.
//! - **model**: `POST /model/<path>` in clear text, to the run's own model.
//! - **site**: `GET http://localhost/…` of a browser, to the site of the run's work guest.
//!
//! Invariants:
//!
//! - One request per connection, so that no second request can be smuggled behind a checked one.
//! - The bridge resolves a name once, requires every address to be public (for the model: permitted
//!   by the host's settings), and connects to an address it checked.
//! - The guest receives redirects and must request the new location, which the policy checks
//!   again.
//! - The bridge sends a secret's value only to the secret's own hosts. It removes the value from
//!   the responses of all hosts, except inside tunnels whose TLS it does not terminate.
//! - Size limits bound the memory of each connection.
//! - Every request has a row in the log; beyond the row limit, requests are only counted.

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
mod metered;
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
pub use site::{Site, SiteConnector};
pub use tls::{client_tls, no_tls};
