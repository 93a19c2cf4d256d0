//! Builds the document `sandbox/v1`. For a running sandbox its supervisor reports the state; for an
//! ended one the state comes from the record and the journal of the run.

use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::terminal_text::plain_line;
use wp_codebox_contracts::{
    CONTROL_SOCKET, ErrorBody, EventType, LifecycleEvent, LiveRequest, RunStatus, RunView,
    schema_id,
};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runs::live;
use wp_codebox_runtime::{FoundRun, PageLimits, StateDir, events, now_rfc3339, view};

/// Key in the provenance of a run (facts that its creator stores with it) that marks a sandbox.
pub(super) const PROVENANCE: &str = "sandbox";
/// Poll interval while a command waits for the end of a run.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for a status reply of a sandbox.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Time to wait for the end of a supervisor that no longer accepts connections.
const DYING: Duration = Duration::from_secs(5);
/// Number of events that are searched for the last state of a sandbox, from the end of the journal.
const TAIL: u64 = 64;

/// Returns whether a sandbox still has its control socket, on which its supervisor accepts
/// requests.
pub(super) fn is_held(run: &FoundRun) -> bool {
    run.path.join(CONTROL_SOCKET).exists()
}

/// Builds `sandbox/v1` for a sandbox in any state.
pub(super) fn document(state: &StateDir, run: &FoundRun) -> Result<Value, ErrorBody> {
    let mut view = view(state, run).map_err(|e| e.body())?;
    let mut told = StatusReply::Nothing;
    if view.status == RunStatus::Running {
        told = asked(run);
        if let StatusReply::HungUp = told {
            view = last_look(state, run, view)?;
        }
    }
    let mut document = json!({
        "schema": schema_id::SANDBOX,
        "success": true,
        "id": view.run_id,
        "createdAt": view.created_at,
        "identity": view.provenance.get(PROVENANCE),
    });
    match view.status {
        RunStatus::Running => living(told, &mut document),
        RunStatus::Ended => dead(state, run, &view, &mut document)?,
    }
    Ok(document)
}

/// What a supervisor replied to a status request.
enum StatusReply {
    State(Map<String, Value>),
    /// There was no reply: the sandbox is being created or is busy.
    Nothing,
    /// The connection was refused or broke off although the control socket exists: the supervisor
    /// is exiting or was killed.
    HungUp,
}

fn asked(run: &FoundRun) -> StatusReply {
    let began = Instant::now();
    match live::ask(
        run,
        "cli",
        LiveRequest::Status {},
        ReplyTimeout::AtMost(STATUS_TIMEOUT),
    ) {
        Ok(Value::Object(told)) => StatusReply::State(told),
        Ok(_) => StatusReply::Nothing,
        Err(_) if is_held(run) && began.elapsed() < STATUS_TIMEOUT => StatusReply::HungUp,
        Err(_) => StatusReply::Nothing,
    }
}

/// Returns whether a sandbox reports that it is not ready yet.
pub(super) fn is_being_made(run: &FoundRun) -> bool {
    let StatusReply::State(told) = asked(run) else {
        return false;
    };
    let state = told.get("state").and_then(Value::as_str);
    matches!(state, Some("requested" | "provisioning"))
}

/// Waits up to [`DYING`] until a run whose supervisor refused the connection counts as ended. A
/// killed supervisor still counts as running for a moment, because the kernel closes its socket
/// before it releases its file locks.
fn last_look(state: &StateDir, run: &FoundRun, mut seen: RunView) -> Result<RunView, ErrorBody> {
    let until = Instant::now() + DYING;
    while seen.status == RunStatus::Running && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
        seen = view(state, run).map_err(|e| e.body())?;
    }
    Ok(seen)
}

fn living(told: StatusReply, document: &mut Value) {
    document["state"] = json!("provisioning");
    if let StatusReply::State(told) = told {
        for (name, value) in told {
            // The document already has these members, from the record of the run, in a more precise
            // form than in the reply.
            let known = name == "schema" || name == "identity";
            if !known && !value.is_null() {
                document[name] = value;
            }
        }
        // The guest is gone, but the bundle is still being written.
        if document["state"] == "destroyed" {
            document["state"] = json!("destroying");
        }
    }
}

