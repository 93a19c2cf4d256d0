//! Validates the steps of `wordpress.browser-actions` and `wordpress.browser-scenario`: members
//! of each kind of step and formats of their values.
//!
//! The steps of a recipe are validated before the run starts, the steps of a single call before
//! the browser starts. An unknown member is an error: if it were ignored, a step with a misspelled
//! `assert` would pass without its assertion. The browser crate validates the syntax of assertion
//! texts.

mod table;

use super::format::duration_form;
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;
use table::{Form, KIND, KINDS, Kind, REFUSED_KINDS, TIMEOUT, either};

/// Maximum number of steps of one command.
const MAX_STEPS: usize = 200;
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
    if list.is_empty() || list.len() > MAX_STEPS {
        return vec![StepIssue::invalid(format!(
            "there must be from 1 to {MAX_STEPS} steps"
        ))];
    }
    list.iter()
        .enumerate()
        .flat_map(|(index, step)| {
            one(step).into_iter().map(move |issue| StepIssue {
                index: Some(index),
                ..issue
            })
        })
        .collect()
}

/// Returns all faults of a browser scenario, `{name?, description?, steps}`.
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
            "steps" => {}
            "name" | "description" if value.is_string() => {}
            "name" | "description" => {
                issues.push(StepIssue::invalid(format!("{name} must be text")));
            }
            other => issues.push(StepIssue::invalid(format!(
                "a scenario has no member {}; it takes name, description and steps",
                quoted(other)
            ))),
        }
    }
    match members.get("steps").and_then(Value::as_array) {
        Some(steps) => issues.extend(check_browser_steps(steps)),
        None => issues.push(StepIssue::invalid(
            "the scenario has no list of steps".to_owned(),
        )),
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

fn one(step: &Value) -> Vec<StepIssue> {
    let Some(step) = step.as_object() else {
        return vec![StepIssue::invalid("it is not an object".to_owned())];
    };
    let kinds = || {
        let names: Vec<_> = KINDS
            .iter()
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
            "{wanted} is not offered by this backend: {why}"
        ))];
    }
    let Some(kind) = KINDS.iter().find(|kind| kind.names.contains(&wanted)) else {
        return vec![StepIssue::invalid(format!(
            "there is no kind {}; kinds are {}",
            quoted(wanted),
            kinds()
        ))];
    };
    let mut issues = members(kind, wanted, step);
    if issues.is_empty() {
        issues.extend(together(wanted, step));
    }
    issues
}

