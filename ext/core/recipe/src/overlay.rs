//! Runtime overlay bundles: files for the guest, and PHP that runs before WordPress is configured.

use crate::model::{Access, Recipe};
use crate::places::normal;
use serde_json::Value;

/// Where the content of an overlay's file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// A file of the host.
    Source(String),
    /// Text in the recipe.
    Text(String),
}

/// A file that an overlay adds to the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OverlayFile {
    /// JSON path of the file's entry in the recipe.
    pub path: String,
    pub target: String,
    pub content: Content,
    pub mode: Access,
    pub sha256: Option<String>,
}

/// PHP that runs before `wp-config.php` defines its constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prelude {
    /// JSON path of the prelude's entry in the recipe.
    pub path: String,
    pub target: String,
    pub content: Content,
}

/// Returns the JSON path and the value of every row of the list `name` in the overlays' bundles.
fn rows<'a>(recipe: &'a Recipe, name: &str) -> Vec<(String, &'a Value)> {
    let mut all = Vec::new();
    for (at, overlay) in recipe.runtime.overlays.iter().enumerate() {
        let list = overlay.get("bundle").and_then(|b| b.get(name));
        for (index, row) in list
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let path = format!("$.runtime.overlays[{at}].bundle.{name}[{index}]");
            all.push((path, row));
        }
    }
    all
}

fn content(row: &Value) -> Content {
    let text = |name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
    match text("contents") {
        Some(contents) => Content::Text(contents),
        None => Content::Source(text("source").unwrap_or_default()),
    }
}

/// Returns the files of all overlay bundles, in the order of the recipe.
pub(crate) fn files(recipe: &Recipe) -> Vec<OverlayFile> {
    let text = |row: &Value, name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
    let file = |(path, row): (String, &Value)| OverlayFile {
        path,
        target: normal(&text(row, "path").unwrap_or_default()),
        content: content(row),
        mode: match text(row, "mode").as_deref() {
            Some("readwrite") => Access::Readwrite,
            _ => Access::Readonly,
        },
        sha256: text(row, "sha256"),
    };
    rows(recipe, "files").into_iter().map(file).collect()
}

/// Returns the preludes of all overlay bundles in the order in which they run.
pub(crate) fn preludes(recipe: &Recipe) -> Vec<Prelude> {
    let mut all = rows(recipe, "configPreludes");
    all.sort_by_key(|(_, row)| row.get("order").and_then(Value::as_i64).unwrap_or(0));
    let prelude = |(path, row): (String, &Value)| Prelude {
        path,
        target: row
            .get("target")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        content: content(row),
    };
    all.into_iter().map(prelude).collect()
}

/// Returns the JSON path of every row of the list `name` in the overlays' bundles. Validation
/// refuses each of these rows.
pub(crate) fn paths(recipe: &Recipe, name: &str) -> Vec<String> {
    rows(recipe, name)
        .into_iter()
        .map(|(path, _)| path)
        .collect()
}

/// Returns the guest path from which the first step copies the overlay file with this index.
pub(crate) fn staged(index: usize) -> String {
    format!("/run/codebox/staged/recipe/overlays/{index}")
}

/// Returns the guest path of the prelude with this index.
pub(crate) fn staged_prelude(index: usize) -> String {
    format!("/run/codebox/staged/recipe/preludes/{index}.php")
}
