//! Validates the steps of `wordpress.browser-actions`, `wordpress.browser-scenario` and
//! `wordpress.editor-actions`: members of each kind of step and formats of their values.
//!
//! The steps of a recipe are validated before the run starts, the steps of a single call before
//! the browser starts. An unknown member is an error: if it were ignored, a step with a misspelled
//! `assert` would pass without its assertion. The browser crate validates the syntax of assertion
//! texts.

mod table;

use super::format::duration_form;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;
use table::{ACTOR, EDITOR_KINDS, Form, KIND, KINDS, Kind, Member, REFUSED_KINDS, TIMEOUT, either};

/// Maximum number of steps of one command.
const MAX_STEPS: usize = 200;
/// Maximum number of actors of one command; each has a browser context and a page of its own.
const MAX_ACTORS: usize = 8;
/// Maximum length of an actor's name, in bytes.
const MAX_ACTOR_BYTES: usize = 200;
/// Maximum length of a text in a step, in bytes.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Maximum value in milliseconds of a step's timeout and of a wait's duration.
const MAX_DURATION_MS: u64 = 600_000;

/// One fault in a list of browser steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepIssue {
    /// Index of the step; `None`: the list or the scenario as a whole.
    pub index: Option<usize>,
    /// What is wrong, as a sentence.
    pub message: String,
    /// True if other backends support the step's kind or member and this one does not; false if the
    /// step is invalid.
    pub unsupported: bool,
}

impl StepIssue {
    fn invalid(message: String) -> Self {
        Self {
            index: None,
            message,
            unsupported: false,
        }
    }

    fn unsupported(message: String) -> Self {
        Self {
            unsupported: true,
            ..Self::invalid(message)
        }
    }
}

impl fmt::Display for StepIssue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "steps[{index}]: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Returns all faults of a list of browser steps.
#[must_use]
pub fn check_browser_steps(list: &[Value]) -> Vec<StepIssue> {
    check_steps(list, &[KINDS])
}

/// Returns all faults of a list of steps for the block editor: browser steps, and steps that only
/// the editor has.
#[must_use]
pub fn check_editor_steps(list: &[Value]) -> Vec<StepIssue> {
    check_steps(list, &[EDITOR_KINDS, KINDS])
}

