//! `wp-codebox run`: starts a run and follows it.

use super::output::{Output, Stream};
use super::run_args::RunArgs;
use super::{activation, daily, preview, run_args};
use base64::Engine;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventType, Frame, LifecycleEvent, Outcome, RunId, RunMode, RunRequest,
    RunResult, schema_id,
};
use wp_codebox_control::{SupervisorFrame, write_frame};
use wp_codebox_runs::signals::{on_end, unheard_signals};
use wp_codebox_runs::supervisor::{self, Followed, unreachable};
use wp_codebox_runtime::now_rfc3339;
use wp_codebox_settings::Settings;

/// Maximum number of changed files that are listed at the end of a run.
const SHOWN_FILES: usize = 20;

pub(crate) fn run(output: &Output, args: RunArgs) -> ExitCode {
    ExitCode::from(status(output, "run", args))
}

/// Does the work of `run` and returns the exit status. Errors are printed with the name `command`.
pub(crate) fn status(output: &Output, command: &str, args: RunArgs) -> u8 {
    let mut output = *output;
    output.agent = args.agent_output;
    let output = &output;
    // Checked first: preparing a guest can download a WordPress.
    let answer = run_args::check_agent(&args)
        .and_then(|()| Settings::for_guests(&args.store.paths, args.guest.wp.as_deref(), *output))
        .and_then(|settings| run_args::build(&args, &settings, *output))
        .and_then(|request| start(output, &request));
    match answer {
        Ok(Followed::Ended(mut result)) => {
            if args.purpose.is_some() && result.outcome == Outcome::Cancelled {
                // The run is the site of `wp-codebox up`, which normally ends by being cancelled,
                // so the hints for a cancelled task do not apply.
                result
                    .error
                    .iter_mut()
                    .for_each(|error| error.hints.clear());
            }
            finish(output, &args, &result)
        }
        Ok(Followed::Left(run_id)) => {
            let document = json!({
                "success": true,
                "schema": schema_id::RUN_HANDLE,
                "run_id": run_id,
                "status": "running",
                "created_at": now_rfc3339(),
                "cursor": 0,
            });
            output.answer(&document, &[run_id.into()]);
            0
        }
        Err(error) => {
            output.failure(command, &error);
            error.code.exit_status()
        }
    }
}

/// Runs the request in a new supervisor, prints its output and returns its result. The request must
/// not be a detached run.
pub(crate) fn supervise(output: &Output, request: &RunRequest) -> Result<RunResult, ErrorBody> {
    match start(output, request)? {
        Followed::Ended(result) => Ok(*result),
        Followed::Left(run_id) => Err(ErrorBody::new(
            ErrorCode::Internal,
            format!(
                "run {run_id} continues in the background; `wp-codebox runs status` shows its state"
            ),
        )),
    }
}

/// Starts the request in a new supervisor and follows the run to its end. A detached run is followed
/// only until the supervisor has accepted the request or, if the request asks for a preview, until the
/// preview is open.
pub(crate) fn start(output: &Output, request: &RunRequest) -> Result<Followed<RunId>, ErrorBody> {
    let (client, child) = supervisor::open(request)?;
    // A signal cancels the run instead of ending this process, so that the captured work is saved.
    let stop = client.sender().map_err(|e| unreachable(&e))?;
    on_end(move || {
        // Ignore a failed send: then the supervisor has exited, and there is nothing to cancel.
        let _ = write_frame(&stop, &Frame::Cancel);
    })
    .map_err(|e| unheard_signals(&e))?;
    let detached = request.mode == RunMode::Detached;
    let followed = supervisor::follow(&client, request, |frame| {
        let wanted = match frame {
            SupervisorFrame::Event { event, .. } if event.kind == EventType::Observed => {
                preview::announce(*output, request, event);
                activation::announce(*output, event);
                detached && preview::link(request, event).is_some()
            }
            SupervisorFrame::Event { event, .. } => {
                if !output.is_json() {
                    show(*output, event);
                }
                false
            }
            // Wait for the link if a preview was requested.
            _ => detached && !preview::expected(request),
        };
        match wanted {
            true => ControlFlow::Break(request.run_id.clone()),
            false => ControlFlow::Continue(()),
        }
    });
    if !matches!(followed, Ok(Followed::Left(_))) {
        supervisor::wait_for_exit(client, child);
    }
    let source = |error| supervisor::with_source(error, request);
    let mut followed = followed.map_err(source)?;
    if let Followed::Ended(result) = &mut followed {
        result.error = result.error.take().map(source);
    }
    Ok(followed)
}

