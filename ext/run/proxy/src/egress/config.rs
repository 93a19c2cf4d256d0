//! Configuration of an egress bridge, the proxy through which a guest reaches the network.

use super::network::{Connect, DirectConnector, Resolve, SystemResolver};
use super::site::Site;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::ModelApi;
use wp_codebox_policy::{EgressRules, ModelBase, SecretScope};
use wp_codebox_runtime::UsageMeter;
use zeroize::Zeroizing;

/// Complete configuration of an egress bridge.
pub struct BridgeConfig {
    /// Rules of the network policy, and whether the bridge terminates TLS of proxy clients.
    pub rules: EgressRules,
    /// Endpoint of the run's language model; `None` if programs in the guest may not call it.
    pub model: Option<ModelRoute>,
    /// Site in the run's work guest, in which commands and agent run. Set only if this bridge
    /// belongs to the separate guest of a browser, and the browser may visit that site.
    pub site: Option<Site>,
    /// Secrets of the run: placeholders that the guest has, and the values that replace them.
    pub secrets: Vec<SecretSwap>,
    /// Limits of connections, sizes and times.
    pub limits: BridgeLimits,
    /// Certificate authorities that the bridge trusts in TLS to hosts.
    pub trust: Trust,
    /// How the bridge resolves names and opens connections.
    pub network: Network,
    /// Time at which the bridge aborts every request and stops.
    pub deadline: Instant,
    /// Counters of the run, to which the bridge adds the bytes that it sends to hosts.
    pub used: Arc<UsageMeter>,
}

/// Endpoint and credential of the run's language model.
#[derive(Debug)]
pub struct ModelRoute {
    /// Base URL to which the bridge appends the path that the guest requested.
    pub base: ModelBase,
    /// API dialect of the model; decides which paths the guest may request and which header carries
    /// the key.
    pub api: ModelApi,
    /// API key of the model. The bridge ignores the `hosts` of the key and sends it to `base` only.
    pub key: Option<SecretSwap>,
}

/// A placeholder, the secret value that replaces it, and the hosts that may receive the value.
pub struct SecretSwap {
    /// Environment variable name; the only part of a secret that is logged.
    pub name: String,
    /// Placeholder in the guest: at least 16 characters of letters, digits, `-` and `_`, and
    /// distinct from any other text of the run.
    pub placeholder: String,
    /// Secret value; its memory is overwritten when this struct is dropped.
    pub value: Zeroizing<String>,
    /// Hosts to which the bridge may send the value.
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

/// Certificate authorities that the bridge trusts in TLS to hosts.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The host's certificate store.
    System,
    /// Only the given PEM certificates; for tests with their own authority.
    #[cfg_attr(not(test), allow(dead_code))]
    Pem(Vec<u8>),
}

/// Name resolver and connector of a bridge. Both are traits, so that tests run without a network
/// and the product needs no test switch.
#[derive(Clone)]
pub struct Network {
    /// Resolves names to addresses.
    pub resolver: Arc<dyn Resolve>,
    /// Connects to addresses.
    pub connector: Arc<dyn Connect>,
}

impl Network {
    /// Returns the host's resolver and a direct connector that ignores proxy environment
    /// variables.
    pub fn system() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            connector: Arc::new(DirectConnector),
        }
    }
}

/// Limits of one bridge.
#[derive(Debug, Clone, Copy)]
pub struct BridgeLimits {
    /// Maximum number of guest connections open at the same time.
    pub connections: usize,
    /// Maximum number of requests and tunnels started per minute.
    pub requests_per_minute: u32,
    /// Maximum size of one request head or one response head, in bytes.
    pub head_bytes: usize,
    /// Maximum size of one request body, or of the data sent through one tunnel, in bytes.
    pub request_bytes: u64,
    /// Maximum size of one response body, or of the data received through one tunnel, in bytes.
    pub response_bytes: u64,
    /// Maximum number of bytes that all requests and tunnels of the bridge send together. A run
    /// has one bridge for each guest.
    pub run_request_bytes: u64,
    /// Maximum number of bytes that all requests and tunnels of the bridge receive together.
    pub run_response_bytes: u64,
    /// Maximum time from accepting the guest's connection to its complete request head or
    /// ClientHello.
    pub head_timeout: Duration,
    /// Maximum time for name lookup, connect and TLS handshake together.
    pub connect_timeout: Duration,
    /// Maximum time in which neither side sends a byte, including the wait for the first byte of a
    /// response.
    pub idle_timeout: Duration,
    /// Maximum duration of one request or tunnel from start to end.
    pub total_timeout: Duration,
    /// Maximum number of rows in the egress log; requests beyond it are only counted.
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
