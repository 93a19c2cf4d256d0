//! One page: opened, looked at, captured.

use super::asserts::{self, Assertion, Frame, Weight};
use super::assets::{Asset, AssetKind};
use super::png;
use super::request::{Capture, Task, WaitFor};
use super::storage::StorageState;
use super::wire::{Failure, Waited, Wire, cut, timeout};
use base64::Engine;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wp_codebox_artifacts::ArtifactContent;

const LOOKUP: &str = include_str!("page.js");
/// One look at a document.
const LOOK: Duration = Duration::from_secs(5);
/// Time for what is kept at the end, also after the command's own time is over.
const CAPTURING: Duration = Duration::from_secs(10);
/// Between two looks while something is waited for.
const PAUSE: Duration = Duration::from_millis(100);
/// How long an assertion is given to become true.
const SETTLE: Duration = Duration::from_secs(1);
/// Bytes of a page's HTML that are kept.
const HTML: usize = 4 * 1024 * 1024;
/// Rows of the result itself.
const SHOWN: usize = 50;
/// Nodes of an accessibility tree that are kept.
const NODES: usize = 5000;
/// Highest picture of a whole page, pixels of the page.
const HIGHEST: f64 = 8000.0;
/// Bytes of what a script answers.
const ANSWER: usize = 64 * 1024;

/// What a command came to, so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub assertions: Vec<Value>,
    pub steps: Vec<Value>,
    pub script: Option<Value>,
    pub assets: Vec<Asset>,
    pub screenshots: Vec<Value>,
    pub notes: Vec<String>,
    pub navigation_ms: Option<u64>,
    pub failed_assertions: usize,
}

/// A page of a browser.
pub(crate) struct Page<'h> {
    pub wire: Wire<'h>,
    pub report: Report,
    until: Instant,
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or("")
}

impl<'h> Page<'h> {
    /// Takes the browser's only page and prepares it; until it is all over.
    pub(crate) fn open(
        mut wire: Wire<'h>,
        task: &Task,
        storage: &StorageState,
        until: Instant,
    ) -> Result<Self, Failure> {
        prepare(&mut wire, task, storage, until)?;
        Ok(Self {
            wire,
            report: Report::default(),
            until,
        })
    }

    /// When the whole command is over.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// The earlier of the command's end and this long from now.
    pub(super) fn within(&self, time: Duration) -> Instant {
        Instant::now()
            .checked_add(time)
            .map_or(self.until, |at| at.min(self.until))
    }

    /// Goes to an address and waits until the page is there.
    pub(crate) fn navigate(
        &mut self,
        url: &str,
        wait_for: &WaitFor,
        until: Instant,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        self.wire
            .host
            .progress("navigating", json!({"url": super::events::address(url)}));
        self.wire.observed.status = None;
        let answer = self.wire.ask("Page.navigate", json!({"url": url}), until)?;
        if let Some(error) = answer.get("errorText").and_then(Value::as_str) {
            return Err(Failure::Navigation {
                url: super::events::address(url),
                why: cut(error, 200),
            });
        }
        // Without a loader the page only moved within itself.
        if let Some(loader) = answer
            .get("loaderId")
            .and_then(Value::as_str)
            .map(str::to_owned)
        {
            let stage = match wait_for {
                WaitFor::DomContentLoaded | WaitFor::Duration | WaitFor::Selector(_) => {
                    "DOMContentLoaded"
                }
                WaitFor::Load => "load",
                WaitFor::NetworkIdle => "networkIdle",
            };
            // A page that sends the browser on at once never comes that far itself.
            let waited = self.wire.wait(until, |seen| {
                seen.reached(&loader, stage)
                    || (seen.current != loader && seen.reached(&seen.current, stage))
            })?;
            if waited == Waited::TooLong {
                return Err(timeout(
                    &format!("waiting for {stage} of {}", super::events::address(url)),
                    began,
                ));
            }
        }
        self.report.navigation_ms = u64::try_from(began.elapsed().as_millis()).ok();
        Ok(())
    }

    /// What a task waits for beyond the navigation itself.
    pub(crate) fn settle(&mut self, task: &Task) -> Result<(), Failure> {
        if let WaitFor::Selector(selector) = &task.wait_for {
            let until = self.until;
            self.wait_found(selector, true, until)?;
        }
        if !task.duration.is_zero() {
            let until = self.within(task.duration);
            self.wire.wait(until, |_| false)?;
        }
        Ok(())
    }

