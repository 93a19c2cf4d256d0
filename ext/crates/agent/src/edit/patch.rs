//! A patch, whichever way it is written.

/// Changes of files, in the order of the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patch {
    pub files: Vec<FilePatch>,
}

impl Patch {
    /// Every file that it names, once.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        for file in &self.files {
            for path in [&file.old, &file.new].into_iter().flatten() {
                if !paths.contains(path) {
                    paths.push(path.clone());
                }
            }
        }
        paths
    }
}

/// The change of one file. No old name: it is made; no new name: it is removed; two: it moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePatch {
    pub old: Option<String>,
    pub new: Option<String>,
    /// Permission bits it gets, when the patch says so.
    pub mode: Option<u32>,
    pub body: Body,
}

/// What happens to the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// Pieces that are found by their lines.
    Hunks(Vec<Hunk>),
    /// The file goes, whatever it holds.
    Gone,
}

/// One piece of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// First old line as the patch says, from 1.
    pub at: Option<usize>,
    /// A line above the piece, by which it is found.
    pub below: Vec<String>,
    pub lines: Vec<Line>,
    /// The last old line has no line end.
    pub old_open: bool,
    /// The last new line has no line end.
    pub new_open: bool,
    /// It is at the end of the file.
    pub at_end: bool,
    /// Line of the patch where it begins, from 1.
    pub patch_line: usize,
}

impl Hunk {
    /// The lines that must be there.
    pub(super) fn old(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter_map(|line| match line {
                Line::Keep(text) | Line::Remove(text) => Some(text.as_str()),
                Line::Add(_) => None,
            })
            .collect()
    }
}

/// A line of a hunk, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Keep(String),
    Remove(String),
    Add(String),
}

/// Why a patch cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    #[error(
        "the patch is empty, or is neither a unified diff (---, +++, @@) nor in the `*** Begin Patch` form"
    )]
    NoPatch,
    #[error("the patch is larger than 4 MiB, or has more than 500 files")]
    TooLarge,
    #[error("line {line} of the patch: {why}")]
    Line { line: usize, why: String },
}

pub(super) fn fault<T>(index: usize, why: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError::Line {
        line: index + 1,
        why: why.into(),
    })
}

/// A name as it is looked for: without `./`.
pub(super) fn tidy(name: &str) -> String {
    let mut name = name;
    while let Some(rest) = name.strip_prefix("./") {
        name = rest.trim_start_matches('/');
    }
    name.to_owned()
}
