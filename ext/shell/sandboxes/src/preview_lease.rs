//! The preview of a held run, as `wp-codebox/preview-lease/v1`.
//!
//! No file stores a lease: the supervisor of the run serves the preview, and the journal of the run
//! records how the preview ended.

use serde_json::{Map, Value, json};
use std::time::Duration;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventType, LiveRequest, PreviewRequest, RunStatus,
};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runs::live;
use wp_codebox_runtime::{FoundRun, PageLimits, StateDir, events, now_rfc3339, status};

/// Schema id of the document.
const PREVIEW_LEASE: &str = "wp-codebox/preview-lease/v1";
/// Time limit for a reply. A sandbox that stores a snapshot of several gigabytes replies late.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number and size of the events of one page when the journal of an ended run is read.
const PAGE: PageLimits = PageLimits {
    count: 1000,
    bytes: 4 * 1024 * 1024,
};

/// Sends the action to the sandbox, or reads how the preview of an ended run ended.
pub fn preview_lease(state: &StateDir, run: &FoundRun, action: &str) -> Result<Value, ErrorBody> {
    if status(state, run)? == RunStatus::Ended {
        return Ok(document(run, &recorded(state, run)?, RunStatus::Ended));
    }
    let request = LiveRequest::Preview(PreviewRequest {
        action: Some(action.to_owned()),
        ..PreviewRequest::default()
    });
    let preview = match live::ask(run, "cli", request, ReplyTimeout::AtMost(REPLY_TIMEOUT)) {
        Ok(preview) => preview,
        // The run ended meanwhile, or is not held yet.
        Err(error) if error.code == ErrorCode::SandboxNotHeld => recorded(state, run)?,
        Err(error) => return Err(error),
    };
    Ok(document(run, &preview, RunStatus::Running))
}

/// Returns the lease id from a JSON file, which contains a document of a lease, preview, run or
/// sandbox.
pub fn lease_id(bytes: &[u8]) -> Result<String, ErrorBody> {
    let invalid =
        |why: &str| ErrorBody::new(ErrorCode::InputInvalid, format!("--lease-file: {why}"));
    let document: Value = serde_json::from_slice(bytes).map_err(|_| invalid("it is not JSON"))?;
    let names = ["lease_id", "leaseId", "run_id", "runId", "id"];
    let within = |value: &Value| {
        names
            .iter()
            .find_map(|name| value[*name].as_str())
            .map(str::to_owned)
    };
    within(&document)
        .or_else(|| within(&document["lease"]))
        .ok_or_else(|| invalid("it has no lease_id; name the lease with --lease-id"))
}

/// Returns the data of the last event about a preview in the journal of a run; null without one.
fn recorded(state: &StateDir, run: &FoundRun) -> Result<Value, ErrorBody> {
    let mut last = Value::Null;
    let mut after = 0;
    loop {
        let page = events(state, run, after, PAGE)?;
        let Some(end) = page.events.last().map(|event| event.seq) else {
            return Ok(last);
        };
        let mut newest_first = page.events.into_iter().rev();
        let observed = newest_first.find(|event| {
            event.kind == EventType::Observed
                && event.data.get("type").is_some_and(|kind| kind == "preview")
        });
        if let Some(event) = observed {
            last = Value::Object(event.data);
        }
        after = end;
    }
}

/// Returns the status of a lease for the status of a preview. An open preview ends with its run.
fn lease_status(preview: &Value, run: RunStatus) -> &'static str {
    match (preview["status"].as_str(), run) {
        (Some("open"), RunStatus::Running) => "active",
        (Some("open" | "closed"), _) => "released",
        (Some("expired"), _) => "expired",
        (_, _) => "unknown",
    }
}

fn document(run: &FoundRun, preview: &Value, of: RunStatus) -> Value {
    let status = lease_status(preview, of);
    let mut lease = Map::from_iter([
        ("id".to_owned(), json!(run.run_id)),
        ("status".to_owned(), json!(status)),
    ]);
    for (name, member) in [
        ("opened_at", "openedAt"),
        ("expires_at", "expiresAt"),
        ("released_at", "closedAt"),
    ] {
        if preview[member].is_string() {
            lease.insert(name.to_owned(), preview[member].clone());
        }
    }
    let local = &preview["localUrl"];
    json!({
        "success": true,
        "schema": PREVIEW_LEASE,
        "lease_id": run.run_id,
        "status": status,
        "public_url": preview["url"],
        "preview_public_url": preview["publicUrl"],
        "site_url": preview["url"],
        "local_url": local,
        "lease": lease,
        "reachability": {
            "status": match status {
                "active" => "listening",
                "released" | "expired" => "closed",
                _ => "unknown",
            },
            "local_url": local,
            "access": preview["access"],
            "checked_at": now_rfc3339(),
        },
        // WordPress in the guest uses the address of each visitor's request as its own, so the site
        // URL is always that of the preview.
        "alignment": {"status": "aligned", "site_url": preview["url"]},
        "evidence_refs": [],
        "provenance": {"run_id": run.run_id, "site": run.site},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_of_an_open_preview_is_active_until_its_run_ends_and_unknown_without_a_preview() {
        for (preview, run, expected) in [
            (json!({"status": "open"}), RunStatus::Running, "active"),
            (json!({"status": "open"}), RunStatus::Ended, "released"),
            (json!({"status": "closed"}), RunStatus::Running, "released"),
            (json!({"status": "expired"}), RunStatus::Ended, "expired"),
            (json!({"status": "none"}), RunStatus::Running, "unknown"),
            (Value::Null, RunStatus::Ended, "unknown"),
        ] {
            assert_eq!(lease_status(&preview, run), expected, "{preview}");
        }
    }

    #[test]
    fn lease_id_is_read_from_each_kind_of_document_and_a_file_without_one_is_refused() {
        for text in [
            r#"{"lease_id": "run_1"}"#,
            r#"{"schema": "wp-codebox/boot/v1", "id": "run_1"}"#,
            r#"{"lease": {"id": "run_1"}}"#,
            r#"{"runId": "run_1"}"#,
        ] {
            assert_eq!(lease_id(text.as_bytes()).unwrap(), "run_1", "{text}");
        }
        for wrong in ["{", "{}", r#"{"lease_id": 7}"#] {
            assert!(lease_id(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