/// Prints the output in an event: the standard output of guest programs to standard output, their
/// standard error and messages to standard error.
fn show(output: Output, event: &LifecycleEvent) {
    match event.kind {
        EventType::CommandOutput => {}
        // Print a heading before the output of a tool of the agent; the agent's text has none.
        EventType::CommandStarted if event.data.get("phase").is_some_and(|p| p == "tool") => {
            let tool = event.data.get("command").and_then(Value::as_str);
            return output.note(&format!("[{}]", tool.unwrap_or_default()));
        }
        _ => return,
    }
    let shown = output.agent.shown(&event.data);
    let bytes = match (event.data.get("text"), event.data.get("base64")) {
        _ if shown.is_some() => shown.unwrap_or_default().as_bytes().to_vec(),
        (Some(Value::String(text)), _) => text.clone().into_bytes(),
        (_, Some(Value::String(text))) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .unwrap_or_default(),
        _ => Vec::new(),
    };
    let data = event.data.get("stream").is_some_and(|s| s == "stdout");
    output.guest(if data { Stream::Data } else { Stream::Talk }, &bytes);
}

fn finish(output: &Output, args: &RunArgs, result: &RunResult) -> u8 {
    let mut exported = None;
    if let (Some(root), Some(bundle)) = (&args.artifacts, &result.artifacts) {
        match export(root, result.run_id.as_str(), Path::new(&bundle.path)) {
            Ok(path) => exported = Some(path),
            Err(error) => {
                output.failure("run", &error);
                return error.code.exit_status();
            }
        }
    }
    if output.is_json() {
        output.document(&document(result, exported.as_deref()));
    } else {
        human(output, result, exported.as_deref());
        if result.artifacts.is_some() && !result.changed_files.is_empty() {
            daily::next_steps(*output, result.run_id.as_str());
        }
    }
    result.outcome.exit_status()
}

/// Copies the bundle to the caller's directory and verifies the copy.
pub(super) fn export(root: &Path, run_id: &str, bundle: &Path) -> Result<String, ErrorBody> {
    let target = root.join(run_id);
    let fail = |e: std::io::Error| {
        ErrorBody::new(
            ErrorCode::BundleWriteFailed,
            format!("cannot copy the bundle to {}: {e}", target.display()),
        )
        .hint(format!(
            "choose an artifacts directory that this user may write (--artifacts); the bundle stays in {}",
            bundle.display()
        ))
    };
    std::fs::create_dir_all(&target).map_err(fail)?;
    wp_codebox_supervisor::copy_bundle(bundle, &target).map_err(fail)?;
    Ok(target.display().to_string())
}

fn document(result: &RunResult, exported: Option<&str>) -> Value {
    let mut value = json!({
        "success": result.outcome.is_success(),
        "schema": result.schema,
        "runtime": {"id": result.run_id, "backend": "native", "isolation": result.isolation},
        "execution": result.transcript["executions"].as_array().and_then(|e| e.first()).cloned().unwrap_or(Value::Null),
        "result": result,
    });
    if let Some(bundle) = &result.artifacts {
        value["artifacts"] = json!({
            "id": bundle.bundle_id,
            "directory": exported.unwrap_or(&bundle.path),
            "manifestSha256": bundle.manifest_sha256,
        });
    }
    if let Some(error) = &result.error {
        value["error"] = json!(error);
    }
    value
}

pub(super) fn human(output: &Output, result: &RunResult, exported: Option<&str>) {
    output.note(&result.summary);
    for hint in result.error.iter().flat_map(|error| &error.hints) {
        output.note(&format!("  hint: {hint}"));
    }
    for file in result.changed_files.iter().take(SHOWN_FILES) {
        output.note(&format!(
            "  {:<9} {}",
            format!("{:?}", file.status).to_lowercase(),
            super::output::name(&file.path)
        ));
    }
    if let Some(more) = result.changed_files.len().checked_sub(SHOWN_FILES + 1) {
        let more = more + 1;
        output.note(&format!(
            "  and {more} more; wp-codebox diff --stat lists all"
        ));
    }
    for check in &result.checks {
        output.note(&format!(
            "  check {}: {}",
            format!("{:?}", check.status).to_lowercase(),
            check.command
        ));
    }
    for notice in &result.notices {
        output.note(&format!("  note: {notice}"));
    }
    let cost = result.cost;
    if let Some(used) = cost.model {
        let dollars = used.cost_microusd.map_or_else(String::new, |cost| {
            format!(", US$ {}.{:06}", cost / 1_000_000, cost % 1_000_000)
        });
        output.note(&format!(
            "model: {} responses, {} input tokens, {} output tokens{dollars}",
            used.turns, used.input_tokens, used.output_tokens
        ));
    }
    let throttled = cost.group.and_then(|group| group.throttled_ms);
    let throttled = throttled
        .filter(|ms| *ms > 0)
        .map_or_else(String::new, |ms| format!(", {ms} ms held back by --cpus"));
    output.note(&format!(
        "isolation {}, {} ms wall, {} ms CPU{throttled}, {} MiB peak",
        result.isolation.level.as_str(),
        cost.wall_ms,
        cost.cpu_ms,
        cost.peak_memory_bytes >> 20
    ));
    if let Some(bundle) = &result.artifacts {
        output.note(&format!("bundle {}", bundle.bundle_id));
        output.note(&format!("  in {}", exported.unwrap_or(&bundle.path)));
    }
}
