//! One page of the browser: navigates, queries the document, and runs scripts and assertions.

use super::asserts::{self, Assertion, Element, Frame, Weight};
use super::assets::Asset;
use super::attach::attach;
use super::cast::Cast;
use super::events::{address, cut, exception, text};
use super::step_spec::{WaitFor, json_equal};
use super::storage::StorageState;
use super::task::{CANVAS, Task, Work};
use super::wire::{Failure, Waited, Wire, timeout};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// JavaScript function that takes a query and answers it about the document; it finds elements with
/// the function of `locate.js`.
const LOOKUP: &str = concat!(
    "((locate) => (",
    include_str!("page.js"),
    "))(",
    include_str!("locate.js"),
    ")"
);
/// Maximum duration of one query of the document.
const LOOK: Duration = Duration::from_secs(5);
/// Interval between two queries of the document while waiting for a condition.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// Maximum time to wait for an assertion to become true.
const SETTLE: Duration = Duration::from_secs(1);
/// Maximum time to wait until a page has painted.
const PAINTED: Duration = Duration::from_secs(5);
/// Maximum size of a script's value in the result, in bytes of JSON.
const ANSWER: usize = 64 * 1024;

/// What a browser command has found so far.
#[derive(Debug, Default)]
pub struct Report {
    /// Rows of the checked assertions, with their results.
    pub assertions: Vec<Value>,
    /// Rows of the executed steps, with their results.
    pub steps: Vec<Value>,
    /// Value of the caller's script, if it has run.
    pub script: Option<Value>,
    /// Members that the result of the command has in addition, e.g. the state of the block editor.
    pub more: serde_json::Map<String, Value>,
    /// Files for the bundle (the run's result directory).
    pub assets: Vec<Asset>,
    /// Rows of the screenshots in the result.
    pub screenshots: Vec<Value>,
    /// Sentences that state what was truncated or could not be captured.
    pub notes: Vec<String>,
    /// Duration of the navigation in milliseconds.
    pub navigation_ms: Option<u64>,
    /// Number of failed assertions, without those that are only advisory.
    pub failed_assertions: usize,
}

/// Value of the caller's script.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The value in JSON; `undefined` becomes `null`.
    Value(Value),
    /// The value exceeds the size limit.
    TooLong { bytes: usize },
    /// JSON cannot represent the value: it is NaN, Infinity or a BigInt. The text names it.
    NoJson(String),
}

impl Answer {
    /// Returns the script's value as the result of the command shows it.
    pub fn shown(&self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::TooLong { bytes } => json!({"truncated": true, "bytes": bytes}),
            Self::NoJson(_) => Value::Null,
        }
    }

    /// Returns how the script's value differs from the value that the caller expects; `None` if it
    /// does not. A value that is too long or not JSON differs from every value.
    pub(super) fn differs_from(&self, wanted: &Value) -> Option<String> {
        match self {
            Self::Value(value) if json_equal(value, wanted) => None,
            Self::Value(value) => Some(format!(
                "the script returned {}, but assert expects {}",
                cut(&value.to_string(), 300),
                cut(&wanted.to_string(), 300)
            )),
            Self::TooLong { bytes } => Some(format!(
                "the script returned {bytes} bytes; assert compares at most {ANSWER} bytes"
            )),
            Self::NoJson(name) => Some(format!(
                "the script returned {name}, which is not a JSON value, so assert cannot compare it"
            )),
        }
    }
}

/// The page under test.
pub struct Page<'h> {
    /// Connection to the browser.
    pub wire: Wire<'h>,
    /// Results of the command so far.
    pub report: Report,
    until: Instant,
    /// Selector of a frame in which elements are searched that the page itself does not contain.
    canvas: Option<&'static str>,
    /// Maximum time without an event of the browser while a page loads.
    stall: Option<Duration>,
    pub(super) cast: Cast,
}

