//! Steps of `wordpress.browser-actions`, as they are given.

use super::asserts::Assertion;
use serde_json::{Map, Value};
use std::time::Duration;

/// Steps of one command.
const STEPS: usize = 200;

/// What one step does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    Navigate {
        url: String,
    },
    Click {
        selector: String,
    },
    Fill {
        selector: String,
        value: String,
    },
    Type {
        selector: Option<String>,
        text: String,
    },
    Press {
        selector: Option<String>,
        key: String,
    },
    Select {
        selector: String,
        value: String,
    },
    Check {
        selector: String,
        on: bool,
    },
    Hover {
        selector: String,
    },
    Scroll {
        selector: Option<String>,
        x: f64,
        y: f64,
    },
    WaitSelector {
        selector: String,
    },
    WaitHidden {
        selector: String,
    },
    WaitUrl {
        part: String,
    },
    WaitTime {
        time: Duration,
    },
    WaitLoad,
    Expect(Assertion),
    Screenshot {
        name: Option<String>,
        full: bool,
    },
    Evaluate {
        expression: String,
    },
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepSpec {
    /// As given, e.g. `click`.
    pub(super) kind: String,
    /// What it is about, for the result.
    pub(super) about: String,
    pub(super) act: Act,
    pub(super) timeout: Option<Duration>,
}

const KINDS: &str = "navigate, click, fill, type, press, select, check, uncheck, hover, scroll, waitFor, expect, screenshot, evaluate";

/// Reads a list of steps; the error is a sentence with the step's index.
pub(super) fn parse(json: &str) -> Result<Vec<StepSpec>, String> {
    let list: Vec<Value> =
        serde_json::from_str(json).map_err(|e| format!("steps-json is no JSON list: {e}"))?;
    parse_values(&list)
}

pub(super) fn parse_values(list: &[Value]) -> Result<Vec<StepSpec>, String> {
    if list.is_empty() || list.len() > STEPS {
        return Err(format!("there must be from 1 to {STEPS} steps"));
    }
    list.iter()
        .enumerate()
        .map(|(index, step)| {
            let step = step.as_object().ok_or_else(|| "it is no object".to_owned());
            step.and_then(one)
                .map_err(|why| format!("steps[{index}]: {why}"))
        })
        .collect()
}

fn one(step: &Map<String, Value>) -> Result<StepSpec, String> {
    let text = |name: &str| -> Result<Option<String>, String> {
        match step.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() <= 256 * 1024 => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(format!("{name} is no text of at most 256 KiB")),
        }
    };
    let need = |name: &str| -> Result<String, String> {
        text(name)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| format!("{name} is missing"))
    };
    let number = |name: &str| -> Result<f64, String> {
        match step.get(name) {
            None => Ok(0.0),
            Some(value) => value
                .as_f64()
                .filter(|n| n.abs() <= 1e6)
                .ok_or_else(|| format!("{name} is no number up to a million")),
        }
    };
    let kind = match text("kind")?.or(text("action")?).or(text("type")?) {
        Some(kind) => kind,
        None => return Err(format!("kind is missing; kinds are {KINDS}")),
    };
    let value = || -> Result<String, String> {
        match text("value")? {
            Some(value) => Ok(value),
            None => text("text")?.ok_or_else(|| "value is missing".to_owned()),
        }
    };
    let act = match kind.as_str() {
        "navigate" | "goto" => Act::Navigate { url: need("url")? },
        "click" => Act::Click {
            selector: need("selector")?,
        },
        "fill" => Act::Fill {
            selector: need("selector")?,
            value: value()?,
        },
        "type" => Act::Type {
            selector: text("selector")?,
            text: value()?,
        },
        "press" => Act::Press {
            selector: text("selector")?,
            key: need("key")?,
        },
        "select" => Act::Select {
            selector: need("selector")?,
            value: value()?,
        },
        "check" | "uncheck" => Act::Check {
            selector: need("selector")?,
            on: kind == "check",
        },
        "hover" => Act::Hover {
            selector: need("selector")?,
        },
        "scroll" => Act::Scroll {
            selector: text("selector")?,
            x: number("x")?,
            y: number("y")?,
        },
        "waitFor" | "wait" => wait(step, &text)?,
        "expect" => Act::Expect(Assertion::parse(
            &text("assert")?.map_or_else(|| need("expect"), Ok)?,
        )?),
        "screenshot" => {
            let name = text("name")?;
            let fits = |name: &String| {
                name.len() <= 60
                    && name
                        .as_bytes()
                        .first()
                        .is_some_and(u8::is_ascii_alphanumeric)
                    && name
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
            };
            if name.as_ref().is_some_and(|name| !fits(name)) {
                return Err(
                    "name has other signs than letters, digits, - and _, or more than 60"
                        .to_owned(),
                );
            }
            let full = step
                .get("fullPage")
                .and_then(Value::as_bool)
                .unwrap_or(false);
            Act::Screenshot { name, full }
        }
        "evaluate" => Act::Evaluate {
            expression: text("expression")?.map_or_else(|| need("script"), Ok)?,
        },
        other => return Err(format!("there is no kind {other:?}; kinds are {KINDS}")),
    };
    let timeout = match step.get("timeoutMs") {
        None => None,
        Some(value) => match value.as_u64() {
            Some(ms @ 1..=600_000) => Some(Duration::from_millis(ms)),
            _ => return Err("timeoutMs is a number from 1 to 600000".to_owned()),
        },
    };
    let about = ["selector", "url", "key", "name", "assert"]
        .iter()
        .find_map(|name| text(name).ok().flatten())
        .unwrap_or_default();
    Ok(StepSpec {
        kind,
        about,
        act,
        timeout,
    })
}

