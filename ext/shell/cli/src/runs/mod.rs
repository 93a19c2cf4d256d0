//! `wp-codebox runs`: the run registry, as human-readable lines and as JSON for the PHP extension.

mod args;
mod events;
mod mail;
mod place;
mod socket;
mod table;
mod watch;

pub(crate) use args::{OneArgs, PlaceArgs, RunsCommand};
pub(crate) use place::found;

use super::columns;
use super::output::Output;
use args::{CancelArgs, FormArg, ListArgs};
use place::open;
use std::process::ExitCode;
use wp_codebox_contracts::{
    CancelDetails, ErrorBody, RunArtifactList, RunCancellationRequest, RunList, RunRegistryPage,
    schema_id,
};
use wp_codebox_runs::{cancel_run, run_bundle};
use wp_codebox_runtime::{
    ListFilter, StatusFilter, cancellation, entry, list, list_entries, list_of_user, recover_run,
    view,
};

pub(crate) fn main(output: &Output, command: &RunsCommand) -> ExitCode {
    let (name, done) = match command {
        RunsCommand::List(args) => match show_list(output, args) {
            Ok(status) => return status,
            Err(error) => ("runs list", Err(error)),
        },
        RunsCommand::Status(args) => ("runs status", show_status(output, args)),
        RunsCommand::Get(args) => ("runs get", show_run(output, args)),
        RunsCommand::Events(args) => match events::show(output, args) {
            Ok(status) => return status,
            Err(error) => ("runs events", Err(error)),
        },
        RunsCommand::Cancel(args) => ("runs cancel", cancel(output, args)),
        RunsCommand::Socket(args) => ("runs socket", show_socket(output, args)),
        RunsCommand::Mail(args) => ("runs mail", mail::show(output, args)),
        RunsCommand::Artifacts(args) => ("runs artifacts", show_artifacts(output, args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure(name, &error),
    }
}

/// Prints a page of runs; exit status 1 if a run cannot be read.
fn show_list(output: &Output, args: &ListArgs) -> Result<ExitCode, ErrorBody> {
    let (state, sites) = open(&args.place)?;
    let filter = ListFilter {
        status: match args.status {
            None => StatusFilter::Any,
            Some(status) => StatusFilter::Only(status.into()),
        },
        limit: usize::from(args.limit),
        offset: args.offset,
    };
    if output.is_json() && args.form == FormArg::Registry && args.requester.is_none() {
        let page = list_entries(&state, &sites, filter)?;
        let status = exit_status(&page.unreadable);
        output.document(&serde_json::json!(RunRegistryPage {
            schema: schema_id::RUN_REGISTRY.to_owned(),
            total: page.total,
            runs: page.rows,
            unreadable: page.unreadable,
        }));
        return Ok(status);
    }
    let page = match args.requester {
        None => list(&state, &sites, filter),
        Some(user) => list_of_user(&state, &sites, filter, user, |id| {
            id.as_str().starts_with(&args.prefix)
        }),
    };
    let page = page?;
    let status = exit_status(&page.unreadable);
    if output.is_json() {
        let runs = page.rows.into_iter().map(|(_, view)| view).collect();
        output.document(&serde_json::json!(RunList {
            schema: schema_id::RUN_LIST.to_owned(),
            total: page.total,
            runs,
            unreadable: page.unreadable,
        }));
    } else {
        for line in table::runs(&page.rows, columns::terminal()) {
            output.line(&line);
        }
        note_unreadable(output, &page.unreadable);
        output.note(&format!("{} of {} runs", page.rows.len(), page.total));
    }
    Ok(status)
}

/// Returns the exit status of a list: 1 if runs are missing from it, because they cannot be read.
pub(crate) fn exit_status(unreadable: &[ErrorBody]) -> ExitCode {
    ExitCode::from(u8::from(!unreadable.is_empty()))
}

/// Prints why runs are missing from a list.
pub(crate) fn note_unreadable(output: &Output, unreadable: &[ErrorBody]) {
    for error in unreadable {
        output.note(&format!("Error: {} [{}]", error.message, error.code));
    }
}

fn show_run(output: &Output, args: &OneArgs) -> Result<(), ErrorBody> {
    let (state, run) = found(&args.place, args.run())?;
    let view = view(&state, &run)?;
    output.answer(&view, &table::run(&run, &view));
    Ok(())
}

/// Publishes the recovery bundle of a run whose end failed, and shows the run.
pub(crate) fn recover(output: &Output, args: &OneArgs) -> ExitCode {
    let recovered = found(&args.place, args.run()).and_then(|(state, run)| {
        recover_run(&state, &run)?;
        let view = view(&state, &run)?;
        Ok((run, view))
    });
    match recovered {
        Ok((run, view)) => {
            output.answer(&view, &table::run(&run, &view));
            if view.salvaged && !output.is_json() {
                output.note("the bundle is a recovery: check results and signature are missing, so it cannot be approved");
            }
            ExitCode::SUCCESS
        }
        Err(error) => output.failure("recover", &error),
    }
}

fn show_status(output: &Output, args: &OneArgs) -> Result<(), ErrorBody> {
    let (state, run) = found(&args.place, args.run())?;
    let entry = entry(&state, &run)?;
    output.answer(&entry, &table::entry(&run, &entry));
    Ok(())
}

fn cancel(output: &Output, args: &CancelArgs) -> Result<(), ErrorBody> {
    let (state, run) = found(&args.one.place, args.one.run())?;
    let before = cancellation(&state, &run)?;
    let wish = CancelDetails {
        actor: Some(args.actor.clone()),
        reason: args.reason.clone(),
    };
    let answer = cancel_run(&state, &run, &wish)?;
    if !output.is_json() {
        output.line(&table::cancellation(&answer));
        return Ok(());
    }
    let document = match args.form {
        FormArg::View => serde_json::json!(answer),
        FormArg::Registry => {
            let after = entry(&state, &run)?;
            serde_json::json!(RunCancellationRequest::of(&answer, &before, after))
        }
    };
    output.document(&document);
    Ok(())
}

fn show_socket(output: &Output, args: &OneArgs) -> Result<(), ErrorBody> {
    let (state, run) = found(&args.place, args.run())?;
    let path = socket::path(&state, &run)?.to_string_lossy().into_owned();
    let document = serde_json::json!({
        "success": true,
        "schema": schema_id::RUN_SOCKET,
        "run_id": run.run_id,
        "path": path,
    });
    output.answer(&document, &[path]);
    Ok(())
}

fn show_artifacts(output: &Output, args: &OneArgs) -> Result<(), ErrorBody> {
    let (state, run) = found(&args.place, args.run())?;
    let entry = entry(&state, &run)?;
    let salvaged = entry.metadata.contains_key("salvaged");
    // The bundle of a run is complete only when the run has ended.
    let bundle = match entry.lifecycle.terminal {
        true => run_bundle(&state, &run, salvaged)?,
        false => None,
    };
    let answer = RunArtifactList {
        schema: schema_id::RUN_ARTIFACTS.to_owned(),
        run_id: run.run_id.clone(),
        status: entry.status,
        terminal: entry.lifecycle.terminal,
        artifact_refs: entry.artifact_refs,
        bundle,
    };
    output.answer(&answer, &table::artifacts(&answer));
    Ok(())
}
