//! `wp-codebox episode`: a client of a held sandbox. Each call prints one JSON document.

mod args;

pub(crate) use args::EpisodeCommand;

use super::guest_args::GitMode;
use super::output::Output;
use super::runs::found;
use super::{duration, mount, request};
use args::{OneArgs, StartArgs, StepArgs, Which};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use wp_codebox_contracts::{
    ActionRequest, ErrorBody, ErrorCode, Hold, LiveRequest, ObservationSpec, RunMode, RunRequest,
    SnapshotRequest, TaskSpec, TaskTexts, parse_json,
};
use wp_codebox_sandboxes::{ask_episode, close_episode, start_episode};
use wp_codebox_settings::Settings;

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
    ask_episode(&run, &which.actor, asked)
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

/// Builds the run request that starts the sandbox of an episode.
fn sandbox(args: &StartArgs, settings: &Settings) -> Result<RunRequest, ErrorBody> {
    let time = |flag: &str, given: &str| duration::positive(ErrorCode::InputInvalid, flag, given);
    let ttl = time("--ttl", &args.ttl)?;
    let mounts = args.mounts.iter();
    let task = TaskSpec {
        texts: TaskTexts::of_goal("An episode"),
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

fn start(args: &StartArgs, output: Output) -> Result<Value, ErrorBody> {
    let settings = Settings::for_guests(&args.store.paths, None, output)?;
    let request = sandbox(args, &settings)?;
    start_episode(&settings.state_dir, request)
}

fn close(args: &OneArgs) -> Result<Value, ErrorBody> {
    let which = &args.which;
    let (state, run) = found(&which.place, &which.sandbox)?;
    close_episode(&state, &run, &which.actor)
}
