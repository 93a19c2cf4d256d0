//! Output of an execution on its way to the journal: redacted, bounded, whole lines.
//!
//! A secret must not slip through because it arrived in two reads. Text is held
//! back to the last line end; a line without end is let go in pieces that never
//! cut through a find.

use super::kept::border;
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

    /// What is left when the stream ends.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| self.redactor.redact_bytes(&held).into_owned())
    }
}

/// Most bytes of what may be the beginning of a configured value that are shown while nothing
/// follows: a prompt must not wait for the next key.
const GLIMPSE: usize = 3;

/// Redacts one stream for somebody who looks at it as it comes: lines at once, and what is no
/// whole line as soon as nothing follows for a moment. A token that is known by its form only
/// and comes in pieces with pauses is not found; a configured value is, but for its first
/// [`GLIMPSE`] bytes. The journal has the other redactor.
#[derive(Debug)]
pub(crate) struct PromptRedactor<'a> {
    redactor: &'a Redactor,
    held: Vec<u8>,
    /// Bytes at the beginning of `held` that were shown already.
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

    /// Takes what was read and answers what may be shown now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.held.extend_from_slice(bytes);
        let wanted = match self.held.iter().rposition(|&b| b == b'\n') {
            Some(position) => position + 1,
            None if self.held.len() > HOLD_BYTES => self.held.len() - OVERLAP_BYTES,
            None => return None,
        };
        self.let_go(wanted)
    }

    /// Whether something waits for more to come.
    pub(crate) fn waits(&self) -> bool {
        self.held.len() > self.shown && (self.shown < GLIMPSE || self.shown == 0)
    }

    /// Nothing more came for a moment.
    pub(crate) fn pause(&mut self) -> Option<Vec<u8>> {
        let mut out = self.let_go(self.held.len()).unwrap_or_default();
        let until = self.held.len().min(GLIMPSE);
        if self.shown < until {
            out.extend_from_slice(&self.held[self.shown..until]);
            self.shown = until;
        }
        (!out.is_empty()).then_some(out)
    }

    /// What is left when the stream ends.
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

    /// Clean bytes without those that were shown before.
    fn unseen(&mut self, bytes: &[u8]) -> Vec<u8> {
        let shown = std::mem::take(&mut self.shown).min(bytes.len());
        let clean = self.redactor.redact_bytes(bytes);
        match clean.strip_prefix(&bytes[..shown]) {
            Some(rest) => rest.to_vec(),
            // What was shown turned out to be the beginning of a find.
            None => clean.into_owned(),
        }
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
    fn a_prompt_is_shown_at_once_and_a_secret_is_not() {
        let redactor = Redactor::new(&["correct-horse-battery".to_owned()]);
        let mut stream = PromptRedactor::new(&redactor);
        assert_eq!(stream.push(b"name: "), None);
        assert!(stream.waits());
        assert_eq!(stream.pause().unwrap(), b"name: ");
        assert!(!stream.waits());
        // A key that a secret begins with is shown, and not twice.
        assert_eq!(stream.push(b"c"), None);
        assert_eq!(stream.pause().unwrap(), b"c");
        assert_eq!(stream.pause(), None);
        assert_eq!(stream.push(b"arl\n").unwrap(), b"arl\n");
        // One that comes in pieces with pauses.
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
