//! Redacts the output of an execution on its way to the journal, in whole lines of limited length.
//!
//! A secret must be found even if it is split over two reads. Text after the last newline is
//! therefore held back until more output arrives. A line without a newline is released in pieces
//! that never cut through a match.

use super::retained_output::border;
use wp_codebox_policy::Redactor;

/// Length in bytes above which a line is released in pieces.
const HOLD_BYTES: usize = 64 * 1024;
/// Number of bytes to hold back when a piece is released. It exceeds the length of every token that
/// is recognized by its form. Bytes that may be the beginning of a configured secret value are held
/// back at any length.
const OVERLAP_BYTES: usize = 8 * 1024;

/// Removes secrets from one output stream of one execution.
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

    /// Adds output and returns the redacted bytes that may be shown now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.held.extend_from_slice(bytes);
        let wanted = match self.held.iter().rposition(|&b| b == b'\n') {
            Some(position) => position + 1,
            None if self.held.len() > HOLD_BYTES => {
                border(&self.held, self.held.len() - OVERLAP_BYTES)
            }
            None => return None,
        };
        let cut = self.redactor.safe_cut(&self.held, wanted);
        (cut > 0).then(|| {
            let rest = self.held.split_off(cut);
            let shown = std::mem::replace(&mut self.held, rest);
            self.redactor.redact_bytes(&shown).into_owned()
        })
    }

    /// Returns the bytes that are still held back, redacted; to be called at the end of the stream.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| self.redactor.redact_bytes(&held).into_owned())
    }
}

/// Maximum number of bytes that are shown after a pause although they may be the beginning of a
/// secret. If they were not shown, the last characters of a prompt could appear only after another
/// key press.
const GLIMPSE: usize = 3;

/// Redactor for one stream that a person follows live. It shows lines at once, and an incomplete
/// line after a short pause. It redacts configured secret values; if a pause follows the first
/// bytes of a value, up to [`GLIMPSE`] of these bytes were already shown. It misses a token that is
/// recognized only by its form if the token arrives in pieces with pauses in between. The journal
/// uses [`StreamRedactor`].
#[derive(Debug)]
pub(crate) struct PromptRedactor<'a> {
    redactor: &'a Redactor,
    held: Vec<u8>,
    /// Number of bytes at the beginning of `held` that were already shown.
    shown: usize,
}

impl<'a> PromptRedactor<'a> {
    pub(crate) fn new(redactor: &'a Redactor) -> Self {
        Self {
            redactor,
            held: Vec::new(),
            shown: 0,
        }
    }

    /// Adds output and returns the redacted bytes that may be shown now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.held.extend_from_slice(bytes);
        let wanted = match self.held.iter().rposition(|&b| b == b'\n') {
            Some(position) => position + 1,
            None if self.held.len() > HOLD_BYTES => self.held.len() - OVERLAP_BYTES,
            None => return None,
        };
        self.let_go(wanted)
    }

    /// Returns whether to call [`pause`](Self::pause) after a moment without output: some held-back
    /// bytes were not shown yet, and fewer than [`GLIMPSE`] bytes of them were shown.
    pub(crate) fn waits(&self) -> bool {
        self.held.len() > self.shown && (self.shown < GLIMPSE || self.shown == 0)
    }

    /// Returns the held-back bytes that may be shown because no output has arrived for a moment.
    pub(crate) fn pause(&mut self) -> Option<Vec<u8>> {
        let mut out = self.let_go(self.held.len()).unwrap_or_default();
        let until = self.held.len().min(GLIMPSE);
        if self.shown < until {
            out.extend_from_slice(&self.held[self.shown..until]);
            self.shown = until;
        }
        (!out.is_empty()).then_some(out)
    }

    /// Returns the output that was not shown yet, redacted; to be called at the end of the stream.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        let held = std::mem::take(&mut self.held);
        let out = self.unseen(&held);
        (!out.is_empty()).then_some(out)
    }

    fn let_go(&mut self, wanted: usize) -> Option<Vec<u8>> {
        let cut = self.redactor.safe_cut(&self.held, wanted);
        if cut == 0 {
            return None;
        }
        let rest = self.held.split_off(cut);
        let gone = std::mem::replace(&mut self.held, rest);
        let out = self.unseen(&gone);
        (!out.is_empty()).then_some(out)
    }

    /// Returns those of the redacted bytes that were not shown yet.
    fn unseen(&mut self, bytes: &[u8]) -> Vec<u8> {
        let shown = std::mem::take(&mut self.shown).min(bytes.len());
        let clean = self.redactor.redact_bytes(bytes);
        match clean.strip_prefix(&bytes[..shown]) {
            Some(rest) => rest.to_vec(),
            // The bytes already shown were the beginning of a secret, so the redacted text no
            // longer starts with them.
            None => clean.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_split_over_several_reads_of_program_output_is_redacted() {
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
    fn multi_line_secret_and_secret_longer_than_the_overlap_buffer_are_redacted() {
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
    fn terminal_prompt_without_newline_is_shown_after_a_pause_and_secrets_are_redacted() {
        let redactor = Redactor::new(&["correct-horse-battery".to_owned()]);
        let mut stream = PromptRedactor::new(&redactor);
        assert_eq!(stream.push(b"name: "), None);
        assert!(stream.waits());
        assert_eq!(stream.pause().unwrap(), b"name: ");
        assert!(!stream.waits());
        // A key press that equals the beginning of a secret is shown, and only once.
        assert_eq!(stream.push(b"c"), None);
        assert_eq!(stream.pause().unwrap(), b"c");
        assert_eq!(stream.pause(), None);
        assert_eq!(stream.push(b"arl\n").unwrap(), b"arl\n");
        // A secret that arrives in pieces with pauses.
        let mut seen = Vec::new();
        for piece in ["> correct", "-horse", "-batt", "ery done\n"] {
            seen.extend(stream.push(piece.as_bytes()).unwrap_or_default());
            seen.extend(stream.pause().unwrap_or_default());
        }
        seen.extend(stream.finish().unwrap_or_default());
        let text = String::from_utf8(seen).unwrap();
        assert_eq!(text, "> cor[REDACTED:configured-secret-value] done\n");
    }

    #[test]
    fn long_output_line_without_newline_is_passed_on_in_redacted_pieces() {
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