    /// Runs the caller's script in the page itself.
    pub(crate) fn script(&mut self, source: &str, until: Instant) -> Result<Value, Failure> {
        let answer = self.wire.ask(
            "Runtime.evaluate",
            json!({"expression": source, "awaitPromise": true, "returnByValue": true,
                "userGesture": true, "allowUnsafeEvalBlockedByCSP": true}),
            until,
        )?;
        if let Some(details) = answer.get("exceptionDetails") {
            let thrown = super::events::exception(&json!({"exceptionDetails": details}));
            return Err(Failure::Step {
                what: format!("the script threw: {}", cut(&thrown.text, 500)),
            });
        }
        let value = answer
            .pointer("/result/value")
            .cloned()
            .unwrap_or(Value::Null);
        if value.to_string().len() > ANSWER {
            return Ok(json!({"truncated": true, "bytes": value.to_string().len()}));
        }
        Ok(value)
    }

    /// Looks something up in the document, where the page's scripts cannot interfere.
    pub(super) fn look(&mut self, query: &Value, until: Instant) -> Result<Value, Failure> {
        let until = until.min(Instant::now() + LOOK);
        let frame = self.wire.observed.frame.clone();
        let world = self.wire.ask(
            "Page.createIsolatedWorld",
            json!({"frameId": frame, "worldName": "look"}),
            until,
        )?;
        let expression = LOOKUP.replace("(QUERY)", &format!("({query})"));
        let answer = self.wire.ask(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "timeout": 4000,
                "contextId": world.get("executionContextId")}),
            until,
        )?;
        Ok(answer
            .pointer("/result/value")
            .cloned()
            .unwrap_or(json!({"error": "the document did not answer"})))
    }

    /// Waits until an element shows, or until none does.
    pub(super) fn wait_found(
        &mut self,
        selector: &str,
        shown: bool,
        until: Instant,
    ) -> Result<Value, Failure> {
        let began = Instant::now();
        let query = asserts::query(&Frame::Main, Some(selector), None);
        loop {
            // A look that falls into a navigation finds nothing; the next one does.
            match self.look(&query, self.within(LOOK)) {
                Ok(found) => {
                    let visible = found.get("visible").and_then(Value::as_u64).unwrap_or(0) > 0;
                    let error = text(&found, "/error");
                    if error.contains("valid selector") {
                        return Err(Failure::Step {
                            what: cut(error, 300),
                        });
                    }
                    if visible == shown && error.is_empty() {
                        return Ok(found);
                    }
                }
                Err(failure) if failure.is_final() => return Err(failure),
                Err(_) => {}
            }
            if Instant::now() >= until {
                let what = if shown { "to show" } else { "to go" };
                return Err(timeout(&format!("waiting for {selector} {what}"), began));
            }
            let pause = until.min(Instant::now() + PAUSE);
            self.wire.wait(pause, |_| false)?;
        }
    }

    /// Judges one assertion; it is given a moment to become true.
    pub(super) fn judge(
        &mut self,
        assertion: &Assertion,
        until: Instant,
    ) -> Result<Result<(), String>, Failure> {
        // A look that was begun in time may end later: the machine may be busy.
        let last = self.within(LOOK);
        loop {
            let found = match self.look(&assertion.query(), last) {
                Ok(found) => found,
                Err(failure) if failure.is_final() || Instant::now() >= last => {
                    return Err(failure);
                }
                Err(_) => json!({"error": "the document did not answer"}),
            };
            let judged = assertion.judge(&found, &self.wire.observed);
            if judged.is_ok() || Instant::now() >= until {
                return Ok(judged);
            }
            let pause = until.min(Instant::now() + PAUSE);
            self.wire.wait(pause, |_| false)?;
        }
    }

    /// Judges the command's own assertions.
    pub(crate) fn assertions(&mut self, task: &Task) -> Result<(), Failure> {
        for assertion in &task.asserts {
            let until = self.within(SETTLE);
            let judged = self.judge(assertion, until)?;
            let (status, failed) = match (&judged, assertion.weight) {
                (Ok(()), _) => ("passed", false),
                (Err(_), Weight::Advisory) => ("advisory-failed", false),
                (Err(_), Weight::Required) => ("failed", true),
            };
            let mut row = json!({"assert": assertion.text, "status": status});
            if let Err(why) = judged {
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

    /// Keeps what the task asks for. What cannot be had is a note, never a failure: the evidence
    /// of a command that failed is wanted most.
    pub(crate) fn capture(&mut self, task: &Task) {
        let until = Instant::now() + CAPTURING;
        for capture in task.capture.clone() {
            let kept = match capture {
                Capture::Screenshot => self.screenshot("screenshot", false, until),
                Capture::FullPage => self.screenshot("full-page", true, until),
                Capture::Html => self.html(until),
                Capture::Accessibility => self.accessibility(until),
                Capture::Console => {
                    let rows = Asset::lines("console", &self.wire.observed.console.kept);
                    self.report.assets.push(rows);
                    Ok(())
                }
                Capture::Errors => {
                    let rows = Asset::lines("errors", &self.wire.observed.errors.kept);
                    self.report.assets.push(rows);
                    Ok(())
                }
                Capture::Network => {
                    let rows = Asset::lines("network", &self.wire.observed.requests.kept);
                    self.report.assets.push(rows);
                    Ok(())
                }
            };
            if let Err(failure) = kept {
                self.report
                    .notes
                    .push(format!("{capture:?} could not be kept: {failure}"));
            }
        }
    }

    /// Keeps what was observed, where the browser can be asked for nothing more.
    pub(crate) fn capture_observed(&mut self, task: &Task) {
        let mut observed = task.clone();
        observed
            .capture
            .retain(|c| matches!(c, Capture::Console | Capture::Errors | Capture::Network));
        self.capture(&observed);
    }

    /// Takes a picture.
    pub(super) fn screenshot(
        &mut self,
        name: &str,
        full: bool,
        until: Instant,
    ) -> Result<(), Failure> {
        let mut params = json!({"format": "png", "optimizeForSpeed": false});
        if full {
            let sizes = self.wire.ask("Page.getLayoutMetrics", json!({}), until)?;
            let side = |name: &str| {
                sizes
                    .pointer(&format!("/cssContentSize/{name}"))
                    .and_then(Value::as_f64)
                    .unwrap_or(1.0)
                    .clamp(1.0, HIGHEST)
            };
            params["captureBeyondViewport"] = json!(true);
            params["clip"] = json!({"x": 0, "y": 0, "width": side("width"), "height": side("height"), "scale": 1});
        }
        let answer = self.wire.ask("Page.captureScreenshot", params, until)?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text(&answer, "/data"))
            .unwrap_or_default();
        let Some((width, height)) = png::size(&bytes) else {
            return Err(Failure::Step {
                what: "what the browser gave as a picture is no PNG".to_owned(),
            });
        };
        self.report
            .screenshots
            .push(json!({"name": name, "width": width, "height": height}));
        self.report.assets.push(Asset {
            kind: AssetKind::Screenshot,
            name: name.to_owned(),
            content: ArtifactContent::Bytes(bytes),
        });
        Ok(())
    }

    fn html(&mut self, until: Instant) -> Result<(), Failure> {
        let frame = self.wire.observed.frame.clone();
        let world = self.wire.ask(
            "Page.createIsolatedWorld",
            json!({"frameId": frame, "worldName": "look"}),
            until,
        )?;
        let expression = format!(
            "(document.doctype ? '<!DOCTYPE ' + document.doctype.name + '>\\n' : '') + document.documentElement.outerHTML.slice(0, {HTML})"
        );
        let answer = self.wire.ask(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "timeout": 5000,
                "contextId": world.get("executionContextId")}),
            until,
        )?;
        let mut html = text(&answer, "/result/value").to_owned();
        let cut_at = (0..=HTML.min(html.len()))
            .rev()
            .find(|at| html.is_char_boundary(*at));
        html.truncate(cut_at.unwrap_or(0));
        self.report.assets.push(Asset {
            kind: AssetKind::Html,
            name: "page".to_owned(),
            content: ArtifactContent::Text(html),
        });
        Ok(())
    }

    fn accessibility(&mut self, until: Instant) -> Result<(), Failure> {
        let answer = self
            .wire
            .ask("Accessibility.getFullAXTree", json!({}), until)?;
        let nodes = answer
            .get("nodes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let total = nodes.len();
        let rows: Vec<Value> = nodes
            .iter()
            .filter(|node| node.get("ignored").and_then(Value::as_bool) != Some(true))
            .take(NODES)
            .map(|node| {
                json!({
                    "id": text(node, "/nodeId"), "parent": text(node, "/parentId"),
                    "role": text(node, "/role/value"), "name": cut(text(node, "/name/value"), 300),
                    "value": cut(text(node, "/value/value"), 300),
                })
            })
            .collect();
        self.report.assets.push(Asset::document(
            AssetKind::Accessibility,
            "accessibility",
            json!({"nodes": rows, "total": total}),
        ));
        Ok(())
    }

    /// Where the page is in the end, and what it calls itself.
    pub(crate) fn place(&mut self) -> (String, String) {
        let until = Instant::now() + LOOK;
        match self.look(&asserts::query(&Frame::Main, None, None), until) {
            Ok(found) => (
                super::events::address(text(&found, "/url")),
                cut(text(&found, "/title"), 300),
            ),
            Err(_) => (String::new(), String::new()),
        }
    }

    /// What was observed, as a result shows it.
    pub(crate) fn observations(&self) -> Value {
        let seen = &self.wire.observed;
        let first = |rows: Vec<Value>| rows.into_iter().take(SHOWN).collect::<Vec<_>>();
        let rows = |list: &[Value]| first(list.to_vec());
        let plain = |value: Value| value.as_array().cloned().unwrap_or_default();
        let failed: Vec<Value> = seen
            .requests
            .kept
            .iter()
            .filter(|r| r.error.is_some() || r.status.is_some_and(|status| status >= 400))
            .map(|r| json!(r))
            .collect();
        json!({
            "httpStatus": seen.status,
            "console": first(plain(json!(seen.console.kept))),
            "consoleTotal": seen.console.total,
            "errors": first(plain(json!(seen.errors.kept))),
            "errorsTotal": seen.errors.total,
            "network": first(plain(json!(seen.requests.kept))),
            "networkTotal": seen.requests.total,
            "networkFailed": rows(&failed),
            "dialogs": rows(&seen.dialogs.kept),
            "dialogsTotal": seen.dialogs.total,
            "windowsClosed": seen.windows,
            "downloadsRefused": seen.downloads,
            "eventsDropped": seen.dropped,
        })
    }
}