fn dead(
    state: &StateDir,
    run: &FoundRun,
    view: &RunView,
    document: &mut Value,
) -> Result<(), ErrorBody> {
    document["state"] = json!("destroyed");
    let limits = PageLimits {
        count: usize::try_from(TAIL).unwrap_or(usize::MAX),
        bytes: 4 * 1024 * 1024,
    };
    let after = view.last_event.saturating_sub(TAIL);
    let tail = events(state, run, after, limits).map_err(|e| e.body())?;
    document["tombstone"] = tombstone(view, &tail.events);
    if let Some(bundle) = &view.bundle_id {
        document["bundleId"] = json!(bundle);
    }
    Ok(())
}

/// Returns how, when and why a sandbox ended, and who ended it.
fn tombstone(view: &RunView, tail: &[LifecycleEvent]) -> Value {
    // The first change to an end state contains the reason and the actor; later changes only show
    // the progress of the shutdown.
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
        // The journal has no change to an end state: the sandbox did not start, or its supervisor
        // was killed.
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

/// Formats the causes of what a list omits.
fn unreadable(document: &Value) -> impl Iterator<Item = String> {
    let errors = document["unreadable"].as_array().into_iter().flatten();
    errors.map(|error| format!("Error: {}", text(error, "message")))
}

/// Formats `sandbox/v1` or another output document of `sandbox` as human-readable lines.
pub(super) fn lines(document: &Value) -> Vec<String> {
    if let Some(rows) = document["sandboxes"].as_array() {
        let head = format!("{SANDBOX:<36}  {:<12}  {PROFILE}", "STATE");
        let mut lines = vec![head];
        lines.extend(rows.iter().map(one_line));
        lines.extend(unreadable(document));
        return lines;
    }
    if let Some(rows) = document["snapshots"].as_array() {
        let head = format!(
            "{:<37}  {:<24}  {:>9}  NAME, {SANDBOX}",
            "SNAPSHOT", "MADE", "SIZE"
        );
        let mut lines = vec![head];
        lines.extend(rows.iter().map(|row| {
            let (id, at, size) = (text(row, "id"), text(row, "created_at"), size(row));
            let name = plain_line(&text(row, "name"));
            format!(
                "{id:<37}  {at:<24}  {size:>9}  {name}, {}",
                text(row, "run_id")
            )
        }));
        let damaged = document["damaged"].as_array().into_iter().flatten();
        lines.extend(damaged.map(|id| {
            format!(
                "{}  damaged; remove-snapshot removes it",
                id.as_str().unwrap_or_default()
            )
        }));
        lines.extend(unreadable(document));
        return lines;
    }
    match document["schema"].as_str() {
        Some(schema_id::SANDBOX) => sandbox(document),
        Some(schema_id::SANDBOX_SNAPSHOT) => snapshot(document),
        Some(schema_id::PREVIEW) => preview(document),
        _ => {
            let members = document.as_object().into_iter().flatten();
            members
                .filter(|(name, value)| !value.is_null() && *name != "schema" && *name != "success")
                .map(|(name, _)| format!("{name}: {}", text(document, name)))
                .collect()
        }
    }
}

const SANDBOX: &str = "SANDBOX";
const PROFILE: &str = "PROFILE";

fn text(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Formats the `total_bytes` of a row, for example as `1.5 MiB`.
fn size(row: &Value) -> String {
    let bytes = row["total_bytes"].as_u64().unwrap_or_default();
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20),
    }
}

fn one_line(row: &Value) -> String {
    let identity = &row["identity"];
    format!(
        "{:<36}  {:<12}  {}@{}",
        text(row, "id"),
        text(row, "state"),
        text(identity, "profile"),
        text(identity, "version"),
    )
}

