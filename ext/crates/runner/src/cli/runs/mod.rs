//! `wp-codebox runs`: the registry of runs, for people and for the extension.

mod args;
mod table;

pub(crate) use args::RunsCommand;

use super::Settings;
use super::output::Output;
use args::{EventsArgs, GetArgs, ListArgs, PlaceArgs};
use std::process::ExitCode;
use std::time::Duration;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, RunEvents, RunList, RunStatus, SiteId, schema_id,
};
use wp_codebox_runtime::{
    FoundRun, ListFilter, PageLimits, StateDir, StatusFilter, events, find, list, sites, view,
};

/// Bytes of one page of events.
const PAGE: u64 = 4 * 1024 * 1024;
/// How often a running run is looked at.
const FOLLOW: Duration = Duration::from_millis(250);

pub(crate) fn main(output: &Output, command: &RunsCommand) -> ExitCode {
    let (name, done) = match command {
        RunsCommand::List(args) => ("runs list", show_list(output, args)),
        RunsCommand::Get(args) => ("runs get", show_run(output, args)),
        RunsCommand::Events(args) => ("runs events", show_events(output, args)),
        RunsCommand::Cancel(args) => ("runs cancel", cancel(output, args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure(name, &error),
    }
}

/// The state directory, root given up, and the sites that are meant.
fn open(place: &PlaceArgs) -> Result<(StateDir, Vec<SiteId>), ErrorBody> {
    let settings = Settings::resolve(&place.paths);
    let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
    state.become_owner().map_err(|e| e.body())?;
    let wanted = match &place.site {
        Some(site) => vec![
            SiteId::new(site.clone())
                .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, format!("--site: {e}")))?,
        ],
        None => sites(&state).map_err(|e| e.body())?,
    };
    Ok((state, wanted))
}

fn found(place: &PlaceArgs, reference: &str) -> Result<(StateDir, FoundRun), ErrorBody> {
    let (state, sites) = open(place)?;
    let run = find(&state, &sites, reference).map_err(|e| e.body())?;
    Ok((state, run))
}

fn show_list(output: &Output, args: &ListArgs) -> Result<(), ErrorBody> {
    let (state, sites) = open(&args.place)?;
    let filter = ListFilter {
        status: match args.status {
            None => StatusFilter::Any,
            Some(status) => StatusFilter::Only(status.into()),
        },
        limit: usize::from(args.limit),
        offset: args.offset,
    };
    let (total, rows) = list(&state, &sites, filter).map_err(|e| e.body())?;
    if output.is_json() {
        let runs = rows.into_iter().map(|(_, view)| view).collect();
        output.document(&serde_json::json!(RunList {
            schema: schema_id::RUN_LIST.to_owned(),
            total,
            runs,
        }));
    } else {
        for line in table::runs(&rows) {
            output.line(&line);
        }
        output.note(&format!("{} of {total} runs", rows.len()));
    }
    Ok(())
}

fn show_run(output: &Output, args: &GetArgs) -> Result<(), ErrorBody> {
    let (state, run) = found(&args.place, &args.run)?;
    let view = view(&state, &run).map_err(|e| e.body())?;
    if output.is_json() {
        output.document(&serde_json::json!(view));
    } else {
        for line in table::run(&run, &view) {
            output.line(&line);
        }
    }
    Ok(())
}

fn show_events(output: &Output, args: &EventsArgs) -> Result<(), ErrorBody> {
    let (state, run) = found(&args.place, &args.run)?;
    let limits = PageLimits {
        count: usize::from(args.limit),
        bytes: PAGE,
    };
    let mut after = args.after;
    loop {
        let page = events(&state, &run, after, limits).map_err(|e| e.body())?;
        after = page.cursor;
        show_page(output, args, &page)?;
        if !args.follow || (page.status == RunStatus::Ended && !page.more) {
            return Ok(());
        }
        if !page.more {
            std::thread::sleep(FOLLOW);
        }
    }
}

fn show_page(output: &Output, args: &EventsArgs, page: &RunEvents) -> Result<(), ErrorBody> {
    if !output.is_json() {
        for event in &page.events {
            output.line(&table::event(event));
        }
        if page.more && !args.follow {
            output.note(&format!("there are more: --after {}", page.cursor));
        }
        return Ok(());
    }
    if !args.follow {
        output.document(&serde_json::json!(page));
    } else if !page.events.is_empty() || page.status == RunStatus::Ended {
        let line = serde_json::to_string(page)
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        output.line(&line);
    }
    Ok(())
}

fn cancel(output: &Output, args: &GetArgs) -> Result<(), ErrorBody> {
    let (state, run) = found(&args.place, &args.run)?;
    let answer = crate::control::cancel(&state, &run)?;
    if output.is_json() {
        output.document(&serde_json::json!(answer));
    } else {
        output.line(&table::cancellation(&answer));
    }
    Ok(())
}