fn check_steps(list: &[Value], tables: &[&'static [Kind]]) -> Vec<StepIssue> {
    if list.is_empty() || list.len() > MAX_STEPS {
        return vec![StepIssue::invalid(format!(
            "there must be from 1 to {MAX_STEPS} steps"
        ))];
    }
    let mut issues: Vec<StepIssue> = list
        .iter()
        .enumerate()
        .flat_map(|(index, step)| {
            one(step, tables).into_iter().map(move |issue| StepIssue {
                index: Some(index),
                ..issue
            })
        })
        .collect();
    let actors: BTreeSet<_> = list
        .iter()
        .filter_map(|step| step.get("actor").and_then(Value::as_str))
        .collect();
    if actors.len() > MAX_ACTORS {
        issues.push(StepIssue::invalid(format!(
            "the steps have {} actors; at most {MAX_ACTORS} are accepted",
            actors.len()
        )));
    }
    issues
}

/// Members of a scenario that describe it and have no effect.
const SCENARIO_TEXTS: &[&str] = &["schema", "id", "name", "title", "description"];
/// Members of a scenario that mean the same as an argument of the command.
const SCENARIO_ARGUMENTS: &[&str] = &[
    "url",
    "capture",
    "viewport",
    "device",
    "locale",
    "timezone",
    "auth",
    "userAgent",
    "stepTimeout",
    "timeout",
];

/// Returns all faults of a browser scenario: `steps`, texts that describe it, and members that mean
/// the same as an argument of the command.
#[must_use]
pub fn check_browser_scenario(document: &Value) -> Vec<StepIssue> {
    let Some(members) = document.as_object() else {
        return vec![StepIssue::invalid(
            "the scenario is not a JSON object".to_owned(),
        )];
    };
    let mut issues = Vec::new();
    for (name, value) in members {
        match name.as_str() {
            "steps" | "metadata" => {}
            "actors" => issues.extend(check_actors(value)),
            "actor" => issues.extend(
                check_value(Form::Actor, value)
                    .err()
                    .map(|why| StepIssue::invalid(format!("actor {why}"))),
            ),
            "capture" if check_value(Form::Texts, value).is_ok() => {}
            "viewport" if value.is_object() || value.is_string() => {}
            text if SCENARIO_TEXTS.contains(&text) || SCENARIO_ARGUMENTS.contains(&text) => {
                if !value.is_string() {
                    issues.push(StepIssue::invalid(format!("{name} must be text")));
                }
            }
            other => issues.push(StepIssue::invalid(format!(
                "a scenario has no member {}; it takes steps, actor, actors, metadata, {} and {}",
                quoted(other),
                SCENARIO_TEXTS.join(", "),
                SCENARIO_ARGUMENTS.join(", ")
            ))),
        }
    }
    match members.get("steps").and_then(Value::as_array) {
        Some(steps) => issues.extend(check_browser_steps(steps)),
        None if members.contains_key("steps") => {
            issues.push(StepIssue::invalid("steps must be a list".to_owned()));
        }
        None if members.contains_key("url") => {}
        None => issues.push(StepIssue::invalid(
            "the scenario has no list of steps".to_owned(),
        )),
    }
    issues
}

/// Returns all faults of a scenario's actors. An actor is a string, its name, or an object with
/// `name` and the name of its session in `userSession` or `session`. An actor without such a member
/// uses the session that has the actor's name.
fn check_actors(value: &Value) -> Vec<StepIssue> {
    let invalid = |why: &str| vec![StepIssue::invalid(why.to_owned())];
    let Some(rows) = value.as_array() else {
        return invalid("actors must be a list");
    };
    if rows.len() > MAX_ACTORS {
        return invalid(&format!("actors has more than {MAX_ACTORS} entries"));
    }
    let mut issues = Vec::new();
    let mut names = BTreeSet::new();
    for (index, row) in rows.iter().enumerate() {
        let mut report = |why: String| {
            issues.push(StepIssue::invalid(format!("actors[{index}] {why}")));
        };
        let name = match row {
            Value::Object(members) => {
                for (member, value) in members {
                    let checked =
                        match member.as_str() {
                            "name" | "userSession" | "session" => check_value(Form::Actor, value),
                            "metadata" => Ok(()),
                            _ => Err("is unknown; an actor takes name, userSession and metadata"
                                .to_owned()),
                        };
                    if let Err(why) = checked {
                        report(format!("{}: {why}", quoted(member)));
                    }
                }
                if members.contains_key("userSession") && members.contains_key("session") {
                    report("has userSession and session; leave one of them out".to_owned());
                }
                members.get("name")
            }
            other => Some(other),
        };
        match name.map(|name| (check_value(Form::Actor, name), name.as_str())) {
            None => report("has no name".to_owned()),
            Some((Err(why), _)) if !row.is_object() => report(why),
            Some((_, Some(name))) if !names.insert(name) => {
                report("has the name of another actor".to_owned());
            }
            Some(_) => {}
        }
    }
    issues
}

/// Parses a duration such as `1500ms`, `2s` or `0.5s`; at most ten minutes.
#[must_use]
pub fn browser_duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => (text.strip_suffix('s')?, 1000.0),
    };
    let ms = number.parse::<f64>().ok().filter(|_| duration_form(text))? * unit;
    // The format allows only digits and a decimal point, so the product is neither negative nor
    // NaN. If it is infinite, the comparison below refuses it.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    (ms <= MAX_DURATION_MS as f64).then(|| Duration::from_millis(ms as u64))
}

