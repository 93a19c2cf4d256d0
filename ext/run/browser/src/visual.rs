//! Compares the appearance of two pages, or of a page and a stored picture.

use super::asserts::Element;
use super::assets::{Asset, AssetKind};
use super::events::{address, cut};
use super::page::Page;
use super::pixels::{Difference, Picture, Region, compare};
use super::step_spec::Shows;
use super::task::{
    AnimatedMedia, CompareInput, CompareSide, CompareTask, Extent, StoredFiles, Task,
    snapshot_elements,
};
use super::wire::Failure;
use serde_json::{Value, json};
use wp_codebox_artifacts::ArtifactContent;

/// Adds a style sheet to the document. A constructed style sheet is not subject to the page's
/// content security policy.
const STYLE: &str = "((css) => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css); document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]; })";
/// Stops videos at their first frame and replaces animated images by a picture of their first one.
const FIRST_FRAMES: &str = "(() => { for (const video of document.querySelectorAll('video')) { video.pause(); video.currentTime = 0; } for (const image of document.querySelectorAll('img')) { if (!/\\.(gif|webp|apng|png)([?#]|$)/i.test(image.currentSrc) || !image.complete || !image.naturalWidth) continue; const canvas = document.createElement('canvas'); [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight]; canvas.getContext('2d').drawImage(image, 0, 0); try { const still = canvas.toDataURL(); image.removeAttribute('srcset'); image.src = still; } catch (e) {} } })()";
/// Maximum number of matching elements per selector of [`CompareTask::explain`] in the result.
const EXPLAINED: usize = 20;

/// Picture, elements and result row of one side of the comparison.
struct Side {
    bytes: Vec<u8>,
    picture: Picture,
    /// Elements with their positions; empty without a page or stored snapshot.
    elements: Vec<Value>,
    /// For each selector of [`CompareTask::explain`], a row with the positions of its elements.
    explained: Vec<Value>,
    row: Value,
}

impl Page<'_> {
    /// Compares both sides and adds pictures and numbers to the report. `files` contains the stored
    /// files that the task names.
    pub fn compare(
        &mut self,
        compared: &CompareTask,
        task: &Task,
        files: &StoredFiles,
    ) -> Result<(), Failure> {
        let source = self.side("source", &compared.source, (compared, task), files)?;
        let candidate = self.side("candidate", &compared.candidate, (compared, task), files)?;
        let found =
            compare(&source.picture, &candidate.picture, compared.rule).map_err(|error| {
                Failure::step(format!("the screenshots cannot be compared: {error}"))
            })?;
        let difference = found.picture.encode().map_err(|error| {
            Failure::step(format!(
                "the picture of the differences could not be written: {error}"
            ))
        })?;
        let explained = explained(compared, &source, &candidate);
        let regions = regions(compared, &found, &source, &candidate);
        let more = &mut self.report.more;
        more.insert(
            "summary".to_owned(),
            summary(compared, &found, &source.picture, &candidate.picture),
        );
        more.insert("source".to_owned(), source.row);
        more.insert("candidate".to_owned(), candidate.row);
        more.insert("regions".to_owned(), regions);
        more.insert("explanation".to_owned(), json!({"selectors": explained}));
        for (name, kind, bytes) in [
            ("source", AssetKind::Screenshot, source.bytes),
            ("candidate", AssetKind::Screenshot, candidate.bytes),
            ("diff", AssetKind::Difference, difference),
        ] {
            self.report.assets.push(Asset {
                kind,
                name: name.to_owned(),
                content: ArtifactContent::Bytes(bytes),
            });
        }
        Ok(())
    }

    fn side(
        &mut self,
        name: &str,
        side: &CompareSide,
        (compared, task): (&CompareTask, &Task),
        files: &StoredFiles,
    ) -> Result<Side, Failure> {
        let stored = |path: &str| {
            files
                .get(path)
                .ok_or_else(|| Failure::step(format!("the {name} {} was not read", cut(path, 200))))
        };
        let mut row = json!({"label": side.label});
        let (bytes, elements, mut explained) = match &side.from {
            CompareInput::Stored(path) => {
                row["path"] = json!(path);
                let elements = match &side.snapshot {
                    Some(path) => snapshot_elements(stored(path)?)
                        .map_err(|why| Failure::step(format!("{name}: {why}")))?,
                    None => Vec::new(),
                };
                (stored(path)?.clone(), elements, Vec::new())
            }
            CompareInput::Page(url) => {
                row["url"] = json!(address(url));
                let bytes = self.picture_of(url, compared, task)?;
                let until = self.until();
                let snapshot = self.dom_snapshot(compared.max_elements, until)?;
                let elements = snapshot.get("elements").and_then(Value::as_array);
                let elements = elements.cloned().unwrap_or_default();
                row["status"] = json!(self.wire.observed.tab.status);
                let name = format!("{name}-dom-snapshot");
                self.report
                    .assets
                    .push(Asset::document(AssetKind::DomSnapshot, &name, snapshot));
                (bytes, elements, self.boxes(compared)?)
            }
        };
        let picture = Picture::decode(&bytes).map_err(|error| {
            Failure::step(format!(
                "the screenshot of the {name} cannot be compared: {error}"
            ))
        })?;
        row["width"] = json!(picture.width);
        row["height"] = json!(picture.height);
        explained.resize(compared.explain.len(), Value::Null);
        Ok(Side {
            bytes,
            picture,
            elements,
            explained,
            row,
        })
    }

    /// Loads a page and takes its picture.
    fn picture_of(
        &mut self,
        url: &str,
        compared: &CompareTask,
        task: &Task,
    ) -> Result<Vec<u8>, Failure> {
        let until = self.until();
        self.navigate(url, &task.wait_for, until)?;
        self.settle(task)?;
        if compared.media == AnimatedMedia::FirstFrame {
            self.evaluate_isolated(FIRST_FRAMES, 4000, until)?;
        }
        if !compared.style.is_empty() {
            let expression = format!("{STYLE}({})", json!(compared.style));
            self.evaluate_isolated(&expression, 4000, until)?;
        }
        self.paint();
        let shows = match compared.extent {
            Extent::Viewport => Shows::Viewport,
            Extent::FullPage => Shows::FullPage,
        };
        Ok(self.picture(&shows, until)?.0)
    }

    /// Returns a row with the positions of the matching elements for each selector to explain.
    fn boxes(&mut self, compared: &CompareTask) -> Result<Vec<Value>, Failure> {
        let mut rows = Vec::new();
        for selector in &compared.explain {
            let mut asked = Element::of_page(selector).query();
            asked["boxes"] = json!(EXPLAINED);
            let until = self.until();
            let found = self.query_document(&asked, until)?;
            let error = found.get("error").and_then(Value::as_str);
            if let Some(error) = error {
                return Err(Failure::step(format!("{selector}: {}", cut(error, 300))));
            }
            rows.push(
                json!({"count": found.get("count"), "visible": found.get("visible"),
                "boxes": found.get("boxes")}),
            );
        }
        Ok(rows)
    }
}

