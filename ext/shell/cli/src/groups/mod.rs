//! Agent tasks and groups of them, without a WordPress site: `agent-sandbox-run`,
//! `agent-sandbox-batch`, `agent-fanout`.
//!
//! Input and output have the same schemas as those of the WordPress abilities for such tasks. The
//! crate `workloads` runs groups.

mod args;
mod task;

pub use args::TaskArgs;
pub(crate) use args::{BatchArgs, FanoutArgs, SingleArgs};
pub use task::request as run_request;

use super::output::{Output, json_output};
use super::preview::{self, PreviewArgs};
use serde_json::{Map, Value};
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::terminal_text::plain_line;
use wp_codebox_contracts::{ErrorBody, ErrorCode, parse_json, session_id};
use wp_codebox_control::new_run_id;
use wp_codebox_runs::Supervisors;
use wp_codebox_settings::Settings;
use wp_codebox_wordpress::wordpress_version;
use wp_codebox_workloads::groups::{
    Answered, Echo, Host, export, replace_file, run_batch, run_fanout, task_document, unwritable,
};

/// Maximum size of the input of a task or group, in bytes.
const INPUT: u64 = 32 * 1024 * 1024;

pub(crate) fn single(output: &Output, args: &SingleArgs) -> ExitCode {
    let done = run_one(*output, &args.task, &args.preview);
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => failed(output, "agent-sandbox-run", &args.task, &error),
    }
}

pub(crate) fn batch(output: &Output, args: &BatchArgs) -> ExitCode {
    let done = grouped(*output, &args.task, "batch", |host, input, session| {
        run_batch(host, &input, args.concurrency, session)
    });
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => failed(output, "agent-sandbox-batch", &args.task, &error),
    }
}

pub(crate) fn fanout(output: &Output, args: &FanoutArgs) -> ExitCode {
    let done = grouped(*output, &args.task, "fanout", |host, mut input, session| {
        if let Some(concurrency) = args.concurrency {
            input.insert("concurrency".to_owned(), concurrency.into());
        }
        run_fanout(host, &input, session)
    });
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => failed(output, "agent-fanout", &args.task, &error),
    }
}

/// Prints the error and also writes it to the result file, which another process may wait for.
fn failed(output: &Output, command: &str, args: &TaskArgs, error: &ErrorBody) -> ExitCode {
    if let Some(path) = &args.result_file {
        let document = output.failure_document(command, error);
        let written = replace_file(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &document)?;
            out.write_all(b"\n")
        });
        if let Err(error) = written {
            output.note(&unwritten(path, &error).message);
        }
    }
    output.failure(command, error)
}

fn run_one(output: Output, args: &TaskArgs, preview: &PreviewArgs) -> Result<u8, ErrorBody> {
    let mut input = input(&args.input_file)?;
    let wanted = task::preview(&mut input, preview)?;
    let settings = Settings::for_guests(&args.store.paths, None, output)?;
    let mut request = task::request(&input, args, &settings)?;
    preview::hold(&wanted, &mut request.hold)?;
    let supervisors = Supervisors::begin()?;
    let began = || {
        if !output.is_json() {
            output.note(&format!("{} began", request.run_id));
        }
    };
    let mut shown = Map::new();
    let result = supervisors.run_seeing(&request, began, |event| {
        preview::announce(output, &request, event);
        if event.data.get("type").is_some_and(|kind| kind == "preview") {
            shown.clone_from(&event.data);
        }
    })?;
    let wordpress = version(&settings);
    let echo = Echo {
        input: &input,
        wordpress: &wordpress,
        preview: &shown,
    };
    let mut answer = task_document(&request, &result, &echo)?;
    let host = Host {
        request: &|input| task::request(input, args, &settings),
        artifacts: args.artifacts.as_deref(),
        wordpress: String::new(),
        supervisors: &supervisors,
        began: &|_, _| {},
        ended: &|_, _| {},
    };
    if let Some(exported) = export(&host, &result, Path::new("")) {
        answer.insert("exported".to_owned(), exported);
    }
    let answer = Value::Object(answer);
    if let Some(path) = &args.result_file {
        replace_file(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &answer)?;
            out.write_all(b"\n")
        })
        .map_err(|e| unwritten(path, &e))?;
    }
    if output.is_json() {
        output.document(&answer);
    } else {
        output.line(&result.summary);
    }
    Ok(result.outcome.exit_status())
}

