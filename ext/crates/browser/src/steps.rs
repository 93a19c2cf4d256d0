//! Parses the steps of `wordpress.browser-actions` and `wordpress.browser-scenario`.

use super::asserts::Assertion;
use serde_json::Value;
use std::time::Duration;
use wp_codebox_policy::{StepIssue, browser_duration, check_browser_steps};

/// When a page counts as loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitFor {
    DomContentLoaded,
    Load,
    NetworkIdle,
    Duration,
    Selector(String),
}

impl WaitFor {
    /// Returns the browser's name of the load stage that must be reached. A wait for a time or an
    /// element begins after this stage.
    pub(super) const fn stage(&self) -> &'static str {
        match self {
            Self::DomContentLoaded | Self::Duration | Self::Selector(_) => "DOMContentLoaded",
            Self::Load => "load",
            Self::NetworkIdle => "networkIdle",
        }
    }
}

/// Action of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StepAction {
    Navigate {
        url: String,
        wait_for: WaitFor,
        duration: Duration,
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
    /// Wait until the current page has reached this load stage.
    WaitStage(WaitFor),
    /// Waits until the assertion about an element is true.
    WaitState(Assertion),
    Expect(Assertion),
    Screenshot {
        name: Option<String>,
        full: bool,
    },
    Evaluate {
        expression: String,
        /// Value that the expression must have, if the caller expects one.
        assert: Option<Value>,
    },
}

/// One step of a browser command.
#[derive(Debug, Clone, PartialEq)]
pub struct StepSpec {
    /// Name of the action as the caller wrote it, e.g. `click`.
    pub(super) kind: String,
    /// What the step acts on, e.g. a selector; the result shows it.
    pub(super) about: String,
    pub(super) act: StepAction,
    pub(super) timeout: Option<Duration>,
}

/// Reason why the steps of a command are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepsRefused {
    /// Sentence that names the index of the wrong step.
    pub(super) why: String,
    /// Whether the step is valid, but this backend does not support it.
    pub(super) unsupported: bool,
}

impl From<String> for StepsRefused {
    fn from(why: String) -> Self {
        Self {
            why,
            unsupported: false,
        }
    }
}

/// Returns the first issue as error; succeeds if there is none.
pub(super) fn judged(issues: &[StepIssue]) -> Result<(), StepsRefused> {
    issues.first().map_or(Ok(()), |issue| {
        Err(StepsRefused {
            why: issue.to_string(),
            unsupported: issue.unsupported,
        })
    })
}

/// Parses the steps of a command from JSON.
pub(super) fn parse(json: &str) -> Result<Vec<StepSpec>, StepsRefused> {
    let list: Vec<Value> =
        serde_json::from_str(json).map_err(|e| format!("steps-json is not a JSON list: {e}"))?;
    parse_values(&list)
}

pub(super) fn parse_values(list: &[Value]) -> Result<Vec<StepSpec>, StepsRefused> {
    judged(&check_browser_steps(list))?;
    list.iter()
        .enumerate()
        .map(|(index, step)| {
            one(step).map_err(|why| StepsRefused::from(format!("steps[{index}]: {why}")))
        })
        .collect()
}

