//! The runtime policy as written by a caller. Checking it is the policy crate's work.

use crate::{Enforcement, IsolationAxis, IsolationLevel};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Network posture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NetworkPolicy {
    /// `"allow"` or `"deny"`.
    Posture(NetworkPosture),
    /// What the rules name, through the egress bridge; everything else is denied.
    Rules(NetworkRules),
}

/// What may leave the guest. At least one list is not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkRules {
    /// `host` (ports 80 and 443) or `host:port`; every method and path.
    #[serde(rename = "allowHosts", default, skip_serializing_if = "Vec::is_empty")]
    pub allow_hosts: Vec<String>,
    /// Named sets of rules (the policy crate's `network::presets`); and `model`, which opens the
    /// run's own model and nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<String>,
    /// Rules one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<EgressRule>,
    /// Whether the bridge may end TLS with a certificate only this guest trusts.
    #[serde(default)]
    pub tls: TlsMode,
}

/// One thing that may leave the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressRule {
    /// Exact host name; no wildcard.
    pub host: String,
    /// Ports; empty: 80 and 443.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Methods, e.g. `GET`; empty: every one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Path prefixes that end at a `/` border, e.g. `/plugins/info/`; empty: every path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// What the bridge does with TLS of clients that use it as a proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// Passed through: only host and port can be checked, so rules with methods or paths
    /// hold for base-URL requests and are refused for tunnels.
    #[default]
    Tunnel,
    /// Ended by the bridge with a certificate authority made for this run.
    Terminate,
}

/// The two words a network policy may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkPosture {
    /// Unrestricted.
    Allow,
    /// Nothing leaves the guest.
    Deny,
}

/// File-system posture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilesystemPolicy {
    /// Only the guest's own files are writable.
    Sandbox,
    /// Mounts are visible and read-only.
    ReadonlyMounts,
    /// Mounts are visible and writable inside the guest, captured at the end.
    ReadwriteMounts,
}

/// Secret scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretsPolicy {
    /// No secret takes part in the run.
    None,
    /// Secrets of named connectors only.
    ConnectorScoped,
}

/// When a human must be asked during the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approvals {
    /// Never: the bundle is what gets approved.
    Never,
    /// Before each write.
    OnWrite,
    /// Before each command.
    OnCommand,
}

/// The runtime policy: five fields, and what of isolation and secrets it insists on or gives up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimePolicy {
    /// Network posture.
    pub network: NetworkPolicy,
    /// File-system posture.
    pub filesystem: FilesystemPolicy,
    /// Command ids that may run; exact match, no wildcards.
    pub commands: Vec<String>,
    /// Secret scope.
    pub secrets: SecretsPolicy,
    /// Approval mode.
    pub approvals: Approvals,
    /// Lowest level at which the run may start; absent: `full`.
    #[serde(default = "full", skip_serializing_if = "is_full")]
    pub minimum_isolation: IsolationLevel,
    /// Per axis, the least that must be observed; below it the run is refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub isolation_floors: BTreeMap<IsolationAxis, Enforcement>,
    /// Names of secrets whose value the guest itself may hold. The attestation lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expose_secrets: Vec<String>,
}

const fn full() -> IsolationLevel {
    IsolationLevel::Full
}

// serde hands out references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_full(level: &IsolationLevel) -> bool {
    *level == IsolationLevel::Full
}

/// One thing wrong with a policy document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyIssue {
    /// `invalid-network`, `invalid-filesystem`, `invalid-command`,
    /// `invalid-secrets`, `invalid-approvals`, `invalid-minimum-isolation`,
    /// `invalid-isolation-floors` or `unenforceable`.
    pub code: String,
    /// The field, e.g. `network` or `commands[2]`.
    pub field: String,
    /// What is wrong and what is accepted.
    pub message: String,
}
