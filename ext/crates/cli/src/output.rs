//! Terminal output: JSON and data on standard output, messages on standard error.

use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use wp_codebox_artifacts::{listed_name, unquote_name};
use wp_codebox_contracts::terminal_text::{is_hidden, plain, plain_json};
use wp_codebox_contracts::{ErrorBody, schema_id};

/// State of this process's standard output: [`WHOLE`], [`LEFT`] or [`LOST`].
static FATE: AtomicU8 = AtomicU8::new(WHOLE);
/// All writes succeeded so far.
const WHOLE: u8 = 0;
/// The reader closed the pipe, as `head` does. This is not an error.
const LEFT: u8 = 1;
/// Writing failed, for example on a full disk: the output is incomplete.
const LOST: u8 = 2;

/// Exit status if the reader of standard output closed it: 128 + SIGPIPE.
const READER_CLOSED: u8 = 141;

/// Returns `status`, or 1 if the command succeeded but its output could not be written.
pub(crate) fn settled(status: ExitCode) -> ExitCode {
    match FATE.load(Ordering::SeqCst) {
        LOST if status == ExitCode::SUCCESS => ExitCode::from(1),
        _ => status,
    }
}

/// Stream of this process that gets a chunk of guest output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Data,
    /// Standard error.
    Talk,
}

/// Form in which the output of an agent program is printed if it is a protocol such as JSON lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AgentOutput {
    // The values have plain comments: with doc comments clap would print the long help of every
    // option.
    //
    // Print the steps that the agent's preset derives from the lines.
    #[default]
    Steps,
    // Print the lines unchanged.
    Raw,
}

impl AgentOutput {
    /// Returns the text to print in place of a chunk of agent output; `None` prints the chunk's
    /// bytes.
    pub(crate) fn shown(self, data: &Map<String, Value>) -> Option<&str> {
        match self {
            Self::Steps => data.get("shown").and_then(Value::as_str),
            Self::Raw => None,
        }
    }
}

/// Formats a file name for one line, also in pipes: quoted like git does if it contains invisible
/// characters.
pub(crate) fn name(path: &str) -> String {
    // A guest path that is not UTF-8 is already quoted as a whole.
    let quoted = path.starts_with("\"/")
        && unquote_name(path.as_bytes()).is_some_and(|(_, taken)| taken == path.len());
    if quoted {
        return path.to_owned();
    }
    listed_name(path, is_hidden)
}

/// Returns a writer for JSON that is written in chunks; applies [`plain_json`] on a terminal.
pub(crate) fn json_output() -> Box<dyn Write> {
    let out = io::stdout().lock();
    match out.is_terminal() {
        true => Box::new(PlainJson {
            out,
            held: Vec::new(),
        }),
        false => Box::new(out),
    }
}

/// Writer of JSON that applies [`plain_json`] to each chunk.
struct PlainJson<W> {
    out: W,
    /// First bytes of a UTF-8 character whose other bytes come with the next chunk.
    held: Vec<u8>,
}

impl<W: Write> Write for PlainJson<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.held) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.held.len(),
        };
        let rest = self.held.split_off(whole);
        let text = plain_json(&String::from_utf8_lossy(&self.held));
        self.held = rest;
        self.out.write_all(text.as_bytes())?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Printer of documents, lines and errors, as JSON or human-readable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    pub agent: AgentOutput,
    /// True if the link to a preview is also opened in the browser of the desktop.
    pub open_links: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            agent: AgentOutput::default(),
            open_links: false,
        }
    }

    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Writes bytes to standard output and flushes it. After an error the command goes on; only
    /// its exit status changes, see [`settled`].
    pub(crate) fn data(self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
            Self::lost(&error);
        }
    }

    /// Records an error of writing to standard output, and reports it unless the reader closed it.
    pub(crate) fn lost(error: &io::Error) {
        let fate = match error.kind() {
            ErrorKind::BrokenPipe => LEFT,
            _ => LOST,
        };
        // Report only the first error, even if writes of many lines fail.
        if FATE.fetch_max(fate, Ordering::SeqCst) < LOST && fate == LOST {
            let _ = writeln!(
                io::stderr(),
                "Error: standard output cannot be written: {error}"
            );
        }
    }

    /// Returns the exit status of a command that stops because its standard output can no longer be
    /// written; `None` if it can. As for other programs, the status is that of SIGPIPE if the reader
    /// closed the pipe, and 1 after another error, which was reported.
    pub(crate) fn stopped(self) -> Option<u8> {
        match FATE.load(Ordering::SeqCst) {
            WHOLE => None,
            LEFT => Some(READER_CLOSED),
            _ => Some(1),
        }
    }

    /// Prints one JSON document, indented by two spaces, with a newline.
    pub(crate) fn document(self, value: &Value) {
        let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
        if io::stdout().is_terminal() {
            text = plain_json(&text);
        }
        text.push('\n');
        self.data(text.as_bytes());
    }

    /// Prints one line of data. On a terminal, control characters are escaped, because the text can
    /// come from the guest, for example in file names.
    pub(crate) fn line(self, text: &str) {
        let shown = match (io::stdout().is_terminal(), self.json) {
            (true, true) => plain_json(text),
            (true, false) => plain(text.as_bytes()),
            (false, _) => text.to_owned(),
        };
        self.data(format!("{shown}\n").as_bytes());
    }

    /// Prints the document if JSON was requested, else the human-readable lines.
    pub(crate) fn answer(self, document: &impl Serialize, lines: &[String]) {
        match self.json {
            true => self.document(&json!(document)),
            false => lines.iter().for_each(|line| self.line(line)),
        }
    }

    /// Prints one line of a message on standard error; on a terminal, control characters are
    /// escaped.
    pub(crate) fn note(self, text: &str) {
        let out = io::stderr();
        let _ = if out.is_terminal() {
            writeln!(&out, "{}", plain(text.as_bytes()))
        } else {
            writeln!(&out, "{text}")
        };
    }

    /// Prints a chunk of guest output. On a terminal, control characters except newlines and tabs
    /// are escaped, because they could rewrite what the user reads.
    pub(crate) fn guest(self, stream: Stream, bytes: &[u8]) {
        let terminal = match stream {
            Stream::Data => io::stdout().is_terminal(),
            Stream::Talk => io::stderr().is_terminal(),
        };
        let plain = terminal.then(|| plain(bytes));
        let shown = plain.as_ref().map_or(bytes, String::as_bytes);
        match stream {
            Stream::Data => self.data(shown),
            Stream::Talk => {
                let _ = io::stderr().write_all(shown);
            }
        }
    }

    /// Prints an error: `cli-failure/v1` if JSON was requested, else message and hints. Returns the
    /// exit status of the error.
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

    /// Builds the JSON document of an error, `cli-failure/v1`.
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

    /// One invisible character of each kind: direction marks and isolates, joiners, fillers, tags.
    const INVISIBLE: &str = "\u{ad}\u{61c}\u{200b}\u{200d}\u{200f}\u{2028}\u{2060}\u{2066}\u{3164}\u{fe0f}\u{feff}\u{1d173}\u{e0041}";

    #[test]
    fn json_output_is_escaped_the_same_for_any_chunk_size() {
        let text = json!({ "a": format!("𝄞{INVISIBLE}é") }).to_string();
        for size in 1..text.len() {
            let mut out = PlainJson {
                out: Vec::new(),
                held: Vec::new(),
            };
            for piece in text.as_bytes().chunks(size) {
                out.write_all(piece).unwrap();
            }
            assert_eq!(String::from_utf8(out.out).unwrap(), plain_json(&text));
        }
    }
}
