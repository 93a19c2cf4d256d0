//! Validates steps: the command exists, accepts the arguments, and the policy lists it.

use super::Validator;
use super::agent_step::refused_argument;
use crate::continuation::SELF_EXECUTING;
use crate::issue::IssueCode;
use crate::layout::{self, PlacedStep};
use crate::sources::PathKind;
use serde_json::Value;
use std::collections::BTreeSet;
use wp_codebox_contracts::{CommandCall, parse_json};
use wp_codebox_policy::{
    CommandDescriptor, Handler, arg_value, assert_step, call_commands, check_browser_scenario,
    check_browser_steps, check_editor_steps, check_mail_service, defaults, descriptor, line_words,
    named_file,
};

/// Maximum step timeout: one day, which is also the maximum duration of a run.
const MAX_TIMEOUT_MS: u64 = 24 * 3600 * 1000;

pub(super) fn check_workflow(validator: &mut Validator<'_>) {
    for placed in layout::workflow(validator.recipe) {
        check_step(validator, &placed);
    }
}

pub(super) fn check_probes(validator: &mut Validator<'_>) {
    let mut names = BTreeSet::new();
    for (index, probe) in validator.recipe.probes.iter().enumerate() {
        if !names.insert(probe.name.as_str()) {
            validator.report(
                IssueCode::DuplicateName,
                format!("$.probes[{index}].name"),
                "another probe has this name; use a distinct name",
            );
        }
    }
    for placed in layout::probes(validator.recipe) {
        if placed.step.continuation.is_some() {
            validator.report(
                IssueCode::InvalidContinuation,
                format!("{}.continuation", placed.path),
                "a probe runs once and cannot have a continuation; use a step of the workflow instead",
            );
        }
        check_step(validator, &placed);
    }
}

pub(super) fn check_step(validator: &mut Validator<'_>, placed: &PlacedStep<'_>) {
    let step = placed.step;
    if step.timeout_ms.is_some_and(|ms| ms > MAX_TIMEOUT_MS) {
        validator.report(
            IssueCode::InvalidTimeoutMs,
            format!("{}.timeoutMs", placed.path),
            format!("the timeout of a step is at most {MAX_TIMEOUT_MS} milliseconds"),
        );
    }
    if let Some(diagnostics) = &step.diagnostics
        && diagnostics
            .get("capture")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    {
        validator.report(
            IssueCode::UnsupportedDiagnostics,
            format!("{}.diagnostics.capture", placed.path),
            "a step cannot record database queries; run wordpress.run-php with capture-diagnostics, or print them in the step itself",
        );
    }
    check_call(
        validator,
        &placed.path,
        &CommandCall {
            command: step.command.clone(),
            args: step.args.clone(),
        },
    );
    for file in placed.files() {
        let path = format!("{}.args[{}]", placed.path, file.at);
        check_file(validator, &path, file.name, file.host);
    }
    check_continuation(validator, placed);
}

/// Validates command and arguments against the registry; reports every wrong argument.
pub(super) fn check_call(validator: &mut Validator<'_>, path: &str, call: &CommandCall) {
    let Some(found) = descriptor(&call.command) else {
        let message = if call.command.starts_with("host/") {
            "a recipe cannot run host commands: it acts in the guest only".to_owned()
        } else {
            format!(
                "unknown command {:?}; `wp-codebox commands` lists the commands",
                call.command.chars().take(100).collect::<String>()
            )
        };
        validator.report(
            IssueCode::UnsupportedCommand,
            format!("{path}.command"),
            message,
        );
        return;
    };
    if let Some(reason) = found.refusal() {
        validator.report(
            IssueCode::UnsupportedCommand,
            format!("{path}.command"),
            format!("{} is not supported here: {reason}", found.id),
        );
        return;
    }
    let before = validator.issues.len();
    check_args(validator, path, call, found);
    check_meaning(validator, path, call, found);
    // `assert_step` also runs when the command is executed. Running it here refuses a recipe that
    // would fail then.
    if validator.issues.len() == before
        && let Err(error) = assert_step(&defaults(call_commands(call)), call)
    {
        validator.report(
            IssueCode::InvalidStep,
            format!("{path}.args"),
            error.to_string(),
        );
    }
}

