//! Converts the arguments of a browser command to a task.

use super::arguments::Arguments;
use super::asserts::Assertion;
use super::capture_kind::{Capture, PageKind};
use super::environment::Environment;
use super::step_spec::{StepAction, WaitFor, wait_for};
use super::task::{Auth, CompareInput, EditorAct, External, Task, Work, address};
use super::work::work;
use std::time::Duration;
use wp_codebox_contracts::{CommandCall, ErrorBody, ErrorCode, RuntimePolicy, SITE_ORIGIN};
use wp_codebox_policy::Host;

/// Command id that the policy must contain before steps may run JavaScript of the caller.
const EVALUATE: &str = "wordpress.browser-actions.evaluate";
/// Timeout of a browser command that sets none.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a comparison and of a command in the block editor that sets none. They load several
/// pages, or a large one.
const LONG_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of a step that sets none.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
const SCRIPT: usize = 256 * 1024;
/// Maximum number of elements of a DOM snapshot for a command that sets none.
const SNAPSHOT_ELEMENTS: usize = 1000;
/// Maximum number of selectors that a command observes.
const OBSERVED: usize = 50;

/// Arguments that the command registry knows for browser commands but this backend does not
/// support, with the alternative or reason that the error states.
const REFUSED: &[(&str, &str)] = &[
    (
        "route-host",
        "requests always go to the host in their URL; serve the other host's responses from the site",
    ),
    (
        "route-host-drain",
        "requests always go to the host in their URL; use block-host",
    ),
    ("action-corpus-json", "list each step in steps-json"),
    ("adaptive-exploration-json", "list each step in steps-json"),
    (
        "transport-faults-json",
        "single requests cannot be made to fail; block-host refuses those to a host, and throttle=offline fails all of them",
    ),
    (
        "matrix-json",
        "one command makes one comparison; give one step per pair of pages and viewport",
    ),
];

/// Converts the call of a browser command to a task. The call has already passed the checks of the
/// command registry, and the caller has replaced arguments that name a file by its content.
pub fn parse(call: &CommandCall, policy: &RuntimePolicy) -> Result<Task, ErrorBody> {
    let invalid = |why: String| {
        ErrorBody::new(ErrorCode::InputInvalid, format!("{}: {why}", call.command))
            .with("command", call.command.clone())
    };
    let arguments = Arguments::of(call).map_err(&invalid)?;
    refused(&arguments)?;
    let work = work(&arguments).map_err(|refused| {
        let mut body = invalid(refused.why);
        if refused.unsupported {
            body.code = ErrorCode::CommandUnsupported;
        }
        body
    })?;
    let task = task(&arguments, work).map_err(&invalid)?;
    let evaluates = |action: &StepAction| matches!(action, StepAction::Evaluate { .. });
    if task.steps().iter().any(|step| evaluates(&step.act))
        && !policy.commands.iter().any(|id| id == EVALUATE)
    {
        let message = format!(
            "{}: a step evaluates JavaScript, but the policy's commands do not contain {EVALUATE}",
            call.command
        );
        return Err(ErrorBody::new(ErrorCode::CommandDisallowed, message)
            .with("command", EVALUATE)
            .with("allowedCommands", policy.commands.clone()));
    }
    Ok(task)
}

fn refused(arguments: &Arguments<'_>) -> Result<(), ErrorBody> {
    let public = arguments.value("preview-mode").as_deref() == Some("public");
    let preview = public.then_some(&(
        "preview-mode",
        "public loads pages by a public address, which a sandbox does not have; use local",
    ));
    let mut rows = REFUSED
        .iter()
        .filter(|row| arguments.value(row.0).is_some());
    let Some((name, why)) = rows.next().or(preview) else {
        return Ok(());
    };
    let command = arguments.command();
    let message = format!("{command}: the argument {name} is not supported: {why}");
    Err(ErrorBody::new(ErrorCode::CommandUnsupported, message)
        .with("command", command)
        .with("argument", *name))
}