/// Parses a step that `check_browser_steps` has already validated.
fn one(step: &Value) -> Result<StepSpec, String> {
    let text = |name: &str| match step.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let any = |names: [&str; 2]| names.iter().find_map(|name| text(name));
    let need = |name: &str| text(name).ok_or_else(|| format!("{name} is missing"));
    let number = |name: &str| step.get(name).and_then(Value::as_f64).unwrap_or_default();
    let value = || any(["value", "text"]).ok_or_else(|| "value is missing".to_owned());
    let time = |text_name: &str, ms_name: &str| {
        let ms = step.get(ms_name).and_then(Value::as_u64);
        ms.map(Duration::from_millis)
            .or_else(|| browser_duration(step.get(text_name)?.as_str()?))
    };
    let time_there = time("duration", "durationMs").unwrap_or_default();
    let state = text("state");
    let kind = any(["kind", "action"])
        .or_else(|| text("type"))
        .unwrap_or_default();
    let act = match kind.as_str() {
        "navigate" | "goto" => StepAction::Navigate {
            url: need("url")?,
            wait_for: wait_for(text("waitFor").as_deref())?,
            duration: time_there,
        },
        "click" => StepAction::Click {
            selector: need("selector")?,
        },
        "fill" => StepAction::Fill {
            selector: need("selector")?,
            value: value()?,
        },
        "type" => StepAction::Type {
            selector: text("selector"),
            text: value()?,
        },
        "press" => StepAction::Press {
            selector: text("selector"),
            key: need("key")?,
        },
        "select" => StepAction::Select {
            selector: need("selector")?,
            value: value()?,
        },
        "check" | "uncheck" => StepAction::Check {
            selector: need("selector")?,
            on: kind == "check",
        },
        "hover" => StepAction::Hover {
            selector: need("selector")?,
        },
        "scroll" => StepAction::Scroll {
            selector: text("selector"),
            x: number("x"),
            y: number("y"),
        },
        "waitFor" | "wait" => match (text("selector"), text("url"), text("waitFor")) {
            (Some(selector), ..) => match state.as_deref() {
                None | Some("visible") => StepAction::WaitSelector { selector },
                Some("hidden") => StepAction::WaitHidden { selector },
                Some(state) => StepAction::WaitState(Assertion::of_state(&selector, state)?),
            },
            (None, Some(part), _) => StepAction::WaitUrl { part },
            (None, None, None) if time("duration", "durationMs").is_some() => {
                StepAction::WaitTime { time: time_there }
            }
            (None, None, when) => match wait_for(when.as_deref())? {
                WaitFor::Selector(selector) => StepAction::WaitSelector { selector },
                WaitFor::Duration => StepAction::WaitTime { time: time_there },
                WaitFor::Load => StepAction::WaitLoad,
                stage @ (WaitFor::DomContentLoaded | WaitFor::NetworkIdle) => {
                    StepAction::WaitStage(stage)
                }
            },
        },
        "expect" => StepAction::Expect(match any(["assert", "expect"]) {
            Some(assertion) => Assertion::parse(&assertion)?,
            None => Assertion::of_state(&need("selector")?, state.as_deref().unwrap_or("visible"))?,
        }),
        "screenshot" => StepAction::Screenshot {
            name: text("name"),
            full: step.get("fullPage") == Some(&Value::Bool(true)),
        },
        "evaluate" => StepAction::Evaluate {
            expression: any(["expression", "script"])
                .ok_or_else(|| "expression is missing".to_owned())?,
            // `"assert": null` expects the value `null`; without the member, any value is accepted.
            assert: step.get("assert").cloned(),
        },
        other => return Err(format!("unknown kind {other:?}")),
    };
    let about = match &act {
        StepAction::Evaluate { .. } => None,
        _ => ["selector", "url", "key", "name", "assert", "expect"]
            .iter()
            .find_map(|name| text(name)),
    };
    Ok(StepSpec {
        kind,
        about: about.unwrap_or_default(),
        act,
        timeout: time("timeout", "timeoutMs"),
    })
}

/// Compares two JSON values: numbers by value, members in any order.
pub(super) fn json_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            a == b
                || ((a.is_f64() || b.is_f64())
                    && a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a == b))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| json_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| json_equal(a, b)))
        }
        _ => one == other,
    }
}