fn check_args(
    validator: &mut Validator<'_>,
    path: &str,
    call: &CommandCall,
    found: &'static CommandDescriptor,
) {
    let words = line_words(found, call);
    for (index, arg) in call.args.iter().enumerate() {
        if words.contains(&index) {
            continue;
        }
        let at = format!("{path}.args[{index}]");
        match arg.split_once('=') {
            None => validator.report(IssueCode::InvalidStep, at, "must be name=value"),
            Some((name, _)) if !found.accepted_args.iter().any(|a| a.name == name) => {
                let names: Vec<_> = found.accepted_args.iter().map(|a| a.name).collect();
                let message = if let Some(why) = refused_argument(found, name) {
                    format!("{name}: {why}")
                } else if names.is_empty() {
                    format!("{} takes no arguments", found.id)
                } else {
                    format!(
                        "{} has no argument {:?}; accepted are: {}",
                        found.id,
                        name.chars().take(100).collect::<String>(),
                        names.join(", ")
                    )
                };
                validator.report(unknown(found), at, message);
            }
            Some(_) => {}
        }
    }
    for wanted in found.accepted_args.iter().filter(|a| a.required) {
        if arg_value(call, wanted.name).is_none_or(|v| v.trim().is_empty()) {
            validator.report(
                missing(&call.command, wanted.name),
                format!("{path}.args"),
                format!("{} needs {}=…", found.id, wanted.name),
            );
        }
    }
}

fn unknown(found: &CommandDescriptor) -> IssueCode {
    match found.handler {
        Handler::Mail(_) => IssueCode::UnknownSmtpOperationArg,
        Handler::Program(_)
        | Handler::Browser
        | Handler::Checkpoint
        | Handler::Agent
        | Handler::Right { .. }
        | Handler::Unsupported { .. } => IssueCode::InvalidStep,
    }
}

fn missing(command: &str, arg: &str) -> IssueCode {
    match (command, arg) {
        ("host/smtp.inspect" | "host/smtp.reset", "service") => IssueCode::MissingSmtpService,
        (_, "command") => IssueCode::MissingCommand,
        (_, "url") => IssueCode::MissingUrl,
        (_, "path") => IssueCode::MissingPath,
        ("wordpress.ability", "name") => IssueCode::MissingAbilityName,
        (_, "plugin-slug" | "plugin") => IssueCode::MissingPluginSlug,
        _ => IssueCode::InvalidStep,
    }
}

/// Checks the values of arguments, by rules that only certain commands have.
fn check_meaning(
    validator: &mut Validator<'_>,
    path: &str,
    call: &CommandCall,
    found: &'static CommandDescriptor,
) {
    let filled = |name: &str| arg_value(call, name).is_some_and(|v| !v.trim().is_empty());
    let args = format!("{path}.args");
    if found.id == "wordpress.run-php" {
        match (filled("code"), filled("code-file")) {
            (false, false) => validator.report(
                IssueCode::MissingCode,
                args,
                "wordpress.run-php needs code=… or code-file=… (a PHP file beside the recipe)",
            ),
            (true, true) => validator.report(
                IssueCode::AmbiguousCode,
                args,
                "wordpress.run-php has both code and code-file; remove one of them",
            ),
            (true, false) | (false, true) => {}
        }
        return;
    }
    for (index, arg) in call.args.iter().enumerate() {
        let Some((name, value)) = arg.split_once('=') else {
            continue;
        };
        if let Handler::Mail(_) = found.handler {
            check_mail(validator, path, call, index, found);
        }
        if found.handler == Handler::Browser {
            let at = format!("{path}.args[{index}]");
            check_browser(validator, &at, found.id, name, value);
        }
        let json = name.ends_with("-json") || (found.id == "wordpress.ability" && name == "input");
        let row = found.accepted_args.iter().find(|row| row.name == name);
        let file =
            named_file(value).is_some() && row.is_some_and(|r| r.format.check(value).is_ok());
        if json
            && !file
            && !value.trim().is_empty()
            && serde_json::from_str::<Value>(value).is_err()
        {
            let code = if found.id == "wordpress.ability" {
                IssueCode::InvalidAbilityInput
            } else {
                IssueCode::InvalidStep
            };
            validator.report(
                code,
                format!("{path}.args[{index}]"),
                format!("{name} must be JSON"),
            );
        }
    }
}

/// Checks an argument of a mail command. Its service is `mail` or an smtp service of the recipe.
fn check_mail(
    validator: &mut Validator<'_>,
    path: &str,
    call: &CommandCall,
    index: usize,
    found: &'static CommandDescriptor,
) {
    let Some((name, value)) = call.args.get(index).and_then(|arg| arg.split_once('=')) else {
        return;
    };
    let at = format!("{path}.args[{index}]");
    let same = |arg: &String| arg.split_once('=').is_some_and(|(other, _)| other == name);
    if call.args.iter().take(index).any(same) {
        let message = format!("the argument {name} is given twice; remove one of them");
        validator.report(IssueCode::DuplicateSmtpOperationArg, at, message);
        return;
    }
    let services = &validator.recipe.inputs.services;
    if name == "service"
        && !value.trim().is_empty()
        && let Err(why) = check_mail_service(call, services)
    {
        let message = format!(
            "the argument \"service\" {why}: the built-in service or the id of an smtp service in inputs.services"
        );
        validator.report(IssueCode::InvalidReference, at, message);
        return;
    }
    let code = match name {
        "limit" => IssueCode::InvalidSmtpLimit,
        "recipient-label" => IssueCode::UnsafeSmtpRecipientLabel,
        _ => return,
    };
    let row = found.accepted_args.iter().find(|row| row.name == name);
    if let Some(Err(why)) = row.map(|row| row.format.check(value)) {
        validator.report(code, at, format!("{name} {why}"));
    }
}

