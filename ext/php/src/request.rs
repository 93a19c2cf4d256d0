//! Builds a validated `RunRequest` from the two arrays that PHP passes.
//!
//! The first array comes from the caller, the second from the host plugin; `TASK_FIELDS` of the
//! contracts crate lists for each field which of the two may set it. The operator's settings come
//! from the INI settings only. The supervisor checks existence and owner of directories.

use crate::ini::Settings;
use crate::share;
use serde_json::{Map, Value};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, RunPaths, RunRequest, SiteId, StagedFile, TaskSpec,
};
use wp_codebox_control::new_run_id;
use wp_codebox_policy::{CheckedBy, HostPrograms, check_request, command_words, read_task};
use wp_codebox_recipe::task_seeds;

/// Why a request is validated, which decides whether it must contain something to execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A run is about to start: an agent, a command or `hold` is required.
    Start,
    /// Preview of an incomplete request: agent, commands and `hold` may be missing.
    Preview,
}

/// Validates a request and completes it from the settings.
pub(crate) fn build(
    caller: Map<String, Value>,
    host: Map<String, Value>,
    settings: &Settings,
    stage: Stage,
) -> Result<RunRequest, ErrorBody> {
    let mut task = read_task(caller, host)?;
    // The host plugin may lower the operator's limit of concurrent runs, never raise it.
    let most = u64::from(settings.max_runs()?);
    let most = task.max_runs.map_or(most, |wanted| wanted.min(most));
    task.max_runs = Some(most);
    let share = share::apply(&mut task, most, settings)?;
    task.outer_sandbox = settings.outer_sandbox()?;
    let invalid = |reason: String| ErrorBody::new(ErrorCode::InputInvalid, reason);
    let site =
        SiteId::new(task.site.clone()).map_err(|e| invalid(e.to_string()).with("field", "site"))?;
    check_seeds(&task, stage)?;
    let paths = paths(&mut task, settings)?;
    let mut request = task.into_request(new_run_id()?, site, paths);
    request.share = Some(share);
    check_request(&request, CheckedBy::Site)?;
    let idle = request.agent.is_none() && request.commands.is_empty() && request.hold.is_none();
    if stage == Stage::Start && idle {
        return Err(ErrorBody::new(
            ErrorCode::AgentMissing,
            "no agent and no command was given; name one with `resolved_agent` or list `commands`",
        ));
    }
    Ok(request)
}

/// Validates the site seeds of a task, and that the host has given the content of each of them.
fn check_seeds(task: &TaskSpec, stage: Stage) -> Result<(), ErrorBody> {
    let seeds = task_seeds(&task.site_seeds)?;
    let wanted = seeds.iter().map(|seed| seed.name.as_str());
    let given = task.resolved_seeds.iter().map(|seed| seed.name.as_str());
    if stage == Stage::Start && !wanted.eq(given) {
        let message =
            "`resolved_seeds` must have the content of each item of site_seeds, in the same order";
        let error = ErrorBody::new(ErrorCode::SiteSeedInvalid, message);
        return Err(error.with("field", "resolved_seeds"));
    }
    Ok(())
}

/// Splits a command line as a POSIX shell does; refuses syntax that only a shell understands.
pub(crate) fn split_command(line: &str) -> Result<Vec<String>, ErrorBody> {
    command_words(line).map_err(ErrorBody::from)
}

/// Replaces the host files that command lines name by guest paths, and lists these files.
pub(crate) fn stage_commands(
    lines: &[String],
) -> Result<(Vec<String>, Vec<StagedFile>), ErrorBody> {
    let real = |path: &str| {
        let real = std::path::Path::new(path).canonicalize().ok()?;
        real.is_file().then(|| real.to_str().map(str::to_owned))?
    };
    let mut programs = HostPrograms::default();
    let lines = lines.iter().map(|line| programs.rewrite(line, &[], &real));
    let lines = lines.collect::<Result<_, _>>()?;
    Ok((lines, programs.into_files()))
}

fn paths(task: &mut TaskSpec, settings: &Settings) -> Result<RunPaths, ErrorBody> {
    Ok(RunPaths {
        state_dir: settings.state_dir.clone(),
        share_dir: settings.share_dir.clone(),
        launcher: settings.launcher.clone(),
        php_binary: settings.php_binary.clone(),
        wordpress: std::mem::take(&mut task.wordpress),
        denied: std::mem::take(&mut task.denied),
        code_roots: std::mem::take(&mut task.code_roots),
        allowed_roots: task.allowed_roots.take(),
        cgroup: Some(settings.cgroup.clone()).filter(|path| !path.is_empty()),
        identity: settings.identity()?,
        guest_ids: settings.guest_ids()?,
        agents_dir: Some(settings.agents_dir.clone()).filter(|path| !path.is_empty()),
        browser: None,
    })
}
