//! Egress log: one row for every request that reached the bridge.
//!
//! Refused and aborted requests have a row too, as do requests still running when the bridge
//! stopped. A row contains no query, header, body or secret value. Requests beyond the row limit
//! are only counted.

use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How the guest addressed the bridge in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EgressMode {
    /// The bridge could not parse a request.
    Unknown,
    /// `CONNECT` tunnel whose bytes the bridge forwards unchanged.
    Tunnel,
    /// Request inside TLS that the bridge terminated.
    Terminate,
    /// `GET http://host/…`.
    Absolute,
    /// `GET /https/host/…`.
    BaseUrl,
    /// `POST /model/…`: request to the run's model.
    Model,
    /// `GET http://localhost/…`: request to the run's own site.
    Site,
}

/// Outcome of a request in the egress log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EgressDecision {
    /// The request was allowed and completed.
    Allowed,
    /// The policy or a limit refused the request.
    Denied,
    /// The request was allowed and did not complete because the host or the connection failed.
    Failed,
}

/// Row of the egress log for one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EgressRow {
    /// Start time of the request, RFC 3339 UTC.
    pub time: String,
    /// How the guest addressed the bridge.
    pub mode: EgressMode,
    /// Requested method; empty when the bridge could not parse one.
    pub method: String,
    /// Requested host; empty when the bridge could not parse one.
    pub host: String,
    /// Requested port; 0 when the bridge could not parse one.
    pub port: u16,
    /// Requested path; a query appears as `?[redacted]`.
    pub path: String,
    /// Outcome of the request.
    pub decision: EgressDecision,
    /// Code of the reason why the request was refused or failed; empty for one that completed.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'static str,
    /// Position in the policy of the rule that allowed the request, e.g. `rules[2]`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// Last address to which the bridge tried to connect; empty when it tried none, and for
    /// requests to the model or the run's own site.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// HTTP status the guest received; 0 when it received none.
    pub status: u16,
    /// Body bytes that the guest sent.
    #[serde(rename = "bytesOut")]
    pub bytes_out: u64,
    /// Body bytes that the host sent.
    #[serde(rename = "bytesIn")]
    pub bytes_in: u64,
    /// Duration of the request in milliseconds.
    pub ms: u64,
    /// Names of secrets whose values the bridge inserted.
    pub secrets: Vec<String>,
    /// Names of secrets whose placeholders the bridge forwarded unchanged, because the host may
    /// not receive the value.
    #[serde(rename = "secretsWithheld", skip_serializing_if = "Vec::is_empty")]
    pub secrets_withheld: Vec<String>,
    /// Remark, for example that the bridge cannot insert a secret's value into a tunnel.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Complete log of a bridge that has stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EgressLog {
    /// Rows of requests, in the order in which the requests ended.
    pub rows: Vec<EgressRow>,
    /// Number of requests that have no row because the log was full.
    pub cut: u64,
    /// Totals of all requests, with and without a row.
    pub counts: EgressCounts,
}

/// Totals of all requests of one bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct EgressCounts {
    /// Number of allowed requests that completed.
    pub allowed: u64,
    /// Number of refused requests.
    pub denied: u64,
    /// Number of allowed requests that did not complete.
    pub failed: u64,
    /// Request body bytes sent by the guest.
    #[serde(rename = "bytesOut")]
    pub bytes_out: u64,
    /// Response body bytes sent by hosts.
    #[serde(rename = "bytesIn")]
    pub bytes_in: u64,
}

/// Egress log of a running bridge; the task of each connection adds its row.
#[derive(Debug)]
pub(super) struct Ledger {
    most: usize,
    closing: AtomicBool,
    contents: Mutex<LedgerContents>,
}

/// Rows and totals of the egress log. The row of a request is added when its connection is dropped,
/// which may be later than the end of the request.
#[derive(Debug, Default)]
struct LedgerContents {
    rows: Vec<(Instant, EgressRow)>,
    cut: u64,
    counts: EgressCounts,
}

impl Ledger {
    /// Creates an empty log for at most `most` rows.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            closing: AtomicBool::new(false),
            contents: Mutex::new(LedgerContents::default()),
        }
    }

    /// Returns the totals of the requests that have ended so far.
    #[cfg(test)]
    pub(super) fn counts(&self) -> EgressCounts {
        self.lock().counts
    }

    /// Marks the bridge as stopping: requests that are aborted from now on are logged as ended by
    /// the bridge, not by the guest.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Returns whether the bridge is stopping.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Returns the complete log; rows added later are lost.
    pub(super) fn take(&self) -> EgressLog {
        let mut contents = std::mem::take(&mut *self.lock());
        contents.rows.sort_by_key(|(ended, _)| *ended);
        EgressLog {
            rows: contents.rows.into_iter().map(|(_, row)| row).collect(),
            cut: contents.cut,
            counts: contents.counts,
        }
    }

    /// Adds the row of a request. `ended` is the time at which the request ended.
    pub(super) fn push(&self, ended: Instant, row: EgressRow) {
        let mut contents = self.lock();
        let counts = &mut contents.counts;
        match row.decision {
            EgressDecision::Allowed => counts.allowed += 1,
            EgressDecision::Denied => counts.denied += 1,
            EgressDecision::Failed => counts.failed += 1,
        }
        counts.bytes_out = counts.bytes_out.saturating_add(row.bytes_out);
        counts.bytes_in = counts.bytes_in.saturating_add(row.bytes_in);
        if contents.rows.len() < self.most {
            contents.rows.push((ended, row));
        } else {
            contents.cut += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, LedgerContents> {
        // Ignoring the poison is safe: the rows are valid even if a task panicked while it held the
        // lock.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::trace::Trace;
    use std::sync::Arc;

    /// A request's row is pushed when its connection is dropped. Here the first request ended
    /// first, but its connection stayed open longest, so its row is pushed last.
    #[test]
    fn egress_log_rows_are_sorted_by_the_end_time_of_their_requests() {
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
