//! Captures of a page for the bundle (the run's result directory): screenshot, HTML and
//! accessibility tree.

use super::assets::{Asset, AssetKind};
use super::capture_kind::Capture;
use super::events::{address, cut, text};
use super::page::Page;
use super::png;
use super::step_spec::Shows;
use super::task::{EditorAct, Task, Work};
use super::wire::Failure;
use base64::Engine;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wp_codebox_artifacts::ArtifactContent;

/// Maximum time for all captures at the end of a command. They get this time even if the command's
/// timeout has passed.
const CAPTURING: Duration = Duration::from_secs(10);
/// Maximum number of nodes of a page's accessibility tree that are stored.
const NODES: usize = 5000;
/// Maximum width and height of a full-page screenshot, in CSS pixels.
const HIGHEST: f64 = 8000.0;
const SNAPSHOT: &str = include_str!("snapshot.js");
/// Expression for the durations that the page itself has measured, in milliseconds.
const TIMING: &str = "(() => { const [one] = performance.getEntriesByType('navigation'); const paint = performance.getEntriesByType('paint'); return { navigation: one ? { type: one.type, responseStart: one.responseStart, domInteractive: one.domInteractive, domContentLoaded: one.domContentLoadedEventEnd, load: one.loadEventEnd, transferSize: one.transferSize } : null, paint: Object.fromEntries(paint.slice(0, 10).map((row) => [row.name, row.startTime])), resources: performance.getEntriesByType('resource').length }; })()";
/// Maximum number of bytes stored of a page's HTML.
const HTML: usize = 4 * 1024 * 1024;