fn one(step: &Value, tables: &[&'static [Kind]]) -> Vec<StepIssue> {
    let Some(step) = step.as_object() else {
        return vec![StepIssue::invalid("it is not an object".to_owned())];
    };
    let kinds = || {
        let names: Vec<_> = tables
            .iter()
            .copied()
            .flatten()
            .flat_map(|kind| kind.names.first())
            .copied()
            .collect();
        names.join(", ")
    };
    let given: Vec<_> = KIND.iter().filter(|name| is_there(step, name)).collect();
    let name = match given.as_slice() {
        [] => {
            return vec![StepIssue::invalid(format!(
                "kind is missing; kinds are {}",
                kinds()
            ))];
        }
        [name] => **name,
        [name, other, ..] => {
            return vec![StepIssue::invalid(format!(
                "it has {name} and {other}; leave one of them out"
            ))];
        }
    };
    let wanted = step.get(name).and_then(Value::as_str).unwrap_or_default();
    if let Some((_, why)) = REFUSED_KINDS.iter().find(|row| row.0 == wanted) {
        return vec![StepIssue::unsupported(format!(
            "{wanted} is not supported: {why}"
        ))];
    }
    let mut kinds_of_step = tables.iter().copied().flatten();
    let Some(kind) = kinds_of_step.find(|kind| kind.names.contains(&wanted)) else {
        return vec![StepIssue::invalid(format!(
            "there is no kind {}; kinds are {}",
            quoted(wanted),
            kinds()
        ))];
    };
    let more: &[Member] = if tables.len() == 1 { ACTOR } else { &[] };
    let mut issues = members((kind, more), wanted, step);
    if issues.is_empty() {
        issues.extend(together(wanted, step));
    }
    issues
}

fn members(
    (kind, more): (&Kind, &[Member]),
    wanted: &str,
    step: &Map<String, Value>,
) -> Vec<StepIssue> {
    let mut issues = Vec::new();
    for (name, value) in step {
        if KIND.contains(&name.as_str()) {
            continue;
        }
        let mut rows = kind.members.iter().chain(TIMEOUT).chain(more);
        let Some((_, form)) = rows.find(|row| row.0 == name) else {
            issues.push(StepIssue::invalid(format!(
                "{wanted} has no member {}; it takes {}",
                quoted(name),
                offered(kind, more)
            )));
            continue;
        };
        issues.extend(
            check_value(*form, value)
                .err()
                .map(|why| StepIssue::invalid(format!("{name} {why}"))),
        );
    }
    let timeouts = either(&["timeoutMs", "timeout"]);
    for choice in kind.choices.iter().chain([&timeouts]) {
        let any = |name: &str| {
            let json = |row: &&Member| row.0 == name && row.1 == Form::Json;
            is_there(step, name)
                || (step.contains_key(name) && kind.members.iter().any(|row| json(&row)))
        };
        let given: Vec<_> = choice.of.iter().filter(|name| any(name)).collect();
        match given.as_slice() {
            [] if choice.needed => issues.push(StepIssue::invalid(format!(
                "{} is missing",
                choice.of.join(" or ")
            ))),
            [] | [_] => {}
            [name, other, ..] => issues.push(StepIssue::invalid(format!(
                "{wanted} has {name} and {other}; leave one of them out"
            ))),
        }
    }
    issues
}

/// Returns a fault if members of the step do not fit together: `state` or a frame without an
/// element, one coordinate without the other, `waitFor: duration` without a duration, or a duration
/// in a step that does not wait for one.
fn together(wanted: &str, step: &Map<String, Value>) -> Option<StepIssue> {
    let when = step.get("waitFor").and_then(Value::as_str);
    let time = is_there(step, "duration") || is_there(step, "durationMs");
    let waits = matches!(wanted, "waitFor" | "wait");
    let frame = ["frameSelector", "frame", "frameUrl"];
    let framed = frame.into_iter().find(|name| is_there(step, name));
    let element = is_there(step, "selector")
        || matches!(wanted, "drag" | "screenshot")
        || (wanted == "click" && is_there(step, "text"));
    let message = match (when, time) {
        _ if is_there(step, "state") && !is_there(step, "selector") => {
            "state needs selector".to_owned()
        }
        _ if framed.is_some() && !element => {
            format!("{} needs selector", framed.unwrap_or_default())
        }
        _ if wanted == "drag" && is_there(step, "x") != is_there(step, "y") => {
            "x needs y, and y needs x".to_owned()
        }
        (Some("duration"), false) => "waitFor duration needs duration".to_owned(),
        (Some("duration"), true) | (_, false) => return None,
        (None, true) if waits => return None,
        (_, true) => "duration is allowed only with waitFor duration".to_owned(),
    };
    Some(StepIssue::invalid(message))
}

/// Returns whether a step has a member. `null` counts as absent: it is a value only for members of
/// [`Form::Json`].
fn is_there(step: &Map<String, Value>, name: &str) -> bool {
    step.get(name).is_some_and(|value| !value.is_null())
}

fn offered(kind: &Kind, more: &[Member]) -> String {
    let names: Vec<_> = kind
        .members
        .iter()
        .chain(TIMEOUT)
        .chain(more)
        .map(|row| row.0)
        .collect();
    names.join(", ")
}

fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(100).collect::<String>())
}