fn task(arguments: &Arguments<'_>, work: Work) -> Result<Task, String> {
    let value = |name: &str| arguments.value(name);
    let script = |name: &str| match value(name) {
        Some(text) if text.len() > SCRIPT => Err(format!("{name} is longer than {SCRIPT} bytes")),
        other => Ok(other),
    };
    let hosts = |name: &str| -> Result<Vec<Host>, String> {
        let read = |text: &String| Host::parse(text).map_err(|e| format!("{name} {text:?}: {e}"));
        arguments.all(name).iter().map(read).collect()
    };
    // A valid value has no effect, because all requests are recorded anyway.
    arguments.flag("record-external")?;
    match value("preview-mode").as_deref() {
        None | Some("local") => {}
        Some(other) => return Err(format!("preview-mode is {other:?}, but must be local")),
    }
    let (mut environment, profiles) = environments(arguments)?;
    if let Work::Compare(_) = work {
        environment.without_motion();
    }
    let page = match &work {
        Work::Editor(_) => PageKind::Editor,
        Work::Probe
        | Work::PageLoad { .. }
        | Work::Html
        | Work::Actions { .. }
        | Work::Compare(_) => PageKind::Any,
    };
    Ok(Task {
        url: url(&work, arguments)?,
        wait_for: match &work {
            // The editor waits for its own state.
            Work::Editor(_) => WaitFor::DomContentLoaded,
            _ => wait_for(value("wait-for").as_deref())?,
        },
        duration: arguments.time("duration")?.unwrap_or_default(),
        timeout: timeout(&work, arguments)?,
        step_timeout: arguments.time("step-timeout")?.unwrap_or(STEP_TIMEOUT),
        stall: arguments.time("stall-timeout")?,
        environment,
        profiles,
        auth: auth(&work, arguments)?,
        storage: value("storage-state"),
        pre_script: match value("frozen-time") {
            Some(time) => Some(super::frozen::script(&time)?),
            None => script("pre-page-script")?,
        },
        script: script("script")?,
        asserts: asserts(arguments)?,
        observe: observed(value("observe").as_deref())?,
        capture: match value("capture") {
            Some(names) => Capture::list(names.split(','), page)?,
            None => captures(&work),
        },
        snapshot_elements: arguments.count("max-dom-snapshot-elements", SNAPSHOT_ELEMENTS)?,
        prefix: prefix(value("artifact-prefix"))?,
        fail_fast: arguments.flag("fail-fast")?.unwrap_or(false),
        only_hosts: hosts("allow-host")?,
        never_hosts: hosts("block-host")?,
        external: match value("network-policy").as_deref() {
            _ if arguments.flag("block-external-requests")? == Some(true) => External::Deny,
            None | Some("policy" | "record" | "allow") => External::Policy,
            Some("deny" | "block" | "site-only" | "block-external") => External::Deny,
            Some(other) => {
                return Err(format!(
                    "network-policy is {other:?}, but must be policy, record or allow (what the run's policy allows), or deny or block (the site only)"
                ));
            }
        },
        work,
    })
}

/// Returns the environment of the first page load, and the environments of all profiles.
fn environments(
    arguments: &Arguments<'_>,
) -> Result<(Environment, Vec<(String, Environment)>), String> {
    let value = |name: &str| arguments.value(name);
    let Some(names) = value("profiles") else {
        return Ok((Environment::read(value)?, Vec::new()));
    };
    if value("profile").is_some() {
        return Err("give profile or profiles, not both".to_owned());
    }
    let mut profiles: Vec<(String, Environment)> = Vec::new();
    for name in names.split(',').map(str::trim) {
        let named = |asked: &str| match asked {
            "profile" => Some(name.to_owned()),
            other => value(other),
        };
        if !profiles.iter().any(|row| row.0 == name) {
            profiles.push((name.to_owned(), Environment::read(named)?));
        }
    }
    let first = profiles.first().map(|row| row.1.clone());
    Ok((first.unwrap_or_default(), profiles))
}

