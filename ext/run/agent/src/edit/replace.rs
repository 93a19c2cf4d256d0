//! Replaces a text that must match exactly.

/// Maximum number of similar lines that the error shows when the text is not found.
const NEAR: usize = 3;
/// Maximum number of characters of one file line in the error message.
const SHOWN: usize = 160;
const BOM: &str = "\u{feff}";

/// How many occurrences of the old text to replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Exactly one occurrence.
    Once,
    /// All occurrences.
    All,
}

/// File content after a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub bytes: Vec<u8>,
    /// Line number in the original text at which each replaced occurrence begins, from 1.
    pub lines: Vec<usize>,
}

/// Reason why nothing was replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReplaceError {
    #[error(
        "the file is not UTF-8 text: write it whole with workspace.write and encoding base64, or change it with terminal.run"
    )]
    NotText,
    #[error(
        "old_text is empty: give the text to be replaced, or write the file with workspace.write"
    )]
    Empty,
    #[error(
        "old_text and new_text are the same, so nothing would change; give the changed text as new_text"
    )]
    Same,
    #[error("old_text is in the file {count} times, at lines {}: make old_text longer, so that it is in the file only once, or set replace_all to true", numbers(.lines))]
    Ambiguous { count: usize, lines: Vec<usize> },
    #[error(
        "old_text is not in the file{near}; it must match exactly, whitespace included: read the file again"
    )]
    Missing { near: SimilarText },
}

/// Text in the file that resembles the searched text, for the error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SimilarText {
    Nothing,
    /// The whole searched text occurs, but with different whitespace.
    Blanks {
        line: usize,
        text: String,
    },
    /// Only the first line of the searched text occurs.
    FirstLine {
        lines: Vec<(usize, String)>,
    },
}

impl std::fmt::Display for SimilarText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Blanks { line, text } => {
                write!(
                    f,
                    "; the file has it with different whitespace from line {line} on:\n{text}\n"
                )
            }
            Self::FirstLine { lines } => {
                f.write_str("; lines similar to its first line:\n")?;
                for (number, line) in lines {
                    writeln!(f, "{number}|{line}")?;
                }
                Ok(())
            }
        }
    }
}

fn numbers(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
    let more = if lines.len() > 10 { ", …" } else { "" };
    shown.join(", ") + more
}

/// Replaces `old` by `new` in a UTF-8 text. The line ends of `old` need not match those of the
/// text. If most lines of the text end with CRLF, the lines of `new` get CRLF too.
pub(crate) fn replace(
    bytes: &[u8],
    old: &str,
    new: &str,
    scope: Scope,
) -> Result<Replaced, ReplaceError> {
    let whole = std::str::from_utf8(bytes).map_err(|_| ReplaceError::NotText)?;
    let (mark, text) = match whole.strip_prefix(BOM) {
        Some(text) => (BOM, text),
        None => ("", whole),
    };
    let old = old.strip_prefix(BOM).unwrap_or(old);
    if old.is_empty() {
        return Err(ReplaceError::Empty);
    }
    if old == new {
        return Err(ReplaceError::Same);
    }
    let crlf = text.matches("\r\n").count();
    let flat = NormalizedText::of(text);
    let wanted = old.replace("\r\n", "\n");
    let starts: Vec<usize> = flat.text.match_indices(&wanted).map(|(at, _)| at).collect();
    let lines: Vec<usize> = starts.iter().map(|at| line_of(&flat.text, *at)).collect();
    match (starts.len(), scope) {
        (0, _) => {
            return Err(ReplaceError::Missing {
                near: near(&flat.text, &wanted),
            });
        }
        (1, _) | (_, Scope::All) => {}
        (_, Scope::Once) => {
            let count = starts.len();
            return Err(ReplaceError::Ambiguous { count, lines });
        }
    }
    // `starts` has no match that overlaps an earlier one. Such a match makes the replacement
    // ambiguous as well, because either could be meant.
    if scope == Scope::Once && overlaps(&flat.text, &wanted) {
        let count = 2;
        return Err(ReplaceError::Ambiguous { count, lines });
    }
    let newlines = text.matches('\n').count();
    // In a file with mixed line ends, the more frequent line end decides.
    let new = match crlf * 2 > newlines {
        true => new.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => new.to_owned(),
    };
    let mut out = String::with_capacity(whole.len() + new.len());
    out.push_str(mark);
    let mut from = 0;
    for start in starts {
        let (begin, end) = (flat.place(start), flat.place(start + wanted.len()));
        out.push_str(&text[from..begin]);
        out.push_str(&new);
        from = end;
    }
    out.push_str(&text[from..]);
    if out.as_bytes() == bytes {
        return Err(ReplaceError::Same);
    }
    Ok(Replaced {
        bytes: out.into_bytes(),
        lines,
    })
}

/// Returns whether `wanted` occurs a second time, even if it overlaps the first occurrence.
fn overlaps(text: &str, wanted: &str) -> bool {
    let Some(first) = text.find(wanted) else {
        return false;
    };
    let step = text[first..].chars().next().map_or(1, char::len_utf8);
    text[first + step..].contains(wanted)
}

/// A text with all line ends as `\n`, and the mapping to its original byte offsets.
struct NormalizedText {
    text: String,
    /// Offset in `text` of each line end that was CRLF in the original.
    folded: Vec<usize>,
}

impl NormalizedText {
    fn of(text: &str) -> Self {
        let mut flat = String::with_capacity(text.len());
        let mut folded = Vec::new();
        for (index, piece) in text.split("\r\n").enumerate() {
            if index > 0 {
                folded.push(flat.len());
                flat.push('\n');
            }
            flat.push_str(piece);
        }
        Self { text: flat, folded }
    }

