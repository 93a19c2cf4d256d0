//! Builds the result of a browser command, in the form that all commands have.

use crate::journal::recorder::Recorder;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use wp_codebox_browser::{EditorAct, Failure, Report, Task, Work};
use wp_codebox_contracts::{CommandResult, CommandStatus, ErrorBody, ErrorCode};
use wp_codebox_runtime::{Bounds, Cut, ExecutionEnd, ExecutionResult, Step};

/// Schema id of the result of a page load.
const PAGE_LOAD: &str = "wp-codebox/wordpress-page-load-result/v1";
/// Schema id of the result of a comparison.
const COMPARE: &str = "wp-codebox/visual-compare/v1";
/// Schema id of the result of a validation of blocks.
const BLOCKS: &str = "wp-codebox/editor-validate-blocks/v1";

/// What a browser found and measured during one command.
pub(super) struct Visit {
    pub failure: Option<Failure>,
    /// Error for the resource limit that ended the browser's guest; `None` if no limit did.
    pub limit: Option<ErrorBody>,
    pub report: Report,
    pub observations: Value,
    pub final_url: String,
    pub title: String,
    /// Time from the start of the browser until the page was ready; `None` if it never was.
    pub start: Option<Duration>,
    pub peak_memory_bytes: u64,
    /// Hosts to which the page sent requests.
    pub hosts: BTreeSet<String>,
    /// Requests to other hosts than the site's, in the form of the result.
    pub external: Value,
}

impl Visit {
    /// Creates the findings of a command that failed before the page was ready.
    pub(super) fn failed(failure: Failure) -> Self {
        Self {
            failure: Some(failure),
            limit: None,
            report: Report::default(),
            observations: json!({}),
            final_url: String::new(),
            title: String::new(),
            start: None,
            peak_memory_bytes: 0,
            hosts: BTreeSet::new(),
            external: json!({"requests": []}),
        }
    }
}

/// Task, time limits and duration of a browser command that has ended.
#[derive(Clone, Copy)]
pub(super) struct End<'t> {
    pub task: &'t Task,
    pub bounds: Bounds,
    pub elapsed: Duration,
    pub cancelled: bool,
}

/// Adds the captured files to the bundle and builds the result.
pub(super) fn settle(
    command: &str,
    mut visit: Visit,
    end: End<'_>,
    directory: &str,
    recorder: &mut Recorder<'_>,
) -> Result<(Step, CommandResult), ErrorBody> {
    let error = error(command, &visit);
    let mut references = Vec::new();
    for asset in std::mem::take(&mut visit.report.assets) {
        match recorder.keep(asset.file(directory)) {
            Ok(reference) => references.push(reference),
            Err(refused) => visit.report.notes.push(refused.message),
        }
    }
    let document = document(command, &visit, end, error.as_ref(), &references);
    let document = recorder.cleaned(document);
    let error = error.map(|mut error| {
        error.message = recorder.clean(&error.message);
        error
    });
    let step = Step {
        result: ExecutionResult {
            stopped: is_stopped(&visit, end),
            end: ended(&visit, end, error.is_some()),
            output_truncated: false,
            disk_full: false,
            duration: end.elapsed,
        },
        stdout: format!("{document}\n"),
        stderr: error
            .as_ref()
            .map_or_else(String::new, |error| format!("{}\n", error.message)),
        cut: Cut::default(),
    };
    let status = match error {
        None => CommandStatus::Ok,
        Some(_) => CommandStatus::Error,
    };
    let (stdout, stderr) = (step.stdout.clone(), step.stderr.clone());
    let mut result = CommandResult::of_output(command, status, stdout, stderr);
    result.diagnostics["timing"] = json!({"durationMs": millis(end.elapsed)});
    result.artifact_refs = references;
    result.error = error;
    Ok((step, result))
}

fn error(command: &str, visit: &Visit) -> Option<ErrorBody> {
    let made = |code, reason: &str, why: String| {
        Some(
            ErrorBody::new(code, format!("{command}: {why}"))
                .with("command", command)
                .with("reason", reason),
        )
    };
    if let Some(limit) = &visit.limit {
        return made(limit.code, "limit-reached", limit.message.clone());
    }
    if let Some(failure) = &visit.failure {
        let code = match failure {
            Failure::Lost { .. } if visit.start.is_none() => ErrorCode::BrowserUnavailable,
            Failure::Lost { .. }
            | Failure::Crashed
            | Failure::Timeout { .. }
            | Failure::Refused { .. }
            | Failure::Navigation { .. }
            | Failure::Step { .. }
            | Failure::Page { .. } => ErrorCode::CommandFailed,
        };
        return made(code, failure.word(), failure.to_string());
    }
    let failed: Vec<&Value> = visit
        .report
        .assertions
        .iter()
        .filter(|row| row.get("status").and_then(Value::as_str) == Some("failed"))
        .collect();
    let first = failed.first()?;
    let text = |name: &str| first.get(name).and_then(Value::as_str).unwrap_or_default();
    let why = format!(
        "{} of {} assertions do not hold; the first: {}: {}",
        failed.len(),
        visit.report.assertions.len(),
        text("assert"),
        text("found"),
    );
    made(ErrorCode::CommandFailed, "assertion-failed", why)
}

