//! Executes the steps of a browser command in a page, through the browser's own input events.

use super::asserts::{Element, Frame, Weight, query};
use super::events::cut;
use super::input::{Selects, Use};
use super::page::{PAUSE, Page};
use super::step_spec::{Condition, StepAction, StepSpec, WaitFor};
use super::task::{Task, address};
use super::wire::{Failure, timeout};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum time to wait for a click to start a navigation; many clicks start none.
const BEGIN: Duration = Duration::from_millis(150);
/// Maximum number of steps of one command that are reported as progress events; later steps are
/// only in the result.
const TOLD: usize = 50;

/// Returns the name of a step's file, without extension.
fn file_name(index: usize, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("step-{index}-{name}"),
        None => format!("step-{index}"),
    }
}

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
            let mut row = json!({"index": index, "kind": step.kind});
            if let Some(actor) = &step.actor {
                row["actor"] = json!(actor.name);
            }
            let done = self.turn_to_actor(step, task).and_then(|()| {
                let until = self.within(step.timeout.unwrap_or(task.step_timeout));
                self.step(index, step, (task, until), &mut row)
            });
            let expected = match &step.act {
                StepAction::Navigate { expect_status, .. } => *expect_status,
                _ => None,
            };
            let done = self.judge(done, task, expected);
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
                    Failure::Page { what } => Failure::Page {
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
        (task, until): (&Task, Instant),
        row: &mut Value,
    ) -> Result<(), Failure> {
        match &step.act {
            StepAction::Navigate {
                url,
                wait_for,
                duration,
                expect_status,
            } => {
                let url = address(url).map_err(Failure::step)?;
                self.navigate(&url, wait_for, until)?;
                if let (Some(status), found) = (expect_status, self.wire.observed.tab.status)
                    && found != Some(*status)
                {
                    let found = found.map_or("no status".to_owned(), |found| found.to_string());
                    let what = format!("the page answered with {found}, but {status} was expected");
                    return Err(Failure::step(what));
                }
                self.settle_step(wait_for, *duration, until)?;
            }
            StepAction::Click { element } => {
                let at = self.point(element, until)?;
                self.click(at, until)?;
                self.follow(until)?;
            }
            StepAction::Hover { element } => {
                let (x, y) = self.point(element, until)?;
                self.mouse("mouseMoved", x, y, 0, until)?;
            }
            StepAction::Fill { element, value } => self.fill(element, value, until)?,
            StepAction::Type { element, text } => {
                if let Some(element) = element {
                    self.usable(element, Use::Keys, until)?;
                    self.focus(element, Selects::Nothing, until)?;
                }
                for sign in text.chars() {
                    self.press(&sign.to_string(), until)?;
                }
            }
            StepAction::Press { element, key } => {
                if let Some(element) = element {
                    self.focus(element, Selects::Nothing, until)?;
                }
                self.press(key, until)?;
                self.follow(until)?;
            }
            StepAction::Select { element, values } => {
                self.usable(element, Use::Choice, until)?;
                self.act(element, json!({"act": "select", "values": values}))?;
            }
            StepAction::Check { element, on } => self.set_checked(element, *on, until)?,
            StepAction::Drag { element, to } => self.drag(element, to, until)?,
            StepAction::Scroll { element, x, y } => match element {
                Some(element) => {
                    self.wait_found(element, true, until)?;
                    self.act(element, json!({"act": "scroll", "x": x, "y": y}))?;
                }
                None => {
                    let params =
                        json!({"type": "mouseWheel", "x": 100, "y": 100, "deltaX": x, "deltaY": y});
                    self.wire.ask("Input.dispatchMouseEvent", params, until)?;
                }
            },
            StepAction::WaitSelector { element } => {
                self.wait_found(element, true, until)?;
            }
            StepAction::WaitHidden { element } => {
                self.wait_found(element, false, until)?;
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
            StepAction::Observed { path, condition } => {
                self.check_observed(path, condition, row)?;
            }
            StepAction::Screenshot {
                name,
                shows,
                wait_for,
                duration,
            } => {
                if let Some(wait_for) = wait_for {
                    self.staged(wait_for, until)?;
                    self.settle_step(wait_for, *duration, until)?;
                }
                self.screenshot(&file_name(index, name.as_deref()), shows, until)?;
            }
            StepAction::Capture { captures, name } => {
                let prefix = format!("{}-", file_name(index, name.as_deref()));
                let before = self.report.notes.len();
                self.capture_all(captures, &prefix, task);
                // Unlike a capture at the end of a command, a failed capture fails its step.
                if let Some(why) = self.report.notes.get(before) {
                    return Err(Failure::step(why.clone()));
                }
            }
            StepAction::Editor(call) => row["result"] = self.editor_call(call, until)?,
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

    /// Waits for the element or the time that a condition requires after the load stage.
    fn settle_step(
        &mut self,
        wait_for: &WaitFor,
        duration: Duration,
        until: Instant,
    ) -> Result<(), Failure> {
        match wait_for {
            WaitFor::Selector(selector) => {
                let element = Element::of_page(selector);
                self.wait_found(&element, true, until).map(drop)
            }
            WaitFor::Duration => self.pause(duration),
            WaitFor::DomContentLoaded | WaitFor::Load | WaitFor::NetworkIdle => Ok(()),
        }
    }

    /// Compares a value of the command's result so far. A path is the name of a member, followed by
    /// names and numbers after dots, e.g. `network.0.status`.
    fn check_observed(
        &mut self,
        path: &str,
        condition: &Condition,
        row: &mut Value,
    ) -> Result<(), Failure> {
        let mut document = self.observations();
        let (url, title) = self.place();
        document["url"] = json!(url);
        document["finalUrl"] = json!(url);
        document["title"] = json!(title);
        document["steps"] = json!(self.report.steps);
        let pointer = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{}", path.replace('.', "/")),
        };
        let found = document.pointer(&pointer);
        row["result"] = found.cloned().unwrap_or(Value::Null);
        condition
            .check(found)
            .map_err(|why| Failure::step(format!("{} does not hold: {why}", cut(path, 200))))
    }

    /// Waits until the navigation that a click or key press has started is complete, if there is
    /// one.
    fn follow(&mut self, until: Instant) -> Result<(), Failure> {
        let before = self.wire.observed.tab.navigations;
        let begin = until.min(Instant::now() + BEGIN);
        self.wire.wait(begin, |seen| {
            seen.tab.loading || seen.tab.navigations != before
        })?;
        if self.wire.observed.tab.loading || self.wire.observed.tab.navigations != before {
            self.loaded(until)?;
        }
        Ok(())
    }

    fn loaded(&mut self, until: Instant) -> Result<(), Failure> {
        self.wire
            .wait_for("loading the page", until, |seen| !seen.tab.loading)
    }

    /// Waits until the current page has reached this load stage, e.g. `DOMContentLoaded`.
    fn staged(&mut self, stage: &WaitFor, until: Instant) -> Result<(), Failure> {
        let name = stage.stage();
        self.wire
            .wait_for(&format!("waiting for {name}"), until, |seen| {
                seen.reached(&seen.tab.current, name)
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
