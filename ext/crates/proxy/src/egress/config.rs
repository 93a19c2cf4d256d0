//! What a bridge is made from.

use super::network::{Connect, DirectConnector, Resolve, SystemResolver};
use super::site::Site;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::ModelApi;
use wp_codebox_policy::{EgressRules, ModelBase, SecretScope};
use zeroize::Zeroizing;

/// Everything a bridge needs to know before it serves.
pub struct BridgeConfig {
    /// What may pass, and what happens to TLS of proxy clients.
    pub rules: EgressRules,
    /// The run's model, where programs of the guest may ask it.
    pub model: Option<ModelRoute>,
    /// The run's site, where a browser is to look at it.
    pub site: Option<Site>,
    /// Placeholders the guest holds and what they stand for.
    pub secrets: Vec<SecretSwap>,
    /// Bounds.
    pub limits: BridgeLimits,
    /// Which certificates of hosts are believed.
    pub trust: Trust,
    /// How names are resolved and addresses reached.
    pub network: Network,
    /// When everything ends, whatever is under way.
    pub deadline: Instant,
}

/// Where the run's model is and what opens it.
#[derive(Debug)]
pub struct ModelRoute {
    /// What the guest's path is put below.
    pub base: ModelBase,
    /// How it is spoken to, which says what may be asked and where the key goes.
    pub api: ModelApi,
    /// Its key; its hosts do not count here.
    pub key: Option<SecretSwap>,
}

/// A placeholder, what it stands for and where the value may go.
pub struct SecretSwap {
    /// Environment name; the only thing of a secret that is logged.
    pub name: String,
    /// What the guest holds: letters, digits, `-` and `_` only, at least 16 of them, and
    /// unlike any other text of the run.
    pub placeholder: String,
    /// The value; this copy is overwritten when the bridge is dropped.
    pub value: Zeroizing<String>,
    /// Where it may go.
    pub hosts: Vec<SecretScope>,
}

impl std::fmt::Debug for SecretSwap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretSwap")
            .field("name", &self.name)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

/// Certificates that are believed.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The store of this host.
    System,
    /// These, as PEM.
    #[cfg_attr(not(test), allow(dead_code))]
    Pem(Vec<u8>),
}

/// The way out: two traits, so that tests need no network and the product no switch.
#[derive(Clone)]
pub struct Network {
    /// Names to addresses.
    pub resolver: Arc<dyn Resolve>,
    /// Addresses to connections.
    pub connector: Arc<dyn Connect>,
}

impl Network {
    /// The system's resolver and plain connections; no proxy of the environment.
    pub fn system() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            connector: Arc::new(DirectConnector),
        }
    }
}

/// Bounds of one bridge.
#[derive(Debug, Clone, Copy)]
pub struct BridgeLimits {
    /// Connections of the guest alive at once.
    pub connections: usize,
    /// Requests and tunnels begun per minute.
    pub requests_per_minute: u32,
    /// Bytes of a request head, and of a response head.
    pub head_bytes: usize,
    /// Bytes of one request's body, or sent through one tunnel.
    pub request_bytes: u64,
    /// Bytes of one response's body, or received through one tunnel.
    pub response_bytes: u64,
    /// Bytes sent by all requests and tunnels.
    pub run_request_bytes: u64,
    /// Bytes received by all requests and tunnels.
    pub run_response_bytes: u64,
    /// From the guest's connection to its complete head or ClientHello.
    pub head_timeout: Duration,
    /// Name lookup, connection and TLS handshake together.
    pub connect_timeout: Duration,
    /// Without a byte in either direction, and for the first byte of a response.
    pub idle_timeout: Duration,
    /// One request or tunnel from beginning to end.
    pub total_timeout: Duration,
    /// Rows kept in the log; later ones are counted.
    pub log_rows: usize,
}

impl Default for BridgeLimits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            connections: 64,
            requests_per_minute: 600,
            head_bytes: 32 * 1024,
            request_bytes: 32 * MIB,
            response_bytes: 256 * MIB,
            run_request_bytes: 256 * MIB,
            run_response_bytes: 1024 * MIB,
            head_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(300),
            total_timeout: Duration::from_secs(15 * 60),
            log_rows: 5_000,
        }
    }
}
