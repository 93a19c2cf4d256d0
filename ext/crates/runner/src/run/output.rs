//! Output of an execution on its way to the journal: redacted, bounded, whole lines.
//!
//! A secret must not slip through because it arrived in two reads. Text is held
//! back to the last line end; a line without end is let go in pieces that never
//! cut through a find.

use wp_codebox_policy::Redactor;

/// A line longer than this is handed on in pieces.
const HOLD_BYTES: usize = 64 * 1024;
/// What stays behind when a piece is handed on: longer than any token known by its form.
/// What may be the beginning of a configured value stays behind however long it is.
const OVERLAP_BYTES: usize = 8 * 1024;

/// Redacts one stream of one execution.
#[derive(Debug)]
pub(crate) struct StreamRedactor<'a> {
    redactor: &'a Redactor,
    held: Vec<u8>,
}

impl<'a> StreamRedactor<'a> {
    pub(crate) fn new(redactor: &'a Redactor) -> Self {
        Self {
            redactor,
            held: Vec::new(),
        }
    }

    /// Takes what was read and answers what may be shown now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.held.extend_from_slice(bytes);
        let wanted = match self.held.iter().rposition(|&b| b == b'\n') {
            Some(position) => position + 1,
            None if self.held.len() > HOLD_BYTES => self.held.len() - OVERLAP_BYTES,
            None => return None,
        };
        let cut = self.redactor.safe_cut(&self.held, wanted);
        (cut > 0).then(|| {
            let rest = self.held.split_off(cut);
            let shown = std::mem::replace(&mut self.held, rest);
            self.redactor.redact_bytes(&shown).into_owned()
        })
    }

    /// What is left when the stream ends.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| self.redactor.redact_bytes(&held).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_split_over_reads_is_found() {
        let redactor = Redactor::new(&["correct-horse-battery".to_owned()]);
        let mut stream = StreamRedactor::new(&redactor);
        assert_eq!(stream.push(b"x correct-ho"), None);
        assert_eq!(
            stream.push(b"rse-battery y\nz").unwrap(),
            b"x [REDACTED:configured-secret-value] y\n"
        );
        assert_eq!(stream.finish().unwrap(), b"z");
        assert_eq!(stream.finish(), None);
    }

    #[test]
    fn a_secret_over_several_lines_and_one_longer_than_the_overlap_are_found() {
        let lines = "-----first line\n-----second line".to_owned();
        let long = "0123456789abcdef".repeat(4096);
        let redactor = Redactor::with_secrets(&[], [lines.as_str(), &long]);
        for secret in [&lines, &long] {
            for size in [1, 7, 4096] {
                let mut stream = StreamRedactor::new(&redactor);
                let mut shown = Vec::new();
                let text = format!("x\n{secret}\ny");
                for piece in text.as_bytes().chunks(size.max(secret.len() / 500)) {
                    shown.extend(stream.push(piece).unwrap_or_default());
                }
                shown.extend(stream.finish().unwrap_or_default());
                let wanted = "x\n[REDACTED:configured-secret-value]\ny";
                assert_eq!(String::from_utf8(shown).unwrap(), wanted, "{size}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_bounded_and_still_clean() {
        let secret = "correct-horse-battery";
        let redactor = Redactor::new(&[secret.to_owned()]);
        for lead in (HOLD_BYTES - OVERLAP_BYTES - 30)..(HOLD_BYTES - OVERLAP_BYTES + 30) {
            let mut stream = StreamRedactor::new(&redactor);
            let mut input = vec![b'a'; lead];
            input.extend_from_slice(secret.as_bytes());
            input.resize(HOLD_BYTES + 1, b'b');
            let mut shown = stream.push(&input).unwrap();
            shown.extend(stream.finish().unwrap_or_default());
            let text = String::from_utf8(shown).unwrap();
            assert!(!text.contains("horse"), "{lead}");
            assert!(
                text.contains("[REDACTED:configured-secret-value]"),
                "{lead}"
            );
        }
    }
}
