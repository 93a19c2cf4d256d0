//! Records of the audit log, and which of them a read returns.

use serde::Serialize;
use serde_json::{Map, Value};

/// One record of the log with `seq`, `timestamp`, `previous` and `hash`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AuditEntry(pub Map<String, Value>);

/// Selection of the entries that a read returns. It does not limit which part of the chain is
/// verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditWindow {
    /// The newest entries, at most this many.
    Newest(usize),
    /// Entries with a sequence number above `seq`: the first `limit` of them.
    After {
        /// Sequence number of the last entry that the caller already has.
        seq: u64,
        /// Maximum number of entries to return.
        limit: usize,
    },
}
