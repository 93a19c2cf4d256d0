//! Turns the JSON lines that a command-line agent prints into readable steps, such as "runs ls".
//! The rules come from the agent's preset (the description of the agent in the installation). The
//! steps are shown in addition to the raw output, which journal, transcript and bundle contain.
//! Output arrives in chunks of any size; a line is parsed when it is complete.

use wp_codebox_contracts::PresetStep;
use wp_codebox_contracts::terminal_text::plain_json;
use wp_codebox_policy::{Redactor, step_text};

/// Maximum length of a line that is parsed as JSON; limits the memory that a line without a newline
/// needs.
const LINE_BYTES: usize = 256 * 1024;
/// Number of bytes that are shown of a line longer than [`LINE_BYTES`].
const HEAD_BYTES: usize = 1_000;

/// Parser of the standard output of one agent execution.
pub(crate) struct AgentSteps {
    steps: Vec<PresetStep>,
    /// Beginning of the current, incomplete line; at most [`LINE_BYTES`] of it.
    begun: Vec<u8>,
    /// Length of the incomplete line in bytes.
    length: usize,
}

impl AgentSteps {
    /// Creates a parser; `None` if the agent's preset has no rules for steps.
    pub(crate) fn new(steps: &[PresetStep]) -> Option<Self> {
        (!steps.is_empty()).then(|| Self {
            steps: steps.to_vec(),
            begun: Vec::new(),
            length: 0,
        })
    }

    /// Adds a chunk of output and returns the text to show; `None` if the chunk itself is to be
    /// shown.
    pub(crate) fn push(&mut self, piece: &[u8], redactor: &Redactor) -> Option<String> {
        let mut same = self.length == 0;
        let mut shown = String::new();
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            self.extend(part);
            same &= part.ends_with(b"\n") && !self.end_line(redactor, &mut shown);
        }
        (!same).then_some(shown)
    }

    /// Returns the text to show for a last line without a newline.
    pub(crate) fn finish(&mut self, redactor: &Redactor) -> Option<String> {
        let mut shown = String::new();
        self.end_line(redactor, &mut shown);
        (!shown.is_empty()).then_some(shown)
    }

    fn extend(&mut self, part: &[u8]) {
        self.length += part.len();
        if self.length <= LINE_BYTES {
            self.begun.extend_from_slice(part);
        } else {
            let room = HEAD_BYTES.saturating_sub(self.begun.len());
            self.begun.extend(part.iter().take(room));
            self.begun.truncate(HEAD_BYTES);
        }
    }

    /// Appends the text for the completed line; returns whether the text differs from the line.
    fn end_line(&mut self, redactor: &Redactor, shown: &mut String) -> bool {
        let line = std::mem::take(&mut self.begun);
        let length = std::mem::take(&mut self.length);
        if length > LINE_BYTES {
            let head = String::from_utf8_lossy(&line);
            shown.push_str(head.trim_end());
            shown.push_str(&format!("… (a line of {length} bytes)\n"));
            return true;
        }
        match step_text(&self.steps, line.trim_ascii(), redactor) {
            None => {
                shown.push_str(&String::from_utf8_lossy(&line));
                false
            }
            Some(text) if text.is_empty() => true,
            // JSON escapes control characters; decoded, they could control a terminal.
            Some(text) => {
                shown.push_str(&plain_json(&text));
                shown.push('\n');
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn steps() -> AgentSteps {
        let steps = json!([
            {"when": {"type": "say"}, "line": "{text:text}"},
            {"when": {"type": "run"}, "line": "$ {command}"},
            {"when": {"type": "quiet"}, "line": ""},
        ]);
        AgentSteps::new(&serde_json::from_value::<Vec<PresetStep>>(steps).unwrap()).unwrap()
    }

    fn all(pieces: &[&[u8]], redactor: &Redactor) -> String {
        let mut steps = steps();
        let mut out = String::new();
        for piece in pieces {
            match steps.push(piece, redactor) {
                Some(shown) => out.push_str(&shown),
                None => out.push_str(&String::from_utf8_lossy(piece)),
            }
        }
        out + &steps.finish(redactor).unwrap_or_default()
    }

    #[test]
    fn agent_output_lines_become_the_same_steps_for_any_chunking() {
        let redactor = Redactor::new(&[]);
        let output = "start\n{\"type\":\"run\",\"command\":\"ls é\"}\r\n{\"type\":\"quiet\"}\n\n\
            {\"type\":\"new\",\"x\":1}\n{\"type\":\"say\",\"text\":\"a\\nb\"}";
        let wanted = "start\n$ ls é\n\n{\"type\":\"new\",\"x\":1}\na\nb\n";
        for size in 1..=output.len() {
            let pieces: Vec<&[u8]> = output.as_bytes().chunks(size).collect();
            assert_eq!(all(&pieces, &redactor), wanted, "pieces of {size}");
        }
        assert_eq!(
            steps().push(b"plain\n{\"type\":\"new\"}\n", &redactor),
            None
        );
        assert_eq!(steps().push(b"\xff\n", &redactor), None);
        assert!(AgentSteps::new(&[]).is_none());
    }

    #[test]
    fn hostile_json_lines_of_an_agent_are_truncated_redacted_and_escaped() {
        let redactor = Redactor::new(&["hunter2-hunter2".to_owned()]);
        let say = |text: &str| json!({"type": "say", "text": text}).to_string() + "\n";
        assert_eq!(
            all(&[say("\u{1b}[2J\u{202e}x").as_bytes()], &redactor),
            "\\u001b[2J\\u202ex\n"
        );
        // The JSON escapes hide the secret from the redactor until the line is decoded.
        let secret = "{\"type\":\"run\",\"command\":\"\\u0068unter2-h\\u0075nter2\"}\n";
        let shown = all(&[secret.as_bytes()], &redactor);
        assert!(
            shown.starts_with("$ ") && !shown.contains("hunter2"),
            "{shown}"
        );
        let long = all(&[say(&"é".repeat(100_000)).as_bytes()], &redactor);
        assert!(
            long.len() < 8_100 && long.contains("bytes more"),
            "{}",
            long.len()
        );
        // Nested deeper than the parser's limit, so it is shown unchanged.
        let deep = format!("{{\"type\":{}\n", "[".repeat(100_000));
        assert_eq!(all(&[deep.as_bytes()], &redactor), deep);
        let endless = vec![b'{'; 4 << 20];
        let mut steps = steps();
        for piece in endless.chunks(64 * 1024) {
            assert_eq!(steps.push(piece, &redactor).as_deref(), Some(""));
            assert!(steps.begun.capacity() <= 2 * LINE_BYTES);
        }
        let shown = steps.push(b"\n{\"type\":\"run\",\"command\":\"ls\"}\n", &redactor);
        let shown = shown.unwrap();
        assert!(
            shown.ends_with("… (a line of 4194305 bytes)\n$ ls\n"),
            "{shown}"
        );
        assert!(shown.len() < HEAD_BYTES + 100);
    }
}
