//! Executes the steps of a browser command in a page, through the browser's own input events.

use super::asserts::Frame;
use super::asserts::{Weight, query};
use super::events::cut;
use super::page::{PAUSE, Page};
use super::request::{Task, address};
use super::steps::WaitFor;
use super::steps::{StepAction, StepSpec};
use super::wire::{Failure, timeout};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum time to wait for a click to start a navigation; many clicks start none.
const BEGIN: Duration = Duration::from_millis(150);
/// Maximum number of steps of one command that are reported as progress events; later steps are
/// only in the result.
const TOLD: usize = 50;

/// Keys that a step can name: name, `code` and key code of the keyboard event, and the text that
/// the key types.
const KEYS: &[(&str, &str, u32, &str)] = &[
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    ("Space", "Space", 32, " "),
];

impl Page<'_> {
    /// Executes steps in order until one fails, and adds a row for each executed step to the
    /// result.
    pub fn steps(&mut self, steps: &[StepSpec], task: &Task) -> Result<(), Failure> {
        for (index, step) in steps.iter().enumerate() {
            let began = Instant::now();
            if index < TOLD {
                let detail = json!({"index": index, "kind": step.kind});
                self.wire.host.progress("step", detail);
            }
            let until = self.within(step.timeout.unwrap_or(task.step_timeout));
            let mut row = json!({"index": index, "kind": step.kind});
            let done = self.step(index, step, until, &mut row);
            row["status"] = json!(if done.is_ok() { "passed" } else { "failed" });
            row["durationMs"] =
                json!(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
            if !step.about.is_empty() {
                row["target"] = json!(cut(&step.about, 300));
            }
            if let Err(failure) = &done {
                row["error"] = json!(failure.to_string());
            }
            self.report.steps.push(row);
            if let Err(failure) = done {
                return Err(match failure {
                    Failure::Step { what } => Failure::Step {
                        what: format!("steps[{index}] {}: {what}", step.kind),
                    },
                    Failure::Timeout { what, seconds } => Failure::Timeout {
                        what: format!("steps[{index}] {}: {what}", step.kind),
                        seconds,
                    },
                    other => other,
                });
            }
        }
        Ok(())
    }

    /// Executes one step; adds what it finds to `row`, the step's row in the result.
    fn step(
        &mut self,
        index: usize,
        step: &StepSpec,
        until: Instant,
        row: &mut Value,
    ) -> Result<(), Failure> {
        match &step.act {
            StepAction::Navigate {
                url,
                wait_for,
                duration,
            } => {
                let url = address(url).map_err(Failure::step)?;
                self.navigate(&url, wait_for, until)?;
                match wait_for {
                    WaitFor::Selector(selector) => {
                        self.wait_found(selector, true, until)?;
                    }
                    WaitFor::Duration => {
                        self.pause(*duration)?;
                    }
                    WaitFor::DomContentLoaded | WaitFor::Load | WaitFor::NetworkIdle => {}
                }
            }
            StepAction::Click { selector } => {
                let at = self.point(selector, until)?;
                self.click(at, until)?;
                self.follow(until)?;
            }
            StepAction::Hover { selector } => {
                let (x, y) = self.point(selector, until)?;
                self.mouse("mouseMoved", x, y, 0, until)?;
            }
            StepAction::Fill { selector, value } => {
                self.focus(selector, true, until)?;
                if value.is_empty() {
                    self.press("Delete", until)?;
                } else {
                    self.wire
                        .ask("Input.insertText", json!({"text": value}), until)?;
                }
            }
            StepAction::Type { selector, text } => {
                if let Some(selector) = selector {
                    self.focus(selector, false, until)?;
                }
                for sign in text.chars() {
                    self.press(&sign.to_string(), until)?;
                }
            }
            StepAction::Press { selector, key } => {
                if let Some(selector) = selector {
                    self.focus(selector, false, until)?;
                }
                self.press(key, until)?;
                self.follow(until)?;
            }
            StepAction::Select { selector, value } => {
                self.wait_found(selector, true, until)?;
                self.act(selector, json!({"act": "select", "value": value}), until)?;
            }
            StepAction::Check { selector, on } => {
                self.wait_found(selector, true, until)?;
                let found = self.act(selector, json!({"act": "point"}), until)?;
                if found.get("checked").and_then(Value::as_bool) != Some(*on) {
                    let at = self.point(selector, until)?;
                    self.click(at, until)?;
                }
            }
            StepAction::Scroll { selector, x, y } => match selector {
                Some(selector) => {
                    self.wait_found(selector, true, until)?;
                    self.act(selector, json!({"act": "scroll", "x": x, "y": y}), until)?;
                }
                None => {
                    let params =
                        json!({"type": "mouseWheel", "x": 100, "y": 100, "deltaX": x, "deltaY": y});
                    self.wire.ask("Input.dispatchMouseEvent", params, until)?;
                }
            },
            StepAction::WaitSelector { selector } => {
                self.wait_found(selector, true, until)?;
            }
            StepAction::WaitHidden { selector } => {
                self.wait_found(selector, false, until)?;
            }
            StepAction::WaitUrl { part } => self.wait_url(part, until)?,
            StepAction::WaitTime { time } => self.pause(*time)?,
            StepAction::WaitLoad => self.loaded(until)?,
            StepAction::WaitStage(stage) => self.staged(stage, until)?,
            StepAction::WaitState(assertion) => {
                let began = Instant::now();
                if let Err(why) = self.check(assertion, until)? {
                    let what = format!("waiting for {}: {why}", cut(&assertion.text, 300));
                    return Err(timeout(&what, began));
                }
            }
            StepAction::Expect(assertion) => {
                let verdict = self.check(assertion, until)?;
                match (verdict, assertion.weight) {
                    (Ok(()), _) => {}
                    (Err(why), Weight::Advisory) => row["result"] = json!({"advisoryFailed": why}),
                    (Err(why), Weight::Required) => {
                        let what = format!("{} does not hold: {why}", cut(&assertion.text, 300));
                        return Err(Failure::step(what));
                    }
                }
            }
            StepAction::Screenshot { name, full } => {
                let name = match name {
                    Some(name) => format!("step-{index}-{name}"),
                    None => format!("step-{index}"),
                };
                self.screenshot(&name, *full, until)?;
            }
            StepAction::Evaluate { expression, assert } => {
                let answer = self.script(expression, until)?;
                row["result"] = answer.shown();
                if let Some(wanted) = assert {
                    let differs = answer.differs_from(wanted);
                    row["assertion"] = json!({"expected": wanted, "actual": answer.shown(), "passed": differs.is_none()});
                    if let Some(what) = differs {
                        return Err(Failure::step(what));
                    }
                }
            }
        }
        Ok(())
    }

    fn act(&mut self, selector: &str, what: Value, until: Instant) -> Result<Value, Failure> {
        let mut asked = query(&Frame::Main, Some(selector), None);
        if let (Some(asked), Value::Object(what)) = (asked.as_object_mut(), what) {
            asked.extend(what);
        }
        let found = self.query_document(&asked, until)?;
        match found.get("error").and_then(Value::as_str) {
            Some(error) => Err(Failure::step(format!("{selector}: {}", cut(error, 300)))),
            None => Ok(found),
        }
    }

    /// Waits until an element can be clicked, and returns the coordinates to click at.
    fn point(&mut self, selector: &str, until: Instant) -> Result<(f64, f64), Failure> {
        loop {
            self.wait_found(selector, true, until)?;
            let found = self.act(selector, json!({"act": "point"}), until)?;
            let is = |name: &str| found.get(name).and_then(Value::as_bool).unwrap_or(false);
            let number = |name: &str| found.get(name).and_then(Value::as_f64);
            match (number("x"), number("y"), is("covered") || is("disabled")) {
                (Some(x), Some(y), false) => return Ok((x, y)),
                _ if Instant::now() >= until => {
                    let why = if is("disabled") {
                        "is disabled"
                    } else {
                        "is covered by another element at the point of the click"
                    };
                    return Err(Failure::step(format!("{selector} {why}")));
                }
                _ => self.pause_until(until.min(Instant::now() + PAUSE))?,
            }
        }
    }

    fn click(&mut self, (x, y): (f64, f64), until: Instant) -> Result<(), Failure> {
        self.mouse("mouseMoved", x, y, 0, until)?;
        self.mouse("mousePressed", x, y, 1, until)?;
        self.mouse("mouseReleased", x, y, 1, until)
    }

    fn mouse(
        &mut self,
        kind: &str,
        x: f64,
        y: f64,
        clicks: u32,
        until: Instant,
    ) -> Result<(), Failure> {
        let button = if clicks > 0 { "left" } else { "none" };
        let params = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": clicks});
        self.wire
            .ask("Input.dispatchMouseEvent", params, until)
            .map(drop)
    }

    fn focus(&mut self, selector: &str, all: bool, until: Instant) -> Result<(), Failure> {
        self.wait_found(selector, true, until)?;
        let found = self.act(selector, json!({"act": "focus", "selectAll": all}), until)?;
        if found.get("focused").and_then(Value::as_bool) == Some(true) {
            Ok(())
        } else {
            Err(Failure::step(format!("{selector} cannot be focused")))
        }
    }

    fn press(&mut self, key: &str, until: Instant) -> Result<(), Failure> {
        let (name, code, number, text) = match KEYS.iter().find(|row| row.0 == key) {
            Some((name, code, number, text)) => (*name, *code, *number, *text),
            None if key.chars().count() == 1 => (key, "", 0, key),
            None => {
                let names: Vec<&str> = KEYS.iter().map(|row| row.0).collect();
                return Err(Failure::step(format!(
                    "unknown key {:?}; use a single character or one of {}",
                    cut(key, 40),
                    names.join(", ")
                )));
            }
        };
        let name = if name == "Space" { " " } else { name };
        let base = json!({"key": name, "code": code, "windowsVirtualKeyCode": number});
        let with = |kind: &str, text: &str| {
            let mut params = base.clone();
            params["type"] = json!(kind);
            if !text.is_empty() {
                params["text"] = json!(text);
            }
            params
        };
        let down = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        self.wire
            .ask("Input.dispatchKeyEvent", with(down, text), until)?;
        self.wire
            .ask("Input.dispatchKeyEvent", with("keyUp", ""), until)
            .map(drop)
    }

    /// Waits until the navigation that a click or key press has started is complete, if there is
    /// one.
    fn follow(&mut self, until: Instant) -> Result<(), Failure> {
        let before = self.wire.observed.navigations;
        let begin = until.min(Instant::now() + BEGIN);
        self.wire
            .wait(begin, |seen| seen.loading || seen.navigations != before)?;
        if self.wire.observed.loading || self.wire.observed.navigations != before {
            self.loaded(until)?;
        }
        Ok(())
    }

    fn loaded(&mut self, until: Instant) -> Result<(), Failure> {
        self.wire
            .wait_for("loading the page", until, |seen| !seen.loading)
    }

    /// Waits until the current page has reached this load stage, e.g. `DOMContentLoaded`.
    fn staged(&mut self, stage: &WaitFor, until: Instant) -> Result<(), Failure> {
        let name = stage.stage();
        self.wire
            .wait_for(&format!("waiting for {name}"), until, |seen| {
                seen.reached(&seen.current, name)
            })
    }

    fn wait_url(&mut self, part: &str, until: Instant) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            let found = self.query_document(&query(&Frame::Main, None, None), until);
            if let Ok(found) = found {
                let url = found.get("url").and_then(Value::as_str).unwrap_or_default();
                if url.contains(part) {
                    return self.loaded(until);
                }
            }
            if Instant::now() >= until {
                return Err(timeout(
                    &format!("waiting for a URL that contains {}", cut(part, 200)),
                    began,
                ));
            }
            self.pause_until(until.min(Instant::now() + PAUSE))?;
        }
    }
}
