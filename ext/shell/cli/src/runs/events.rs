//! `runs events`: prints a page of a journal, or follows it until the run ends.
//!
//! The only state between two pages is the cursor (the number of the last event), so a stream can
//! be interrupted and resumed at any event. Between pages the process sleeps until the run
//! directory changes.

use super::args::{EventFormat, EventsArgs, Projection};
use super::place::found;
use super::table;
use super::watch::{Watch, Woken};
use crate::output::{Output, json_output};
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use wp_codebox_contracts::{
    BusProjection, ErrorBody, ErrorCode, LifecycleEvent, RunEvents, RunStatus, SseFrame,
    project_to_bus,
};
use wp_codebox_runtime::{PageLimits, events, kernel_error};

/// Maximum size of one page of events in bytes.
const PAGE: u64 = 4 * 1024 * 1024;

pub(super) fn show(output: &Output, args: &EventsArgs) -> Result<ExitCode, ErrorBody> {
    let (state, run) = found(&args.one.place, args.one.run())?;
    let limits = PageLimits {
        count: usize::from(args.limit),
        bytes: PAGE,
    };
    let internal = |what: &str, e: io::Error| {
        let message = format!("changes of {what} cannot be watched: {e}");
        kernel_error(ErrorCode::Internal, message, &e)
    };
    // Watch before the first read, so that no later write is missed.
    let mut watch = match args.follow {
        true => Some(Watch::begin(&run.path).map_err(|e| internal("the run", e))?),
        false => None,
    };
    let mut after = args.after;
    loop {
        let page = events(&state, &run, after, limits)?;
        after = page.cursor;
        match write_page(output, args, &page) {
            Ok(()) => {}
            // The reader has closed the pipe and wants no more events. This is not an error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) => {
                let message = format!("the events cannot be written: {error}");
                return Err(ErrorBody::new(ErrorCode::Internal, message));
            }
        }
        let Some(watch) = &mut watch else {
            return Ok(ExitCode::SUCCESS);
        };
        if page.more {
            continue;
        }
        if page.status == RunStatus::Ended {
            return Ok(ExitCode::SUCCESS);
        }
        match watch.wait().map_err(|e| internal("the run", e))? {
            Woken::Interrupted => return Ok(ExitCode::from(130)),
            Woken::Changed => {}
            Woken::Time if keep_alive(args).is_err() => return Ok(ExitCode::SUCCESS),
            Woken::Time => {}
        }
    }
}

/// Writes a comment into a stream of server-sent events, so that both ends can detect a closed
/// connection while no event occurs.
fn keep_alive(args: &EventsArgs) -> io::Result<()> {
    match args.format {
        Some(EventFormat::Sse) => write_all(SseFrame::keep_alive().as_str()),
        Some(EventFormat::JsonLines) | None => Ok(()),
    }
}

fn write_page(output: &Output, args: &EventsArgs, page: &RunEvents) -> io::Result<()> {
    if let Some(format) = args.format {
        let text: String = page
            .events
            .iter()
            .filter_map(|event| written(event, format, args.projection))
            .collect();
        return write_all(&text);
    }
    if output.is_json() {
        if !args.follow {
            output.document(&serde_json::json!(page));
        } else if !page.events.is_empty() || page.status == RunStatus::Ended {
            return write_all(&line(page));
        }
        return Ok(());
    }
    let lines = page.events.iter();
    let lines = lines.filter_map(|event| table::event(event, args.agent_output));
    write_all(&lines.map(|line| line + "\n").collect::<String>())?;
    if page.more && !args.follow {
        output.note(&format!("more events follow: --after {}", page.cursor));
    }
    Ok(())
}

/// Formats one event as `format`; `None` if the naming scheme `projection` has no name for the
/// event.
fn written(event: &LifecycleEvent, format: EventFormat, projection: Projection) -> Option<String> {
    match (format, projection) {
        (EventFormat::Sse, Projection::Journal) => {
            Some(SseFrame::of_event(event).as_str().to_owned())
        }
        (EventFormat::Sse, Projection::Bus) => {
            Some(SseFrame::of_projection(event).as_str().to_owned())
        }
        (EventFormat::JsonLines, Projection::Journal) => Some(line(event)),
        (EventFormat::JsonLines, Projection::Bus) => match project_to_bus(event) {
            BusProjection::Event(made) => Some(line(&made)),
            BusProjection::Nothing(_) => None,
        },
    }
}

/// Serializes a value to one line of JSON. Serialization cannot fail: all map keys of these types
/// are strings.
fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

fn write_all(text: &str) -> io::Result<()> {
    let mut out = json_output();
    out.write_all(text.as_bytes())?;
    out.flush()
}