fn sandbox(document: &Value) -> Vec<String> {
    let mut lines = vec![one_line(document)];
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("  {name:<10} {}", plain_line(&value)));
        }
    };
    add("isolation", text(document, "isolation"));
    add("network", text(document, "network"));
    add("preview", text(&document["preview"], "url"));
    for row in document["executions"].as_array().into_iter().flatten() {
        let (id, by) = (text(row, "id"), text(row, "actor"));
        add("runs", format!("{} ({id}, by {by})", text(row, "program")));
    }
    let expires = text(document, "expiresAt");
    let left = left(&expires, &now_rfc3339());
    add(
        "expires",
        left.map_or(expires.clone(), |left| format!("{expires} ({left})")),
    );
    let told = &document["tombstone"];
    if told.is_object() {
        let (how, by) = (text(told, "how"), text(told, "actor"));
        add(
            "ended",
            format!("{} ({how} by {by})", text(told, "endedAt")),
        );
        add("reason", text(told, "reason"));
    }
    add("bundle", text(document, "bundleId"));
    lines
}

fn preview(document: &Value) -> Vec<String> {
    let link = match text(document, "accessUrl") {
        link if link.is_empty() => text(document, "url"),
        link => link,
    };
    let mut lines = vec![format!("{link} until {}", text(document, "expiresAt"))];
    let login = text(document, "loginUrl");
    if !login.is_empty() {
        lines.push(format!("login, works once: {login}"));
    }
    lines
}

fn snapshot(document: &Value) -> Vec<String> {
    let (id, run) = (text(document, "id"), text(document, "run_id"));
    vec![
        format!("{id}  {}", plain_line(&text(document, "name"))),
        format!(
            "  {} of {run}, made {}",
            size(document),
            text(document, "created_at")
        ),
        format!("  wp-codebox sandbox restore {run} {id}"),
    ]
}

/// Returns the time from `now` to `until`, for example `in 29 min`; `None` if the times are in
/// different months or `until` has passed.
fn left(until: &str, now: &str) -> Option<String> {
    let seconds = |text: &str| -> Option<u64> {
        let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
        let (days, hours) = (part(8..10)?, part(11..13)?);
        Some(((days * 24 + hours) * 60 + part(14..16)?) * 60 + part(17..19)?)
    };
    // Below, days are subtracted, which is wrong across the end of a month.
    if until.get(..7)? != now.get(..7)? {
        return None;
    }
    match seconds(until)?.checked_sub(seconds(now)?)? {
        left @ 0..120 => Some(format!("in {left} s")),
        left @ 120..7200 => Some(format!("in {} min", left / 60)),
        left => Some(format!("in {} h", left / 3600)),
    }
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
    fn output_about_an_ended_sandbox_contains_how_why_and_by_whom_it_ended() {
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

    #[test]
    fn lines_about_snapshots_and_a_sandbox_have_their_fields_and_no_control_characters() {
        let kept = json!({
            "schema": "wp-codebox/sandbox-snapshot/v1", "id": "snap_1", "name": "a\u{1b}[2Jb",
            "run_id": "run_1", "total_bytes": 1_600_000, "created_at": "t",
        });
        let told = lines(&kept).join("\n");
        assert!(told.contains("a[2Jb") && told.contains("1.5 MiB"), "{told}");
        assert!(told.contains("sandbox restore run_1 snap_1"), "{told}");
        let listed = lines(&json!({"snapshots": [kept], "damaged": ["snap_2"]}));
        assert!(
            listed[0].starts_with("SNAPSHOT") && listed.len() == 3,
            "{listed:?}"
        );
        assert!(!listed.concat().contains('\u{1b}'));
        let held = lines(&json!({
            "schema": "wp-codebox/sandbox/v1", "id": "run_1", "state": "active", "isolation": "full",
            "network": "deny", "preview": {"url": "http://127.0.0.1:1/"}, "expiresAt": "e",
            "executions": [{"id": "exec-1", "program": "sleep", "actor": "me"}],
        }));
        for part in [
            "full",
            "deny",
            "http://127.0.0.1:1/",
            "sleep (exec-1, by me)",
        ] {
            assert!(
                held.iter().any(|line| line.contains(part)),
                "{part}: {held:?}"
            );
        }
        let at = |minute: &str| format!("2026-11-22T16:{minute}.000Z");
        assert_eq!(
            left(&at("30:05"), &at("00:59")).as_deref(),
            Some("in 29 min")
        );
        assert_eq!(left(&at("01:05"), &at("00:59")).as_deref(), Some("in 6 s"));
        assert_eq!(left(&at("00:05"), &at("00:59")), None);
        assert_eq!(left("e", &at("00:59")), None);
    }
}
