//! Checks a run request against rules that the shapes of its fields do not express.

use super::follow_up;
use super::issues::Issues;
use crate::{
    ComponentError, SecretUse, apart_from_components, assert_command, call_commands,
    check_agent_bundles, check_components, check_mail_service, check_model, check_model_agent,
    check_mounts, check_preset_name, check_runtime_task, check_secrets, check_services,
    check_staged_target, command_words, defaults,
};
use wp_codebox_contracts::{Agent, CodedError, ErrorBody, ErrorCode, RunRequest, StagedFile};

/// Maximum length of a goal in bytes. Larger data for the agent belongs in staged files.
const MAX_GOAL: usize = 64 * 1024;
/// Maximum length of the host's instructions to the built-in loop in bytes.
const MAX_INSTRUCTIONS: usize = 64 * 1024;
/// Maximum number of staged files.
const MAX_STAGED: usize = 256;
/// Maximum length of the name of a plugin or theme to activate, in bytes.
const MAX_NAME: usize = 400;
/// Maximum number of site seeds.
const MAX_SEEDS: usize = 25;
/// Maximum size of the content of all site seeds in bytes. The content is JSON text inside the JSON
/// of the request, where escaping may double its size, and the request must fit into one frame.
const MAX_SEED_BYTES: usize = 6 * 1024 * 1024;
/// Rule that host paths must satisfy, as text for an error message.
const ABSOLUTE: &str = "an absolute path without `.` and `..` segments";

/// Process that checks a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckedBy {
    /// PHP, before it starts a process. A request of a site must have a goal, and its host paths
    /// must be absolute, because they are compared as text with the site's settings.
    Site,
    /// The supervisor, which opens paths and checks the opened files. A request from the
    /// operator may have a command and no goal.
    Supervisor,
}

/// Checks a request without access to files and processes. The extension calls this before it
/// starts a process, every supervisor before it opens a file. Issues name the fields of `TaskSpec`.
///
/// # Errors
/// Fails with the first issue; if there are several, its `data.issues` lists all of them.
pub fn check_request(request: &RunRequest, by: CheckedBy) -> Result<(), ErrorBody> {
    let mut issues = Issues::default();
    goal(request, by, &mut issues);
    if by == CheckedBy::Site {
        places(request, &mut issues);
    }
    agent(request, &mut issues);
    follow_up::check(request, &mut issues);
    let policy = request
        .policy
        .clone()
        .unwrap_or_else(|| defaults(Vec::new()));
    let mut note = |result: Result<(), ErrorBody>| {
        if let Err(issue) = result {
            issues.push(issue);
        }
    };
    match check_mounts(&request.mounts, &policy) {
        Ok(targets) => {
            let apart = apart_from_components(&request.mounts, &targets, &request.components);
            let checked = check_components(&request.components, &apart, &policy);
            note(checked.map(|_| ()).map_err(ErrorBody::from));
        }
        Err(e) => note(Err(e.body())),
    }
    for file in staged(request) {
        note(
            check_staged_target(&file.target)
                .map(|_| ())
                .map_err(ErrorBody::from),
        );
    }
    // Without a policy a run gets the default policy with exactly the commands that it calls.
    let calls = request.commands.iter();
    let own = defaults(calls.flat_map(call_commands).collect());
    for call in &request.commands {
        let asserted = assert_command(request.policy.as_ref().unwrap_or(&own), call);
        note(asserted.map(|_| ()).map_err(ErrorBody::from));
    }
    let steps = request.workflow.iter().flat_map(|w| &w.steps);
    for call in request.commands.iter().chain(steps.map(|step| &step.call)) {
        let checked = check_mail_service(call, &request.services);
        note(checked.map_err(|why| {
            let message = format!("{}: the argument service {why}", call.command);
            ErrorBody::new(ErrorCode::InputInvalid, message)
        }));
    }
    note(model(request));
    let command = request.agent.as_ref().and_then(Agent::command);
    let taken = command.into_iter().flat_map(|agent| agent.env.keys());
    let secret_use = SecretUse {
        policy: &policy,
        model: request.model.as_ref(),
    };
    let checked = check_secrets(&request.secrets, secret_use, taken.map(String::as_str));
    note(checked.map_err(ErrorBody::from));
    let names = request.secrets.iter().map(|secret| secret.env.as_str());
    let checked = check_agent_bundles(&request.agent_bundles, &names.collect());
    note(checked.map_err(ErrorBody::from));
    for issue in check_services(&request.services) {
        let field = format!("services{}", issue.place);
        let message = format!("{field}: {}", issue.message);
        issues.push(ErrorBody::new(ErrorCode::InputInvalid, message).with("field", field));
    }
    bounds(request, &mut issues);
    issues.into_result()
}

