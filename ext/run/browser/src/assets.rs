//! Files that a browser command adds to the bundle (the run's result directory), e.g. screenshots.

use serde_json::Value;
use wp_codebox_artifacts::{ArtifactContent, ArtifactFile};

/// One file that a browser command adds to the bundle.
#[derive(Debug, Clone)]
pub struct Asset {
    pub kind: AssetKind,
    /// File name, without directory and extension.
    pub name: String,
    pub content: ArtifactContent,
}

/// What a file of a browser command contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssetKind {
    Screenshot,
    Html,
    Lines,
    Accessibility,
    Performance,
    Memory,
    DomSnapshot,
    EditorState,
    EditorValidity,
    /// Picture that shows the differences of two pictures.
    Difference,
}

impl Asset {
    /// Returns a file with `rows` as JSON, one per line.
    pub(super) fn lines<T: serde::Serialize>(name: &str, rows: &[T]) -> Self {
        let mut text = String::new();
        for row in rows {
            text.push_str(&serde_json::to_string(row).unwrap_or_default());
            text.push('\n');
        }
        Self {
            kind: AssetKind::Lines,
            name: name.to_owned(),
            content: ArtifactContent::Text(text),
        }
    }

    pub(super) fn document(kind: AssetKind, name: &str, value: Value) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            content: ArtifactContent::Document(value),
        }
    }

    /// Converts to a file of the bundle, below the given directory of the bundle.
    pub fn file(self, directory: &str) -> ArtifactFile {
        let (kind, media, extension) = match self.kind {
            AssetKind::Screenshot => ("browser-screenshot", "image/png", "png"),
            // Stored as plain text, so that a person who opens the file does not run the page's
            // scripts.
            AssetKind::Html => ("browser-html", "text/plain; charset=utf-8", "html.txt"),
            AssetKind::Lines => ("browser-log", "application/x-ndjson", "jsonl"),
            AssetKind::Accessibility => ("browser-accessibility", "application/json", "json"),
            AssetKind::Performance => ("browser-performance", "application/json", "json"),
            AssetKind::Memory => ("browser-memory", "application/json", "json"),
            AssetKind::DomSnapshot => ("browser-dom-snapshot", "application/json", "json"),
            AssetKind::EditorState => ("editor-state", "application/json", "json"),
            AssetKind::EditorValidity => ("editor-validity", "application/json", "json"),
            AssetKind::Difference => ("visual-difference", "image/png", "png"),
        };
        ArtifactFile {
            path: format!("{directory}/{}.{extension}", self.name),
            kind,
            media,
            content: self.content,
        }
    }
}