/// Checks the value of a step's member. The error is the end of a sentence that begins with the
/// member's name.
fn check_value(form: Form, value: &Value) -> Result<(), String> {
    let text = value.as_str();
    let wrong = |good: bool, why: &str| if good { Ok(()) } else { Err(why.to_owned()) };
    let short = |text: &str| text.len() <= MAX_TEXT_BYTES;
    match form {
        Form::Json => Ok(()),
        Form::Text | Form::Filled if value.is_null() || value.is_number() => Ok(()),
        Form::Text => wrong(text.is_some_and(short), "must be text of at most 256 KiB"),
        Form::Filled => wrong(
            text.is_some_and(|text| short(text) && !text.is_empty()),
            "must be text of 1 byte to 256 KiB",
        ),
        Form::Texts => wrong(
            match value {
                Value::Array(rows) => {
                    (1..=100).contains(&rows.len())
                        && rows.iter().all(|row| row.as_str().is_some_and(short))
                }
                other => other
                    .as_str()
                    .is_some_and(|text| short(text) && !text.is_empty()),
            },
            "must be text or a list of 1 to 100 texts",
        ),
        Form::Object => wrong(value.is_object(), "must be a JSON object"),
        Form::Count => wrong(
            value.as_u64().is_some_and(|count| count <= 100_000),
            "must be a whole number from 0 to 100000",
        ),
        Form::Status => wrong(
            value
                .as_u64()
                .is_some_and(|status| (100..=599).contains(&status)),
            "must be a number from 100 to 599",
        ),
        Form::Flag => wrong(value.is_boolean(), "must be true or false"),
        Form::Number => wrong(
            value.as_f64().is_some_and(|number| number.abs() <= 1e6),
            "must be a number up to a million",
        ),
        Form::Milliseconds { least } => wrong(
            value
                .as_u64()
                .is_some_and(|ms| (least..=MAX_DURATION_MS).contains(&ms)),
            &format!("must be a whole number of milliseconds from {least} to {MAX_DURATION_MS}"),
        ),
        Form::Duration => wrong(
            text.is_some_and(|text| browser_duration(text).is_some()),
            "must be a number with ms or s, like 500ms or 1.5s, up to 10 minutes",
        ),
        Form::When => wrong(
            text.is_some_and(|text| {
                matches!(
                    text,
                    "load" | "domcontentloaded" | "networkidle" | "duration"
                ) || text
                    .strip_prefix("selector:")
                    .is_some_and(|selector| short(selector) && !selector.trim().is_empty())
            }),
            "must be domcontentloaded, load, networkidle, duration or selector:…",
        ),
        Form::Name => wrong(
            value.is_null()
                || text.is_some_and(|name| {
                    name.len() <= 60
                        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
                        && name
                            .bytes()
                            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
                }),
            "must be letters, digits, - and _, at most 60, beginning with a letter or digit",
        ),
        Form::Actor => wrong(
            text.is_some_and(|name| {
                (1..=MAX_ACTOR_BYTES).contains(&name.len())
                    && name
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
            }),
            "must be the name of an actor or a session: letters, digits, ., - and _",
        ),
        Form::OneOf(words) => wrong(
            text.is_some_and(|text| words.contains(&text)),
            &format!("must be one of {}", words.join(", ")),
        ),
    }
}

#[cfg(test)]
mod tests;