/// Returns true if the command ended at the time limit of the caller's step, and false if it ended
/// at its own timeout or for another reason.
fn is_stopped(visit: &Visit, end: End<'_>) -> bool {
    matches!(visit.failure, Some(Failure::Timeout { .. })) && end.elapsed >= end.bounds.timeout
}

fn ended(visit: &Visit, end: End<'_>, failed: bool) -> ExecutionEnd {
    if end.cancelled {
        return ExecutionEnd::Cancelled;
    }
    if failed && Instant::now() >= end.bounds.deadline {
        return ExecutionEnd::TimedOut;
    }
    if is_stopped(visit, end) {
        return ExecutionEnd::Signalled { signal: 9 };
    }
    ExecutionEnd::Exited {
        code: i32::from(failed),
    }
}

fn document(
    command: &str,
    visit: &Visit,
    end: End<'_>,
    error: Option<&ErrorBody>,
    references: &[Value],
) -> Value {
    let report = &visit.report;
    let mut document = json!({
        "command": command,
        "status": if error.is_none() { "ok" } else { "failed" },
        "url": end.task.url.as_deref().map(wp_codebox_browser::address),
        "finalUrl": visit.final_url,
        "title": visit.title,
        "timings": {
            "startMs": visit.start.map(millis),
            "navigationMs": report.navigation_ms,
            "totalMs": millis(end.elapsed),
        },
        "assertions": report.assertions,
        "screenshots": report.screenshots,
        "external": visit.external,
        "artifacts": references,
        "memory": {"peakBytes": visit.peak_memory_bytes},
    });
    let mut put = |name: &str, value: Value| {
        document[name] = value;
    };
    match &end.task.work {
        Work::Probe => {}
        Work::Html => {
            let html = references.iter().find(|r| r["kind"] == "browser-html");
            put("bytes", html.map_or(Value::Null, |r| r["bytes"].clone()));
        }
        Work::PageLoad { surface } => {
            for (name, value) in page_load(surface, visit, end, error, references) {
                put(name, value);
            }
        }
        Work::Actions { name, .. } => {
            put("steps", json!(report.steps));
            if let Some(name) = name {
                put("scenario", json!(name));
            }
        }
        Work::Editor(editor) => match editor.act {
            EditorAct::Open | EditorAct::Probe(_) => {}
            EditorAct::Steps(_) => put("steps", json!(report.steps)),
            EditorAct::Validate { .. } => put("schema", json!(BLOCKS)),
        },
        Work::Compare(_) => {
            put("schema", json!(COMPARE));
            let named = |name: &str| {
                let end = format!("/{name}");
                references.iter().find_map(|r| {
                    let path = r["path"].as_str()?;
                    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
                    stem.ends_with(&end).then(|| r["path"].clone())
                })
            };
            put(
                "artifacts",
                json!({"source": named("source"), "candidate": named("candidate"),
                    "diff": named("diff"), "sourceDomSnapshot": named("source-dom-snapshot"),
                    "candidateDomSnapshot": named("candidate-dom-snapshot"), "files": references}),
            );
        }
    }
    for (name, value) in &report.more {
        put(name, value.clone());
    }
    if let Some(value) = &report.script {
        put("script", value.clone());
    }
    if !report.notes.is_empty() {
        put("notes", json!(report.notes));
    }
    if let Some(error) = error {
        put(
            "error",
            json!({"code": error.code, "message": error.message, "reason": error.data.as_ref().and_then(|data| data.get("reason"))}),
        );
    }
    if let (Some(document), Value::Object(observed)) =
        (document.as_object_mut(), &visit.observations)
    {
        for (name, value) in observed {
            document.insert(name.clone(), value.clone());
        }
    }
    document
}

/// Returns the members that only results of page loads have, not those of other browser commands.
/// Results of page loads without a browser have them, too.
fn page_load<'v>(
    surface: &str,
    visit: &Visit,
    end: End<'_>,
    error: Option<&ErrorBody>,
    references: &[Value],
) -> Vec<(&'v str, Value)> {
    let asked = end.task.url.as_deref().unwrap_or_default();
    let http = visit.observations.get("httpStatus").and_then(Value::as_u64);
    // The query may hold secrets, so the URLs that are compared do not contain it.
    let shown = wp_codebox_browser::address(asked);
    let redirected =
        !visit.final_url.is_empty() && without_query(&visit.final_url) != without_query(&shown);
    let status = match http {
        _ if error.is_some() => "error",
        Some(400..) => "error",
        _ if redirected => "redirect",
        _ => "ok",
    };
    let path = shown.split_once("://").map_or("", |(_, rest)| rest);
    let path = path.find('/').and_then(|at| path.get(at..)).unwrap_or("/");
    let mut members = vec![
        ("schema", json!(PAGE_LOAD)),
        ("mode", json!("browser")),
        ("source", json!("browser")),
        ("status", json!(status)),
        ("surface", json!(surface)),
        (
            "target",
            json!({"kind": surface, "path": path, "url": shown, "method": "GET"}),
        ),
        ("http", json!({"status": http})),
        ("notices", json!(visit.report.notes)),
        (
            "performance",
            json!({"navigationMs": visit.report.navigation_ms, "totalMs": millis(end.elapsed)}),
        ),
        ("artifactRefs", json!(references)),
    ];
    if redirected {
        members.push(("redirect", json!({"from": shown, "to": visit.final_url})));
    }
    members
}

fn without_query(url: &str) -> &str {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    bare.trim_end_matches('/')
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
