//! Where in a text a hunk belongs.

use super::lines::TextLine;

/// How closely the lines match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    Exact,
    /// But for CRLF.
    LineEnds,
    /// But for blanks at the ends of lines.
    Trailing,
    /// But for blanks at both ends of lines.
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

/// Where a hunk belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of its first line.
    pub at: usize,
    pub by: Match,
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub lines: &'a [&'a str],
    /// First index that may be taken.
    pub from: usize,
    /// Index where it should be, when the patch says.
    pub expected: Option<usize>,
    /// It ends where the text ends.
    pub at_end: bool,
}

/// Why there is no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoPlace {
    Missing,
    /// First lines of each, from 1.
    Ambiguous(Vec<usize>),
}

/// The place of the lines: the closest match there is, at the expected index, else the only one.
pub(super) fn locate(text: &[TextLine<'_>], wanted: Wanted<'_>) -> Result<Place, NoPlace> {
    for by in Match::ALL {
        let found = places(text, wanted, by);
        if found.is_empty() {
            continue;
        }
        if let Some(at) = wanted.expected.filter(|at| found.contains(at)) {
            return Ok(Place { at, by });
        }
        return match found.as_slice() {
            [at] => Ok(Place { at: *at, by }),
            _ => Err(NoPlace::Ambiguous(found.iter().map(|at| at + 1).collect())),
        };
    }
    Err(NoPlace::Missing)
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
