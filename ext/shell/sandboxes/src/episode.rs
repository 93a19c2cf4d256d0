//! Episodes: sandboxes in which a client acts step by step.

use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LifecycleCleanupStatus, LiveRequest, RunRegistryEntry, RunRequest,
};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runs::{live, run_bundle, supervisor};
use wp_codebox_runtime::{FoundRun, StateDir, entry};

/// Time limit of `start` for the sandbox to become ready, and of `close` for its bundle.
const READY: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Sends a request to the sandbox of an episode and waits for its reply without a time limit.
pub fn ask_episode(run: &FoundRun, actor: &str, request: LiveRequest) -> Result<Value, ErrorBody> {
    live::ask(run, actor, request, ReplyTimeout::Unlimited)
}

/// Starts the sandbox of an episode and waits until it is ready. Returns its status.
pub fn start_episode(state_dir: &Path, request: RunRequest) -> Result<Value, ErrorBody> {
    let state = StateDir::open(state_dir)?;
    supervisor::until_accepted(&request)?;
    state.become_owner()?;
    let run = FoundRun {
        path: state
            .path()
            .join("sites")
            .join(request.site.as_str())
            .join("runs")
            .join(request.run_id.as_str()),
        site: request.site,
        run_id: request.run_id,
    };
    let deadline = Instant::now() + READY;
    loop {
        let look = entry(&state, &run)?;
        if look.lifecycle.terminal {
            return Err(ended(&look));
        }
        match ask_episode(&run, "cli", LiveRequest::Status {}) {
            Ok(status) if matches!(status["state"].as_str(), Some("ready" | "active")) => {
                return Ok(status);
            }
            Ok(_) | Err(_) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
            Ok(_) => {
                let message = format!(
                    "sandbox {} is not ready after two minutes; look at it with `wp-codebox runs status`",
                    run.run_id
                );
                return Err(ErrorBody::new(ErrorCode::RunnerUnavailable, message));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the error for a sandbox that ended before it was ready.
fn ended(entry: &RunRegistryEntry) -> ErrorBody {
    entry.error.clone().unwrap_or_else(|| {
        let message = format!("{} ended before it was ready", entry.run_id);
        ErrorBody::new(ErrorCode::RunFailed, message)
    })
}

/// Ends the sandbox of an episode and waits until its bundle is written.
pub fn close_episode(state: &StateDir, run: &FoundRun, actor: &str) -> Result<Value, ErrorBody> {
    let asked = ask_episode(
        run,
        actor,
        LiveRequest::Close {
            reason: String::new(),
        },
    );
    let deadline = Instant::now() + READY;
    loop {
        let look = entry(state, run)?;
        let over = look.lifecycle.terminal;
        // A supervisor first writes the final record and then removes the scratch directory; wait
        // for both.
        let cleaning = look.lifecycle.cleanup.status == LifecycleCleanupStatus::Running;
        if over && (!cleaning || Instant::now() > deadline) {
            let bundle = run_bundle(state, run, look.metadata.contains_key("salvaged"))?;
            return Ok(json!({"record": look, "bundle": bundle}));
        }
        // The close request also fails if the sandbox is already closing: report its error only
        // if the sandbox has not ended ten seconds later.
        if let Err(error) = &asked
            && !over
            && Instant::now() > deadline - READY + Duration::from_secs(10)
        {
            return Err(error.clone());
        }
        if Instant::now() > deadline {
            let message = format!(
                "sandbox {} has not ended after two minutes; try again",
                run.run_id
            );
            return Err(ErrorBody::new(ErrorCode::RunnerUnavailable, message));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
