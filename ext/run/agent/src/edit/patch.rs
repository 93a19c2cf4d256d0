//! Parsed patch, independent of its format.

/// Changes of all files of a patch, in the order in which the patch lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patch {
    pub files: Vec<FilePatch>,
}

impl Patch {
    /// Returns every file name in the patch once.
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

/// Change of one file. Without an old name the file is created; without a new name it is deleted;
/// with two different names it is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePatch {
    pub old: Option<String>,
    pub new: Option<String>,
    /// New permission bits of the file, if the patch sets them.
    pub mode: Option<u32>,
    pub body: Body,
}

/// How the content of one file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// Changes of parts of the file, each found by the lines around it.
    Hunks(Vec<Hunk>),
    /// The file is deleted, whatever its content.
    Gone,
}

/// One hunk: a contiguous change of a file, with unchanged lines around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// Line number in the old file at which the hunk begins, from 1, if the patch states it.
    pub at: Option<usize>,
    /// Heading lines that precede the hunk in the file and narrow the search.
    pub below: Vec<String>,
    pub lines: Vec<Line>,
    /// Whether the hunk's last old line is the file's last line and has no line end.
    pub old_open: bool,
    /// Whether the hunk's last new line becomes the file's last line, without a line end.
    pub new_open: bool,
    /// Whether the patch marks the hunk as the end of the file (`*** End of File`).
    pub at_end: bool,
    /// Line number of the hunk in the patch, from 1.
    pub patch_line: usize,
}

impl Hunk {
    /// Returns the lines of the hunk that the old file must contain.
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

/// Reason why a patch cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    #[error(
        "the text contains no patch; send a unified diff (---, +++, @@) or a patch in the `*** Begin Patch` form"
    )]
    NoPatch,
    #[error("a patch may have at most 4 MiB and 500 files; split it into several patches")]
    TooLarge,
    #[error("line {line} of the patch is invalid: {why}")]
    Line { line: usize, why: String },
}

pub(super) fn fault<T>(index: usize, why: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError::Line {
        line: index + 1,
        why: why.into(),
    })
}

/// Normalises a file name: removes every leading `./`.
pub(super) fn tidy(name: &str) -> String {
    let mut name = name;
    while let Some(rest) = name.strip_prefix("./") {
        name = rest.trim_start_matches('/');
    }
    name.to_owned()
}