fn prepare(
    wire: &mut Wire<'_>,
    task: &Task,
    storage: &StorageState,
    until: Instant,
) -> Result<(), Failure> {
    let began = Instant::now();
    // The first page comes a moment after the browser talks.
    let target = loop {
        let found = wire.ask_browser("Target.getTargets", json!({}), until)?;
        let list = found.get("targetInfos").and_then(Value::as_array);
        let page = list.and_then(|list| list.iter().find(|info| text(info, "/type") == "page"));
        if let Some(page) = page {
            break text(page, "/targetId").to_owned();
        }
        if Instant::now() >= until {
            return Err(timeout("starting the browser", began));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let attached = wire.ask_browser(
        "Target.attachToTarget",
        json!({"targetId": target, "flatten": true}),
        until,
    )?;
    wire.attach(text(&attached, "/sessionId").to_owned());
    wire.observed.target = target;
    wire.ask_browser(
        "Target.setDiscoverTargets",
        json!({"discover": true}),
        until,
    )?;
    wire.ask_browser(
        "Browser.setDownloadBehavior",
        json!({"behavior": "deny", "eventsEnabled": true}),
        until,
    )?;
    wire.ask("Page.enable", json!({}), until)?;
    let tree = wire.ask("Page.getFrameTree", json!({}), until)?;
    wire.observed.frame = text(&tree, "/frameTree/frame/id").to_owned();
    for (method, params) in [
        ("Page.setLifecycleEventsEnabled", json!({"enabled": true})),
        (
            "Page.setInterceptFileChooserDialog",
            json!({"enabled": true}),
        ),
        ("Runtime.enable", json!({})),
        ("Log.enable", json!({})),
        ("Inspector.enable", json!({})),
        (
            "Network.enable",
            json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}),
        ),
    ] {
        wire.ask(method, params, until)?;
    }
    task.environment.apply(wire, until)?;
    if !storage.cookies.is_empty() {
        let cookies: Vec<Value> = storage
            .cookies
            .iter()
            .map(super::storage::Cookie::param)
            .collect();
        wire.ask("Network.setCookies", json!({"cookies": cookies}), until)?;
    }
    for script in storage.script().iter().chain(&task.pre_script) {
        wire.ask(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({"source": script}),
            until,
        )?;
    }
    Ok(())
}
