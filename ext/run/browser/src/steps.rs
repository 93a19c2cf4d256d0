//! Parses the steps of `wordpress.browser-actions`, `wordpress.browser-scenario` and
//! `wordpress.editor-actions`.

use super::asserts::{Assertion, Element, Frame};
use super::capture_kind::{Capture, PageKind};
use super::step_spec::{
    Actor, Condition, DropPlace, Shows, StepAction, StepSpec, WaitFor, wait_for,
};
use serde_json::Value;
use std::time::Duration;
use wp_codebox_contracts::parse_json;
use wp_codebox_policy::{StepIssue, browser_duration, check_browser_steps, check_editor_steps};

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
pub(super) fn parse(json: &str, page: PageKind) -> Result<Vec<StepSpec>, StepsRefused> {
    let list: Vec<Value> =
        parse_json(json.as_bytes()).map_err(|e| format!("steps-json is not a JSON list: {e}"))?;
    parse_values(&list, page)
}

pub(super) fn parse_values(list: &[Value], page: PageKind) -> Result<Vec<StepSpec>, StepsRefused> {
    judged(&match page {
        PageKind::Any => check_browser_steps(list),
        PageKind::Editor => check_editor_steps(list),
    })?;
    list.iter()
        .enumerate()
        .map(|(index, step)| {
            one(&Members(step), page)
                .map_err(|why| StepsRefused::from(format!("steps[{index}]: {why}")))
        })
        .collect()
}

/// Members of a step that the policy crate has already validated.
struct Members<'s>(&'s Value);

impl Members<'_> {
    fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    fn any(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.text(name))
    }

    fn need(&self, names: &[&str]) -> Result<String, String> {
        self.any(names)
            .ok_or_else(|| format!("{} is missing", names.join(" or ")))
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    /// Returns a duration that is given as text or in milliseconds.
    fn time(&self, text: &str, ms: &str) -> Option<Duration> {
        let ms = self.0.get(ms).and_then(Value::as_u64);
        ms.map(Duration::from_millis)
            .or_else(|| browser_duration(self.0.get(text)?.as_str()?))
    }

    /// Returns the texts of a member that is one text or a list of texts.
    fn texts(&self, name: &str) -> Option<Vec<String>> {
        match self.0.get(name)? {
            Value::Array(rows) => Some(
                rows.iter()
                    .filter_map(|row| row.as_str().map(str::to_owned))
                    .collect(),
            ),
            _ => self.text(name).map(|text| vec![text]),
        }
    }

    fn frame(&self) -> Frame {
        match (self.any(&["frameSelector", "frame"]), self.text("frameUrl")) {
            (Some(selector), _) => Frame::Selector(selector),
            (None, Some(part)) => Frame::Url(part),
            (None, None) => Frame::Main,
        }
    }

    /// Returns the element that one of these members selects, in the frame of the step.
    fn element_of(&self, names: &[&str]) -> Option<Element> {
        self.any(names).map(|selector| Element {
            selector,
            frame: self.frame(),
        })
    }

    fn element(&self) -> Option<Element> {
        self.element_of(&["selector"])
    }

    fn needed_element(&self) -> Result<Element, String> {
        self.element()
            .ok_or_else(|| "selector is missing".to_owned())
    }

    fn condition(&self) -> Result<Condition, String> {
        let any = |names: [&str; 2]| names.iter().find_map(|name| self.0.get(name).cloned());
        Ok(if let Some(wanted) = any(["equals", "expected"]) {
            Condition::Equals(wanted)
        } else if let Some(part) = self.text("contains") {
            Condition::Contains(part)
        } else if let Some(Value::Bool(wanted)) = self.0.get("exists") {
            Condition::Exists(*wanted)
        } else if let Some(least) = self.number("min") {
            Condition::AtLeast(least)
        } else {
            Condition::AtMost(
                self.number("max")
                    .ok_or("equals, contains, exists, min or max is missing")?,
            )
        })
    }
}

