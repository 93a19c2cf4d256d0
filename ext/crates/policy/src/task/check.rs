//! Rules of a task that its shape cannot say.

use super::issues::Issues;
use crate::{
    ComponentError, SecretUse, assert_command, check_agent_bundles, check_components, check_model,
    check_model_agent, check_mounts, check_preset_name, check_runtime_task, check_secrets,
    check_staged_target, defaults, required_commands,
};
use wp_codebox_contracts::{Agent, ErrorBody, ErrorCode, SiteId, TaskSpec};

/// Longest goal, bytes. A task is one document for an agent, not a data channel.
const MAX_GOAL: usize = 64 * 1024;
/// Longest instructions of a host to the built-in loop, bytes.
const MAX_INSTRUCTIONS: usize = 64 * 1024;
/// Most staged files.
const MAX_STAGED: usize = 256;
/// What a host path must be.
const ABSOLUTE: &str = "an absolute path without `.` and `..` segments";

/// Judges a task whose agent, model, secrets and paths are resolved.
///
/// # Errors
/// The first issue, with all of them as `issues` when there are several.
pub fn check_task(task: &TaskSpec) -> Result<(), ErrorBody> {
    let mut issues = Issues::default();
    goal(task, &mut issues);
    places(task, &mut issues);
    agent(task, &mut issues);
    let policy = task.policy.clone().unwrap_or_else(|| defaults(Vec::new()));
    let mut note = |result: Result<(), ErrorBody>| {
        if let Err(issue) = result {
            issues.push(issue);
        }
    };
    match check_mounts(&task.mounts, &policy) {
        Ok(targets) => {
            let checked = check_components(&task.components, &targets, &policy);
            note(checked.map(|_| ()).map_err(|e| e.body()));
        }
        Err(e) => note(Err(e.body())),
    }
    for file in &task.staged_files {
        note(
            check_staged_target(&file.target)
                .map(|_| ())
                .map_err(|e| e.body()),
        );
    }
    // Without a policy a run gets the default one with exactly these commands.
    let calls = task.commands.iter();
    let needed = calls.flat_map(|call| required_commands(&call.command));
    let own = defaults(needed.map(str::to_owned).collect());
    for call in &task.commands {
        let asserted = assert_command(task.policy.as_ref().unwrap_or(&own), call);
        note(asserted.map(|_| ()).map_err(|e| e.body()));
    }
    note(model(task));
    let command = task.resolved_agent.as_ref().and_then(Agent::command);
    let taken = command.into_iter().flat_map(|agent| agent.env.keys());
    let secret_use = SecretUse {
        policy: &policy,
        model: task.resolved_model.as_ref(),
    };
    let checked = check_secrets(&task.secrets, secret_use, taken.map(String::as_str));
    note(checked.map_err(|e| e.body()));
    let names = task.secrets.iter().map(|secret| secret.env.as_str());
    let checked = check_agent_bundles(&task.agent_bundles, &names.collect());
    note(checked.map_err(|e| e.body()));
    bounds(task, &mut issues);
    issues.into_result()
}

fn goal(task: &TaskSpec, issues: &mut Issues) {
    if task.goal.trim().is_empty() {
        issues.push(ErrorBody::new(
            ErrorCode::TaskMissing,
            "no goal was given; say in `goal` what the agent shall do",
        ));
    }
    if task.goal.len() > MAX_GOAL {
        let rule = format!("at most {MAX_GOAL} bytes long");
        issues.refuse(ErrorCode::InputInvalid, "goal", &rule);
    }
}

