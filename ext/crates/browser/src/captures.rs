//! Captures of a page for the bundle (the run's result directory): screenshot, HTML and
//! accessibility tree.

use super::assets::{Asset, AssetKind};
use super::events::{cut, text};
use super::page::Page;
use super::png;
use super::request::{Capture, Task};
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
/// Maximum number of bytes stored of a page's HTML.
const HTML: usize = 4 * 1024 * 1024;

impl Page<'_> {
    /// Captures what the task requests. A failed capture becomes a note, never an error: captures
    /// matter most when the command has failed.
    pub fn capture(&mut self, task: &Task) {
        let until = Instant::now() + CAPTURING;
        for capture in task.capture.clone() {
            let kept = match capture {
                Capture::Screenshot => self.screenshot("screenshot", false, until),
                Capture::FullPage => self.screenshot("full-page", true, until),
                Capture::Html => self.html(until),
                Capture::Accessibility => self.accessibility(until),
                Capture::Console => {
                    self.keep(Asset::lines("console", &self.wire.observed.console.kept))
                }
                Capture::Errors => {
                    self.keep(Asset::lines("errors", &self.wire.observed.errors.kept))
                }
                Capture::Network => {
                    self.keep(Asset::lines("network", &self.wire.observed.requests.kept))
                }
            };
            if let Err(failure) = kept {
                self.report
                    .notes
                    .push(format!("{capture:?} could not be captured: {failure}"));
            }
        }
    }

    fn keep(&mut self, asset: Asset) -> Result<(), Failure> {
        self.report.assets.push(asset);
        Ok(())
    }

    /// Captures what the task requests from a browser that no longer responds: only console lines,
    /// errors and requests, which this process has recorded.
    pub fn capture_observed(&mut self, task: &Task) {
        let mut observed = task.clone();
        observed
            .capture
            .retain(|c| matches!(c, Capture::Console | Capture::Errors | Capture::Network));
        self.capture(&observed);
    }

    /// Takes a screenshot of the visible part or of the full page.
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
            let what = "the browser's screenshot is not a valid PNG";
            return Err(Failure::step(what));
        };
        self.report
            .screenshots
            .push(json!({"name": name, "width": width, "height": height}));
        self.keep(Asset {
            kind: AssetKind::Screenshot,
            name: name.to_owned(),
            content: ArtifactContent::Bytes(bytes),
        })
    }

    fn html(&mut self, until: Instant) -> Result<(), Failure> {
        let expression = format!(
            "(document.doctype ? '<!DOCTYPE ' + document.doctype.name + '>\\n' : '') + document.documentElement.outerHTML.slice(0, {HTML})"
        );
        let answer = self.evaluate_isolated(&expression, 5000, until)?;
        let mut html = text(&answer, "/result/value").to_owned();
        let cut_at = (0..=HTML.min(html.len()))
            .rev()
            .find(|at| html.is_char_boundary(*at));
        html.truncate(cut_at.unwrap_or(0));
        self.keep(Asset {
            kind: AssetKind::Html,
            name: "page".to_owned(),
            content: ArtifactContent::Text(html),
        })
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
        self.keep(Asset::document(
            AssetKind::Accessibility,
            "accessibility",
            json!({"nodes": rows, "total": total}),
        ))
    }
}
