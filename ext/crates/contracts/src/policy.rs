//! The runtime policy as written by a caller. Checking it is the policy crate's work.

use serde::{Deserialize, Serialize};

/// Network posture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NetworkPolicy {
    /// `"allow"` or `"deny"`.
    Posture(NetworkPosture),
    /// Named hosts only.
    AllowHosts {
        /// Host names.
        #[serde(rename = "allowHosts")]
        allow_hosts: Vec<String>,
    },
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

/// The five-field runtime policy.
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
}

/// One thing wrong with a policy document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyIssue {
    /// `invalid-network`, `invalid-filesystem`, `invalid-command`,
    /// `invalid-secrets`, `invalid-approvals` or `unenforceable`.
    pub code: String,
    /// The field, e.g. `network` or `commands[2]`.
    pub field: String,
    /// What is wrong and what is accepted.
    pub message: String,
}