impl<'h> Page<'h> {
    /// Attaches to the browser's first page and prepares it; `until` is the deadline of the
    /// command. `states` are the login states of actors by session.
    pub fn open(
        mut wire: Wire<'h>,
        task: &Task,
        (storage, states): (&StorageState, &BTreeMap<String, StorageState>),
        until: Instant,
    ) -> Result<Self, Failure> {
        attach(&mut wire, task, storage, until)?;
        let session = wire.session().unwrap_or_default().to_owned();
        Ok(Self {
            wire,
            report: Report::default(),
            until,
            canvas: matches!(task.work, Work::Editor(_)).then_some(CANVAS),
            stall: task.stall,
            cast: Cast::new(session, states),
        })
    }

    /// Returns the deadline of the browser command.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Returns the instant that is `time` from now, or the deadline of the browser command if that
    /// is earlier.
    pub(super) fn within(&self, time: Duration) -> Instant {
        Instant::now()
            .checked_add(time)
            .map_or(self.until, |at| at.min(self.until))
    }

    /// Navigates to a URL and waits until the page has reached the load stage of `wait_for`.
    pub fn navigate(
        &mut self,
        url: &str,
        wait_for: &WaitFor,
        until: Instant,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        self.wire
            .host
            .progress("navigating", json!({"url": address(url)}));
        self.wire.observed.tab.status = None;
        let answer = self.wire.ask("Page.navigate", json!({"url": url}), until)?;
        if let Some(error) = answer.get("errorText").and_then(Value::as_str) {
            return Err(Failure::Navigation {
                url: address(url),
                why: cut(error, 200),
            });
        }
        // Without a loader id, the navigation stayed within the document, e.g. a new fragment, and
        // there is nothing to wait for.
        if let Some(loader) = answer
            .get("loaderId")
            .and_then(Value::as_str)
            .map(str::to_owned)
        {
            let stage = wait_for.stage();
            // If the document of this navigation redirects at once, it never reaches the stage.
            // Then the document that replaced it must reach the stage.
            let loaded = |seen: &super::observed::Observed| {
                seen.reached(&loader, stage)
                    || (seen.tab.current != loader && seen.reached(&seen.tab.current, stage))
            };
            let what = format!("waiting for {stage} of {}", address(url));
            self.wait_loading(&what, until, loaded)?;
        }
        self.report.navigation_ms = u64::try_from(began.elapsed().as_millis()).ok();
        Ok(())
    }