impl Page<'_> {
    /// Captures what the task requests. A failed capture becomes a note, never an error: captures
    /// matter most when the command has failed.
    pub fn capture(&mut self, task: &Task) {
        self.capture_all(&task.capture, "", task);
    }

    /// Makes each of `captures` and stores it under a name that begins with `prefix`.
    pub(super) fn capture_all(&mut self, captures: &[Capture], prefix: &str, task: &Task) {
        let until = Instant::now() + CAPTURING;
        for capture in captures {
            if let Err(failure) = self.capture_one(*capture, prefix, task, until) {
                self.report.notes.push(format!(
                    "{} could not be captured: {failure}",
                    capture.name()
                ));
            }
        }
    }

    fn capture_one(
        &mut self,
        capture: Capture,
        prefix: &str,
        task: &Task,
        until: Instant,
    ) -> Result<(), Failure> {
        let named = |name: &str| format!("{prefix}{name}");
        let asset = match capture {
            Capture::Screenshot => {
                return self.screenshot(&named("screenshot"), &Shows::Viewport, until);
            }
            Capture::FullPage => {
                return self.screenshot(&named("full-page"), &Shows::FullPage, until);
            }
            Capture::Html => self.html(&named("page"), until)?,
            Capture::Accessibility => self.accessibility(&named("accessibility"), until)?,
            Capture::Performance => self.performance(&named("performance"), until)?,
            Capture::Memory => self.memory(&named("memory"), until)?,
            Capture::DomSnapshot => {
                let document = self.dom_snapshot(task.snapshot_elements, until)?;
                Asset::document(AssetKind::DomSnapshot, &named("dom-snapshot"), document)
            }
            Capture::EditorState => {
                let state = self.editor_call(&json!({"act": "state"}), until)?;
                Asset::document(AssetKind::EditorState, &named("editor-state"), state)
            }
            Capture::EditorValidity => {
                let call = match &task.work {
                    Work::Editor(editor) => match &editor.act {
                        EditorAct::Validate { content, .. } => {
                            json!({"act": "validity", "content": content})
                        }
                        EditorAct::Open | EditorAct::Probe(_) | EditorAct::Steps(_) => {
                            json!({"act": "validity"})
                        }
                    },
                    _ => json!({"act": "validity"}),
                };
                let document = self.editor_call(&call, until)?;
                Asset::document(
                    AssetKind::EditorValidity,
                    &named("editor-validity"),
                    document,
                )
            }
            Capture::Steps => Asset::lines(&named("steps"), &self.report.steps),
            Capture::Console => Asset::lines(&named("console"), &self.wire.observed.console.kept),
            Capture::Errors => Asset::lines(&named("errors"), &self.wire.observed.errors.kept),
            Capture::Network => Asset::lines(&named("network"), &self.wire.observed.requests.kept),
            Capture::WebSockets => {
                Asset::lines(&named("websocket"), &self.wire.observed.sockets.kept)
            }
        };
        self.report.assets.push(asset);
        Ok(())
    }

    /// Captures what the task requests from a browser that no longer responds: only console lines,
    /// errors and requests, which this process has recorded.
    pub fn capture_observed(&mut self, task: &Task) {
        let mut observed = task.clone();
        observed.capture.retain(|capture| capture.is_recorded());
        self.capture(&observed);
    }

    /// Takes a screenshot and adds it to the files of the command.
    pub(super) fn screenshot(
        &mut self,
        name: &str,
        shows: &Shows,
        until: Instant,
    ) -> Result<(), Failure> {
        let (bytes, (width, height)) = self.picture(shows, until)?;
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

    /// Takes a screenshot; returns the PNG, its width and height.
    pub(super) fn picture(
        &mut self,
        shows: &Shows,
        until: Instant,
    ) -> Result<(Vec<u8>, (u32, u32)), Failure> {
        let mut params = json!({"format": "png", "optimizeForSpeed": false});
        let clip = match shows {
            Shows::Viewport => None,
            Shows::FullPage => {
                let sizes = self.wire.ask("Page.getLayoutMetrics", json!({}), until)?;
                let side = |name: &str| {
                    let path = format!("/cssContentSize/{name}");
                    sizes.pointer(&path).and_then(Value::as_f64).unwrap_or(1.0)
                };
                Some([0.0, 0.0, side("width"), side("height")])
            }
            Shows::Element(element) => Some(self.element_box(element, until)?),
            Shows::Frame(frame) => Some(self.frame_box(frame, until)?),
        };
        if let Some([x, y, width, height]) = clip {
            let side = |side: f64| side.clamp(1.0, HIGHEST);
            params["captureBeyondViewport"] = json!(true);
            params["clip"] =
                json!({"x": x, "y": y, "width": side(width), "height": side(height), "scale": 1});
        }
        let answer = self.wire.ask("Page.captureScreenshot", params, until)?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text(&answer, "/data"))
            .unwrap_or_default();
        match png::size(&bytes) {
            Some(size) => Ok((bytes, size)),
            None => Err(Failure::step("the browser's screenshot is not a valid PNG")),
        }
    }

    /// Returns the visible elements of the page with their positions, `{url, title, viewport,
    /// elements, total}`.
    pub(super) fn dom_snapshot(&mut self, most: usize, until: Instant) -> Result<Value, Failure> {
        let expression = format!("({SNAPSHOT})({most})");
        let answer = self.evaluate_isolated(&expression, 8000, until)?;
        let mut document = answer
            .pointer("/result/value")
            .filter(|value| value.is_object())
            .cloned()
            .ok_or_else(|| Failure::step("the document could not be inspected"))?;
        document["url"] = json!(address(text(&document, "/url")));
        Ok(document)
    }

    fn performance(&mut self, name: &str, until: Instant) -> Result<Asset, Failure> {
        self.wire.ask("Performance.enable", json!({}), until)?;
        let answer = self.wire.ask("Performance.getMetrics", json!({}), until)?;
        let rows = answer.get("metrics").and_then(Value::as_array);
        let metrics: serde_json::Map<String, Value> = rows
            .into_iter()
            .flatten()
            .take(200)
            .map(|row| {
                let value = row.get("value").cloned().unwrap_or(Value::Null);
                (cut(text(row, "/name"), 80), value)
            })
            .collect();
        let timing = self.evaluate_isolated(TIMING, 4000, until)?;
        let timing = timing.pointer("/result/value").cloned();
        let document = json!({"metrics": metrics, "page": timing});
        Ok(Asset::document(AssetKind::Performance, name, document))
    }

    fn memory(&mut self, name: &str, until: Instant) -> Result<Asset, Failure> {
        let heap = self.wire.ask("Runtime.getHeapUsage", json!({}), until)?;
        let counters = self.wire.ask("Memory.getDOMCounters", json!({}), until)?;
        let number = |value: &Value, name: &str| value.get(name).cloned().unwrap_or(Value::Null);
        let document = json!({
            "usedBytes": number(&heap, "usedSize"), "totalBytes": number(&heap, "totalSize"),
            "documents": number(&counters, "documents"), "nodes": number(&counters, "nodes"),
            "listeners": number(&counters, "jsEventListeners"),
        });
        Ok(Asset::document(AssetKind::Memory, name, document))
    }

    fn html(&mut self, name: &str, until: Instant) -> Result<Asset, Failure> {
        let expression = format!(
            "(document.doctype ? '<!DOCTYPE ' + document.doctype.name + '>\\n' : '') + document.documentElement.outerHTML.slice(0, {HTML})"
        );
        let answer = self.evaluate_isolated(&expression, 5000, until)?;
        let mut html = text(&answer, "/result/value").to_owned();
        let cut_at = (0..=HTML.min(html.len()))
            .rev()
            .find(|at| html.is_char_boundary(*at));
        html.truncate(cut_at.unwrap_or(0));
        Ok(Asset {
            kind: AssetKind::Html,
            name: name.to_owned(),
            content: ArtifactContent::Text(html),
        })
    }

    fn accessibility(&mut self, name: &str, until: Instant) -> Result<Asset, Failure> {
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
        Ok(Asset::document(
            AssetKind::Accessibility,
            name,
            json!({"nodes": rows, "total": total}),
        ))
    }
}