fn grouped(
    output: Output,
    args: &TaskArgs,
    kind: &str,
    run: impl FnOnce(&Host<'_>, Map<String, Value>, &str) -> Result<Answered, ErrorBody>,
) -> Result<u8, ErrorBody> {
    let input = input(&args.input_file)?;
    let settings = Settings::for_guests(&args.store.paths, None, output)?;
    let new = || {
        let id = new_run_id()?;
        let digits = id.as_str().trim_start_matches("run_");
        Ok(format!("{kind}-{}", digits.get(..16).unwrap_or(digits)))
    };
    let session = session_id(&input, new)?;
    let supervisors = Supervisors::begin()?;
    let host = Host {
        request: &|input| task::request(input, args, &settings),
        artifacts: args.artifacts.as_deref(),
        wordpress: version(&settings),
        supervisors: &supervisors,
        began: &|name, run_id| {
            if !output.is_json() {
                output.note(&format!("{name}: {run_id} began"));
            }
        },
        ended: &|name, row| {
            if !output.is_json() {
                output.line(&row_line(name, row));
            }
        },
    };
    let (members, exit, mut rows) = run(&host, input, &session)?;
    if let Some(path) = &args.result_file {
        replace_file(path, |out| rows.document(&members, out)).map_err(|e| unwritten(path, &e))?;
    }
    if output.is_json() {
        let written = rows.document(&members, &mut json_output());
        written.map_err(|e| unwritable(&e))?;
    } else {
        let count = |name: &str| members.get(name).cloned().unwrap_or_default();
        output.note(&format!(
            "{} of {} completed, {} failed, {} skipped, {} cancelled, {} timed out",
            count("completed"),
            count("total"),
            count("failed"),
            count("skipped"),
            count("cancelled"),
            count("timed_out")
        ));
        if let Some(status) = members.get("aggregate").and_then(|a| a["status"].as_str()) {
            output.note(&format!("all workers together: {status}"));
        }
    }
    Ok(exit)
}

/// Formats the row of a task as one human-readable line.
fn row_line(name: &str, row: &Map<String, Value>) -> String {
    let text = |key: &str| row.get(key).and_then(Value::as_str);
    let why = row.get("error").and_then(|e| e["message"].as_str());
    let line = format!(
        "{name:<16} {:<10} {:<36} {}",
        text("status").unwrap_or_default(),
        text("run_id").unwrap_or("-"),
        why.or_else(|| text("summary")).unwrap_or_default()
    );
    plain_line(&line)
}

fn version(settings: &Settings) -> String {
    let directory = settings.wordpress.as_deref();
    directory.map(wordpress_version).unwrap_or_default()
}

fn unwritten(path: &Path, e: &io::Error) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::Internal,
        format!("the output cannot be written to {}: {e}", path.display()),
    )
    .hint("name a file in a directory that exists and that this user may write")
}

/// Reads the input of a task or group, which must be one JSON object.
fn input(path: &Path) -> Result<Map<String, Value>, ErrorBody> {
    let invalid = |what: String| {
        let message = format!("--input-file {}: {what}", path.display());
        ErrorBody::new(ErrorCode::InputInvalid, message)
    };
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().take(INPUT + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(INPUT + 1).read_to_end(&mut bytes))
    };
    read.map_err(|e| invalid(e.to_string()))?;
    if bytes.len() as u64 > INPUT {
        return Err(invalid("it is larger than 32 MiB".to_owned()));
    }
    match parse_json(&bytes) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Err(invalid("it is not a JSON object".to_owned())),
        // The parser's message may quote the input, which can contain a secret.
        Err(e) => Err(invalid(format!(
            "it is not valid JSON (line {}, column {})",
            e.line(),
            e.column()
        ))),
    }
}
