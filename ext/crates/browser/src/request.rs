//! Converts the arguments of a browser command to a task.

use super::asserts::Assertion;
use super::environment::{Environment, truth};
use super::steps::{self, StepSpec, StepsRefused, WaitFor, wait_for};
use serde_json::Value;
use std::time::Duration;
use wp_codebox_contracts::{CommandCall, ErrorBody, ErrorCode, RuntimePolicy, SITE_ORIGIN};
use wp_codebox_policy::{Host, arg_value, browser_duration, check_browser_scenario};

/// Command id that the policy must contain before steps may run JavaScript of the caller.
const EVALUATE: &str = "wordpress.browser-actions.evaluate";
/// Timeout of a browser command that sets none.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a step that sets none.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
const SCRIPT: usize = 256 * 1024;

/// User that the browser is logged in as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// The browser is not logged in.
    Nobody,
    /// The user with this id, or without an id the first administrator.
    User(Option<u64>),
}

/// What a command captures of a page for the bundle (the run's result directory).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    Screenshot,
    FullPage,
    Html,
    Console,
    Errors,
    Network,
    Accessibility,
}

const CAPTURES: &[(&str, Capture)] = &[
    ("screenshot", Capture::Screenshot),
    ("full-page-screenshot", Capture::FullPage),
    ("html", Capture::Html),
    ("console", Capture::Console),
    ("errors", Capture::Errors),
    ("network", Capture::Network),
    ("accessibility", Capture::Accessibility),
];

/// Kind of a browser command, with the arguments that only this kind has.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Loads one page, checks assertions, and captures what the caller asked for.
    Probe,
    /// Loads a page of the site's front end or administration.
    PageLoad {
        /// Part of the site: `frontend` or `admin`.
        surface: String,
    },
    /// Returns the HTML of a page.
    Html,
    /// Executes steps, such as clicks, on a page.
    Actions {
        /// Steps to execute, in order.
        steps: Vec<StepSpec>,
        /// Name of the scenario that contains the steps, if the caller gave one.
        name: Option<String>,
    },
}

/// What a browser command must do.
#[derive(Debug, Clone)]
pub struct Task {
    /// Kind of the browser command.
    pub work: Work,
    /// URL to load first; `None` when the first step navigates.
    pub url: Option<String>,
    /// Load stage at which a navigation counts as complete.
    pub wait_for: WaitFor,
    /// How long to observe the page after it has loaded.
    pub duration: Duration,
    /// Timeout of the whole command.
    pub timeout: Duration,
    /// Timeout of a step that sets none.
    pub step_timeout: Duration,
    /// Device, locale, network speed and permissions that the browser emulates.
    pub environment: Environment,
    /// User that the browser is logged in as.
    pub auth: Auth,
    /// Initial cookies and local storage, as JSON or as the path of a file.
    pub storage: Option<String>,
    /// Script that runs before the page's own scripts.
    pub pre_script: Option<String>,
    /// Script to run in the loaded page; the result contains its value.
    pub script: Option<String>,
    /// Assertions to check at the end, in order.
    pub asserts: Vec<Assertion>,
    /// What to capture of the page for the bundle.
    pub capture: Vec<Capture>,
    /// Whether the first failed assertion ends the checks.
    pub fail_fast: bool,
    /// Hosts to which requests are restricted, among those that the policy allows. If the list is
    /// empty, requests may reach every host that the policy allows.
    pub only_hosts: Vec<Host>,
    /// Hosts that requests must not reach, even if the policy allows them.
    pub never_hosts: Vec<Host>,
    /// Whether requests may reach other hosts than the site.
    pub external: External,
}

/// Which hosts besides the site the page's requests may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum External {
    /// All hosts that the policy allows.
    Policy,
    /// No external host.
    Deny,
}

