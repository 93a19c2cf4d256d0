//! The record of a run: the only truth about it. Messages and heartbeats are hints.
//!
//! A record changes by compare-and-set on its revision only. Its epoch rises with each claim; a host
//! whose epoch is not the record's has lost the run and can change nothing any more.

use crate::names::{NodeName, Queue, RunKey};
use crate::trust::NodeKeys;
use serde::{Deserialize, Serialize};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, Sha256Hex};

/// Version of the protocol that this program writes. It reads this version and the one before.
pub const PROTOCOL: u32 = 2;

/// The record of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Version of the protocol of the program that created the record.
    pub protocol: u32,
    /// Key of the run.
    pub key: RunKey,
    /// Queue in which the run waits for a node.
    pub queue: Queue,
    /// Digest of the task document, which is an object of the submitter.
    pub task: Sha256Hex,
    /// Number of claims so far; 0 before the first.
    pub epoch: u64,
    /// Largest number of claims, so that a task that crashes its nodes is not run for ever.
    pub max_tries: u32,
    /// Nodes that may claim the run, with their keys: those whose results the submitter takes. `None`:
    /// a program of protocol 1 created the record, and each node may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeKeys>,
    /// Whether the submitter asked for the end of the run.
    pub cancelled: bool,
    /// Time of submission by the submitter's clock, RFC 3339; for people only.
    pub created_at: String,
    /// Whether the run waits, is claimed or has ended.
    pub state: State,
}

/// Whether a run waits, is claimed or has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", deny_unknown_fields)]
pub enum State {
    /// The run waits for a node.
    Queued,
    /// A node runs it, in the epoch of the record.
    Claimed {
        /// The process that claimed it.
        by: Claimant,
    },
    /// It has ended; the record does not change any more.
    Terminal {
        /// The process that had claimed the run last; `None` if it was queued when it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Claimant>,
        /// How it ended.
        end: End,
    },
}

/// A process of a node. A node that starts again has another instance, so the claims of its earlier
/// process are void at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claimant {
    /// Name of the node.
    pub node: NodeName,
    /// Random id of the process: 32 hexadecimal digits.
    pub instance: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum End {
    /// The run has an outcome; its result is the object `result.<run>.<epoch>` of the submitter.
    Result {
        /// Outcome of the run.
        outcome: Outcome,
        /// Digest of the object.
        sha256: Sha256Hex,
        /// Size of the object in bytes.
        bytes: u64,
    },
    /// The run could not start, or ended without a result.
    Error {
        /// Why the run could not start or has no result.
        error: ErrorBody,
    },
}

/// A revision of a value on the message server. Each change raises it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A value and its revision, which a caller that replaces the value must pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Versioned<T> {
    /// The value.
    pub value: T,
    /// Its revision.
    pub revision: Revision,
}

/// Returns a random id for a process.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn new_instance() -> Result<String, ErrorBody> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        ErrorBody::new(ErrorCode::Internal, format!("no random bytes: {error}"))
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the claimant for a process of this node.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn new_claimant(node: NodeName) -> Result<Claimant, ErrorBody> {
    Ok(Claimant {
        node,
        instance: new_instance()?,
    })
}
