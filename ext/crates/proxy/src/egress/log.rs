//! The record of what the guest asked for.
//!
//! Every request that reached the bridge is one row, also one that was refused, broken off
//! or still under way when the bridge stopped. No row holds a query, a header, a body or a
//! value. Rows beyond the limit are counted, not kept.

use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How the guest spoke to the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EgressMode {
    /// Nothing that could be read as a request.
    Unknown,
    /// `CONNECT`, bytes passed through.
    Tunnel,
    /// A request inside TLS that the bridge ended.
    Terminate,
    /// `GET http://host/…`.
    Absolute,
    /// `GET /https/host/…`.
    BaseUrl,
    /// `POST /model/…`: the run's own model.
    Model,
    /// `GET http://localhost/…`: the run's own site.
    Site,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EgressDecision {
    /// It passed.
    Allowed,
    /// Rules or limits stopped it.
    Denied,
    /// It was allowed and did not come to its end: the host or the connection failed.
    Failed,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EgressRow {
    /// When it began, RFC 3339 UTC.
    pub time: String,
    /// How the guest spoke.
    pub mode: EgressMode,
    /// Method; empty when none could be read.
    pub method: String,
    /// Host; empty when none could be read.
    pub host: String,
    /// Port; 0 when none could be read.
    pub port: u16,
    /// Path; a query is shown as `?[redacted]`.
    pub path: String,
    /// What became of it.
    pub decision: EgressDecision,
    /// Stable word; empty when it was allowed and ended well.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'static str,
    /// Where the rule that allowed it stands in the policy, e.g. `rules[2]`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// Address that was reached.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Status the guest saw; 0 when it saw none.
    pub status: u16,
    /// Bytes of body from the guest.
    #[serde(rename = "bytesOut")]
    pub bytes_out: u64,
    /// Bytes of body from the host.
    #[serde(rename = "bytesIn")]
    pub bytes_in: u64,
    /// Milliseconds.
    pub ms: u64,
    /// Names of secrets whose value was put in.
    pub secrets: Vec<String>,
    /// Names of secrets whose placeholder went on as it was: the host is not theirs.
    #[serde(rename = "secretsWithheld", skip_serializing_if = "Vec::is_empty")]
    pub secrets_withheld: Vec<String>,
    /// What else is worth saying, e.g. that a tunnel to a secret's host cannot carry its value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// All that is left of a bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EgressLog {
    /// In the order in which requests ended.
    pub rows: Vec<EgressRow>,
    /// Rows that were not kept.
    pub cut: u64,
    /// Sums over every request, kept or not.
    pub counts: EgressCounts,
}

/// Sums of one bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct EgressCounts {
    /// Requests that passed.
    pub allowed: u64,
    /// Requests that were refused.
    pub denied: u64,
    /// Requests that failed on their way.
    pub failed: u64,
    /// Bytes of bodies from the guest.
    #[serde(rename = "bytesOut")]
    pub bytes_out: u64,
    /// Bytes of bodies from hosts.
    #[serde(rename = "bytesIn")]
    pub bytes_in: u64,
}

/// Collects rows of requests that end on any task.
#[derive(Debug)]
pub(super) struct Ledger {
    most: usize,
    closing: AtomicBool,
    kept: Mutex<Kept>,
}

/// What a ledger holds. A row is written when its connection is gone, which may be some time
/// after its request has ended.
#[derive(Debug, Default)]
struct Kept {
    rows: Vec<(Instant, EgressRow)>,
    cut: u64,
    counts: EgressCounts,
}

impl Ledger {
    /// An empty one that keeps so many rows.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            closing: AtomicBool::new(false),
            kept: Mutex::new(Kept::default()),
        }
    }

    /// Sums until now.
    #[cfg(test)]
    pub(super) fn counts(&self) -> EgressCounts {
        self.lock().counts
    }

    /// What ends from now on was stopped by us, not by the guest.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::close`] was called.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// The log until now; what comes later is lost.
    pub(super) fn take(&self) -> EgressLog {
        let mut kept = std::mem::take(&mut *self.lock());
        kept.rows.sort_by_key(|(ended, _)| *ended);
        EgressLog {
            rows: kept.rows.into_iter().map(|(_, row)| row).collect(),
            cut: kept.cut,
            counts: kept.counts,
        }
    }

    /// Adds the row of a request that ended then.
    pub(super) fn push(&self, ended: Instant, row: EgressRow) {
        let mut kept = self.lock();
        let counts = &mut kept.counts;
        match row.decision {
            EgressDecision::Allowed => counts.allowed += 1,
            EgressDecision::Denied => counts.denied += 1,
            EgressDecision::Failed => counts.failed += 1,
        }
        counts.bytes_out = counts.bytes_out.saturating_add(row.bytes_out);
        counts.bytes_in = counts.bytes_in.saturating_add(row.bytes_in);
        if kept.rows.len() < self.most {
            kept.rows.push((ended, row));
        } else {
            kept.cut += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Rows are pushed whole: what a panicking task left is sound.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::trace::Trace;
    use std::sync::Arc;

    /// A connection that lingers is written down after one that began when it had ended.
    #[test]
    fn rows_come_in_the_order_in_which_requests_ended() {
        let ledger = Arc::new(Ledger::new(10));
        let begin = |path: &str| {
            let trace = Trace::begin(&ledger);
            trace.describe(|row| path.clone_into(&mut row.path));
            trace
        };
        let lingers = begin("/1");
        lingers.passed();
        let other = begin("/2");
        other.passed();
        drop(other);
        drop(begin("/3"));
        drop(lingers);
        let rows = ledger.take().rows;
        let paths: Vec<&str> = rows.iter().map(|row| row.path.as_str()).collect();
        assert_eq!(paths, ["/1", "/2", "/3"]);
    }
}
