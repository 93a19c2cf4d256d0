//! The runtime policy as written by a caller. The policy crate validates it.

use crate::{Enforcement, IsolationAxis, IsolationLevel};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Network access of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NetworkPolicy {
    /// `"allow"` or `"deny"`.
    Posture(NetworkPosture),
    /// Access only to the destinations of these rules, through the egress bridge; everything
    /// else is denied.
    Rules(NetworkRules),
}

/// Destinations that the guest may reach. At least one of the three lists is not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkRules {
    /// Destinations `host` (ports 80 and 443) or `host:port`; every method and path is allowed.
    #[serde(rename = "allowHosts", default, skip_serializing_if = "Vec::is_empty")]
    pub allow_hosts: Vec<String>,
    /// Names of predefined rule sets (the policy crate's `network::presets`). The preset
    /// `model` opens only the address of the run's model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<String>,
    /// Rules for single destinations, with ports, methods and paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<EgressRule>,
    /// Whether the egress bridge may terminate TLS with a certificate that only this guest
    /// trusts.
    #[serde(default)]
    pub tls: TlsMode,
}

/// One destination that the guest may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressRule {
    /// Exact host name; no wildcard.
    pub host: String,
    /// Allowed ports; empty: 80 and 443.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Allowed HTTP methods, e.g. `GET`; empty: every method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Allowed path prefixes that match whole path segments, e.g. `/plugins/info/`; empty: every
    /// path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// How the egress bridge handles TLS of clients that use it as a proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// The bridge forwards TLS unread and can check only host and port. Rules with methods or
    /// paths therefore apply only to requests whose URL names the bridge itself (base-URL
    /// requests), and the bridge refuses TLS tunnels to the hosts in rules with methods or paths.
    #[default]
    Tunnel,
    /// The bridge terminates TLS with a certificate authority created for this run.
    Terminate,
}

/// Network access of a guest whose policy has no rules: everything or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkPosture {
    /// Unrestricted network access.
    Allow,
    /// No network access.
    Deny,
}

/// File-system access of the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilesystemPolicy {
    /// The guest has only its own files; mounts and components are refused.
    Sandbox,
    /// Mounts are visible and read-only.
    ReadonlyMounts,
    /// Mounts are visible and writable inside the guest; changes are captured at the end.
    ReadwriteMounts,
}

/// Secrets that a run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretsPolicy {
    /// The run uses no secrets.
    None,
    /// The run may use the secrets that its request names.
    ConnectorScoped,
}

/// When a human must approve an action of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approvals {
    /// Never; a human approves the finished bundle instead.
    Never,
    /// A human must approve each write before it happens.
    OnWrite,
    /// A human must approve each command before it runs.
    OnCommand,
}

/// The runtime policy: access rights of a guest, and requirements on its isolation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimePolicy {
    /// Network access of the guest.
    pub network: NetworkPolicy,
    /// File-system access of the guest.
    pub filesystem: FilesystemPolicy,
    /// Ids of allowed commands; exact match, no wildcards.
    pub commands: Vec<String>,
    /// Secrets that the run may use.
    pub secrets: SecretsPolicy,
    /// When a human must approve an action of the run.
    pub approvals: Approvals,
    /// Lowest isolation level at which the run may start; default `full`.
    #[serde(default = "full", skip_serializing_if = "is_full")]
    pub minimum_isolation: IsolationLevel,
    /// Minimum enforcement per isolation axis; the run is refused if the probes observe less.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub isolation_floors: BTreeMap<IsolationAxis, Enforcement>,
    /// Names of secrets whose values the guest may read. The attestation lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expose_secrets: Vec<String>,
}

const fn full() -> IsolationLevel {
    IsolationLevel::Full
}

// serde's `skip_serializing_if` passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_full(level: &IsolationLevel) -> bool {
    *level == IsolationLevel::Full
}

/// One violation found in a policy document, or in another document that the policy crate checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyIssue {
    /// Kind of violation: `invalid-network`, `invalid-filesystem`, `invalid-command`,
    /// `invalid-secrets`, `invalid-approvals`, `invalid-minimum-isolation`,
    /// `invalid-isolation-floors`, `unknown-field` or `unenforceable`. Issues of other documents,
    /// such as tool policies and model settings, have other kinds.
    pub code: String,
    /// Field of the policy, e.g. `network` or `commands[2]`.
    pub field: String,
    /// What is wrong and which values are accepted.
    pub message: String,
}
