//! What a browser command can capture of a page, by the names of the argument `capture`.

/// What a command captures of a page for the bundle (the run's result directory).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    Screenshot,
    FullPage,
    Html,
    Console,
    Errors,
    Network,
    WebSockets,
    Performance,
    Memory,
    DomSnapshot,
    Accessibility,
    /// Rows of the executed steps.
    Steps,
    /// Post and blocks of the block editor.
    EditorState,
    /// Result of validating the blocks of the block editor.
    EditorValidity,
}

const CAPTURES: &[(&str, Capture)] = &[
    ("screenshot", Capture::Screenshot),
    ("full-page-screenshot", Capture::FullPage),
    ("html", Capture::Html),
    ("console", Capture::Console),
    ("errors", Capture::Errors),
    ("network", Capture::Network),
    ("websocket", Capture::WebSockets),
    ("performance", Capture::Performance),
    ("memory", Capture::Memory),
    ("dom-snapshot", Capture::DomSnapshot),
    ("accessibility", Capture::Accessibility),
    ("steps", Capture::Steps),
    ("editor-state", Capture::EditorState),
    ("editor-validity", Capture::EditorValidity),
];

/// Whether the page is the block editor, which has captures of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    Any,
    Editor,
}

impl Capture {
    /// Returns the name that the argument `capture` has for this capture.
    pub(super) fn name(self) -> &'static str {
        let row = CAPTURES.iter().find(|row| row.1 == self);
        row.map_or("a capture", |row| row.0)
    }

    const fn needs_editor(self) -> bool {
        matches!(self, Self::EditorState | Self::EditorValidity)
    }

    /// Returns whether the capture consists of what this process has recorded, so that a browser
    /// that no longer responds cannot prevent it.
    pub(super) const fn is_recorded(self) -> bool {
        matches!(
            self,
            Self::Console | Self::Errors | Self::Network | Self::WebSockets | Self::Steps
        )
    }

    /// Reads a list of names; `none` and empty names mean no capture. The error text is one
    /// sentence.
    pub(super) fn list<'n>(
        names: impl Iterator<Item = &'n str>,
        page: PageKind,
    ) -> Result<Vec<Self>, String> {
        let mut found = Vec::new();
        for name in names.map(str::trim) {
            match CAPTURES.iter().find(|row| row.0 == name) {
                Some((_, capture)) if capture.needs_editor() && page == PageKind::Any => {
                    return Err(format!(
                        "capture has {name}, which only the wordpress.editor-… commands have"
                    ));
                }
                Some((_, capture)) if !found.contains(capture) => found.push(*capture),
                Some(_) => {}
                None if matches!(name, "" | "none") => {}
                None => {
                    let known: Vec<&str> = CAPTURES.iter().map(|row| row.0).collect();
                    return Err(format!(
                        "capture has {name:?}, but takes {} or none",
                        known.join(", ")
                    ));
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editor_captures_are_accepted_only_for_the_editor() {
        let read = |text: &str, page| Capture::list(text.split(','), page);
        let both = read("steps, editor-state,steps", PageKind::Editor);
        assert_eq!(both, Ok(vec![Capture::Steps, Capture::EditorState]));
        let refused = read("editor-state", PageKind::Any).unwrap_err();
        assert!(refused.contains("wordpress.editor-"), "{refused}");
        assert_eq!(Capture::FullPage.name(), "full-page-screenshot");
        assert_eq!(read("none", PageKind::Any), Ok(Vec::new()));
        assert!(read("video", PageKind::Editor).is_err());
    }
}