/// Arguments that the command registry knows for browser commands but this backend does not
/// support, with the alternative or reason that the error states.
const REFUSED: &[(&str, &str)] = &[
    (
        "profiles",
        "one command has one profile: give one command per profile",
    ),
    (
        "route-host",
        "requests always go to the host in their URL; serve the other host's responses from the site",
    ),
    (
        "route-host-drain",
        "requests always go to the host in their URL; use block-host",
    ),
    (
        "preview-mode",
        "the browser always loads the site from the work guest directly",
    ),
    (
        "observe",
        "console, errors and network are always observed; capture selects what is stored",
    ),
    ("stall-timeout", "use timeout and step-timeout"),
    ("action-corpus-json", "list each step in steps-json"),
    ("adaptive-exploration-json", "list each step in steps-json"),
    (
        "transport-faults-json",
        "single requests cannot be made to fail; throttle=offline fails all of them",
    ),
    (
        "browser-environment-json",
        "set viewport, locale, timezone and so on as separate arguments",
    ),
    (
        "max-dom-snapshot-elements",
        "DOM snapshots are not supported; capture has html and accessibility",
    ),
    ("output-dir", "files are stored in the bundle"),
];

/// Converts the call of a browser command to a task. The call has already passed the checks of the
/// command registry.
pub fn parse(call: &CommandCall, policy: &RuntimePolicy) -> Result<Task, ErrorBody> {
    let invalid = |why: String| {
        ErrorBody::new(ErrorCode::InputInvalid, format!("{}: {why}", call.command))
            .with("command", call.command.clone())
    };
    let value = |name: &str| {
        arg_value(call, name)
            .map(str::to_owned)
            .filter(|value| !value.is_empty())
    };
    for (name, why) in REFUSED {
        if value(name).is_some() {
            let message = format!(
                "{}: {name} is not offered by this backend: {why}",
                call.command
            );
            return Err(ErrorBody::new(ErrorCode::CommandUnsupported, message)
                .with("command", call.command.clone())
                .with("argument", *name));
        }
    }
    let work = work(call, &value).map_err(|refused| {
        let mut body = invalid(refused.why);
        if refused.unsupported {
            body.code = ErrorCode::CommandUnsupported;
        }
        body
    })?;
    if let Work::Actions { steps, .. } = &work {
        let evaluates = steps
            .iter()
            .any(|step| matches!(step.act, steps::StepAction::Evaluate { .. }));
        if evaluates && !policy.commands.iter().any(|id| id == EVALUATE) {
            let message = format!(
                "{}: a step evaluates JavaScript, but the policy's commands do not contain {EVALUATE}",
                call.command
            );
            return Err(ErrorBody::new(ErrorCode::CommandDisallowed, message)
                .with("command", EVALUATE)
                .with("allowedCommands", policy.commands.clone()));
        }
    }
    let url = match (value("url").or_else(|| value("path")), &work) {
        (Some(url), _) => Some(address(&url).map_err(&invalid)?),
        (None, Work::PageLoad { surface }) => Some(match surface.as_str() {
            "admin" => format!("{SITE_ORIGIN}/wp-admin/"),
            _ => format!("{SITE_ORIGIN}/"),
        }),
        (None, Work::Actions { .. }) => None,
        (None, Work::Probe | Work::Html) => return Err(invalid("url is required".to_owned())),
    };
    let time = |name: &str, default: Duration| -> Result<Duration, ErrorBody> {
        value(name).map_or(Ok(default), |text| {
            browser_duration(&text).ok_or_else(|| {
                invalid(format!(
                    "{name} must be a number with ms or s, up to 10 minutes"
                ))
            })
        })
    };
    let script = |name: &str| -> Result<Option<String>, ErrorBody> {
        match value(name) {
            Some(text) if text.len() > SCRIPT => {
                Err(invalid(format!("{name} is longer than {SCRIPT} bytes")))
            }
            other => Ok(other),
        }
    };
    let all = |name: &str| {
        let prefix = format!("{name}=");
        call.args
            .iter()
            .filter_map(move |arg| arg.strip_prefix(&prefix).map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let hosts = |name: &str| -> Result<Vec<Host>, ErrorBody> {
        all(name)
            .iter()
            .map(|text| Host::parse(text).map_err(|e| invalid(format!("{name} {text:?}: {e}"))))
            .collect()
    };
    if let Some(text) = value("record-external") {
        // A valid value has no effect, because all requests are recorded anyway.
        truth("record-external", &text).map_err(&invalid)?;
    }
    Ok(Task {
        url,
        wait_for: wait_for(value("wait-for").as_deref()).map_err(&invalid)?,
        duration: time("duration", Duration::ZERO)?,
        timeout: time("timeout", TIMEOUT)?,
        step_timeout: time("step-timeout", STEP_TIMEOUT)?,
        environment: Environment::read(value).map_err(&invalid)?,
        auth: auth(&value).map_err(&invalid)?,
        storage: value("storage-state"),
        pre_script: script("pre-page-script")?,
        script: script("script")?,
        asserts: all("assert")
            .iter()
            .map(|text| Assertion::parse(text).map_err(&invalid))
            .collect::<Result<_, _>>()?,
        capture: capture(&work, value("capture").as_deref()).map_err(&invalid)?,
        fail_fast: value("fail-fast")
            .map_or(Ok(false), |text| truth("fail-fast", &text))
            .map_err(&invalid)?,
        only_hosts: hosts("allow-host")?,
        never_hosts: hosts("block-host")?,
        external: match value("network-policy").as_deref() {
            None | Some("policy") => External::Policy,
            Some("deny" | "site-only" | "block-external") => External::Deny,
            Some(other) => {
                return Err(invalid(format!(
                    "network-policy is {other:?}, but must be policy (what the run's policy allows) or deny (the site only)"
                )));
            }
        },
        work,
    })
}

fn work(call: &CommandCall, value: &dyn Fn(&str) -> Option<String>) -> Result<Work, StepsRefused> {
    match call.command.as_str() {
        "wordpress.browser-page-load" => Ok(Work::PageLoad {
            surface: value("surface").unwrap_or_else(|| "frontend".to_owned()),
        }),
        "wordpress.capture-html" => Ok(Work::Html),
        "wordpress.browser-actions" => {
            let steps = match value("steps-json") {
                Some(json) => steps::parse(&json)?,
                None if value("url").is_some() => Vec::new(),
                None => return Err("give steps-json or url".to_owned().into()),
            };
            Ok(Work::Actions { steps, name: None })
        }
        "wordpress.browser-scenario" => scenario(value),
        _ => Ok(Work::Probe),
    }
}

/// Parses the steps of a browser scenario, given as `{name?, description?, steps: [...]}` in
/// `scenario-json` or as a list in `steps-json`.
fn scenario(value: &dyn Fn(&str) -> Option<String>) -> Result<Work, StepsRefused> {
    let Some(text) = value("scenario-json") else {
        let steps = value("steps-json").map_or(Ok(Vec::new()), |json| steps::parse(&json))?;
        return Ok(Work::Actions { steps, name: None });
    };
    if value("steps-json").is_some() {
        return Err("give scenario-json or steps-json, not both"
            .to_owned()
            .into());
    }
    let document: Value = serde_json::from_str(&text).map_err(|e| format!("scenario-json: {e}"))?;
    steps::judged(&check_browser_scenario(&document))?;
    let list = document.get("steps").and_then(Value::as_array);
    let steps = steps::parse_values(list.map_or(&[][..], Vec::as_slice))?;
    let name = document
        .get("name")
        .and_then(Value::as_str)
        .map(str::to_owned);
    Ok(Work::Actions { steps, name })
}

/// Converts a path of the site or an absolute URL to the URL to load; fails for anything else.
pub(super) fn address(text: &str) -> Result<String, String> {
    let fits = text.len() <= 4096 && !text.chars().any(|c| c.is_control() || c == ' ');
    if fits && text.starts_with('/') && !text.starts_with("//") {
        return Ok(format!("{SITE_ORIGIN}{text}"));
    }
    if fits && (text.starts_with("http://") || text.starts_with("https://")) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is neither a path like /wp-admin/ nor an http:// or https:// URL"
    ))
}