fn members(kind: &Kind, wanted: &str, step: &Map<String, Value>) -> Vec<StepIssue> {
    let mut issues = Vec::new();
    for (name, value) in step {
        if KIND.contains(&name.as_str()) {
            continue;
        }
        let Some((_, form)) = kind.members.iter().chain(TIMEOUT).find(|row| row.0 == name) else {
            issues.push(StepIssue::invalid(format!(
                "{wanted} has no member {}; it takes {}",
                quoted(name),
                offered(kind)
            )));
            continue;
        };
        match form {
            Form::Refused(why) => issues.push(StepIssue::unsupported(format!(
                "{name} of {wanted} is not offered by this backend: {why}"
            ))),
            form => issues.extend(
                check_value(*form, value)
                    .err()
                    .map(|why| StepIssue::invalid(format!("{name} {why}"))),
            ),
        }
    }
    let timeouts = either(&["timeoutMs", "timeout"]);
    for choice in kind.choices.iter().chain([&timeouts]) {
        let given: Vec<_> = choice
            .of
            .iter()
            .filter(|name| is_there(step, name))
            .collect();
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

/// Returns a fault if the step has `state` without `selector`, `waitFor: duration` without a
/// duration, or a duration although it does not wait for one.
fn together(wanted: &str, step: &Map<String, Value>) -> Option<StepIssue> {
    let when = step.get("waitFor").and_then(Value::as_str);
    let time = is_there(step, "duration") || is_there(step, "durationMs");
    let waits = matches!(wanted, "waitFor" | "wait");
    let message = match (when, time) {
        _ if is_there(step, "state") && !is_there(step, "selector") => {
            "state needs selector".to_owned()
        }
        (Some("duration"), false) => "waitFor duration needs duration".to_owned(),
        (Some("duration"), true) | (_, false) => return None,
        (None, true) if waits => return None,
        (_, true) => "duration is allowed only with waitFor duration".to_owned(),
    };
    Some(StepIssue::invalid(message))
}

/// Returns whether a step has a member. `null` counts as absent: it is a value only for members of
/// [`Form::Json`], and this function is never called for one of those.
fn is_there(step: &Map<String, Value>, name: &str) -> bool {
    step.get(name).is_some_and(|value| !value.is_null())
}

fn offered(kind: &Kind) -> String {
    let names: Vec<_> = kind
        .members
        .iter()
        .chain(TIMEOUT)
        .filter(|row| !matches!(row.1, Form::Refused(_)))
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
        Form::Refused(_) | Form::Json => Ok(()),
        Form::Text | Form::Filled if value.is_null() || value.is_number() => Ok(()),
        Form::Text => wrong(text.is_some_and(short), "must be text of at most 256 KiB"),
        Form::Filled => wrong(
            text.is_some_and(|text| short(text) && !text.is_empty()),
            "must be text of 1 byte to 256 KiB",
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
            &format!("must be a number from {least} to {MAX_DURATION_MS}"),
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
        Form::OneOf(words) => wrong(
            text.is_some_and(|text| words.contains(&text)),
            &format!("must be one of {}", words.join(", ")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a valid value of a format.
    fn good(form: Form) -> Value {
        match form {
            Form::Text | Form::Filled | Form::Json | Form::Refused(_) => json!("x"),
            Form::Flag => json!(true),
            Form::Number | Form::Milliseconds { .. } => json!(5),
            Form::Duration => json!("2s"),
            Form::When => json!("load"),
            Form::Name => json!("one"),
            Form::OneOf(words) => json!(words[0]),
        }
    }

    fn least(kind: &Kind, name: &str) -> Map<String, Value> {
        let mut step = Map::new();
        step.insert("kind".to_owned(), json!(name));
        for choice in kind.choices.iter().filter(|choice| choice.needed) {
            step.insert(choice.of[0].to_owned(), json!("x"));
        }
        step
    }

    fn said(step: &Map<String, Value>) -> String {
        let issues = check_browser_steps(&[Value::Object(step.clone())]);
        let issues: Vec<_> = issues.iter().map(ToString::to_string).collect();
        issues.join("\n")
    }

    #[test]
    fn each_browser_step_kind_accepts_only_its_own_members() {
        let everything: Vec<&str> = KINDS
            .iter()
            .flat_map(|kind| kind.members)
            .chain(TIMEOUT)
            .map(|row| row.0)
            .chain(["asert", "waitfor", "optional"])
            .collect();
        for kind in KINDS {
            for name in kind.names {
                assert_eq!(said(&least(kind, name)), "", "{name}");
                for member in &everything {
                    let mut step = least(kind, name);
                    let row = kind
                        .members
                        .iter()
                        .chain(TIMEOUT)
                        .find(|row| row.0 == *member);
                    let value = row.map_or(json!("x"), |row| good(row.1));
                    step.insert((*member).to_owned(), value);
                    let said = said(&step);
                    match row {
                        None => assert!(
                            said.starts_with(&format!(
                                "steps[0]: {name} has no member {member:?}; it takes "
                            )),
                            "{name} {member}: {said}"
                        ),
                        Some((_, Form::Refused(_))) => {
                            assert!(
                                said.contains(&format!("{member} of {name} is not offered")),
                                "{said}"
                            );
                        }
                        // Even a valid value may be refused, because some members exclude another
                        // member or require one.
                        Some(_) => assert!(
                            said.is_empty()
                                || said.contains("leave one of them out")
                                || said.contains(" needs ")
                                || said.contains("allowed only with"),
                            "{name} {member}: {said}"
                        ),
                    }
                }
            }
        }
    }

    #[test]
    fn browser_step_values_must_match_the_format_of_their_member() {
        for (step, why) in [
            (
                json!({"kind": "evaluate", "script": "1", "assert": null}),
                "",
            ),
            (
                json!({"kind": "evaluate", "script": "1", "assert": {"a": [1]}, "timeout": "5s"}),
                "",
            ),
            (
                json!({"kind": "waitFor", "waitFor": "duration", "duration": "2s"}),
                "",
            ),
            (json!({"kind": "waitFor", "durationMs": 5}), ""),
            (
                json!({"kind": "waitFor", "selector": "#a", "state": "detached"}),
                "",
            ),
            (
                json!({"kind": "expect", "selector": "#a", "state": "checked"}),
                "",
            ),
            (
                json!({"kind": "navigate", "url": "/", "waitFor": "selector:#a"}),
                "",
            ),
            (json!({"kind": "fill", "selector": "#a", "value": ""}), ""),
            (
                json!({"kind": "waitFor", "selector": "#a", "state": "gone"}),
                "state must be one of",
            ),
            (
                json!({"kind": "waitFor", "state": "hidden"}),
                "state needs selector",
            ),
            (
                json!({"kind": "waitFor", "selector": "#a", "durationMs": 5}),
                "selector and durationMs",
            ),
            (
                json!({"kind": "waitFor", "waitFor": "load", "duration": "1s"}),
                "allowed only with",
            ),
            (
                json!({"kind": "waitFor", "waitFor": "duration"}),
                "needs duration",
            ),
            (
                json!({"kind": "waitFor", "waitFor": "soon"}),
                "waitFor must be",
            ),
            (
                json!({"kind": "waitFor", "waitFor": "selector: "}),
                "waitFor must be",
            ),
            (
                json!({"kind": "screenshot", "fullPage": "yes"}),
                "fullPage must be",
            ),
            (
                json!({"kind": "click", "selector": "#a", "timeout": "11m"}),
                "timeout must be",
            ),
            (
                json!({"kind": "click", "selector": "#a", "timeout": "601s"}),
                "timeout must be",
            ),
            (
                json!({"kind": "click", "selector": "#a", "timeout": "1s", "timeoutMs": 5}),
                "timeoutMs and timeout",
            ),
            (
                json!({"kind": "click", "action": "hover", "selector": "#a"}),
                "kind and action",
            ),
            (
                json!({"kind": "fill", "selector": "#a", "value": "a", "text": "b"}),
                "value and text",
            ),
            (json!({"kind": "drag"}), "drag is not offered"),
            (json!({"kind": "fly"}), "there is no kind"),
            (json!({"url": "/"}), "kind is missing"),
            (json!("click"), "not an object"),
        ] {
            let issues = check_browser_steps(std::slice::from_ref(&step));
            let said = issues
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n");
            if why.is_empty() {
                assert_eq!(said, "", "{step}");
            } else {
                assert!(
                    said.starts_with("steps[0]: ") && said.contains(why),
                    "{step}: {said}"
                );
            }
            let refused = step.get("kind") == Some(&json!("drag"));
            assert!(
                issues.iter().all(|issue| issue.unsupported == refused),
                "{said}"
            );
        }
        assert_eq!(check_browser_steps(&[]).len(), 1);
    }

    #[test]
    fn browser_scenario_accepts_only_name_description_and_steps() {
        let said = |document: &Value| {
            let issues = check_browser_scenario(document);
            issues.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let steps = json!([{"kind": "hover", "selector": "#a"}]);
        assert!(said(&json!({"name": "n", "description": "d", "steps": steps})).is_empty());
        for (document, why) in [
            (json!({"name": 5, "steps": steps}), "name must be text"),
            (
                json!({"steps": steps, "retries": 2}),
                "no member \"retries\"",
            ),
            (json!({"name": "n"}), "no list of steps"),
            (
                json!({"steps": [{"kind": "hover", "selector": "#a", "x": 1}]}),
                "steps[0]: hover has no member",
            ),
            (json!([]), "not a JSON object"),
        ] {
            let said = said(&document);
            assert!(said.len() == 1 && said[0].contains(why), "{said:?}");
        }
    }

    #[test]
    fn browser_durations_above_ten_minutes_are_refused() {
        assert_eq!(browser_duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(browser_duration("600s"), Some(Duration::from_secs(600)));
        for text in ["601s", "1m", "5", ".5s", "1.s", "-1s", "1e3s", "infs"] {
            assert_eq!(browser_duration(text), None, "{text}");
        }
    }
}
