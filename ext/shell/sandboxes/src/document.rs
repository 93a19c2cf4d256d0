//! Builds the document `sandbox/v1`. For a running sandbox its supervisor reports the state; for an
//! ended one the state comes from the record and the journal of the run.

use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CONTROL_SOCKET, ErrorBody, EventType, LifecycleEvent, LiveRequest, RunStatus, RunView,
    schema_id,
};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runs::live;
use wp_codebox_runtime::{FoundRun, PageLimits, StateDir, events, view};

/// Key in the provenance of a run (facts that its creator stores with it) that marks a sandbox.
pub(crate) const PROVENANCE: &str = "sandbox";
/// Poll interval while a command waits for the end of a run.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for a status reply of a sandbox.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Time to wait for the end of a supervisor that no longer accepts connections.
const DYING: Duration = Duration::from_secs(5);
/// Number of events that are searched for the last state of a sandbox, from the end of the journal.
const TAIL: u64 = 64;

/// Returns whether a sandbox still has its control socket, on which its supervisor accepts
/// requests.
pub(crate) fn is_held(run: &FoundRun) -> bool {
    run.path.join(CONTROL_SOCKET).exists()
}

/// Builds `sandbox/v1` for a sandbox in any state.
pub(crate) fn document(state: &StateDir, run: &FoundRun) -> Result<Value, ErrorBody> {
    let mut view = view(state, run)?;
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
        "identity": view.facts.provenance.get(PROVENANCE),
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
pub(crate) fn is_being_made(run: &FoundRun) -> bool {
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
        seen = view(state, run)?;
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
    let tail = events(state, run, after, limits)?;
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
}
