//! Settings of a server.

use crate::otlp::OtlpEndpoint;
use crate::webhook_target::WebhookTargets;
use std::path::PathBuf;
use std::time::Duration;
use wp_codebox_ledger::{Ledger, Prices};
use wp_codebox_routing::HostRecord;

/// Settings of a server. [`ServiceConfig::new`] fills in the defaults.
#[derive(Debug)]
pub struct ServiceConfig {
    /// Directory of the service's records, mode 0700.
    pub directory: PathBuf,
    /// Hosts that the server registers at each start, such as this machine. A host that was
    /// registered before keeps its state, for example draining.
    pub hosts: Vec<HostRecord>,
    /// Price table; `None`: there are no quotes.
    pub prices: Option<Prices>,
    /// Credits; `None`: they are off.
    pub ledger: Option<Ledger>,
    /// Bounds of connections and requests.
    pub bounds: Bounds,
    /// Time between two reads of a sandbox's state.
    pub poll: Duration,
    /// Time between two health checks of a host.
    pub health: Duration,
    /// Pause of a webhook after its first failed delivery; later ones are longer.
    pub webhook_pause: Duration,
    /// Destinations of webhooks besides public addresses.
    pub webhook_targets: WebhookTargets,
    /// Events that wait for one webhook; of further ones the oldest is dropped.
    pub webhook_queue: u64,
    /// Time that requests get to end when the server stops.
    pub grace: Duration,
    /// Time after which the record of an ended sandbox is removed.
    pub retention: Duration,
    /// Number of events that are kept.
    pub events: u64,
    /// Collector of spans; `None`: no spans are exported.
    pub otlp: Option<OtlpEndpoint>,
}

/// Bounds of connections and requests.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections of one listener on which no request was authenticated yet; further ones are
    /// closed. Also those of all listeners with an authenticated request; half of them for one
    /// actor.
    pub connections: usize,
    /// Connections of one address or user on which no request was authenticated yet.
    pub peer_connections: usize,
    /// Size of a request's head in bytes.
    pub head: usize,
    /// Size of a request's body in bytes, except the content of a file.
    pub body: usize,
    /// Size in bytes of a file that a request writes to a sandbox.
    pub file: usize,
    /// Maximum time for the TLS handshake and the head of the first request together.
    pub first_head_time: Duration,
    /// Maximum time for the head of each later request to arrive, and between two requests.
    pub head_time: Duration,
    /// Longest pause between two parts of a body.
    pub body_idle: Duration,
    /// Time for a whole body.
    pub body_time: Duration,
    /// Time in which a client must read something of what it is sent.
    pub write_idle: Duration,
    /// Programs that run for clients at the same time; half of them for one actor.
    pub execs: usize,
    /// Runs that clients started and that have not ended; half of them for one of several actors.
    pub runs: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 256,
            peer_connections: 64,
            head: 16 * 1024,
            body: 2 * 1024 * 1024,
            file: 64 * 1024 * 1024,
            first_head_time: Duration::from_secs(5),
            head_time: Duration::from_secs(10),
            body_idle: Duration::from_secs(30),
            body_time: Duration::from_secs(300),
            write_idle: Duration::from_secs(60),
            execs: 128,
            runs: 8,
        }
    }
}

impl ServiceConfig {
    /// Returns the default settings for records in `directory`.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            hosts: Vec::new(),
            prices: None,
            ledger: None,
            bounds: Bounds::default(),
            poll: Duration::from_secs(2),
            health: Duration::from_secs(15),
            webhook_pause: Duration::from_secs(5),
            webhook_targets: WebhookTargets::default(),
            webhook_queue: 10_000,
            grace: Duration::from_secs(20),
            retention: Duration::from_secs(30 * 24 * 3600),
            events: 1_000_000,
            otlp: None,
        }
    }
}
