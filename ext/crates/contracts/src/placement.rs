//! Placement of a run on another host.

use crate::Sha256Hex;
use serde::{Deserialize, Serialize};

/// Sends a run to the hosts of a cluster instead of running it on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterPlacement {
    /// Message server of the cluster, and the account of this host there; set by the operator.
    pub cluster: ClusterAccess,
    /// What a node must have to run the task; a name that the operator gives.
    pub capability: String,
    /// Priority of the task: `high`, `normal` or `low`.
    pub priority: String,
    /// Largest number of nodes that may try the task.
    pub max_tries: u32,
    /// Keys of the nodes whose results this host takes, in its configuration: rows of node name and
    /// the SHA-256 of the public key, 64 hexadecimal digits.
    pub nodes: Vec<NodeKeyRow>,
    /// How long a message server that does not answer is asked again, in milliseconds.
    pub patience_ms: u64,
}

/// The key of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeKeyRow {
    /// Name of the node.
    pub node: String,
    /// SHA-256 of its public key.
    pub key: Sha256Hex,
}

/// A message server, and an account on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterAccess {
    /// Addresses of the servers, such as `tls://nats.example:4222`; without credentials.
    pub servers: Vec<String>,
    /// Name under which this host submits tasks.
    pub submitter: String,
    /// File with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<String>,
    /// File with the certificates that sign those of the servers; absent: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
}