fn wait(
    step: &Map<String, Value>,
    text: &dyn Fn(&str) -> Result<Option<String>, String>,
) -> Result<Act, String> {
    if let Some(selector) = text("selector")? {
        let hidden = matches!(text("state")?.as_deref(), Some("hidden" | "detached"));
        return Ok(if hidden {
            Act::WaitHidden { selector }
        } else {
            Act::WaitSelector { selector }
        });
    }
    if let Some(part) = text("url")? {
        return Ok(Act::WaitUrl { part });
    }
    match step.get("durationMs") {
        Some(value) => match value.as_u64() {
            Some(ms @ 0..=600_000) => Ok(Act::WaitTime {
                time: Duration::from_millis(ms),
            }),
            _ => Err("durationMs is a number up to 600000".to_owned()),
        },
        None => Ok(Act::WaitLoad),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_or_refused_with_their_index() {
        let steps = parse(
            r##"[{"kind":"navigate","url":"/x"},{"kind":"fill","selector":"#a","value":""},
                {"action":"press","key":"Enter"},{"kind":"waitFor","selector":"#b","state":"hidden"},
                {"kind":"waitFor","durationMs":5},{"kind":"waitFor"},{"kind":"expect","assert":"exists:a"},
                {"kind":"uncheck","selector":"#c","timeoutMs":100},{"kind":"screenshot","name":"one"}]"##,
        )
        .unwrap();
        assert_eq!(steps.len(), 9);
        assert_eq!(
            steps[3].act,
            Act::WaitHidden {
                selector: "#b".to_owned()
            }
        );
        assert_eq!(steps[5].act, Act::WaitLoad);
        assert_eq!(steps[7].timeout, Some(Duration::from_millis(100)));
        for (json, why) in [
            ("{}", "no JSON list"),
            ("[]", "from 1 to"),
            (r#"[{"kind":"fly"}]"#, "steps[0]: there is no kind"),
            (r#"[{"kind":"click"}]"#, "selector is missing"),
            (r#"[{"kind":"expect","assert":"nice"}]"#, "forms are"),
            (r#"[{"kind":"screenshot","name":"../x"}]"#, "other signs"),
            (
                r#"[{"kind":"waitFor"},{"kind":"click","selector":"a","timeoutMs":0}]"#,
                "steps[1]: timeoutMs",
            ),
        ] {
            let error = parse(json).unwrap_err();
            assert!(error.contains(why), "{json}: {error}");
        }
    }
}