fn goal(request: &RunRequest, by: CheckedBy, issues: &mut Issues) {
    let goal = match (&request.task, by) {
        (Some(task), _) => task.texts.goal.as_str(),
        (None, CheckedBy::Site) => "",
        (None, CheckedBy::Supervisor) => return,
    };
    if goal.trim().is_empty() {
        issues.push(ErrorBody::new(
            ErrorCode::TaskMissing,
            "no goal was given; say in `goal` what the agent shall do",
        ));
    }
    if goal.len() > MAX_GOAL {
        let rule = format!("at most {MAX_GOAL} bytes long");
        issues.refuse(ErrorCode::InputInvalid, "goal", &rule);
    }
}

/// Checks that host paths are absolute. The supervisor later opens the directories and checks their
/// owners.
fn places(request: &RunRequest, issues: &mut Issues) {
    let paths = &request.paths;
    let mut absolute = |code: ErrorCode, field: &str, path: &str| {
        if !is_absolute(path) {
            issues.refuse(code, field, ABSOLUTE);
        }
    };
    absolute(ErrorCode::InputInvalid, "wordpress", &paths.wordpress);
    let allowed = paths.allowed_roots.as_deref().unwrap_or_default();
    let lists = [
        ("denied", &paths.denied[..]),
        ("code_roots", &paths.code_roots),
        ("allowed_roots", allowed),
    ];
    for (name, list) in lists {
        for (index, path) in list.iter().enumerate() {
            absolute(ErrorCode::InputInvalid, &format!("{name}[{index}]"), path);
        }
    }
    for (index, file) in staged(request).iter().enumerate() {
        let field = format!("staged_files[{index}].source");
        absolute(ErrorCode::MountInvalid, &field, &file.source);
    }
    for (index, component) in request.components.iter().enumerate() {
        let field = format!("components[{index}].source");
        absolute(ErrorCode::InputInvalid, &field, &component.source);
    }
    for (index, bundle) in request.agent_bundles.iter().enumerate() {
        if let Some(source) = &bundle.source {
            let field = format!("agent_bundles[{index}].source");
            absolute(ErrorCode::InputInvalid, &field, source);
        }
    }
}

fn staged(request: &RunRequest) -> &[StagedFile] {
    request.task.as_ref().map_or(&[], |task| &task.staged_files)
}

/// Returns whether a host path is absolute, without NUL, `.` and `..` segments.
fn is_absolute(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains('\0')
        && path.split('/').all(|part| !matches!(part, "." | ".."))
}

/// Checks the model of a request, and the budget of the built-in agent loop.
fn model(request: &RunRequest) -> Result<(), ErrorBody> {
    let checked = match (&request.agent, &request.model) {
        (Some(Agent::Model(agent)), model) => check_model_agent(agent, model.as_ref()),
        (_, Some(model)) => check_model(model),
        (_, None) => return Ok(()),
    };
    checked.map(|_| ()).map_err(ErrorBody::from)
}

fn agent(request: &RunRequest, issues: &mut Issues) {
    let found = match &request.agent {
        Some(Agent::Preset(preset)) => check_preset_name(&preset.name).map_err(ErrorBody::from),
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

fn bounds(request: &RunRequest, issues: &mut Issues) {
    let invalid = ErrorCode::InputInvalid;
    if staged(request).len() > MAX_STAGED {
        let rule = format!("a list of at most {MAX_STAGED} entries");
        issues.refuse(invalid, "staged_files", &rule);
    }
    for (index, row) in request.activate.iter().enumerate() {
        let name = &row.name;
        if name.is_empty() || name.len() > MAX_NAME || name.contains(char::is_control) {
            let field = format!("activate[{index}].name");
            issues.refuse(
                invalid,
                &field,
                "the main file of a plugin or the directory of a theme",
            );
        }
    }
    if request.seeds.len() > MAX_SEEDS {
        let rule = format!("a list of at most {MAX_SEEDS} seeds");
        issues.refuse(ErrorCode::SiteSeedInvalid, "site_seeds", &rule);
    }
    if request.seeds.iter().map(|s| s.content.len()).sum::<usize>() > MAX_SEED_BYTES {
        let most = MAX_SEED_BYTES / 1024 / 1024;
        let rule = format!("seeds that select at most {most} MiB together; select fewer records");
        issues.refuse(ErrorCode::SiteSeedInvalid, "site_seeds", &rule);
    }
    if request.max_runs == 0 {
        issues.refuse(invalid, "max_runs", "a whole number from 1");
    }
    if let Some(hold) = &request.hold {
        if hold.ttl_ms == 0 {
            issues.refuse(invalid, "hold.ttl_ms", "milliseconds, at least 1");
        }
        if hold.max_ttl_ms < hold.ttl_ms {
            issues.refuse(invalid, "hold.max_ttl_ms", "at least ttl_ms");
        }
    }
    for (index, line) in request.checks.iter().enumerate() {
        if let Err(error) = command_words(line) {
            issues.push(error.body().with("field", format!("checks[{index}]")));
        }
    }
    if let Err(error) = request.limits.resolve() {
        let issue = ErrorBody::new(ErrorCode::LimitInvalid, error.to_string());
        issues.push(issue.with("field", format!("limits.{}", error.field)));
    }
}
