//! The heartbeat of a node.

use crate::names::Capability;
use crate::record::Claimant;
use serde::{Deserialize, Serialize};
use wp_codebox_contracts::Sha256Hex;

/// What a node says about itself with each heartbeat. Other nodes take it for alive while the
/// revision of this record changes; the record contains no time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRecord {
    /// Version of the protocol that the node speaks.
    pub protocol: u32,
    /// The process.
    pub claimant: Claimant,
    /// Version of the program.
    pub version: String,
    /// SHA-256 of the public key with which the node signs bundles.
    pub key_id: Sha256Hex,
    /// Capabilities whose queues the node serves.
    pub capabilities: Vec<Capability>,
    /// Number of runs that the node takes at the same time.
    pub capacity: u32,
    /// Number of runs that it has now.
    pub running: u32,
    /// Whether the node takes no new runs and ends when its last one has ended.
    pub draining: bool,
    /// Number of the heartbeat of this process, so that each one differs.
    pub beat: u64,
}