    /// Maps an offset in `text` to the original: every converted line end before it adds one byte.
    fn place(&self, at: usize) -> usize {
        at + self.folded.partition_point(|folded| *folded < at)
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

fn near(text: &str, wanted: &str) -> SimilarText {
    let lines: Vec<&str> = text.lines().collect();
    let want: Vec<&str> = wanted.lines().map(str::trim).collect();
    let want = trim_blank(&want);
    let Some(first) = want.first() else {
        return SimilarText::Nothing;
    };
    let same = |line: &str, want: &str| line.split_whitespace().eq(want.split_whitespace());
    for start in 0..lines.len() {
        let Some(window) = lines.get(start..start + want.len()) else {
            break;
        };
        if window.iter().zip(want).all(|(line, want)| same(line, want)) {
            let text = window.iter().map(|l| cut(l)).collect::<Vec<_>>().join("\n");
            let line = start + 1;
            return SimilarText::Blanks { line, text };
        }
    }
    if first.len() < 4 {
        return SimilarText::Nothing;
    }
    let found: Vec<(usize, String)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains(first) || same(line, first))
        .take(NEAR)
        .map(|(index, line)| (index + 1, cut(line)))
        .collect();
    if found.is_empty() {
        SimilarText::Nothing
    } else {
        SimilarText::FirstLine { lines: found }
    }
}

fn trim_blank<'a, 'b>(lines: &'b [&'a str]) -> &'b [&'a str] {
    let start = lines.iter().position(|l| !l.is_empty());
    let end = lines.iter().rposition(|l| !l.is_empty());
    match (start, end) {
        (Some(start), Some(end)) => &lines[start..=end],
        _ => &[],
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once(text: &str, old: &str, new: &str) -> Result<String, ReplaceError> {
        replace(text.as_bytes(), old, new, Scope::Once).map(|r| String::from_utf8(r.bytes).unwrap())
    }

    #[test]
    fn scope_once_replaces_a_single_match_and_scope_all_replaces_every_match() {
        assert_eq!(once("a\nb\nc\n", "b\n", "x\ny\n").unwrap(), "a\nx\ny\nc\n");
        assert_eq!(once("a\nb\nc", "\nc", "").unwrap(), "a\nb");
        assert_eq!(once("ä=ö", "ö", "é").unwrap(), "ä=é");
        let all = replace(b"a a a", "a", "bb", Scope::All).unwrap();
        assert_eq!(
            (all.bytes.as_slice(), all.lines),
            (&b"bb bb bb"[..], vec![1, 1, 1])
        );
    }

    #[test]
    fn ambiguous_replacement_is_refused_with_line_numbers() {
        assert_eq!(
            once("a\nb\na\n", "a", "x"),
            Err(ReplaceError::Ambiguous {
                count: 2,
                lines: vec![1, 3]
            })
        );
        assert!(matches!(
            once("aaa", "aa", "x"),
            Err(ReplaceError::Ambiguous { .. })
        ));
        assert!(matches!(
            once("ababa", "aba", "x"),
            Err(ReplaceError::Ambiguous { .. })
        ));
    }

    #[test]
    fn replacement_preserves_line_ends_and_byte_order_mark() {
        assert_eq!(
            once("\u{feff}a\r\nb\r\nc", "a\nb", "x\ny\nz").unwrap(),
            "\u{feff}x\r\ny\r\nz\r\nc"
        );
        assert_eq!(
            once("a\r\nb\r\n", "b", "x\r\ny").unwrap(),
            "a\r\nx\r\ny\r\n"
        );
        // Mixed line ends: lines outside the replacement stay unchanged.
        assert_eq!(
            once("a\r\nb\nc\nd\n", "b\nc", "x\ny").unwrap(),
            "a\r\nx\ny\nd\n"
        );
        assert_eq!(
            once("a\r\nb\nc\r\nd", "b\nc\nd", "x\ny").unwrap(),
            "a\r\nx\r\ny"
        );
        assert_eq!(once("a\nb", "b", "x\r\ny").unwrap(), "a\nx\r\ny");
    }

    /// If the old text is absent, the error quotes similar lines of the file. Binary input fails
    /// too.
    #[test]
    fn replacement_fails_if_old_text_is_empty_or_absent_or_equal_to_new_text() {
        assert_eq!(once("a", "", "b"), Err(ReplaceError::Empty));
        assert_eq!(once("a", "a", "a"), Err(ReplaceError::Same));
        assert_eq!(
            once("a\r\nb\r\n", "a\r\nb", "a\nb"),
            Err(ReplaceError::Same)
        );
        assert_eq!(
            replace(&[0xff, b'a'], "a", "b", Scope::Once),
            Err(ReplaceError::NotText)
        );
        let error = once("if ( $a ) {\n\treturn;\n}\n", "if ($a) {\n    return;", "x");
        // `( $a )` does not resemble `($a)`: blanks may differ in number, but must be in the same
        // places.
        assert!(error.unwrap_err().to_string().contains("exactly"));
        let error = once("x\n\tfoo  bar\n\tbaz\n", "foo bar\nbaz", "q").unwrap_err();
        assert!(
            error.to_string().contains("from line 2 on:\n\tfoo  bar"),
            "{error}"
        );
        let error = once("x\nfoo bar\nbaz\n", "foo bar\nqux", "q").unwrap_err();
        assert!(error.to_string().contains("2|foo bar"), "{error}");
    }
}
