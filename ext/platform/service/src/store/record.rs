//! The record of a sandbox.

use crate::actor::Actor;
use crate::extension::{CleanupReport, Provision, Reachability, SandboxState, SandboxUsage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that the service stores of a sandbox. The `consumer` of its request is not here: it
/// is in the events only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SandboxRecord {
    /// Parameters with which the extension starts it.
    pub provision: Provision,
    /// Id of its extension.
    pub extension: String,
    /// Id of its host, if the route chose one.
    pub host: Option<String>,
    /// Lifecycle state.
    pub state: SandboxState,
    /// Idempotency key of the request that made it.
    pub key: Option<String>,
    /// Account that pays, if any.
    pub account: Option<String>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// RFC 3339 timestamp, once it is ready.
    pub expires_at: Option<String>,
    /// Why it ended or failed.
    pub reason: Option<String>,
    /// How clients reach it, once it is ready.
    pub reachability: Option<Reachability>,
    /// The routing decision: `service-route/v1`.
    pub route: Value,
    /// The price quoted before the sandbox was made, `meter-quote/v1`; null without a price table.
    pub quote: Value,
    /// What it used, once it has ended.
    pub usage: Option<SandboxUsage>,
    /// What the teardown removed.
    pub cleanup: Option<CleanupReport>,
}

impl SandboxRecord {
    pub(crate) fn id(&self) -> &str {
        self.provision.sandbox.as_str()
    }

    pub(crate) fn owner(&self) -> &Actor {
        &self.provision.actor
    }

    pub(crate) fn profile_id(&self) -> &str {
        &self.provision.profile_id
    }
}
