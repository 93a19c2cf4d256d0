//! Names of the parties of a cluster and of its queues. Each is one token of a subject of the
//! message server.

use serde::{Deserialize, Serialize};
use wp_codebox_contracts::RunId;
pub use wp_codebox_contracts::{Capability, NodeName, Priority, SubmitterName};

/// The queue of a task; its messages have the subject `tasks.<capability>.<priority>.<submitter>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Capability that a node must have to run the tasks in the queue.
    pub capability: Capability,
    /// Priority of the tasks in the queue.
    pub priority: Priority,
    /// Submitter of the tasks in the queue.
    pub submitter: SubmitterName,
}

/// Key of a run's record. The run id is derived from submitter and idempotency key, so that a
/// submitter that asks twice gets one run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunKey {
    /// Who submitted the run.
    pub submitter: SubmitterName,
    /// Id of the run.
    pub run: RunId,
}
