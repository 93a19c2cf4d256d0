//! `wp-codebox sync`: synchronizes a local directory with one in a held sandbox.

mod args;
mod shown;

pub(crate) use args::SyncArgs;

use super::output::Output;
use args::{SidesArgs, SyncAction, sides};
use shown::show;
use std::process::ExitCode;
use std::time::Duration;
use wp_codebox_changes::{SyncReport, Verdict, Way, sync};
use wp_codebox_contracts::{ErrorBody, LiveRequest};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runs::live;
use wp_codebox_runtime::{StateDir, find};
use wp_codebox_settings::Settings;

/// Time limit for a reply; long, because the supervisor replies only after its sandbox is ready.
const REPLY_LIMIT: Duration = Duration::from_secs(600);

pub(crate) fn main(output: &Output, args: &SyncArgs) -> ExitCode {
    let done = match &args.action {
        SyncAction::Push(push) => {
            let way = Way {
                verdict: Verdict::Push,
                on_conflict: push.on_conflict.into(),
                write_back: true,
                carry: !push.dry_run,
            };
            run(args, &push.sides, Some(way))
        }
        SyncAction::Pull(pull) => {
            let way = Way {
                verdict: Verdict::Pull,
                on_conflict: pull.on_conflict.into(),
                write_back: pull.write_back,
                carry: !pull.dry_run,
            };
            run(args, &pull.sides, Some(way))
        }
        SyncAction::Status(status) => run(args, &status.sides, None),
    };
    match done {
        Ok(report) => show(&report, output),
        Err(error) => output.failure("sync", &error),
    }
}

fn run(args: &SyncArgs, given: &SidesArgs, way: Option<Way>) -> Result<SyncReport, ErrorBody> {
    let settings = Settings::resolve(&given.place.paths)?;
    // Does not change from root to the owner of the state directory, as other commands do: that
    // owner may lack access to the local files.
    let state = StateDir::open(&settings.state_dir)?;
    let wanted = given.place.sites(&state)?;
    let run = find(&state, &wanted, &args.run)?;
    let (directory, guest) = sides(&given.sides);
    let line = |request: LiveRequest| {
        let patience = ReplyTimeout::AtMost(REPLY_LIMIT);
        live::ask(&run, "cli:sync", request, patience)
    };
    sync(&line, &run, &directory, guest, way)
}