fn summary(
    compared: &CompareTask,
    found: &Difference,
    source: &Picture,
    candidate: &Picture,
) -> Value {
    let size = |width: u32, height: u32| json!({"width": width, "height": height});
    let same_size = (source.width, source.height) == (candidate.width, candidate.height);
    json!({
        "matches": found.pixels == 0 && same_size,
        "dimensions": size(found.picture.width, found.picture.height),
        "sourceDimensions": size(source.width, source.height),
        "candidateDimensions": size(candidate.width, candidate.height),
        "dimensionMismatch": !same_size,
        "mismatchPixels": found.pixels,
        "antialiasedPixels": found.antialiased,
        "totalPixels": found.total,
        "mismatchRatio": found.ratio(),
        "mismatchPercent": found.ratio() * 100.0,
        "threshold": compared.rule.threshold,
        "includeAA": compared.rule.antialiased == super::task::Antialiased::Counts,
        "regions": found.regions.len(),
    })
}

fn regions(compared: &CompareTask, found: &Difference, source: &Side, candidate: &Side) -> Value {
    let row = |region: &Region| {
        json!({
            "x": region.x, "y": region.y, "width": region.width, "height": region.height,
            "mismatchPixels": region.pixels,
            "sourceElements": touching(&source.elements, region, compared.max_candidates),
            "candidateElements": touching(&candidate.elements, region, compared.max_candidates),
        })
    };
    let listed = found.regions.iter().take(compared.max_regions);
    json!(listed.map(row).collect::<Vec<_>>())
}

/// Returns the elements that a region touches, the smallest first, because the smallest locates the
/// difference best.
fn touching(elements: &[Value], region: &Region, most: usize) -> Vec<Value> {
    let side = |element: &Value, name: &str| element.get(name).and_then(Value::as_f64);
    let mut found: Vec<(f64, &Value)> = elements
        .iter()
        .filter_map(|element| {
            let (x, y) = (side(element, "x")?, side(element, "y")?);
            let (width, height) = (side(element, "width")?, side(element, "height")?);
            let across = x < f64::from(region.x + region.width) && x + width > f64::from(region.x);
            let down = y < f64::from(region.y + region.height) && y + height > f64::from(region.y);
            (across && down).then_some((width * height, element))
        })
        .collect();
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    found
        .into_iter()
        .take(most)
        .map(|row| row.1.clone())
        .collect()
}

fn explained(compared: &CompareTask, source: &Side, candidate: &Side) -> Vec<Value> {
    let sides = source.explained.iter().zip(&candidate.explained);
    compared
        .explain
        .iter()
        .zip(sides)
        .map(|(selector, (one, other))| {
            let same = !one.is_null() && one == other;
            json!({"selector": selector, "source": one, "candidate": other, "same": same})
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_elements_that_a_region_touches_are_listed_first() {
        let element = |name: &str, x: u32, y: u32, side: u32| json!({"selector": name, "x": x, "y": y, "width": side, "height": side});
        let elements = [
            element("body", 0, 0, 1000),
            element("near", 40, 40, 20),
            element("far", 500, 500, 10),
            element("edge", 60, 40, 20),
            json!({"selector": "damaged"}),
        ];
        let region = Region {
            x: 50,
            y: 50,
            width: 10,
            height: 5,
            pixels: 9,
        };
        let names = |most| -> Vec<String> {
            let rows = touching(&elements, &region, most);
            rows.iter().map(|row| row["selector"].to_string()).collect()
        };
        assert_eq!(names(5), ["\"near\"", "\"body\""]);
        assert_eq!(names(1), ["\"near\""]);
    }
}