fn auth(value: &dyn Fn(&str) -> Option<String>) -> Result<Auth, String> {
    let id = value("auth-user-id")
        .map(|text| {
            text.parse()
                .map_err(|_| format!("auth-user-id {text:?} is not a number"))
        })
        .transpose()?;
    match (value("auth").as_deref(), id) {
        (None | Some("none"), None) => Ok(Auth::Nobody),
        (None | Some("wp-admin"), id) => Ok(Auth::User(id)),
        (Some("none"), Some(_)) => {
            Err("auth is none, but auth-user-id names a user; omit one of the two".to_owned())
        }
        (Some(other), _) => Err(format!("auth is {other:?}, but must be none or wp-admin")),
    }
}

fn capture(work: &Work, text: Option<&str>) -> Result<Vec<Capture>, String> {
    let Some(text) = text else {
        return Ok(match work {
            Work::Html => vec![Capture::Html],
            Work::PageLoad { .. } => vec![Capture::Errors],
            Work::Probe | Work::Actions { .. } => vec![
                Capture::Screenshot,
                Capture::Console,
                Capture::Errors,
                Capture::Network,
            ],
        });
    };
    let mut found = Vec::new();
    for name in text.split(',').map(str::trim) {
        match CAPTURES.iter().find(|row| row.0 == name) {
            Some((_, capture)) if !found.contains(capture) => found.push(*capture),
            Some(_) => {}
            None if matches!(name, "" | "none") => {}
            None => {
                let known: Vec<&str> = CAPTURES.iter().map(|row| row.0).collect();
                return Err(format!(
                    "capture has {name:?}, but takes {} or none",
                    known.join(", ")
                ));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_policy::defaults;

    fn read(command: &str, args: &[&str]) -> Result<Task, ErrorBody> {
        let call = CommandCall {
            command: command.to_owned(),
            args: args.iter().map(|a| (*a).to_owned()).collect(),
        };
        parse(&call, &defaults(vec![command.to_owned()]))
    }

    const PROBE: &str = "wordpress.browser-probe";
    const ACTIONS: &str = "wordpress.browser-actions";

    #[test]
    fn browser_probe_arguments_are_parsed() {
        let task = read(
            PROBE,
            &[
                "url=/x?a=1",
                "wait-for=selector:#a",
                "timeout=1.5s",
                "assert=exists:a",
                "assert=advisory:url:/x",
                "auth=wp-admin",
                "capture=html,screenshot",
                "allow-host=fonts.example.com",
            ],
        )
        .unwrap();
        assert_eq!(task.url.as_deref(), Some("http://localhost/x?a=1"));
        assert_eq!(
            (task.wait_for, task.timeout),
            (
                WaitFor::Selector("#a".to_owned()),
                Duration::from_millis(1500)
            )
        );
        assert_eq!((task.asserts.len(), task.auth), (2, Auth::User(None)));
        assert_eq!(task.capture, [Capture::Html, Capture::Screenshot]);
        assert_eq!(task.only_hosts.len(), 1);
    }

    #[test]
    fn unsupported_browser_arguments_are_refused_and_named() {
        for (args, code, word) in [
            (
                &["url=/", "route-host=a=b"][..],
                ErrorCode::CommandUnsupported,
                "route-host",
            ),
            (
                &["url=/", "profiles=mobile-chrome"],
                ErrorCode::CommandUnsupported,
                "profiles",
            ),
            (
                &["url=file:///etc/passwd"],
                ErrorCode::InputInvalid,
                "neither a path",
            ),
            (
                &["url=javascript:alert(1)"],
                ErrorCode::InputInvalid,
                "neither a path",
            ),
            (
                &["url=//other.example/"],
                ErrorCode::InputInvalid,
                "neither a path",
            ),
            (
                &["url=/", "capture=video"],
                ErrorCode::InputInvalid,
                "capture",
            ),
            (
                &["url=/", "wait-for=forever"],
                ErrorCode::InputInvalid,
                "wait-for",
            ),
            (
                &["url=/", "timeout=11m"],
                ErrorCode::InputInvalid,
                "timeout",
            ),
            (
                &["url=/", "block-host=localhost"],
                ErrorCode::InputInvalid,
                "block-host",
            ),
            (
                &["url=/", "network-policy=allow"],
                ErrorCode::InputInvalid,
                "network-policy",
            ),
            (&["url=/", "auth=root"], ErrorCode::InputInvalid, "auth"),
        ] {
            let error = read(PROBE, args).unwrap_err();
            assert_eq!(error.code, code, "{args:?}");
            assert!(error.message.contains(word), "{}", error.message);
        }
    }

    #[test]
    fn browser_evaluate_step_is_refused_unless_the_policy_lists_its_command() {
        let steps = r#"steps-json=[{"kind":"evaluate","expression":"1"}]"#;
        let refused = read(ACTIONS, &["url=/", steps]).unwrap_err();
        assert_eq!(refused.code, ErrorCode::CommandDisallowed);
        let call = CommandCall {
            command: ACTIONS.to_owned(),
            args: vec!["url=/".to_owned(), steps.to_owned()],
        };
        let allowed = defaults(vec![ACTIONS.to_owned(), EVALUATE.to_owned()]);
        assert!(parse(&call, &allowed).is_ok());
        assert!(read(ACTIONS, &[]).is_err());
    }
}
