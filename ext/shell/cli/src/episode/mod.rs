//! `wp-codebox episode`: a client of a held sandbox. Each call prints one JSON document.

mod args;

pub(crate) use args::EpisodeCommand;

use super::guest_args::GitMode;
use super::output::Output;
use super::runs::{bundle, found};
use super::{Settings, duration, mount, request};
use args::{OneArgs, StartArgs, StepArgs, Which};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ActionRequest, ErrorBody, ErrorCode, Hold, LifecycleCleanupStatus, LiveRequest,
    ObservationSpec, RunMode, RunRegistryEntry, RunRequest, SnapshotRequest, TaskSpec, parse_json,
};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runs::live;
use wp_codebox_runs::supervisor;
use wp_codebox_runtime::{FoundRun, StateDir, entry};

/// Time limit of `start` for the sandbox to become ready, and of `close` for its bundle.
const READY: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn main(output: &Output, command: &EpisodeCommand) -> ExitCode {
    let (name, done) = match command {
        EpisodeCommand::Start(args) => ("episode start", start(args, *output)),
        EpisodeCommand::Step(args) => ("episode step", step(args)),
        EpisodeCommand::Observe(args) => (
            "episode observe",
            spec(&args.spec).and_then(|spec| ask(&args.which, LiveRequest::Observe { spec })),
        ),
        EpisodeCommand::Snapshot(args) => (
            "episode snapshot",
            ask(
                &args.which,
                LiveRequest::Snapshot(SnapshotRequest {
                    name: args.name.clone(),
                    ..SnapshotRequest::default()
                }),
            ),
        ),
        EpisodeCommand::Reset(args) => ("episode reset", ask(&args.which, LiveRequest::Reset {})),
        EpisodeCommand::Trace(args) => ("episode trace", ask(&args.which, LiveRequest::Trace {})),
        EpisodeCommand::Close(args) => ("episode close", close(args)),
    };
    match done {
        Ok(answer) => {
            output.document(&answer);
            ExitCode::SUCCESS
        }
        Err(error) => output.failure(name, &error),
    }
}

fn invalid(what: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, what)
}

fn ask(which: &Which, asked: LiveRequest) -> Result<Value, ErrorBody> {
    let (_, run) = found(&which.place, &which.sandbox)?;
    put(&run, &which.actor, asked)
}

fn put(run: &FoundRun, actor: &str, request: LiveRequest) -> Result<Value, ErrorBody> {
    live::ask(run, actor, request, ReplyTimeout::Unlimited)
}

fn step(args: &StepArgs) -> Result<Value, ErrorBody> {
    let action = match &args.action {
        Some(text) => parse_json(text.as_bytes())
            .map_err(|e| invalid(format!("--action is not a valid action: {e}")))?,
        None => ActionRequest {
            command: args.command.clone().unwrap_or_default(),
            args: args.args.clone(),
            ..ActionRequest::default()
        },
    };
    let observation = args.observe.as_deref().map(spec).transpose()?;
    let request = LiveRequest::Step {
        action,
        observation,
    };
    ask(&args.which, request)
}

/// Parses an observation: a type, or a JSON object.
fn spec(given: &str) -> Result<ObservationSpec, ErrorBody> {
    let value = if given.trim_start().starts_with('{') {
        parse_json(given.as_bytes()).map_err(|e| {
            let place = format!("line {}, column {}", e.line(), e.column());
            invalid(format!("the observation is not valid JSON ({place})"))
        })?
    } else {
        json!({"type": given})
    };
    serde_json::from_value(value).map_err(|e| invalid(format!("the observation: {e}")))
}

fn start(args: &StartArgs, output: Output) -> Result<Value, ErrorBody> {
    let settings = Settings::for_guests(&args.store.paths, None, output)?;
    let request = sandbox(args, &settings)?;
    let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
    supervisor::until_accepted(&request)?;
    state.become_owner().map_err(|e| e.body())?;
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
        let look = entry(&state, &run).map_err(|e| e.body())?;
        if look.lifecycle.terminal {
            return Err(ended(&look));
        }
        match put(&run, "cli", LiveRequest::Status {}) {
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

/// Builds the run request that starts the sandbox of an episode.
fn sandbox(args: &StartArgs, settings: &Settings) -> Result<RunRequest, ErrorBody> {
    let time = |flag: &str, given: &str| duration::positive(ErrorCode::InputInvalid, flag, given);
    let ttl = time("--ttl", &args.ttl)?;
    let mounts = args.mounts.iter();
    let task = TaskSpec {
        goal: "An episode".to_owned(),
        mode: RunMode::Detached,
        policy: args.policy.as_deref().map(request::policy).transpose()?,
        mounts: mounts
            .map(|text| Ok(mount::mount(text, GitMode::Auto)?.request))
            .collect::<Result<_, ErrorBody>>()?,
        hold: Some(Hold {
            ttl_ms: ttl,
            max_ttl_ms: ttl,
            idle_ms: args
                .idle
                .as_deref()
                .map(|given| time("--idle", given))
                .transpose()?,
            preview: None,
            identity: None,
            snapshot: None,
        }),
        provenance: Map::from_iter([("requester".to_owned(), Value::from("command-line"))]),
        ..TaskSpec::default()
    };
    request::request(task, &args.store.site, settings)
}

/// Ends the sandbox of an episode and waits until its bundle is written.
fn close(args: &OneArgs) -> Result<Value, ErrorBody> {
    let which = &args.which;
    let (state, run) = found(&which.place, &which.sandbox)?;
    let asked = put(
        &run,
        &which.actor,
        LiveRequest::Close {
            reason: String::new(),
        },
    );
    let deadline = Instant::now() + READY;
    loop {
        let look = entry(&state, &run).map_err(|e| e.body())?;
        let over = look.lifecycle.terminal;
        // A supervisor first writes the final record and then removes the scratch directory; wait
        // for both.
        let cleaning = look.lifecycle.cleanup.status == LifecycleCleanupStatus::Running;
        if over && (!cleaning || Instant::now() > deadline) {
            let bundle = bundle(&state, &run, look.metadata.contains_key("salvaged"))?;
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
