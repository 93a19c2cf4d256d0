//! Splits a text into lines and records each line end.

/// A line and its line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextLine<'a> {
    /// Text without the final `\n`; a `\r` before it stays in the text.
    pub text: &'a str,
    /// Whether the line ends with `\n`; only the last line of a text may lack it.
    pub closed: bool,
}

/// Returns the lines of a text; an empty text has none.
pub(super) fn split(text: &str) -> Vec<TextLine<'_>> {
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(text) => TextLine { text, closed: true },
            None => TextLine {
                text: line,
                closed: false,
            },
        })
        .collect()
}

/// Returns whether more than half of the lines with a line end have CRLF.
pub(super) fn is_crlf(lines: &[TextLine<'_>]) -> bool {
    let crlf = lines.iter().filter(|l| l.text.ends_with('\r') && l.closed);
    crlf.count() * 2 > lines.iter().filter(|l| l.closed).count()
}
