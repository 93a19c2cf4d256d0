//! Steps: the command exists, takes these arguments, and the policy lists it.

use super::Judge;
use crate::continuation::SELF_EXECUTING;
use crate::issue::IssueCode;
use crate::layout::{self, PlacedStep};
use crate::sources::PathKind;
use serde_json::Value;
use std::collections::BTreeSet;
use wp_codebox_contracts::{CommandCall, RuntimePolicy};
use wp_codebox_policy::{
    CommandDescriptor, Handler, arg_value, assert_command, check_browser_scenario,
    check_browser_steps, defaults, descriptor, required_commands,
};

/// Longest timeout of a step: a day, like the longest run.
const MAX_TIMEOUT_MS: u64 = 24 * 3600 * 1000;

pub(super) fn check_workflow(judge: &mut Judge<'_>) {
    for placed in layout::workflow(judge.recipe) {
        check_step(judge, &placed);
    }
}

pub(super) fn check_probes(judge: &mut Judge<'_>) {
    let mut names = BTreeSet::new();
    for (index, probe) in judge.recipe.probes.iter().enumerate() {
        if !names.insert(probe.name.as_str()) {
            judge.say(
                IssueCode::DuplicateName,
                format!("$.probes[{index}].name"),
                "another probe has this name; each needs its own",
            );
        }
    }
    for placed in layout::probes(judge.recipe) {
        if placed.step.continuation.is_some() {
            judge.say(
                IssueCode::InvalidContinuation,
                format!("{}.continuation", placed.path),
                "a probe runs once; continue a step of the workflow instead",
            );
        }
        check_step(judge, &placed);
    }
}

pub(super) fn check_step(judge: &mut Judge<'_>, placed: &PlacedStep<'_>) {
    let step = placed.step;
    if step.timeout_ms.is_some_and(|ms| ms > MAX_TIMEOUT_MS) {
        judge.say(
            IssueCode::InvalidTimeoutMs,
            format!("{}.timeoutMs", placed.path),
            format!("a step may take at most {MAX_TIMEOUT_MS} milliseconds"),
        );
    }
    if let Some(diagnostics) = &step.diagnostics
        && diagnostics
            .get("capture")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    {
        judge.say(
            IssueCode::UnsupportedDiagnostics,
            format!("{}.diagnostics.capture", placed.path),
            "queries of the database are not recorded by a step; run wordpress.run-php with capture-diagnostics, or print them from the step itself",
        );
    }
    check_call(
        judge,
        &placed.path,
        &CommandCall {
            command: step.command.clone(),
            args: step.args.clone(),
        },
    );
    if let Some((at, path)) = placed.code_file() {
        check_code_file(judge, &format!("{}.args[{at}]", placed.path), path);
    }
    check_continuation(judge, placed);
}

/// Command and arguments against the registry; every argument that is wrong is named.
pub(super) fn check_call(judge: &mut Judge<'_>, path: &str, call: &CommandCall) {
    let Some(found) = descriptor(&call.command) else {
        let message = if call.command.starts_with("host/") {
            "commands of the host do not exist here: a recipe acts in the guest only".to_owned()
        } else {
            format!(
                "there is no command {:?} here; `wp-codebox commands` lists them",
                call.command.chars().take(100).collect::<String>()
            )
        };
        judge.say(
            IssueCode::UnsupportedCommand,
            format!("{path}.command"),
            message,
        );
        return;
    };
    if let Some(reason) = found.refusal() {
        judge.say(
            IssueCode::UnsupportedCommand,
            format!("{path}.command"),
            format!("{} is not offered here: {reason}", found.id),
        );
        return;
    }
    let before = judge.issues.len();
    check_args(judge, path, call, found);
    check_meaning(judge, path, call, found);
    // The registry has the last word: what it refuses is never accepted here.
    if judge.issues.len() == before
        && let Err(error) = assert_command(&alone(&call.command), call)
    {
        judge.say(
            IssueCode::InvalidStep,
            format!("{path}.args"),
            error.to_string(),
        );
    }
}

/// A policy that allows this command and no other.
fn alone(command: &str) -> RuntimePolicy {
    let needed = required_commands(command);
    defaults(needed.into_iter().map(str::to_owned).collect())
}

