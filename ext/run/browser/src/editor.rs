//! Opens WordPress's block editor, acts in it, and reports its state.

use super::asserts::Element;
use super::events::{cut, exception};
use super::page::{PAUSE, Page};
use super::step_spec::WaitFor;
use super::task::{CanvasProbe, EditorAct, EditorTask, Task};
use super::wire::{Failure, timeout};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const EDITOR: &str = include_str!("editor.js");
/// Function that reports the canvas; it takes the selectors.
const CANVAS_PROBE: &str = concat!(
    "((call) => (",
    include_str!("canvas.js"),
    ")(",
    include_str!("locate.js"),
    ", call))"
);
/// Maximum duration of one call of the editor; saving a post can take some seconds.
const CALL: Duration = Duration::from_secs(40);
/// Maximum size of what a call of the editor returns, in bytes of JSON.
const ANSWER: usize = 4 * 1024 * 1024;

impl Page<'_> {
    /// Opens the block editor at a URL, does what the task asks for, and adds the results to the
    /// report.
    pub fn editor(&mut self, url: &str, editor: &EditorTask, task: &Task) -> Result<(), Failure> {
        let until = self.within(editor.wait_timeout);
        self.navigate(url, &WaitFor::DomContentLoaded, until)?;
        self.began();
        if let EditorAct::Probe(probe) = &editor.act {
            let seen = self.canvas(probe, until);
            return self.waited_for(editor, until).and(seen);
        }
        self.editor_ready(until)?;
        self.waited_for(editor, until)?;
        match &editor.act {
            EditorAct::Open | EditorAct::Probe(_) => {}
            EditorAct::Steps(steps) => self.steps(steps, task)?,
            EditorAct::Validate { content, provider } => {
                let until = self.within(CALL);
                let call = json!({"act": "validity", "content": content});
                let mut found = self.editor_call(&call, until)?;
                found["validation_provider"] = json!(provider);
                if let Value::Object(members) = found {
                    self.report.more.extend(members);
                }
            }
        }
        Ok(())
    }

    /// Adds post and blocks of the opened editor to the report, also after a failed step.
    pub fn editor_state(&mut self) {
        let until = Instant::now() + CALL;
        match self.editor_call(&json!({"act": "state"}), until) {
            Ok(state) => {
                self.report.more.insert("editor".to_owned(), state);
            }
            Err(failure) => self
                .report
                .notes
                .push(format!("the state of the editor is unknown: {failure}")),
        }
    }

    fn waited_for(&mut self, editor: &EditorTask, until: Instant) -> Result<(), Failure> {
        match &editor.wait_selector {
            Some(selector) => self
                .wait_found(&Element::of_page(selector), true, until)
                .map(drop),
            None => Ok(()),
        }
    }

    /// Waits until the editor has loaded its post and shows its canvas.
    fn editor_ready(&mut self, until: Instant) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            // A call fails while the page navigates, so the loop calls again.
            let why = match self.editor_call(&json!({"act": "ready"}), until) {
                Ok(found) if found.get("ready") == Some(&Value::Bool(true)) => return Ok(()),
                Ok(found) => cut(found.get("why").and_then(Value::as_str).unwrap_or(""), 200),
                Err(failure) if failure.is_final() => return Err(failure),
                Err(failure) => cut(&failure.to_string(), 200),
            };
            if Instant::now() >= until {
                let (url, title) = self.place();
                let what =
                    format!("waiting for the block editor: {why}; the page is {url} {title:?}");
                return Err(timeout(&what, began));
            }
            self.pause_until(until.min(Instant::now() + PAUSE))?;
        }
    }

    /// Calls a function of `editor.js` and returns its result.
    pub(super) fn editor_call(&mut self, call: &Value, until: Instant) -> Result<Value, Failure> {
        let until = until.min(Instant::now() + CALL);
        let answer = self.wire.ask(
            "Runtime.evaluate",
            json!({"expression": format!("{EDITOR}({call})"), "awaitPromise": true,
                "returnByValue": true, "userGesture": true}),
            until,
        )?;
        if let Some(details) = answer.get("exceptionDetails") {
            let thrown = exception(&json!({"exceptionDetails": details}));
            // The first line is the message; the rest is the stack.
            let line = thrown.text.lines().next().unwrap_or_default();
            let line = line.strip_prefix("Error: ").unwrap_or(line);
            return Err(Failure::step(cut(line, 600)));
        }
        let value = answer.pointer("/result/value").cloned();
        let value = value.filter(|value| !value.is_null());
        match value {
            Some(value) if value.to_string().len() <= ANSWER => Ok(value),
            Some(_) => Err(Failure::step(format!(
                "the editor returned more than {ANSWER} bytes"
            ))),
            None => Err(Failure::step("the editor returned nothing")),
        }
    }

    /// Waits for the layout of the canvas, and adds what the canvas contains to the report.
    fn canvas(&mut self, probe: &CanvasProbe, until: Instant) -> Result<(), Failure> {
        let began = Instant::now();
        let call = json!({"frame": probe.frame, "layout": probe.layout, "block": probe.block,
            "groups": probe.groups});
        let expression = format!("{CANVAS_PROBE}({call})");
        loop {
            let seen = match self.evaluate_isolated(&expression, 4000, self.within(CALL)) {
                Ok(answer) => answer.pointer("/result/value").cloned(),
                Err(failure) if failure.is_final() => return Err(failure),
                Err(_) => None,
            };
            let found = seen.as_ref().and_then(|seen| {
                let layout = seen.pointer("/canvas/layout/found")?.as_bool()?;
                Some(layout && seen.pointer("/blocks/error").is_none())
            });
            // Blocks appear after the layout; an empty post has none.
            let blocks = seen.as_ref().and_then(|seen| seen.pointer("/blocks/count"));
            let full = blocks
                .and_then(Value::as_u64)
                .is_some_and(|count| count > 0);
            let ready = found == Some(true)
                && (full
                    || self
                        .editor_call(&json!({"act": "ready"}), until)
                        .is_ok_and(is_ready));
            if let Some(Value::Object(members)) = seen {
                self.report.more.extend(members);
            }
            if ready {
                return Ok(());
            }
            if Instant::now() >= until {
                let what = format!("waiting for {} in the editor's canvas", probe.layout);
                return Err(timeout(&what, began));
            }
            self.pause_until(until.min(Instant::now() + PAUSE))?;
        }
    }
}

fn is_ready(found: Value) -> bool {
    found.get("ready") == Some(&Value::Bool(true))
}
