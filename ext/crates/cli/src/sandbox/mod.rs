//! `wp-codebox sandbox`: sandboxes that outlive their commands.
//!
//! A sandbox is a held, detached run with an identity; nothing else remembers it. Its supervisor
//! owns its lifetime and its journal says who changed what. Beside the runs of a site lies what
//! it was made from, for `recreate`.

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
use crate::{cancel, live};
use args::{ExtendArgs, ListArgs, OneArgs, PlaceArgs, PreviewArgs, RestoreArgs, SnapshotArgs};
use place::{LOOK_AGAIN, PROVENANCE, found, open};
use seed::Seed;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CancelDetails, ErrorBody, ErrorCode, LiveRequest, PreviewLogin, PreviewRequest, RunMode,
    RunStatus, SiteId, SnapshotRequest, schema_id,
};
use wp_codebox_control::Patience;
use wp_codebox_runtime::{
    FoundRun, ListFilter, OpenSnapshot, SnapshotScope, SnapshotStore, StateDir, StatusFilter, find,
    list, now_rfc3339, status,
};

/// How long a sandbox may take for what it is asked: a snapshot of gigabytes takes its time.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long one may take to write its bundle and end.
const LAST: Duration = Duration::from_secs(120);

pub(crate) fn main(output: &Output, command: &SandboxCommand) -> ExitCode {
    let (name, done) = match command {
        SandboxCommand::Create(args) => ("sandbox create", create::create(args)),
        SandboxCommand::Get(args) => ("sandbox get", get(args)),
        SandboxCommand::List(args) => ("sandbox list", show_list(args)),
        SandboxCommand::ExtendTtl(args) => ("sandbox extend-ttl", extend(args)),
        SandboxCommand::Snapshot(args) => ("sandbox snapshot", snapshot(args)),
        SandboxCommand::Restore(args) => ("sandbox restore", restore(args)),
        SandboxCommand::Recreate(args) => ("sandbox recreate", recreate(args)),
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

/// Asks a sandbox; one that has ended says so, and how.
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
    live::ask(run, &place.actor, request, Patience::AtMost(PATIENCE))
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

/// Opens the preview of any run that is held.
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
    live::ask(&run, &args.place.actor, request, Patience::AtMost(PATIENCE))
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

/// Ends a sandbox in whatever state it is, and waits until it has. One that has ended stays so.
fn end(state: &StateDir, run: &FoundRun, actor: &str, reason: &str) -> Result<(), ErrorBody> {
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
    // One that does not hear, or is not ready yet and would hear it only then, is cancelled: it
    // saves what it has.
    let heard = shown::is_held(run)
        && !shown::is_being_made(run)
        && live::ask(run, actor, close, Patience::AtMost(LAST)).is_ok();
    if !heard && !over()? {
        let wish = CancelDetails {
            actor: Some(actor.to_owned()),
            reason: Some(reason.to_owned()),
        };
        cancel::cancel(state, run, &wish)?;
    }
    let until = Instant::now() + LAST;
    while !over()? {
        if Instant::now() > until {
            let message = format!("sandbox {} was told to end and has not yet", run.run_id);
            return Err(ErrorBody::new(ErrorCode::RunnerUnavailable, message)
                .hint("ask again: ending it twice changes nothing"));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

fn recreate(args: &OneArgs) -> Result<Value, ErrorBody> {
    // Only root opens what only root can, and only its owner writes in the state directory.
    let supervisor = Spawned::new(RunMode::Detached)?;
    let (state, site) = open(&args.place)?;
    let run = found(&state, &site, &args.sandbox)?;
    let seed = Seed::read(&state, &site, &run.run_id)?;
    // Judged before anything is ended. Its snapshot is held until the new one has it.
    let _snapshot = match &seed.snapshot {
        None => None,
        Some(reference) => Some(begun_on(&state, &site, reference)?),
    };
    let judged = create::judge(&args.place, seed.again(&run.run_id, &args.place.actor))?;
    end(&state, &run, &args.place.actor, "it is made again")?;
    judged.make(supervisor)
}

/// The snapshot that a sandbox began with, verified.
fn begun_on(state: &StateDir, site: &SiteId, reference: &str) -> Result<OpenSnapshot, ErrorBody> {
    let shelf = SnapshotStore::of_site(state, site).map_err(|e| e.body())?;
    let id = shelf.by_id(reference).map_err(|e| e.body())?;
    shelf.open(&id, SnapshotScope::Any).map_err(|e| e.body())
}