    /// Waits until a condition holds while a page loads. Fails at `until`, and earlier when the
    /// browser sends no event for longer than the task allows.
    fn wait_loading(
        &mut self,
        what: &str,
        until: Instant,
        mut done: impl FnMut(&super::observed::Observed) -> bool,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            let seen = self.wire.observed.events;
            let pause = self.stall.unwrap_or(Duration::MAX);
            let next = Instant::now()
                .checked_add(pause)
                .map_or(until, |at| at.min(until));
            match self.wire.wait(next, &mut done)? {
                Waited::Done => return Ok(()),
                Waited::TooLong if next == until => return Err(timeout(what, began)),
                Waited::TooLong if self.wire.observed.events == seen => {
                    let what = format!(
                        "{what}: the browser sent no event for as long as stall-timeout allows"
                    );
                    return Err(timeout(&what, began));
                }
                Waited::TooLong => {}
            }
        }
    }

    /// Makes the browser emulate another environment for the next page.
    pub fn emulate(
        &mut self,
        environment: &super::environment::Environment,
    ) -> Result<(), Failure> {
        let until = self.until;
        environment.apply(&mut self.wire, until)
    }

    /// Ends the page load of a profile: captures the page and adds a row to the result. `before` is
    /// the number of assertions that were checked before.
    pub fn end_profile(&mut self, name: &str, task: &Task, before: usize) {
        let (url, title) = self.place();
        self.capture_all(&task.capture, &format!("{name}-"), task);
        let assertions = self.report.assertions.get(before..).unwrap_or_default();
        let row = json!({"profile": name, "finalUrl": url, "title": title,
            "httpStatus": self.wire.observed.tab.status, "navigationMs": self.report.navigation_ms,
            "assertions": assertions, "script": self.report.script});
        let rows = self.report.more.entry("profiles").or_insert(json!([]));
        if let Some(rows) = rows.as_array_mut() {
            rows.push(row);
        }
    }

    /// Adds to the result how many elements match each selector that the task observes, and the
    /// text of the first one.
    pub fn observe_elements(&mut self, task: &Task) -> Result<(), Failure> {
        let mut rows = Vec::new();
        for selector in &task.observe {
            let until = self.within(LOOK);
            let found = self.query_document(&Element::of_page(selector).query(), until)?;
            let count = |name: &str| found.get(name).and_then(Value::as_u64).unwrap_or(0);
            let mut row = json!({"selector": selector, "count": count("count"),
                "visible": count("visible"), "text": cut(text(&found, "/text"), 500)});
            if let Some(error) = found.get("error").and_then(Value::as_str) {
                row["error"] = json!(cut(error, 300));
            }
            rows.push(row);
        }
        if !rows.is_empty() {
            self.report.more.insert("observed".to_owned(), json!(rows));
        }
        Ok(())
    }

    /// Waits for what the task requires after a navigation: a visible element, a period of time.
    pub fn settle(&mut self, task: &Task) -> Result<(), Failure> {
        if let WaitFor::Selector(selector) = &task.wait_for {
            let until = self.until;
            self.wait_found(&Element::of_page(selector), true, until)?;
        }
        if !task.duration.is_zero() {
            self.pause(task.duration)?;
        }
        // Until its first painted frame, a mobile page has the default width of 980 pixels.
        let mut environments = task.profiles.iter().map(|(_, environment)| environment);
        if task.environment.device.mobile || environments.any(|one| one.device.mobile) {
            self.paint();
        }
        Ok(())
    }

    /// Waits for two frames, after which style sheets and replaced images are painted, and for
    /// fonts. Goes on without an error if that takes too long.
    pub(super) fn paint(&mut self) {
        let painted = "Promise.all([document.fonts.ready, new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))]).then(() => true)";
        let _ = self.script(painted, self.within(PAINTED));
    }

    /// Runs the caller's script in the page, like a script of the page itself.
    pub fn script(&mut self, source: &str, until: Instant) -> Result<Answer, Failure> {
        let answer = self.wire.ask(
            "Runtime.evaluate",
            json!({"expression": source, "awaitPromise": true, "returnByValue": true,
                "userGesture": true, "allowUnsafeEvalBlockedByCSP": true}),
            until,
        )?;
        if let Some(details) = answer.get("exceptionDetails") {
            let thrown = exception(&json!({"exceptionDetails": details}));
            let thrown = cut(&thrown.text, 500);
            return Err(Failure::step(format!("the script threw: {thrown}")));
        }
        if let Some(name) = answer
            .pointer("/result/unserializableValue")
            .and_then(Value::as_str)
        {
            return Ok(match name {
                "-0" => Answer::Value(json!(0)),
                name => Answer::NoJson(cut(name, 100)),
            });
        }
        let value = answer
            .pointer("/result/value")
            .cloned()
            .unwrap_or(Value::Null);
        Ok(match value.to_string().len() {
            bytes if bytes > ANSWER => Answer::TooLong { bytes },
            _ => Answer::Value(value),
        })
    }

    /// Runs a query of the document in an isolated JavaScript world, where the page's scripts
    /// cannot change the result.
    pub(super) fn query_document(
        &mut self,
        query: &Value,
        until: Instant,
    ) -> Result<Value, Failure> {
        let until = until.min(Instant::now() + LOOK);
        let mut query = query.clone();
        if let Some(canvas) = self.canvas {
            query["canvas"] = json!(canvas);
        }
        let expression = format!("{LOOKUP}({query})");
        let answer = self.evaluate_isolated(&expression, 4000, until)?;
        Ok(answer
            .pointer("/result/value")
            .cloned()
            .unwrap_or(json!({"error": "the document could not be queried"})))
    }

    /// Evaluates an expression in an isolated JavaScript world, where the page's scripts cannot
    /// change the result.
    pub(super) fn evaluate_isolated(
        &mut self,
        expression: &str,
        timeout_ms: u64,
        until: Instant,
    ) -> Result<Value, Failure> {
        let frame = self.wire.observed.tab.frame.clone();
        let params = json!({"frameId": frame, "worldName": "look"});
        let world = self.wire.ask("Page.createIsolatedWorld", params, until)?;
        let params = json!({"expression": expression, "returnByValue": true,
            "timeout": timeout_ms, "contextId": world.get("executionContextId")});
        self.wire.ask("Runtime.evaluate", params, until)
    }

    /// Processes browser events for `time`, but at most until the deadline of the browser command.
    pub(super) fn pause(&mut self, time: Duration) -> Result<(), Failure> {
        let until = self.within(time);
        self.pause_until(until)
    }

    pub(super) fn pause_until(&mut self, until: Instant) -> Result<(), Failure> {
        self.wire.wait(until, |_| false).map(drop)
    }

    /// Waits until a matching element is visible, or with `shown` false, until none is.
    pub(super) fn wait_found(
        &mut self,
        element: &Element,
        shown: bool,
        until: Instant,
    ) -> Result<Value, Failure> {
        let began = Instant::now();
        let selector = &element.selector;
        let query = element.query();
        loop {
            // A query fails while the page navigates; the loop then queries again.
            match self.query_document(&query, self.within(LOOK)) {
                Ok(found) => {
                    let visible = found.get("visible").and_then(Value::as_u64).unwrap_or(0) > 0;
                    let error = text(&found, "/error");
                    if error.contains("valid selector") {
                        return Err(Failure::step(cut(error, 300)));
                    }
                    if visible == shown && error.is_empty() {
                        return Ok(found);
                    }
                }
                Err(failure) if failure.is_final() => return Err(failure),
                Err(_) => {}
            }
            if Instant::now() >= until {
                let what = if shown {
                    "to become visible"
                } else {
                    "to disappear"
                };
                return Err(timeout(&format!("waiting for {selector} {what}"), began));
            }
            self.pause_until(until.min(Instant::now() + PAUSE))?;
        }
    }

    /// Checks one assertion repeatedly until it is true or `until` has passed, and returns the last
    /// result.
    pub(super) fn check(
        &mut self,
        assertion: &Assertion,
        until: Instant,
    ) -> Result<Result<(), String>, Failure> {
        loop {
            // The deadline of a query may be later than `until`: on a busy host, a query that
            // starts before `until` may end after `until`.
            let found = match self.query_document(&assertion.query(), self.within(LOOK)) {
                Ok(found) => found,
                Err(failure) if failure.is_final() || Instant::now() >= until => {
                    return Err(failure);
                }
                Err(_) => json!({"error": "the document could not be queried"}),
            };
            self.read_php_errors();
            let verdict = assertion.check(&found, &self.wire.observed);
            if verdict.is_ok() || Instant::now() >= until {
                return Ok(verdict);
            }
            self.pause_until(until.min(Instant::now() + PAUSE))?;
        }
    }

    /// Checks the assertions of the `assert=` arguments. Assertions of `expect` steps are checked
    /// when these steps are executed.
    pub fn assertions(&mut self, task: &Task) -> Result<(), Failure> {
        for assertion in &task.asserts {
            let until = self.within(SETTLE);
            let verdict = self.check(assertion, until)?;
            let (status, failed) = match (&verdict, assertion.weight) {
                (Ok(()), _) => ("passed", false),
                (Err(_), Weight::Advisory) => ("advisory-failed", false),
                (Err(_), Weight::Required) => ("failed", true),
            };
            let mut row = json!({"assert": assertion.text, "status": status});
            if let Err(why) = verdict {
                row["found"] = json!(why);
            }
            self.report.assertions.push(row);
            if failed {
                self.report.failed_assertions += 1;
                if task.fail_fast {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the URL and title that the page has at the end of the command.
    pub fn place(&mut self) -> (String, String) {
        let until = Instant::now() + LOOK;
        match self.query_document(&asserts::query(&Frame::Main, None, None), until) {
            Ok(found) => (
                address(text(&found, "/url")),
                cut(text(&found, "/title"), 300),
            ),
            Err(_) => (String::new(), String::new()),
        }
    }

    /// Returns the recorded events of the page as the result of the command shows them.
    pub fn observations(&mut self) -> Value {
        self.read_php_errors();
        self.wire.observed.document()
    }
}
