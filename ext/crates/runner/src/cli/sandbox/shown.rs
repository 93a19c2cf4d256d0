//! What is told of a sandbox: `sandbox/v1`, of the living from their supervisor, of the dead from
//! their record and journal.

use crate::control::{self, Patience};
use serde_json::{Value, json};
use std::time::Duration;
use wp_codebox_contracts::{
    ErrorBody, EventType, LifecycleEvent, LiveRequest, RunStatus, RunView, schema_id,
};
use wp_codebox_runtime::{CONTROL_SOCKET, FoundRun, PageLimits, StateDir, events, view};

/// How long a sandbox may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// Events at the end of a journal in which its end is looked for.
const TAIL: u64 = 64;

/// Whether a sandbox has a socket that hears requests.
pub(super) fn is_held(run: &FoundRun) -> bool {
    run.path.join(CONTROL_SOCKET).exists()
}

/// `sandbox/v1`.
pub(super) fn document(state: &StateDir, run: &FoundRun) -> Result<Value, ErrorBody> {
    let view = view(state, run).map_err(|e| e.body())?;
    let mut document = json!({
        "schema": schema_id::SANDBOX,
        "success": true,
        "id": view.run_id,
        "createdAt": view.created_at,
        "identity": view.provenance.get(super::create::PROVENANCE),
    });
    match view.status {
        RunStatus::Running => living(run, &mut document),
        RunStatus::Ended => dead(state, run, &view, &mut document),
    }
    Ok(document)
}

fn living(run: &FoundRun, document: &mut Value) {
    match control::ask(run, "cli", LiveRequest::Status, Patience::AtMost(PATIENCE)) {
        Ok(Value::Object(told)) => {
            for (name, value) in told {
                // What it was made from is known better here.
                let known = name == "schema" || name == "identity";
                if !known && !value.is_null() {
                    document[name] = value;
                }
            }
            // Its guest is gone, but its bundle is still being written.
            if document["state"] == "destroyed" {
                document["state"] = json!("destroying");
            }
        }
        // It is being made, or has too much to do.
        Ok(_) | Err(_) => document["state"] = json!("provisioning"),
    }
}

fn dead(state: &StateDir, run: &FoundRun, view: &RunView, document: &mut Value) {
    document["state"] = json!("destroyed");
    let limits = PageLimits {
        count: usize::try_from(TAIL).unwrap_or(usize::MAX),
        bytes: 4 * 1024 * 1024,
    };
    let after = view.last_event.saturating_sub(TAIL);
    let tail = events(state, run, after, limits).map(|page| page.events);
    document["tombstone"] = tombstone(view, &tail.unwrap_or_default());
    if let Some(bundle) = &view.bundle_id {
        document["bundleId"] = json!(bundle);
    }
}

/// How it ended, when, why and on whose word.
fn tombstone(view: &RunView, tail: &[LifecycleEvent]) -> Value {
    // What came first is why; what follows is how it went.
    let last = tail
        .iter()
        .find(|event| event.kind == EventType::StateChanged && is_end(event));
    let text = |event: &LifecycleEvent, name: &str| event.data.get(name).cloned();
    let (how, reason, actor) = match last {
        Some(event) => (
            match text(event, "to").as_ref().and_then(Value::as_str) {
                Some("expired") => "expired",
                Some("failed") => "failed",
                _ => "destroyed",
            },
            text(event, "reason"),
            text(event, "actor"),
        ),
        // It came to no end of its own: it did not start, or its supervisor was killed.
        None => ("died", None, None),
    };
    let why = view.error.as_ref().map(|error| error.message.clone());
    let why = why.or_else(|| view.summary.clone());
    json!({
        "endedAt": view.updated_at,
        "how": how,
        "reason": reason.unwrap_or_else(|| json!(why.unwrap_or_default())),
        "actor": actor.unwrap_or_else(|| json!("supervisor")),
        "outcome": view.outcome,
        "error": view.error,
        "salvaged": view.salvaged,
    })
}

fn is_end(event: &LifecycleEvent) -> bool {
    let to = event.data.get("to").and_then(Value::as_str);
    matches!(to, Some("expired" | "failed" | "destroying"))
}

/// For people.
pub(super) fn lines(document: &Value) -> Vec<String> {
    let text = |value: &Value, name: &str| match &value[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    if let Some(rows) = document["sandboxes"].as_array() {
        return rows.iter().map(|row| one_line(row, &text)).collect();
    }
    if let Some(rows) = document["snapshots"].as_array() {
        let line = |row: &Value| {
            let bytes = text(row, "total_bytes");
            let (id, name, at, run) = (
                text(row, "id"),
                text(row, "name"),
                text(row, "created_at"),
                text(row, "run_id"),
            );
            format!("{id}  {at}  {bytes:>12}  {name}  {run}")
        };
        return rows.iter().map(line).collect();
    }
    if document["schema"] == schema_id::SANDBOX {
        let mut lines = vec![one_line(document, &text)];
        if document["tombstone"].is_object() {
            let told = &document["tombstone"];
            lines.push(format!(
                "  {} at {} by {}: {}",
                text(told, "how"),
                text(told, "endedAt"),
                text(told, "actor"),
                text(told, "reason")
            ));
        }
        return lines;
    }
    let members = document.as_object().into_iter().flatten();
    members
        .filter(|(_, value)| !value.is_null())
        .map(|(name, _)| format!("{name}: {}", text(document, name)))
        .collect()
}

fn one_line(row: &Value, text: &dyn Fn(&Value, &str) -> String) -> String {
    let identity = &row["identity"];
    format!(
        "{}  {:<12}  {}@{}  until {}",
        text(row, "id"),
        text(row, "state"),
        text(identity, "profile"),
        text(identity, "version"),
        match text(row, "expiresAt") {
            at if at.is_empty() => "-".to_owned(),
            at => at,
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> RunView {
        serde_json::from_value(json!({
            "schema": "wp-codebox/run/v1", "run_id": format!("run_{:032x}", 1), "status": "ended",
            "mode": "detached", "created_at": "a", "updated_at": "b", "summary": "what it came to",
            "outcome": "succeeded", "last_event": 3,
        }))
        .unwrap()
    }

    fn event(seq: u64, kind: &str, data: Value) -> LifecycleEvent {
        serde_json::from_value(json!({
            "id": format!("evt-{seq}"), "seq": seq, "type": kind, "timestamp": "t", "data": data,
        }))
        .unwrap()
    }

    #[test]
    fn every_death_has_a_reason_and_an_actor() {
        let change = |to: &str, reason: &str, actor: &str| {
            event(
                1,
                "runtime.state.changed",
                json!({"to": to, "reason": reason, "actor": actor}),
            )
        };
        for (to, how) in [
            ("expired", "expired"),
            ("destroying", "destroyed"),
            ("failed", "failed"),
        ] {
            let told = tombstone(
                &view(),
                &[
                    change("ready", "x", "y"),
                    change(to, "why", "who"),
                    change("destroyed", "gone", "supervisor"),
                ],
            );
            assert_eq!(
                (told["how"].as_str(), told["reason"].as_str()),
                (Some(how), Some("why"))
            );
            assert_eq!(told["actor"], "who");
        }
        let told = tombstone(&view(), &[change("ready", "x", "y")]);
        assert_eq!(
            (told["how"].as_str(), told["reason"].as_str()),
            (Some("died"), Some("what it came to"))
        );
    }
}
