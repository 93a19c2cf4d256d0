//! `wp-codebox tools run`: runs a WASI tool on this host, on a copy of the directory.

use super::args::{RunArgs, Wrapper, id};
use super::ended::Ended;
use super::scratch::Scratch;
use super::{guest, wrapped};
use crate::output::Output;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use wp_codebox_artifacts::render_mount_patch;
use wp_codebox_contracts::{ErrorBody, ErrorCode, OuterSandboxKind, SandboxAudit, parse_json};
use wp_codebox_runtime::StateDir;
use wp_codebox_settings::Settings;
use wp_codebox_supervisor::{RegisteredTool, WasiRunner, WasiTools};

pub(super) fn run(output: &Output, args: &RunArgs) -> Result<ExitCode, ErrorBody> {
    let id = id(&args.id)?;
    let input = arguments(args.arguments.as_deref())?;
    let settings = Settings::resolve(&args.paths)?;
    let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
    let tool = WasiTools::of(state.path()).get(&id).map_err(|e| e.body())?;
    // Check that the module still matches the definition; the runner checks this again.
    tool.module().map_err(|e| e.body())?;
    let runner = WasiRunner::beside(&settings.launcher).map_err(|e| e.body())?;
    let compiled = state.as_owner(|| tool.compiled(&runner));
    let compiled = compiled.map_err(|e| e.body())?.map_err(|e| e.body())?;
    let scratch = Scratch::make(&tool, &compiled, args.dir.as_deref())?;
    let program = runner.program();
    let in_wrapper = |kind, input| wrapped::run(kind, &scratch, program, input);
    let ran = match args.wrapper {
        Wrapper::None => in_wrapper(OuterSandboxKind::None, input),
        Wrapper::Bubblewrap => in_wrapper(OuterSandboxKind::Bubblewrap, input),
        Wrapper::Gvisor => in_wrapper(OuterSandboxKind::Gvisor, input),
        Wrapper::Launcher => guest::run(&state, &settings, &tool.tool, &scratch, program, &input),
    }?;
    let ended = ran.ended.confirmed(args.wrapper)?;
    let changes = ran.changes?;
    let patch = changes.as_ref().map_or_else(Vec::new, |changes| {
        render_mount_patch(changes, "", &[]).bytes
    });
    // Do not write the changes of a failed tool: they may be incomplete.
    let is_written = args.write && ended.status == 0;
    if is_written && let Some(changes) = &changes {
        scratch.merge(changes)?;
    }
    show(
        output,
        &tool,
        &Shown {
            ended: &ended,
            patch: &patch,
            audit: &ran.audit,
            is_written,
        },
    );
    Ok(ExitCode::from(ended.status))
}

/// Returns the arguments as JSON text; fails unless they are an object.
fn arguments(given: Option<&str>) -> Result<String, ErrorBody> {
    let given = given.unwrap_or("{}");
    let parsed: Map<String, Value> = parse_json(given.as_bytes()).map_err(|error| {
        let message = format!("the arguments of the tool must be one JSON object: {error}");
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })?;
    Ok(Value::Object(parsed).to_string())
}

struct Shown<'a> {
    ended: &'a Ended,
    patch: &'a [u8],
    audit: &'a SandboxAudit,
    is_written: bool,
}

fn show(output: &Output, tool: &RegisteredTool, shown: &Shown<'_>) {
    let Shown {
        ended,
        patch,
        audit,
        ..
    } = shown;
    if !output.is_json() {
        output.data(&ended.stdout);
        if !ended.stdout.is_empty() && !ended.stdout.ends_with(b"\n") {
            output.data(b"\n");
        }
        output.data(patch);
        let said = String::from_utf8_lossy(&ended.stderr);
        if !said.is_empty() {
            output.note(said.trim_end());
        }
        return;
    }
    output.document(&json!({
        "success": ended.status == 0,
        "id": tool.tool.id,
        "definitionSha256": tool.definition_sha256,
        "moduleSha256": tool.tool.module.sha256,
        "exitCode": ended.status,
        "stdout": String::from_utf8_lossy(&ended.stdout),
        "stderr": String::from_utf8_lossy(&ended.stderr),
        "patch": String::from_utf8_lossy(patch),
        "written": shown.is_written,
        "sandboxAudits": [audit],
    }));
}
