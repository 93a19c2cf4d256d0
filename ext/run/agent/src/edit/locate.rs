//! Finds the position of a hunk in a text.

use super::lines::TextLine;

/// How closely a file's lines match a hunk's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    Exact,
    /// Equal except for CR before LF.
    LineEnds,
    /// Equal except for trailing blanks.
    Trailing,
    /// Equal except for leading and trailing blanks.
    Indented,
}

impl Match {
    const ALL: [Self; 4] = [Self::Exact, Self::LineEnds, Self::Trailing, Self::Indented];

    fn same(self, have: &str, want: &str) -> bool {
        let ends = |line: &str| line.trim_end_matches('\r').len();
        match self {
            Self::Exact => have == want,
            Self::LineEnds => have[..ends(have)] == want[..ends(want)],
            Self::Trailing => have.trim_end() == want.trim_end(),
            Self::Indented => have.trim() == want.trim(),
        }
    }
}

/// Position in a file at which a hunk matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkPosition {
    /// Index of the first matching line, from 0.
    pub at: usize,
    pub by: Match,
}

/// Lines that a hunk expects in a file, and the conditions for their position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub lines: &'a [&'a str],
    /// Smallest line index at which the match may start.
    pub from: usize,
    /// Line index that the patch states, if it states one.
    pub expected: Option<usize>,
    /// Whether the match must end at the end of the file.
    pub at_end: bool,
}

/// Reason why the lines have no usable position in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LocateError {
    Missing,
    /// The lines match at several positions. At least two, in the order of the file, with the
    /// same kind of match.
    Ambiguous(Vec<HunkPosition>),
}

/// Returns the position of the wanted lines in the file. The closest kind of match wins. Among
/// matches of this kind, the one at the expected index wins; otherwise there must be only one.
pub(super) fn locate(
    text: &[TextLine<'_>],
    wanted: Wanted<'_>,
) -> Result<HunkPosition, LocateError> {
    for by in Match::ALL {
        let found = places(text, wanted, by);
        if found.is_empty() {
            continue;
        }
        if let Some(at) = wanted.expected.filter(|at| found.contains(at)) {
            return Ok(HunkPosition { at, by });
        }
        let mut found: Vec<_> = found
            .iter()
            .map(|at| HunkPosition { at: *at, by })
            .collect();
        return match found.len() {
            1 => Ok(found.remove(0)),
            _ => Err(LocateError::Ambiguous(found)),
        };
    }
    Err(LocateError::Missing)
}

fn places(text: &[TextLine<'_>], wanted: Wanted<'_>, by: Match) -> Vec<usize> {
    let count = wanted.lines.len();
    let Some(last) = text.len().checked_sub(count) else {
        return Vec::new();
    };
    let first = if wanted.at_end { last } else { wanted.from };
    (first.max(wanted.from)..=last)
        .filter(|at| {
            let have = text[*at..*at + count].iter();
            have.zip(wanted.lines)
                .all(|(have, want)| by.same(have.text, want))
        })
        .collect()
}