fn one(step: &Members<'_>, page: PageKind) -> Result<StepSpec, String> {
    let kind = step.need(&["kind", "action", "type"])?;
    let duration = step.time("duration", "durationMs");
    let value = || step.need(&["value", "text"]);
    let act = match kind.as_str() {
        "navigate" | "goto" => StepAction::Navigate {
            url: step.need(&["url"])?,
            wait_for: wait_for(step.text("waitFor").as_deref())?,
            duration: duration.unwrap_or_default(),
            expect_status: step.0.get("expectStatus").and_then(Value::as_u64),
        },
        "click" => StepAction::Click {
            element: match (step.element(), step.text("text")) {
                (Some(element), _) => element,
                (None, Some(text)) => Element {
                    selector: format!("text={text}"),
                    frame: step.frame(),
                },
                (None, None) => return Err("selector or text is missing".to_owned()),
            },
        },
        "fill" => StepAction::Fill {
            element: step.needed_element()?,
            value: value()?,
        },
        "type" => StepAction::Type {
            element: step.element(),
            text: value()?,
        },
        "press" => StepAction::Press {
            element: step.element(),
            key: step.need(&["key"])?,
        },
        "select" => StepAction::Select {
            element: step.needed_element()?,
            values: match step.texts("values") {
                Some(values) => values,
                None => vec![value()?],
            },
        },
        "check" | "uncheck" => StepAction::Check {
            element: step.needed_element()?,
            on: kind == "check",
        },
        "hover" => StepAction::Hover {
            element: step.needed_element()?,
        },
        "drag" => StepAction::Drag {
            element: step
                .element_of(&["selector", "from", "source", "sourceSelector"])
                .ok_or("selector is missing")?,
            to: match step.element_of(&["to", "target", "targetSelector"]) {
                Some(element) => DropPlace::Element(element),
                None => DropPlace::By(
                    step.number("x").unwrap_or_default(),
                    step.number("y").unwrap_or_default(),
                ),
            },
        },
        "scroll" => StepAction::Scroll {
            element: step.element(),
            x: step.number("x").unwrap_or_default(),
            y: step.number("y").unwrap_or_default(),
        },
        "waitFor" | "wait" => wait(step, duration)?,
        "expect" => StepAction::Expect(match step.any(&["assert", "expect"]) {
            Some(assertion) => Assertion::parse(&assertion)?,
            None => Assertion::of_state(
                &step.needed_element()?,
                step.text("state").as_deref().unwrap_or("visible"),
            )?,
        }),
        "assertObservation" => StepAction::Observed {
            path: step.need(&["observation", "path"])?,
            condition: step.condition()?,
        },
        "screenshot" => StepAction::Screenshot {
            name: step.text("name"),
            shows: match (step.element(), step.frame()) {
                (Some(element), _) => Shows::Element(element),
                (None, Frame::Main) if step.0.get("fullPage") == Some(&Value::Bool(true)) => {
                    Shows::FullPage
                }
                (None, Frame::Main) => Shows::Viewport,
                (None, frame) => Shows::Frame(frame),
            },
            wait_for: match step.text("waitFor") {
                Some(when) => Some(wait_for(Some(&when))?),
                None => None,
            },
            duration: duration.unwrap_or_default(),
        },
        "capture" => {
            let names = ["capture", "artifacts"];
            let given = names.iter().find_map(|name| step.texts(name));
            let given = given.unwrap_or_else(|| vec!["screenshot".to_owned()]);
            let names = given.iter().flat_map(|names| names.split(','));
            StepAction::Capture {
                captures: Capture::list(names, page)?,
                name: step.text("name"),
            }
        }
        "evaluate" => StepAction::Evaluate {
            expression: step.need(&["expression", "script"])?,
            // `"assert": null` expects the value `null`; without the member, any value is accepted.
            assert: step.0.get("assert").cloned(),
        },
        other => match (EDITOR_ACTS.iter().find(|row| row.1.contains(&other)), page) {
            (Some((act, _)), PageKind::Editor) => {
                let mut call = step.0.clone();
                call["act"] = Value::from(*act);
                StepAction::Editor(call)
            }
            _ => return Err(format!("unknown kind {other:?}")),
        },
    };
    Ok(StepSpec {
        about: about(&act, step),
        kind,
        act,
        timeout: step.time("timeout", "timeoutMs"),
        actor: step.text("actor").map(|name| Actor {
            session: name.clone(),
            name,
        }),
    })
}

/// Functions of `editor.js`, and the kinds of steps that call them.
const EDITOR_ACTS: &[(&str, &[&str])] = &[
    ("insertBlock", &["insertBlock", "insert-block"]),
    ("setContent", &["setContent", "set-content"]),
    ("selectBlock", &["selectBlock", "select-block"]),
    (
        "updateBlock",
        &["updateBlock", "updateBlockAttributes", "update-block"],
    ),
    ("removeBlock", &["removeBlock", "remove-block"]),
    ("moveBlock", &["moveBlock", "move-block"]),
    ("setTitle", &["setTitle", "set-title"]),
    ("save", &["save", "savePost", "saveDraft"]),
    ("publish", &["publish"]),
    ("undo", &["undo"]),
    ("redo", &["redo"]),
    ("assertValid", &["validateBlocks", "validate-blocks"]),
    ("expectBlock", &["expectBlock", "expect-block"]),
];

/// Returns what a step acts on, for its row in the result.
fn about(act: &StepAction, step: &Members<'_>) -> String {
    let names: &[&str] = match act {
        StepAction::Evaluate { .. } => &[],
        StepAction::Editor(_) => &["clientId", "blockName", "name", "index"],
        StepAction::Click { .. } => &["selector", "text"],
        _ => &[
            "selector",
            "from",
            "source",
            "sourceSelector",
            "url",
            "key",
            "name",
            "assert",
            "expect",
            "observation",
            "path",
            "frameSelector",
            "frame",
            "frameUrl",
        ],
    };
    step.any(names).unwrap_or_default()
}

fn wait(step: &Members<'_>, duration: Option<Duration>) -> Result<StepAction, String> {
    Ok(
        match (step.element(), step.text("url"), step.text("waitFor")) {
            (Some(element), ..) => match step.text("state").as_deref() {
                None | Some("visible") => StepAction::WaitSelector { element },
                Some("hidden") => StepAction::WaitHidden { element },
                Some(state) => StepAction::WaitState(Assertion::of_state(&element, state)?),
            },
            (None, Some(part), _) => StepAction::WaitUrl { part },
            (None, None, when) => match (wait_for(when.as_deref())?, duration) {
                (WaitFor::Duration, time) => StepAction::WaitTime {
                    time: time.unwrap_or_default(),
                },
                (_, Some(time)) if when.is_none() => StepAction::WaitTime { time },
                (WaitFor::Selector(selector), _) => StepAction::WaitSelector {
                    element: Element::of_page(selector),
                },
                (WaitFor::Load, _) => StepAction::WaitLoad,
                (stage @ (WaitFor::DomContentLoaded | WaitFor::NetworkIdle), _) => {
                    StepAction::WaitStage(stage)
                }
            },
        },
    )
}

#[cfg(test)]
mod tests;
