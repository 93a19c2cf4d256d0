//! `wp-codebox sandbox`: sandboxes that outlive their commands.
//!
//! A sandbox is a run that is kept open (held) after its setup and continues without its caller
//! (detached). The provenance of the run marks it as a sandbox. Its supervisor enforces the
//! lifetime, and its journal records all changes of state with their actors. A seed file in the
//! site's directory stores the parameters of creation for `recreate`; there is no further state.

mod args;
mod create;
mod estimate;
mod place;
mod seed;
mod shelf;
mod shown;

pub(crate) use args::SandboxCommand;

use super::duration;
use super::output::Output;
use super::supervisor::Spawned;
use crate::{Settings, cancel, live};
use args::{ExtendArgs, ListArgs, OneArgs, PlaceArgs, PreviewArgs, RestoreArgs, SnapshotArgs};
use place::{POLL_INTERVAL, PROVENANCE, found, open};
use seed::Seed;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CancelDetails, ErrorBody, ErrorCode, LiveRequest, PreviewLogin, PreviewRequest, RunMode,
    RunStatus, SiteId, SnapshotRequest, schema_id,
};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runtime::{
    FoundRun, ListFilter, OpenSnapshot, SnapshotScope, SnapshotStore, StateDir, StatusFilter, find,
    list, now_rfc3339, status,
};

/// Time limit for a request to a sandbox, enough for a snapshot of several gigabytes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for a sandbox to write its bundle and end.
const END_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn main(output: &Output, command: &SandboxCommand) -> ExitCode {
    let (name, done) = match command {
        SandboxCommand::Create(args) => ("sandbox create", create::create(args, *output)),
        SandboxCommand::Get(args) => ("sandbox get", get(args)),
        SandboxCommand::List(args) => ("sandbox list", show_list(args)),
        SandboxCommand::ExtendTtl(args) => ("sandbox extend-ttl", extend(args)),
        SandboxCommand::Snapshot(args) => ("sandbox snapshot", snapshot(args)),
        SandboxCommand::Restore(args) => ("sandbox restore", restore(args)),
        SandboxCommand::Recreate(args) => ("sandbox recreate", recreate(args, *output)),
        SandboxCommand::Destroy(args) => ("sandbox destroy", destroy(args)),
        SandboxCommand::Preview(args) => ("sandbox preview", preview(args)),
        SandboxCommand::Snapshots(args) => ("sandbox snapshots", shelf::snapshots(args)),
        SandboxCommand::RemoveSnapshot(args) => ("sandbox remove-snapshot", shelf::remove(args)),
        SandboxCommand::EstimateCost(args) => ("sandbox estimate-cost", estimate::estimate(args)),
    };
    match done {
        Ok(document) => output.answer(&document, &shown::lines(&document)),
        Err(error) => return output.failure(name, &error),
    }
    ExitCode::SUCCESS
}

/// Sends a request to a sandbox; for an ended one, returns an error with the reason of its end.
fn ask(
    state: &StateDir,
    run: &FoundRun,
    place: &PlaceArgs,
    request: LiveRequest,
) -> Result<Value, ErrorBody> {
    if status(state, run).map_err(|e| e.body())? == RunStatus::Ended {
        let document = shown::document(state, run)?;
        let reason = document["tombstone"]["reason"].as_str().unwrap_or_default();
        let message = format!("sandbox {} has ended: {reason}", run.run_id);
        return Err(ErrorBody::new(ErrorCode::SandboxNotHeld, message)
            .with("tombstone", document["tombstone"].clone()));
    }
    live::ask(
        run,
        &place.actor,
        request,
        ReplyTimeout::AtMost(REQUEST_TIMEOUT),
    )
}

fn get(args: &OneArgs) -> Result<Value, ErrorBody> {
    let (state, site) = open(&args.place)?;
    shown::document(&state, &found(&state, &site, &args.sandbox)?)
}

fn show_list(args: &ListArgs) -> Result<Value, ErrorBody> {
    let (state, site) = open(&args.place)?;
    let filter = ListFilter {
        status: StatusFilter::Any,
        limit: usize::MAX,
        offset: 0,
    };
    let (_, runs) = list(&state, &[site], filter).map_err(|e| e.body())?;
    let all: Vec<FoundRun> = runs
        .into_iter()
        .filter(|(_, view)| view.provenance.contains_key(PROVENANCE))
        .map(|(run, _)| run)
        .collect();
    let rows = all
        .iter()
        .take(usize::from(args.limit))
        .filter_map(|run| shown::document(&state, run).ok())
        .collect::<Vec<_>>();
    Ok(
        json!({"schema": schema_id::SANDBOX_LIST, "success": true, "total": all.len(), "sandboxes": rows}),
    )
}