pub(super) fn wait_for(text: Option<&str>) -> Result<WaitFor, String> {
    match text {
        None | Some("load") => Ok(WaitFor::Load),
        Some("domcontentloaded") => Ok(WaitFor::DomContentLoaded),
        Some("networkidle") => Ok(WaitFor::NetworkIdle),
        Some("duration") => Ok(WaitFor::Duration),
        Some(other) => match other.strip_prefix("selector:").map(str::trim) {
            Some(selector) if !selector.is_empty() => Ok(WaitFor::Selector(selector.to_owned())),
            _ => Err(format!(
                "wait-for is {other:?}, but must be domcontentloaded, load, networkidle, duration or selector:…"
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn invalid_browser_step_is_refused_with_its_index() {
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
            StepAction::WaitHidden {
                selector: "#b".to_owned()
            }
        );
        assert_eq!(steps[5].act, StepAction::WaitLoad);
        assert_eq!(steps[7].timeout, Some(Duration::from_millis(100)));
        for (json, why) in [
            ("{}", "not a JSON list"),
            ("[]", "from 1 to"),
            (r#"[{"kind":"fly"}]"#, "steps[0]: there is no kind"),
            (r#"[{"kind":"click"}]"#, "selector is missing"),
            (r#"[{"kind":"expect","assert":"nice"}]"#, "forms are"),
            (
                r#"[{"kind":"screenshot","name":"../x"}]"#,
                "name must be letters",
            ),
            (
                r#"[{"kind":"waitFor"},{"kind":"click","selector":"a","timeoutMs":0}]"#,
                "steps[1]: timeoutMs",
            ),
        ] {
            let error = parse(json).unwrap_err();
            assert!(error.why.contains(why), "{json}: {error:?}");
            assert!(!error.unsupported, "{json}");
        }
    }

    #[test]
    fn unknown_or_unsupported_browser_step_member_is_refused() {
        let expression = |json: &str| match parse(json).map(|mut steps| steps.remove(0).act) {
            Ok(StepAction::Evaluate { assert, .. }) => Ok(assert),
            Ok(other) => panic!("{other:?}"),
            Err(refused) => Err(refused),
        };
        let one = expression(r#"[{"kind":"evaluate","script":"1","assert":2}]"#);
        assert_eq!(one, Ok(Some(json!(2))));
        let null = expression(r#"[{"kind":"evaluate","script":"1","assert":null}]"#);
        assert_eq!(null, Ok(Some(Value::Null)));
        assert_eq!(
            expression(r#"[{"kind":"evaluate","script":"1"}]"#),
            Ok(None)
        );
        let misspelt = expression(r#"[{"kind":"evaluate","script":"1","asert":2}]"#).unwrap_err();
        assert!(misspelt.why.contains("asert") && !misspelt.unsupported);
        let foreign = parse(r#"[{"kind":"click","selector":"a","text":"Save"}]"#).unwrap_err();
        assert!(foreign.why.contains("text of click") && foreign.unsupported);
    }

    #[test]
    fn browser_wait_and_state_steps_are_parsed() {
        for (json, act) in [
            (
                r#"{"kind":"waitFor","waitFor":"networkidle"}"#,
                StepAction::WaitStage(WaitFor::NetworkIdle),
            ),
            (
                r#"{"kind":"waitFor","waitFor":"duration","duration":"2s"}"#,
                StepAction::WaitTime {
                    time: Duration::from_secs(2),
                },
            ),
            (
                r##"{"kind":"waitFor","waitFor":"selector:#a"}"##,
                StepAction::WaitSelector {
                    selector: "#a".to_owned(),
                },
            ),
            (
                r##"{"kind":"waitFor","selector":"#a","state":"detached"}"##,
                StepAction::WaitState(Assertion::parse("not-exists:#a").unwrap()),
            ),
            (
                r##"{"kind":"expect","selector":"#a"}"##,
                StepAction::Expect(Assertion::parse("visible:#a").unwrap()),
            ),
            (
                r#"{"kind":"goto","url":"/","waitFor":"domcontentloaded"}"#,
                StepAction::Navigate {
                    url: "/".to_owned(),
                    wait_for: WaitFor::DomContentLoaded,
                    duration: Duration::ZERO,
                },
            ),
        ] {
            let read = parse(&format!("[{json}]")).unwrap();
            assert_eq!(read[0].act, act, "{json}");
        }
        let read = parse(r#"[{"kind":"hover","selector":"a","timeout":"5s"}]"#).unwrap();
        assert_eq!(read[0].timeout, Some(Duration::from_secs(5)));
    }

    #[test]
    fn json_comparison_ignores_number_form_and_member_order() {
        for (a, b, equal) in [
            (json!(1), json!(1.0), true),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1}), true),
            (json!(1), json!(2), false),
            (json!(1), json!("1"), false),
            (json!(0), json!(null), false),
            (json!([1]), json!([1, 1]), false),
            (json!({"a": null}), json!({}), false),
            (
                json!(9_007_199_254_740_993_u64),
                json!(9_007_199_254_740_992_u64),
                false,
            ),
        ] {
            assert_eq!(json_equal(&a, &b), equal, "{a} {b}");
            assert_eq!(json_equal(&b, &a), equal, "{b} {a}");
        }
    }
}