/// Checks browser steps and scenarios by the same rules as the program that runs them.
fn check_browser(
    validator: &mut Validator<'_>,
    path: &str,
    command: &str,
    name: &str,
    value: &str,
) {
    let (code, issues) = match (name, parse_json(value.as_bytes())) {
        ("steps-json", Ok(Value::Array(steps))) if command == "wordpress.editor-actions" => {
            (IssueCode::InvalidStepsJson, check_editor_steps(&steps))
        }
        ("steps-json", Ok(Value::Array(steps))) => {
            (IssueCode::InvalidStepsJson, check_browser_steps(&steps))
        }
        ("scenario-json", Ok(scenario)) => (
            IssueCode::InvalidScenarioJson,
            check_browser_scenario(&scenario),
        ),
        _ => return,
    };
    for issue in issues {
        validator.report(code, path, format!("{name}: {issue}"));
    }
}

fn check_file(validator: &mut Validator<'_>, path: &str, name: &str, file: &str) {
    let (code, why) = match validator.sources.kind(file) {
        PathKind::File => return,
        PathKind::Missing => (
            IssueCode::MissingSource,
            "does not exist; relative paths are resolved from the recipe's directory",
        ),
        PathKind::Directory | PathKind::Other => (IssueCode::NotFile, "is not a regular file"),
        PathKind::Denied => (
            IssueCode::InvalidSource,
            "must not be seen by guests: it belongs to the system, the site's configuration or WP Codebox's state, or is outside wp_codebox.mount_roots; choose another",
        ),
    };
    let what = if name == "code-file" {
        "the code file".to_owned()
    } else {
        format!("the file of {name}")
    };
    validator.report(code, path, format!("{what} {why}"));
}

fn check_continuation(validator: &mut Validator<'_>, placed: &PlacedStep<'_>) {
    let Some(continuation) = &placed.step.continuation else {
        return;
    };
    let path = format!("{}.continuation", placed.path);
    if SELF_EXECUTING.contains(&placed.step.command.as_str()) {
        validator.report(
            IssueCode::InvalidContinuation,
            &path,
            format!(
                "{} runs other commands itself, so its step cannot have a continuation; remove the continuation",
                placed.step.command
            ),
        );
    }
    for (index, mapping) in continuation.input_mappings.iter().enumerate() {
        let at = format!("{path}.inputMappings[{index}].to");
        let given: Vec<_> = placed
            .step
            .args
            .iter()
            .filter_map(|arg| arg.split_once('='))
            .filter(|(name, _)| *name == mapping.to.arg)
            .collect();
        let message = match given.as_slice() {
            [] => Some("the step has no argument of this name; add it"),
            [(_, text)] => match serde_json::from_str::<Value>(text) {
                Ok(Value::Object(_) | Value::Array(_)) => None,
                Ok(_) | Err(_) => Some("the argument's value must be a JSON object or list"),
            },
            _ => Some("the step has the argument of this name more than once; keep one"),
        };
        if let Some(message) = message {
            validator.report(IssueCode::InvalidContinuation, format!("{at}.arg"), message);
        }
        if mapping.to.pointer.as_str().is_empty() {
            validator.report(
                IssueCode::InvalidContinuation,
                format!("{at}.pointer"),
                "inputMappings cannot replace the whole argument; set a pointer to a position in it",
            );
        }
    }
}

/// Reports commands that the policy does not list.
pub(super) fn check_policy(validator: &mut Validator<'_>) {
    let Some(policy) = &validator.policy else {
        return;
    };
    let allowed: BTreeSet<_> = policy.commands.iter().cloned().collect();
    let mut wanted: Vec<(String, String)> = Vec::new();
    for placed in layout::setup(validator.recipe)
        .into_iter()
        .chain(layout::workflow(validator.recipe))
        .chain(layout::probes(validator.recipe))
    {
        wanted.push((
            format!("{}.command", placed.path),
            placed.step.command.clone(),
        ));
    }
    let reached: BTreeSet<String> = wanted.iter().map(|(_, c)| c.clone()).collect();
    for command in crate::policy::commands(validator.recipe, validator.sources) {
        if !reached.contains(&command) {
            wanted.push(("policy.commands".to_owned(), command));
        }
    }
    for (path, command) in wanted {
        if !allowed.contains(&command) {
            validator.report(
                IssueCode::RuntimePolicyMissingCommand,
                path,
                format!("the policy does not list {command}; add it to the policy's commands"),
            );
        }
    }
}
