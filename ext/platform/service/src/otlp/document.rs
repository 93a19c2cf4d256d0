//! The body of an export: `ExportTraceServiceRequest` in OTLP's JSON encoding.

use super::{Finished, Parent, nanoseconds};
use serde_json::{Value, json};
use wp_codebox_contracts::hex;

/// Returns the body for some spans.
pub(super) fn document(spans: &[Finished]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        text("service.name", "wp-codebox"),
        text("service.version", version),
    ];
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{
            "scope": {"name": "wp-codebox-service", "version": version},
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }]})
}

fn span(finished: &Finished) -> Value {
    let span = &finished.span;
    let texts = span.texts.iter().map(|(name, value)| text(name, value));
    // A 64-bit integer is a text in the JSON encoding of protocol buffers.
    let numbers = span
        .numbers
        .iter()
        .map(|(name, value)| json!({"key": name, "value": {"intValue": value.to_string()}}));
    let mut row = json!({
        "traceId": hex(&finished.trace),
        "spanId": hex(&finished.id),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanoseconds(span.began),
        "endTimeUnixNano": nanoseconds(finished.ended),
        "attributes": texts.chain(numbers).collect::<Vec<_>>(),
        "status": {"code": span.status as u8},
    });
    if let Parent::Remote { span, .. } = &span.parent {
        row["parentSpanId"] = json!(hex(span));
    }
    row
}

fn text(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}
