//! The steps of a browser command, after parsing.

use super::asserts::{Assertion, Element, Frame};
use super::capture_kind::Capture;
use serde_json::Value;
use std::time::Duration;

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
        /// Required HTTP status of the page; `None` if the step requires none.
        expect_status: Option<u64>,
    },
    Click {
        element: Element,
    },
    Fill {
        element: Element,
        value: String,
    },
    Type {
        element: Option<Element>,
        text: String,
    },
    Press {
        element: Option<Element>,
        key: String,
    },
    Select {
        element: Element,
        values: Vec<String>,
    },
    Check {
        element: Element,
        on: bool,
    },
    Hover {
        element: Element,
    },
    Drag {
        element: Element,
        to: DropPlace,
    },
    Scroll {
        element: Option<Element>,
        x: f64,
        y: f64,
    },
    WaitSelector {
        element: Element,
    },
    WaitHidden {
        element: Element,
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
    /// Compares a value of the command's result so far, e.g. `errorsTotal`.
    Observed {
        path: String,
        condition: Condition,
    },
    Screenshot {
        name: Option<String>,
        shows: Shows,
        wait_for: Option<WaitFor>,
        duration: Duration,
    },
    Capture {
        captures: Vec<Capture>,
        name: Option<String>,
    },
    Evaluate {
        expression: String,
        /// Value that the expression must have, if the caller expects one.
        assert: Option<Value>,
    },
    /// A step that only the block editor has, as the caller wrote it, with the member `act`.
    Editor(Value),
}

/// Where a dragged element is dropped.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DropPlace {
    Element(Element),
    /// Distance from the place where the drag began, in CSS pixels.
    By(f64, f64),
}

/// What a screenshot shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shows {
    Viewport,
    FullPage,
    Element(Element),
    /// The element of a frame.
    Frame(Frame),
}

/// Condition that a value of the command's result must meet.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Condition {
    Equals(Value),
    Contains(String),
    Exists(bool),
    AtLeast(f64),
    AtMost(f64),
}

impl Condition {
    /// Checks the value; the error says what was found instead.
    pub(super) fn check(&self, found: Option<&Value>) -> Result<(), String> {
        let number = found.and_then(Value::as_f64);
        let holds = match self {
            Self::Equals(wanted) => found.is_some_and(|value| json_equal(value, wanted)),
            Self::Contains(part) => found.is_some_and(|value| match value {
                Value::String(text) => text.contains(part.as_str()),
                other => other.to_string().contains(part.as_str()),
            }),
            Self::Exists(wanted) => found.is_some() == *wanted,
            Self::AtLeast(least) => number.is_some_and(|number| number >= *least),
            Self::AtMost(most) => number.is_some_and(|number| number <= *most),
        };
        if holds {
            return Ok(());
        }
        Err(match found {
            Some(value) => format!(
                "it is {}",
                value.to_string().chars().take(300).collect::<String>()
            ),
            None => "the observation has no such value".to_owned(),
        })
    }
}

/// An actor of a scenario: a browser context of its own with the login of a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Actor {
    /// Name by which steps refer to the actor.
    pub name: String,
    /// Name of the session whose login the actor's browser starts with. If the list of actors
    /// gives none, it is the name of the actor.
    pub session: String,
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
    /// Actor whose page executes the step; `None`: the page of the command itself.
    pub(super) actor: Option<Actor>,
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
