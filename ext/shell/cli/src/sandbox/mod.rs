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
mod shown;

pub(crate) use args::SandboxCommand;

use super::duration;
use super::output::Output;
use crate::request::environment;
use args::{
    ExtendArgs, ListArgs, OneArgs, PreviewArgs, RemoveSnapshotArgs, RestoreArgs, SnapshotArgs,
    SnapshotsArgs,
};
use place::Place;
use serde_json::Value;
use std::process::ExitCode;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LiveRequest, PreviewLogin, PreviewRequest, RunMode,
};
use wp_codebox_control::{ReplyTimeout, new_run_id};
use wp_codebox_runs::live;
use wp_codebox_runs::supervisor::Spawned;
use wp_codebox_runtime::find;
use wp_codebox_sandboxes::{PreviewAccess, REQUEST_TIMEOUT, SecretSource, Seed, Wanted};
use wp_codebox_settings::Settings;

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
        SandboxCommand::Snapshots(args) => ("sandbox snapshots", snapshots(args)),
        SandboxCommand::RemoveSnapshot(args) => ("sandbox remove-snapshot", remove_snapshot(args)),
        SandboxCommand::EstimateCost(args) => ("sandbox estimate-cost", estimate::command(args)),
    };
    match done {
        Ok(document) => {
            output.answer(&document, &shown::lines(&document));
            ExitCode::from(u8::from(document.get("unreadable").is_some()))
        }
        Err(error) => output.failure(name, &error),
    }
}

fn get(args: &OneArgs) -> Result<Value, ErrorBody> {
    let place = Place::open(&args.place)?;
    let sandboxes = place.sandboxes();
    sandboxes.document(&sandboxes.find(&args.sandbox)?)
}

fn show_list(args: &ListArgs) -> Result<Value, ErrorBody> {
    let place = Place::open(&args.place)?;
    place.sandboxes().list(usize::from(args.limit))
}

fn extend(args: &ExtendArgs) -> Result<Value, ErrorBody> {
    let ttl_ms = duration::positive(ErrorCode::InputInvalid, "DURATION", &args.ttl)?;
    let place = Place::open(&args.place)?;
    let sandboxes = place.sandboxes();
    sandboxes.extend_ttl(&sandboxes.find(&args.sandbox)?, &args.place.actor, ttl_ms)
}

/// Opens the preview of a held run, whether `sandbox create` or another command started it.
fn preview(args: &PreviewArgs) -> Result<Value, ErrorBody> {
    let place = Place::open(&args.place)?;
    let sites = std::slice::from_ref(&place.site);
    let run = find(&place.state, sites, &args.sandbox)?;
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
    let place = Place::open(&args.place)?;
    let sandboxes = place.sandboxes();
    let run = sandboxes.find(&args.sandbox)?;
    sandboxes.snapshot(&run, &args.place.actor, args.name.as_deref())
}

fn restore(args: &RestoreArgs) -> Result<Value, ErrorBody> {
    let place = Place::open(&args.place)?;
    let sandboxes = place.sandboxes();
    let run = sandboxes.find(&args.sandbox)?;
    sandboxes.restore(&run, &args.place.actor, &args.snapshot)
}

fn snapshots(args: &SnapshotsArgs) -> Result<Value, ErrorBody> {
    let place = Place::open(&args.place)?;
    let sandboxes = place.sandboxes();
    let of = args.of.as_deref().map(|of| sandboxes.find(of));
    sandboxes.snapshots(of.transpose()?.as_ref())
}

fn remove_snapshot(args: &RemoveSnapshotArgs) -> Result<Value, ErrorBody> {
    let place = Place::open(&args.place)?;
    let sandboxes = place.sandboxes();
    let of = args.of.as_deref().map(|of| sandboxes.find(of));
    sandboxes.remove_snapshot(&args.snapshot, of.transpose()?.as_ref(), &args.place.actor)
}

fn destroy(args: &OneArgs) -> Result<Value, ErrorBody> {
    let place = Place::open(&args.place)?;
    let sandboxes = place.sandboxes();
    let run = sandboxes.find(&args.sandbox)?;
    sandboxes.end(&run, &args.place.actor, "it was destroyed")?;
    sandboxes.document(&run)
}

fn recreate(args: &OneArgs, output: Output) -> Result<Value, ErrorBody> {
    // Spawn the supervisor before `open` gives up root: the supervisor needs root to open all
    // source directories.
    let supervisor = Spawned::new(RunMode::Detached)?;
    let place = Place::open(&args.place)?;
    let sandboxes = place.sandboxes();
    let run = sandboxes.find(&args.sandbox)?;
    let seed = Seed::read(&place.state, &place.site, &run.run_id)?;
    // Validate everything before the old sandbox is ended. `_snapshot` locks the snapshot until
    // the new sandbox uses it.
    let _snapshot = match &seed.snapshot {
        None => None,
        Some(reference) => Some(sandboxes.starting_snapshot(reference)?),
    };
    let settings = Settings::for_guests(&args.place.paths, None, output)?;
    let wanted = Wanted {
        run_id: new_run_id()?,
        site: place.site.clone(),
        seed: seed.again(&run.run_id, &args.place.actor),
        max_runs: None,
        preview: PreviewAccess::Machine,
    };
    let valid = wanted.validate(&settings, &SecretSource::Environment(environment))?;
    sandboxes.end(&run, &args.place.actor, "it is recreated")?;
    valid.make(supervisor)
}
