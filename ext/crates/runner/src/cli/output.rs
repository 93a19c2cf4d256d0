//! What reaches the terminal: JSON on standard output, talk on standard error.

use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, schema_id};

/// Whether the arguments ask for JSON: `--json`, `--format=json` or `--format json`.
pub(crate) fn wants_json(args: &[OsString]) -> bool {
    args.iter().any(|a| a == "--json" || a == "--format=json")
}

/// Where bytes of the guest go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Data,
    /// Standard error.
    Talk,
}

pub(crate) fn plain(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .filter(|c| !steers(*c))
        .collect()
}

/// Whether a terminal may take a character for more than a sign of a text.
fn steers(c: char) -> bool {
    let direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || direction
}

/// JSON that says the same without such characters. They stand in strings only, and those of
/// the first 32 are escaped already.
pub(crate) fn plain_json(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        if steers(c) {
            // All of them are of one UTF-16 unit.
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
        out
    })
}

/// Prints in the form the caller asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// One JSON document, two spaces, one line end.
    pub(crate) fn document(self, value: &Value) {
        let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
        if std::io::stdout().is_terminal() {
            text = plain_json(&text);
        }
        text.push('\n');
        let _ = std::io::stdout().write_all(text.as_bytes());
    }

    /// One line of data. What of it is the guest's, such as the name of a file, steers no
    /// terminal.
    pub(crate) fn line(self, text: &str) {
        let out = std::io::stdout();
        let _ = match (out.is_terminal(), self.json) {
            (true, true) => writeln!(&out, "{}", plain_json(text)),
            (true, false) => writeln!(&out, "{}", plain(text.as_bytes())),
            (false, _) => writeln!(&out, "{text}"),
        };
    }

    /// One line of talk, as plain as one of data.
    pub(crate) fn note(self, text: &str) {
        let out = std::io::stderr();
        let _ = if out.is_terminal() {
            writeln!(&out, "{}", plain(text.as_bytes()))
        } else {
            writeln!(&out, "{text}")
        };
    }

    /// Bytes of the guest as they come. A terminal gets no control characters but line
    /// ends and tabs: they could rewrite what the user reads, or more.
    pub(crate) fn guest(self, stream: Stream, bytes: &[u8]) {
        let terminal = match stream {
            Stream::Data => std::io::stdout().is_terminal(),
            Stream::Talk => std::io::stderr().is_terminal(),
        };
        let plain = terminal.then(|| plain(bytes));
        let shown = plain.as_ref().map_or(bytes, String::as_bytes);
        let _ = match stream {
            Stream::Data => std::io::stdout().write_all(shown),
            Stream::Talk => std::io::stderr().write_all(shown),
        };
    }

    /// An error: `cli-failure/v1` in JSON mode, else sentence and hints. Answers its exit status.
    pub(crate) fn failure(self, command: &str, error: &ErrorBody) -> ExitCode {
        if self.json {
            self.document(&self.failure_document(command, error));
        } else {
            self.note(&format!("Error: {} [{}]", error.message, error.code));
            for hint in &error.hints {
                self.note(&format!("  hint: {hint}"));
            }
        }
        ExitCode::from(error.code.exit_status())
    }

    /// `cli-failure/v1`.
    pub(crate) fn failure_document(self, command: &str, error: &ErrorBody) -> Value {
        let mut row = json!({"code": error.code, "message": error.message});
        if !error.hints.is_empty() {
            row["hints"] = json!(error.hints);
        }
        if let Some(data) = &error.data {
            row["data"] = json!(data);
        }
        json!({
            "schema": schema_id::CLI_FAILURE,
            "success": false,
            "status": "error",
            "command": command,
            "error": row,
            "diagnostics": [{"code": error.code, "message": error.message}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_cannot_steer_the_terminal() {
        let hostile = "\u{1b}]0;x\u{7}a\u{1b}[2J\u{202e}b\r\n\tc\u{9b}31m".as_bytes();
        assert_eq!(plain(hostile), "]0;xa[2Jb\n\tc31m");
        assert_eq!(plain(b"\xff"), "\u{fffd}");
        let said = json!({"a\u{9b}": String::from_utf8_lossy(hostile), "b": "é\u{7f}"});
        for text in [said.to_string(), format!("{said:#}")] {
            let shown = plain_json(&text);
            assert!(!shown.chars().any(steers), "{shown}");
            assert!(shown.contains('é'));
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), said);
        }
    }
}