/// Site and host paths. Whether directories exist, and whose they are, the runner knows.
fn places(task: &TaskSpec, issues: &mut Issues) {
    if let Err(e) = SiteId::new(task.site.clone()) {
        let issue = ErrorBody::new(ErrorCode::InputInvalid, e.to_string());
        issues.push(issue.with("field", "site"));
    }
    let mut absolute = |code: ErrorCode, field: &str, path: &str| {
        if !is_absolute(path) {
            issues.refuse(code, field, ABSOLUTE);
        }
    };
    absolute(ErrorCode::InputInvalid, "wordpress", &task.wordpress);
    let allowed = task.allowed_roots.as_deref().unwrap_or_default();
    let lists = [
        ("denied", &task.denied[..]),
        ("code_roots", &task.code_roots),
        ("allowed_roots", allowed),
    ];
    for (name, paths) in lists {
        for (index, path) in paths.iter().enumerate() {
            absolute(ErrorCode::InputInvalid, &format!("{name}[{index}]"), path);
        }
    }
    for (index, file) in task.staged_files.iter().enumerate() {
        let field = format!("staged_files[{index}].source");
        absolute(ErrorCode::MountInvalid, &field, &file.source);
    }
    for (index, component) in task.components.iter().enumerate() {
        let field = format!("components[{index}].source");
        absolute(ErrorCode::InputInvalid, &field, &component.source);
    }
    for (index, bundle) in task.agent_bundles.iter().enumerate() {
        if let Some(source) = &bundle.source {
            let field = format!("agent_bundles[{index}].source");
            absolute(ErrorCode::InputInvalid, &field, source);
        }
    }
}

/// Whether a host path is absolute, without NUL, `.` and `..` segments.
fn is_absolute(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains('\0')
        && path.split('/').all(|part| !matches!(part, "." | ".."))
}

/// The model, and what the built-in loop may use of it.
fn model(task: &TaskSpec) -> Result<(), ErrorBody> {
    let checked = match (&task.resolved_agent, &task.resolved_model) {
        (Some(Agent::Model(agent)), model) => check_model_agent(agent, model.as_ref()),
        (_, Some(model)) => check_model(model),
        (_, None) => return Ok(()),
    };
    checked.map(|_| ()).map_err(|e| e.body())
}

fn agent(task: &TaskSpec, issues: &mut Issues) {
    let found = match &task.resolved_agent {
        Some(Agent::Preset(preset)) => check_preset_name(&preset.name).map_err(|e| e.body()),
        Some(Agent::Ability(task)) => check_runtime_task(task).map_err(|e| {
            let field = match e {
                ComponentError::Document { .. } => "resolved_agent.input",
                _ => "resolved_agent.ability",
            };
            e.body().with("field", field)
        }),
        Some(Agent::Model(agent)) => {
            let told = agent.instructions.as_deref().unwrap_or_default();
            if told.len() > MAX_INSTRUCTIONS {
                let rule = format!("at most {MAX_INSTRUCTIONS} bytes long");
                let field = "resolved_agent.instructions";
                issues.refuse(ErrorCode::InputInvalid, field, &rule);
            }
            Ok(())
        }
        Some(Agent::Command(_)) | None => Ok(()),
    };
    if let Err(issue) = found {
        issues.push(issue);
    }
}

fn bounds(task: &TaskSpec, issues: &mut Issues) {
    let invalid = ErrorCode::InputInvalid;
    if task.staged_files.len() > MAX_STAGED {
        let rule = format!("a list of at most {MAX_STAGED} rows");
        issues.refuse(invalid, "staged_files", &rule);
    }
    if task.max_runs == Some(0) {
        issues.refuse(invalid, "max_runs", "a whole number from 1");
    }
    if let Some(hold) = &task.hold {
        if hold.ttl_ms == 0 {
            issues.refuse(invalid, "hold.ttl_ms", "milliseconds, at least 1");
        }
        if hold.max_ttl_ms < hold.ttl_ms {
            issues.refuse(invalid, "hold.max_ttl_ms", "at least ttl_ms");
        }
    }
    for (index, line) in task.checks.iter().enumerate() {
        if shell_words::split(line).is_err() {
            let field = format!("checks[{index}]");
            issues.refuse(invalid, &field, "a command line without open quotes");
        }
    }
    if let Err(error) = task.limits.resolve() {
        let issue = ErrorBody::new(ErrorCode::LimitInvalid, error.to_string());
        issues.push(issue.with("field", format!("limits.{}", error.field)));
    }
}
