//! Waits until a new sandbox accepts requests, by reading its journal, and returns how clients reach
//! it.

use super::view::ended_error;
use serde_json::Value;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventProjection, EventsRequest, Follow, LiveReply, LiveRequest,
    PreviewRequest, RunStatus,
};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runs::live;
use wp_codebox_runtime::{FoundRun, status};
use wp_codebox_sandboxes::{Sandboxes, Seed, parsed_profile};
use wp_codebox_service::Reachability;

/// Actor of requests that the service makes for itself, e.g. the list of changed files.
pub(super) const SERVICE: &str = "service";
/// Longest time that the setup of a sandbox may take.
const LONGEST: Duration = Duration::from_secs(3600);
/// Pause before the next connection, while a supervisor does not listen yet or no longer.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until the journal says that the sandbox became ready. Returns at once for a running
/// sandbox that was ready before.
///
/// # Errors
/// The reason why the sandbox ended, if it ended before it was ready.
pub(super) fn wait(sandboxes: Sandboxes<'_>, run: &FoundRun) -> Result<(), ErrorBody> {
    let until = Instant::now() + LONGEST;
    let mut after = 0;
    loop {
        if status(sandboxes.state, run)? == RunStatus::Ended {
            return Err(ended_error(sandboxes, run));
        }
        match follow(run, &mut after, until) {
            Ok(Seen::Ready) => return Ok(()),
            // The run ended, its supervisor was killed, or the supervisor does not listen yet. Try
            // again: the status at the start of the loop shows whether the run ended.
            Ok(Seen::End) | Err(_) if Instant::now() < until => std::thread::sleep(PAUSE),
            Ok(Seen::End) | Err(_) => {
                return Err(ErrorBody::new(
                    ErrorCode::SandboxStartFailed,
                    format!("sandbox {} is not ready within the time limit", run.run_id),
                ));
            }
        }
    }
}

enum Seen {
    Ready,
    End,
}

/// Reads events until one says that the sandbox is ready, or until their stream ends.
fn follow(run: &FoundRun, after: &mut u64, until: Instant) -> Result<Seen, ErrorBody> {
    let request = LiveRequest::Events(EventsRequest {
        after: *after,
        projection: EventProjection::Journal,
        follow: Follow::End,
    });
    let client = live::open(run, SERVICE, request)?;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match client.next(ReplyTimeout::AtMost(left))? {
            LiveReply::Event { event } => {
                if let Some(seq) = event["seq"].as_u64() {
                    *after = seq;
                }
                if event["type"] == "runtime.state.changed" && event["data"]["to"] == "ready" {
                    return Ok(Seen::Ready);
                }
            }
            LiveReply::Answer { .. } | LiveReply::Error { .. } | LiveReply::Exited(_) => {
                return Ok(Seen::End);
            }
            LiveReply::Started { .. }
            | LiveReply::StdinCredit { .. }
            | LiveReply::StdinClosed
            | LiveReply::Output { .. } => {}
        }
    }
}

/// Returns how clients reach a sandbox that is ready.
pub(super) fn reachability(
    sandboxes: Sandboxes<'_>,
    run: &FoundRun,
) -> Result<Reachability, ErrorBody> {
    let document = sandboxes.document(run)?;
    let seed = Seed::read(sandboxes.state, sandboxes.site, &run.run_id);
    let profile = seed.and_then(|seed| parsed_profile(seed.profile.as_bytes(), "of the sandbox"));
    Ok(Reachability {
        // Without the stored parameters the sandbox itself decides: it refuses programs that its
        // policy does not allow.
        exec: profile.map_or(true, |loaded| loaded.profile.reachability.exec),
        preview_url: preview(sandboxes, run, &document)?,
    })
}

/// Returns the link of the open preview, with the token that visitors need.
fn preview(
    sandboxes: Sandboxes<'_>,
    run: &FoundRun,
    document: &Value,
) -> Result<Option<String>, ErrorBody> {
    if document["preview"]["status"] != "open" {
        return Ok(None);
    }
    let status = PreviewRequest {
        action: Some("status".to_owned()),
        ..PreviewRequest::default()
    };
    let told = sandboxes.ask(run, SERVICE, LiveRequest::Preview(status))?;
    let link = told["accessUrl"].as_str().or(told["url"].as_str());
    Ok(link.map(str::to_owned))
}
