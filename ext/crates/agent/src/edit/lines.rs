//! A text as lines, each with the line end it has.

/// A line and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextLine<'a> {
    /// Without `\n`; a `\r` before it belongs to the text.
    pub text: &'a str,
    /// Whether it ends with `\n`; only the last line may not.
    pub closed: bool,
}

/// The lines of a text. No bytes are no lines.
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

/// Whether most lines end in CRLF.
pub(super) fn is_crlf(lines: &[TextLine<'_>]) -> bool {
    let crlf = lines.iter().filter(|l| l.text.ends_with('\r') && l.closed);
    crlf.count() * 2 > lines.iter().filter(|l| l.closed).count()
}