fn extend(args: &ExtendArgs) -> Result<Value, ErrorBody> {
    let ttl_ms = duration::positive(ErrorCode::InputInvalid, "DURATION", &args.ttl)?;
    let (state, site) = open(&args.place)?;
    let run = found(&state, &site, &args.sandbox)?;
    ask(&state, &run, &args.place, LiveRequest::ExtendTtl { ttl_ms })?;
    shown::document(&state, &run)
}

/// Opens the preview of a held run, whether `sandbox create` or another command started it.
fn preview(args: &PreviewArgs) -> Result<Value, ErrorBody> {
    let (state, site) = open(&args.place)?;
    let run = find(&state, std::slice::from_ref(&site), &args.sandbox).map_err(|e| e.body())?;
    let login = args.login.as_ref().map(|user| PreviewLogin {
        key: None,
        user: Some(user.clone()).filter(|user| !user.is_empty()),
    });
    let request = PreviewRequest {
        login,
        ..PreviewRequest::default()
    };
    let request = LiveRequest::Preview(request);
    live::ask(
        &run,
        &args.place.actor,
        request,
        ReplyTimeout::AtMost(REQUEST_TIMEOUT),
    )
}

fn snapshot(args: &SnapshotArgs) -> Result<Value, ErrorBody> {
    let (state, site) = open(&args.place)?;
    let run = found(&state, &site, &args.sandbox)?;
    let request = LiveRequest::Snapshot(SnapshotRequest {
        name: args.name.clone().unwrap_or_else(now_rfc3339),
        metadata: serde_json::Map::new(),
    });
    ask(&state, &run, &args.place, request)
}

fn restore(args: &RestoreArgs) -> Result<Value, ErrorBody> {
    let (state, site) = open(&args.place)?;
    let run = found(&state, &site, &args.sandbox)?;
    let id = args.snapshot.clone();
    ask(&state, &run, &args.place, LiveRequest::Restore { id })
}

fn destroy(args: &OneArgs) -> Result<Value, ErrorBody> {
    let (state, site) = open(&args.place)?;
    let run = found(&state, &site, &args.sandbox)?;
    end(&state, &run, &args.place.actor, "it was destroyed")?;
    shown::document(&state, &run)
}

/// Ends a sandbox in any state and waits for its end. Has no effect on an ended sandbox.
pub(crate) fn end(
    state: &StateDir,
    run: &FoundRun,
    actor: &str,
    reason: &str,
) -> Result<(), ErrorBody> {
    let over = || {
        status(state, run)
            .map(|s| s == RunStatus::Ended)
            .map_err(|e| e.body())
    };
    if over()? {
        return Ok(());
    }
    let close = LiveRequest::Close {
        reason: reason.to_owned(),
    };
    // Ask the sandbox to close, unless it is not ready yet. If it was not asked or did not answer,
    // cancel its run; a cancelled run also saves its changes.
    let heard = shown::is_held(run)
        && !shown::is_being_made(run)
        && live::ask(run, actor, close, ReplyTimeout::AtMost(END_TIMEOUT)).is_ok();
    if !heard && !over()? {
        let wish = CancelDetails {
            actor: Some(actor.to_owned()),
            reason: Some(reason.to_owned()),
        };
        cancel::cancel(state, run, &wish)?;
    }
    let until = Instant::now() + END_TIMEOUT;
    while !over()? {
        if Instant::now() > until {
            let message = format!("sandbox {} has not ended within the time limit", run.run_id);
            return Err(ErrorBody::new(ErrorCode::RunnerUnavailable, message)
                .hint("run the command again: it waits for the end and changes nothing else"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn recreate(args: &OneArgs, output: Output) -> Result<Value, ErrorBody> {
    // Spawn the supervisor before `open` gives up root: the supervisor needs root to open all
    // source directories.
    let supervisor = Spawned::new(RunMode::Detached)?;
    let (state, site) = open(&args.place)?;
    let run = found(&state, &site, &args.sandbox)?;
    let seed = Seed::read(&state, &site, &run.run_id)?;
    // Validate everything before the old sandbox is ended. `_snapshot` locks the snapshot until
    // the new sandbox uses it.
    let _snapshot = match &seed.snapshot {
        None => None,
        Some(reference) => Some(starting_snapshot(&state, &site, reference)?),
    };
    let settings = Settings::for_guests(&args.place.paths, None, output)?;
    let seed = seed.again(&run.run_id, &args.place.actor);
    let judged = create::validate(&args.place, settings, seed)?;
    end(&state, &run, &args.place.actor, "it is recreated")?;
    judged.make(supervisor)
}

/// Opens and verifies the snapshot that a sandbox started from.
fn starting_snapshot(
    state: &StateDir,
    site: &SiteId,
    reference: &str,
) -> Result<OpenSnapshot, ErrorBody> {
    let shelf = SnapshotStore::of_site(state, site).map_err(|e| e.body())?;
    let id = shelf.by_id(reference).map_err(|e| e.body())?;
    shelf.open(&id, SnapshotScope::Any).map_err(|e| e.body())
}
