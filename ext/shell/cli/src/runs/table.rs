//! Formats runs and events as human-readable lines. Control characters in guest texts are removed.

use crate::columns::{self, Column};
use crate::output::{AgentOutput, name};
use serde_json::Value;
use wp_codebox_contracts::terminal_text::plain_line;
use wp_codebox_contracts::{
    CancelEffect, LifecycleEvent, RunArtifactList, RunCancellation, RunRegistryEntry, RunView,
};
use wp_codebox_runtime::FoundRun;

/// Minimum number of characters of a run id in a table on a terminal. The table shows more if the
/// listed runs have the same first characters; every command accepts a unique prefix.
const ID: usize = 12;
/// Number of characters of a time in a table of runs: date, hour and minute.
const TIME: usize = 16;

/// Maximum width of an event's data that are shown as JSON, in terminal columns.
const SHOWN: usize = 60;

/// Returns the text as one short line without control characters.
fn short(text: &str) -> String {
    columns::cut(&plain_line(text), SHOWN)
}

fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        Ok(_) | Err(_) => String::new(),
    }
}

fn outcome(view: &RunView) -> String {
    view.outcome.map(word).unwrap_or_else(|| "-".to_owned())
}

/// Formats a table of runs with its heading. On a terminal, which has a `width`, ids and times are
/// shortened.
pub(super) fn runs(rows: &[(FoundRun, RunView)], width: Option<usize>) -> Vec<String> {
    let column = |heading, spare| Column { heading, spare };
    let columns = [
        column("RUN", false),
        column("STATUS", false),
        column("OUTCOME", false),
        column("CREATED", false),
        column("SITE", true),
        column("MODE", true),
        column("GOAL", false),
    ];
    let ids: Vec<&str> = rows.iter().map(|(_, view)| view.run_id.as_str()).collect();
    let id_width = width.map_or(usize::MAX, |_| telling(&ids));
    let start = |text: &str, most: usize| text.chars().take(most).collect::<String>();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|(run, view)| {
            let created = match width {
                None => view.created_at.clone(),
                Some(_) => start(&view.created_at, TIME).replace('T', " "),
            };
            vec![
                start(view.run_id.as_str(), id_width),
                word(view.status),
                outcome(view),
                created,
                run.site.to_string(),
                word(view.mode),
                view.facts.goal().unwrap_or("-").to_owned(),
            ]
        })
        .collect();
    columns::table(&columns, &cells, width)
}

/// Returns the prefix length that distinguishes all of these ids, at least [`ID`].
fn telling(ids: &[&str]) -> usize {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let shared = |pair: &[&str]| {
        let pairs = pair[0].bytes().zip(pair[1].bytes());
        pairs.take_while(|(one, other)| one == other).count()
    };
    sorted
        .windows(2)
        .map(|pair| shared(pair) + 1)
        .fold(ID, usize::max)
}

/// Formats one run, one line per fact.
pub(super) fn run(run: &FoundRun, view: &RunView) -> Vec<String> {
    let mut lines = vec![
        format!("run      {}", view.run_id),
        format!("site     {}", run.site),
        format!("status   {}, {}", word(view.status), word(view.mode)),
        format!("created  {}", view.created_at),
        format!("updated  {}", view.updated_at),
        format!("events   {}", view.last_event),
    ];
    let mut add = |name: &str, text: Option<String>| {
        lines.extend(text.map(|text| format!("{name:<8} {text}")));
    };
    for (name, text) in view.facts.texts() {
        add(name, Some(text.to_owned()));
    }
    add("outcome", view.outcome.map(word));
    add("summary", view.summary.clone());
    let error = view.error.as_ref();
    add(
        "error",
        error.map(|e| format!("{} [{}]", e.message, e.code)),
    );
    let salvaged = if view.salvaged {
        " (recovery bundle)"
    } else {
        ""
    };
    let bundle = view.bundle_id.as_ref();
    add("bundle", bundle.map(|id| format!("{id}{salvaged}")));
    lines
}

/// Formats the state of a run, one line per fact.
pub(super) fn entry(run: &FoundRun, entry: &RunRegistryEntry) -> Vec<String> {
    let lifecycle = &entry.lifecycle;
    let mut lines = vec![
        format!("run       {}", entry.run_id),
        format!("site      {}", run.site),
        format!(
            "status    {} ({})",
            word(entry.status),
            word(lifecycle.phase)
        ),
        format!("created   {}", entry.created_at),
        format!("heartbeat {}", entry.heartbeat_at),
        format!("cleanup   {}", word(lifecycle.cleanup.status)),
    ];
    let mut add = |name: &str, text: Option<String>| {
        lines.extend(text.map(|text| format!("{name:<9} {text}")));
    };
    add("outcome", lifecycle.outcome.map(word));
    let asked = lifecycle.cancellation.as_ref();
    add(
        "cancelled",
        asked.map(|note| {
            let by = note.requested_by.as_deref().unwrap_or("somebody");
            let why = note.reason.as_deref().unwrap_or("no reason given");
            format!("{} by {by}: {why}", note.requested_at)
        }),
    );
    let error = entry.error.as_ref();
    add(
        "error",
        error.map(|e| format!("{} [{}]", e.message, e.code)),
    );
    for reference in &entry.artifact_refs {
        add("bundle", Some(reference.id.clone()));
    }
    lines
}

/// Formats the list of files in a run's bundle.
pub(super) fn artifacts(list: &RunArtifactList) -> Vec<String> {
    let Some(bundle) = &list.bundle else {
        return vec![format!("{} has no bundle", list.run_id)];
    };
    let salvaged = if bundle.salvaged {
        " (recovery bundle)"
    } else {
        ""
    };
    let mut lines = vec![
        format!("bundle   {}{salvaged}", bundle.id),
        format!("manifest {}", bundle.manifest_sha256),
        format!("in       {}", bundle.directory),
    ];
    lines.extend(
        bundle
            .files
            .iter()
            .map(|file| format!("  {:<28} {}", plain_line(&file.kind), name(&file.path))),
    );
    lines
}

/// Formats one event: number, time, type, execution and text.
pub(super) fn event(event: &LifecycleEvent, form: AgentOutput) -> Option<String> {
    let id = event.execution_id.as_ref().map_or("", |id| id.as_str());
    let text = |key: &str| event.data.get(key).and_then(Value::as_str);
    let said = match (form.shown(&event.data).or(text("text")), text("base64")) {
        // The preset derives no step from these protocol lines, so they are not shown.
        (Some(""), _) => return None,
        (Some(text), _) => text.trim_end().to_owned(),
        (None, Some(_)) => "(bytes that are not text)".to_owned(),
        (None, None) => short(&Value::Object(event.data.clone()).to_string()),
    };
    let line = format!(
        "{:>5}  {}  {:<27}  {id:<8}  {said}",
        event.seq,
        event.timestamp,
        word(event.kind)
    );
    Some(line.trim_end().to_owned())
}

/// Describes the result of a cancel request.
pub(super) fn cancellation(answer: &RunCancellation) -> String {
    match answer.answer {
        CancelEffect::Requested => format!(
            "{} is being cancelled; it saves the changes of its guest and ends",
            answer.run_id
        ),
        CancelEffect::AlreadyEnded => format!("{} had ended already", answer.run_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_data_are_shown_as_one_short_line_without_control_characters() {
        assert_eq!(short("a\nb\u{1b}[2Jc\td"), "a b[2Jc d");
        let long = short(&"ü".repeat(200));
        assert_eq!(long.chars().count(), SHOWN);
        assert!(long.ends_with('…'));
    }
}