fn check_args(
    judge: &mut Judge<'_>,
    path: &str,
    call: &CommandCall,
    found: &'static CommandDescriptor,
) {
    for (index, arg) in call.args.iter().enumerate() {
        let at = format!("{path}.args[{index}]");
        match arg.split_once('=') {
            None => judge.say(IssueCode::InvalidStep, at, "must be name=value"),
            Some((name, _)) if !found.accepted_args.iter().any(|a| a.name == name) => {
                let names: Vec<_> = found.accepted_args.iter().map(|a| a.name).collect();
                let message = if names.is_empty() {
                    format!("{} takes no arguments", found.id)
                } else {
                    format!(
                        "{} has no argument {:?}; accepted are: {}",
                        found.id,
                        name.chars().take(100).collect::<String>(),
                        names.join(", ")
                    )
                };
                judge.say(unknown(found), at, message);
            }
            Some(_) => {}
        }
    }
    for wanted in found.accepted_args.iter().filter(|a| a.required) {
        if arg_value(call, wanted.name).is_none_or(|v| v.trim().is_empty()) {
            judge.say(
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

/// What single commands need beyond the presence of arguments.
fn check_meaning(
    judge: &mut Judge<'_>,
    path: &str,
    call: &CommandCall,
    found: &'static CommandDescriptor,
) {
    let filled = |name: &str| arg_value(call, name).is_some_and(|v| !v.trim().is_empty());
    let args = format!("{path}.args");
    if found.id == "wordpress.run-php" {
        match (filled("code"), filled("code-file")) {
            (false, false) => judge.say(
                IssueCode::MissingCode,
                args,
                "needs code=… or code-file=… (a PHP file beside the recipe)",
            ),
            (true, true) => judge.say(
                IssueCode::AmbiguousCode,
                args,
                "has code and code-file; leave one of them out",
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
            check_mail(judge, path, call, index, found);
        }
        if found.handler == Handler::Browser {
            check_browser(judge, &format!("{path}.args[{index}]"), name, value);
        }
        let json = name.ends_with("-json") || (found.id == "wordpress.ability" && name == "input");
        if json && serde_json::from_str::<Value>(value).is_err() {
            let code = if found.id == "wordpress.ability" {
                IssueCode::InvalidAbilityInput
            } else {
                IssueCode::InvalidStep
            };
            judge.say(
                code,
                format!("{path}.args[{index}]"),
                format!("{name} must be JSON"),
            );
        }
    }
}

/// One argument of a mail command; a wrong service is left to the registry.
fn check_mail(
    judge: &mut Judge<'_>,
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
        let message = format!("{name} is given twice");
        judge.say(IssueCode::DuplicateSmtpOperationArg, at, message);
        return;
    }
    let code = match name {
        "limit" => IssueCode::InvalidSmtpLimit,
        "recipient-label" => IssueCode::UnsafeSmtpRecipientLabel,
        _ => return,
    };
    let row = found.accepted_args.iter().find(|row| row.name == name);
    if let Some(Err(why)) = row.map(|row| row.format.check(value)) {
        judge.say(code, at, format!("{name} {why}"));
    }
}

/// Steps and scenarios of the browser's commands, by the table that the runner judges them by.
fn check_browser(judge: &mut Judge<'_>, path: &str, name: &str, value: &str) {
    let (code, issues) = match (name, serde_json::from_str(value)) {
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
        judge.say(code, path, format!("{name}: {issue}"));
    }
}

fn check_code_file(judge: &mut Judge<'_>, path: &str, file: &str) {
    let (code, message) = match judge.sources.kind(file) {
        PathKind::File => return,
        PathKind::Missing => (
            IssueCode::MissingSource,
            "the code file does not exist; a relative path is meant from the recipe's directory",
        ),
        PathKind::Directory | PathKind::Other => {
            (IssueCode::NotFile, "the code file is no regular file")
        }
        PathKind::Denied => (
            IssueCode::InvalidSource,
            "this file may not be given to a guest",
        ),
    };
    judge.say(code, path, message);
}

fn check_continuation(judge: &mut Judge<'_>, placed: &PlacedStep<'_>) {
    let Some(continuation) = &placed.step.continuation else {
        return;
    };
    let path = format!("{}.continuation", placed.path);
    if SELF_EXECUTING.contains(&placed.step.command.as_str()) {
        judge.say(
            IssueCode::InvalidContinuation,
            &path,
            format!(
                "{} runs other commands itself and cannot be continued",
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
            [] => Some("the step has no such argument"),
            [(_, text)] => match serde_json::from_str::<Value>(text) {
                Ok(Value::Object(_) | Value::Array(_)) => None,
                Ok(_) | Err(_) => Some("the argument's value must be a JSON object or list"),
            },
            _ => Some("the step has the argument more than once"),
        };
        if let Some(message) = message {
            judge.say(IssueCode::InvalidContinuation, format!("{at}.arg"), message);
        }
        if mapping.to.pointer.as_str().is_empty() {
            judge.say(
                IssueCode::InvalidContinuation,
                format!("{at}.pointer"),
                "the argument cannot be replaced as a whole; name a place in it",
            );
        }
    }
}

/// Commands that the policy in force does not list.
pub(super) fn check_policy(judge: &mut Judge<'_>) {
    let Some(policy) = &judge.policy else {
        return;
    };
    let allowed: BTreeSet<_> = policy.commands.iter().cloned().collect();
    let mut wanted: Vec<(String, String)> = Vec::new();
    for placed in layout::setup(judge.recipe)
        .into_iter()
        .chain(layout::workflow(judge.recipe))
        .chain(layout::probes(judge.recipe))
    {
        wanted.push((
            format!("{}.command", placed.path),
            placed.step.command.clone(),
        ));
    }
    let reached: BTreeSet<String> = wanted.iter().map(|(_, c)| c.clone()).collect();
    for command in crate::policy::commands(judge.recipe) {
        if !reached.contains(&command) {
            wanted.push(("policy.commands".to_owned(), command));
        }
    }
    for (path, command) in wanted {
        if !allowed.contains(&command) {
            judge.say(
                IssueCode::RuntimePolicyMissingCommand,
                path,
                format!("the policy does not list {command}; add it to the policy's commands"),
            );
        }
    }
}