fn url(work: &Work, arguments: &Arguments<'_>) -> Result<Option<String>, String> {
    let given = arguments.value("url").or_else(|| arguments.value("path"));
    match (work, given) {
        (Work::Editor(_), _) => super::work::editor_url(arguments).map(Some),
        (Work::Compare(compare), _) => Ok(match &compare.source.from {
            CompareInput::Page(url) => Some(url.clone()),
            CompareInput::Stored(_) => None,
        }),
        (_, Some(url)) => address(&url).map(Some),
        (Work::PageLoad { surface }, None) if surface == "admin" => {
            Ok(Some(format!("{SITE_ORIGIN}/wp-admin/")))
        }
        (Work::PageLoad { .. }, None) => Ok(Some(format!("{SITE_ORIGIN}/"))),
        (Work::Actions { .. }, None) => Ok(None),
        (Work::Probe | Work::Html, None) => Err("url is required".to_owned()),
    }
}

fn timeout(work: &Work, arguments: &Arguments<'_>) -> Result<Duration, String> {
    let default = match work {
        Work::Editor(editor) => LONG_TIMEOUT.max(editor.wait_timeout * 2),
        Work::Compare(_) => LONG_TIMEOUT,
        Work::Probe | Work::PageLoad { .. } | Work::Html | Work::Actions { .. } => TIMEOUT,
    };
    Ok(arguments.time("timeout")?.unwrap_or(default))
}

fn auth(work: &Work, arguments: &Arguments<'_>) -> Result<Auth, String> {
    let id = arguments
        .value("auth-user-id")
        .map(|text| {
            text.parse()
                .map_err(|_| format!("auth-user-id {text:?} is not a number"))
        })
        .transpose()?;
    match (arguments.value("auth").as_deref(), id) {
        (None, None) if matches!(work, Work::Editor(_)) => Ok(Auth::User(None)),
        (None | Some("none"), None) => Ok(Auth::Nobody),
        (None | Some("wordpress-admin" | "wp-admin"), id) => Ok(Auth::User(id)),
        (Some("none"), Some(_)) => {
            Err("auth is none, but auth-user-id names a user; omit one of the two".to_owned())
        }
        (Some(other), _) => Err(format!(
            "auth is {other:?}, but must be none or wordpress-admin"
        )),
    }
}

/// Returns the assertions: that of the argument `expect-status`, then those of `assert`.
fn asserts(arguments: &Arguments<'_>) -> Result<Vec<Assertion>, String> {
    let status = arguments
        .value("expect-status")
        .map(|text| match text.parse() {
            Ok(status @ 100..=599) => Ok(Assertion::of_status(status)),
            _ => Err("expect-status must be a number from 100 to 599".to_owned()),
        });
    let given = arguments.all("assert");
    let given = given.iter().map(|text| Assertion::parse(text));
    status.into_iter().chain(given).collect()
}

fn captures(work: &Work) -> Vec<Capture> {
    match work {
        Work::Html => vec![Capture::Html],
        Work::PageLoad { .. } => vec![Capture::Errors],
        // A comparison stores its own pictures.
        Work::Compare(_) => Vec::new(),
        Work::Editor(editor) => match editor.act {
            EditorAct::Validate { .. } => vec![Capture::Errors],
            EditorAct::Probe(_) => vec![Capture::Screenshot],
            EditorAct::Open | EditorAct::Steps(_) => vec![
                Capture::Screenshot,
                Capture::Console,
                Capture::Errors,
                Capture::EditorState,
            ],
        },
        Work::Probe | Work::Actions { .. } => vec![
            Capture::Screenshot,
            Capture::Console,
            Capture::Errors,
            Capture::Network,
        ],
    }
}

fn observed(names: Option<&str>) -> Result<Vec<String>, String> {
    let selectors: Vec<String> = names
        .into_iter()
        .flat_map(|names| names.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if selectors.len() > OBSERVED {
        return Err(format!("observe has more than {OBSERVED} selectors"));
    }
    Ok(selectors)
}

/// Checks the name of the subdirectory, in the command's own directory, for the command's files.
fn prefix(name: Option<String>) -> Result<Option<String>, String> {
    let Some(name) = name else {
        return Ok(None);
    };
    let name = name.trim_matches('/').to_owned();
    let word = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    if name.len() <= 100 && name.split('/').all(word) {
        Ok(Some(name))
    } else {
        Err(format!(
            "artifact-prefix is {:?}, but must be a relative directory of letters, digits, -, _ and .",
            name.chars().take(100).collect::<String>()
        ))
    }
}

#[cfg(test)]
mod tests;
