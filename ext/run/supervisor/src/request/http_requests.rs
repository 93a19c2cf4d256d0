//! Requests that the HTTP services of a run's guests have received.
//!
//! The responder, a guest program that answers the requests, prints these records, so they are
//! untrusted: this module copies only known members and limits number and size. The records
//! describe what the guest's own programs requested.

use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use wp_codebox_artifacts::EvidenceDocument;
use wp_codebox_contracts::GuestPhase;
use wp_codebox_runtime::now_rfc3339;

/// Maximum number of requests that are recorded.
const REQUESTS: usize = 500;
/// Maximum size of all records in bytes of JSON.
const BYTES: usize = 4 * 1024 * 1024;
/// Schema id of the record of a request.
const SCHEMA: &str = "wp-codebox/http-service-request/v1";

/// Requests that the HTTP services of all guests of a run have received.
#[derive(Debug, Default)]
pub(crate) struct HttpRequests(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Value>,
    bytes: usize,
    /// Number of requests that have no record, because of the limits.
    left_out: u64,
}

impl HttpRequests {
    /// Records a request from the line that its responder printed. Drops a line that is not a JSON
    /// object.
    pub(crate) fn add(&self, service: &str, phase: GuestPhase, line: &[u8]) {
        let Ok(Value::Object(printed)) = serde_json::from_slice(line) else {
            return;
        };
        let text = |name: &str| {
            printed
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let row = json!({
            "schema": SCHEMA,
            "service": service,
            "phase": phase.as_str(),
            "receivedAt": now_rfc3339(),
            "method": text("method"),
            "target": text("target"),
            "headers": printed.get("headers").and_then(Value::as_object),
            "body": text("body"),
            "bodyBytes": printed.get("bodyBytes").and_then(Value::as_u64),
        });
        let size = row.to_string().len();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.rows.len() >= REQUESTS || all.bytes + size > BYTES {
            all.left_out += 1;
            return;
        }
        all.bytes += size;
        all.rows.push(row);
    }

    /// Returns the bundle's document about these requests; `None` if there were none.
    pub(crate) fn evidence(&self) -> Option<EvidenceDocument> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out =
            (all.left_out > 0).then(|| json!({"schema": SCHEMA, "leftOut": all.left_out}));
        let values: Vec<Value> = all.rows.iter().cloned().chain(left_out).collect();
        (!values.is_empty()).then_some(EvidenceDocument {
            name: "http-requests.jsonl",
            key: "httpRequests",
            kind: "http-service-log",
            values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_http_requests_are_limited_in_number_and_lines_that_are_not_json_are_dropped() {
        let requests = HttpRequests::default();
        assert!(requests.evidence().is_none());
        requests.add("a", GuestPhase::Work, b"PHP Warning: x");
        assert!(requests.evidence().is_none());
        let line = br#"{"method":"POST","target":"/a?b","headers":{"x":"1"},"body":"c","bodyBytes":1,"service":"forged"}"#;
        for _ in 0..REQUESTS + 2 {
            requests.add("a", GuestPhase::Check, line);
        }
        let values = requests.evidence().unwrap().values;
        assert_eq!(values.len(), REQUESTS + 1);
        assert_eq!(values[0]["service"], "a");
        assert_eq!(values[0]["phase"], "check");
        assert_eq!(values[0]["target"], "/a?b");
        assert_eq!(values[REQUESTS]["leftOut"], 2);
    }
}
