//! The only writer to standard output and standard error: JSON and data on standard output, messages
//! on standard error. `clippy.toml` forbids the streams and print macros elsewhere.
//!
//! Any text may come from a guest, so this module removes or escapes
//! [hidden](wp_codebox_contracts::terminal_text::is_hidden) characters,
//! whatever the colours:
//!
//! | written by | terminal | pipe or file |
//! |---|---|---|
//! | [`Output::line`], [`Output::note`] | removed, further lines indented | the same |
//! | [`Output::document`], [`json_output`] | escaped as in JSON | the same |
//! | [`Output::data`], [`data_output`], [`Output::guest`], [`Output::coloured`] | removed | bytes unchanged, for programs |
//! | [`Output::screen`], the screen of `exec --tty` | unchanged | unchanged |

#![expect(clippy::disallowed_methods, reason = "this module is the writer")]

use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
pub(crate) use wp_codebox_artifacts::terminal_name as name;
use wp_codebox_contracts::terminal_text::{plain, plain_json, plain_paragraph};
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

/// Colour of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    /// That of other text.
    Plain,
    Bold,
    Green,
    Red,
    Cyan,
}

impl Colour {
    fn sequence(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("\x1b[1m"),
            Self::Green => Some("\x1b[32m"),
            Self::Red => Some("\x1b[31m"),
            Self::Cyan => Some("\x1b[36m"),
        }
    }
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

/// Returns a writer for JSON that is written in chunks; applies [`plain_json`].
pub fn json_output() -> Box<dyn Write> {
    Box::new(Cleaned {
        out: io::stdout().lock(),
        clean: plain_json,
        held: Vec::new(),
    })
}

/// Returns a writer for data that is written in chunks, like [`Output::data`].
pub fn data_output() -> Box<dyn Write> {
    let out = io::stdout().lock();
    if out.is_terminal() {
        Box::new(Cleaned {
            out,
            clean: |text| plain(text.as_bytes()),
            held: Vec::new(),
        })
    } else {
        Box::new(out)
    }
}

/// Writer that cleans the text of each chunk.
struct Cleaned<W> {
    out: W,
    clean: fn(&str) -> String,
    /// First bytes of a UTF-8 character whose other bytes come with the next chunk.
    held: Vec<u8>,
}

impl<W: Write> Write for Cleaned<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.held) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.held.len(),
        };
        let rest = self.held.split_off(whole);
        let text = (self.clean)(&String::from_utf8_lossy(&self.held));
        self.held = rest;
        self.out.write_all(text.as_bytes())?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns whether both standard input and standard output are a terminal.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns the width of the terminal of a stream in columns, if it is one.
pub(crate) fn columns(stream: Stream) -> Option<usize> {
    let size = match stream {
        Stream::Data => tcgetwinsize(io::stdout()),
        Stream::Talk => tcgetwinsize(io::stderr()),
    };
    size.ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
}

/// Printer of documents, lines and errors, as JSON or human-readable.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
    pub(crate) agent: AgentOutput,
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

    /// Returns whether the output is JSON.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints bytes for another program, such as a patch. On a terminal, hidden characters except
    /// newlines and tabs are removed, because they could rewrite what the user reads.
    pub fn data(self, bytes: &[u8]) {
        if io::stdout().is_terminal() {
            self.write(plain(bytes).as_bytes());
        } else {
            self.write(bytes);
        }
    }

    /// Prints bytes like [`Output::data`], on a terminal with colours unless `NO_COLOR` is set.
    pub(crate) fn coloured(self, bytes: &[u8], colour_of_line: impl Fn(&[u8]) -> Colour) {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if !wanted || !io::stdout().is_terminal() {
            return self.data(bytes);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = plain(line.strip_suffix(b"\n").unwrap_or(line));
            let shown = match colour_of_line(line).sequence() {
                Some(begin) => format!("{begin}{text}\x1b[0m\n"),
                None => format!("{text}\n"),
            };
            self.write(shown.as_bytes());
        }
    }

    /// Prints what a program draws on its terminal in the guest (`exec --tty`), unchanged.
    pub(crate) fn screen(self, bytes: &[u8]) {
        self.write(bytes);
    }

    /// Writes bytes to standard output and flushes it. After an error the command goes on; only
    /// its exit status changes, see [`settled`].
    fn write(self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
            Self::lost(&error);
        }
    }

    /// Records an error of writing to standard output, and reports it unless the reader closed it.
    pub fn lost(error: &io::Error) {
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
    pub fn document(self, value: &Value) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.write(format!("{}\n", plain_json(&text)).as_bytes());
    }

    /// Prints one line for people, or with `--json` one line of JSON.
    pub fn line(self, text: &str) {
        let shown = if self.json {
            plain_json(text)
        } else {
            plain_paragraph(text)
        };
        self.write(format!("{shown}\n").as_bytes());
    }

    /// Prints the document if JSON was requested, else the human-readable lines.
    pub fn answer(self, document: &impl Serialize, lines: &[String]) {
        match self.json {
            true => self.document(&json!(document)),
            false => lines.iter().for_each(|line| self.line(line)),
        }
    }

    /// Asks a question with the answers yes and no; no is the default. Returns `false` without
    /// asking if standard input or standard error is not a terminal, or for JSON.
    pub(crate) fn agreed(self, question: &str) -> bool {
        if self.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return false;
        }
        self.note(&format!("{question} [y/N]"));
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
    }

    /// Prints one message on standard error.
    pub fn note(self, text: &str) {
        let _ = writeln!(io::stderr(), "{}", plain_paragraph(text));
    }

    /// Prints a chunk of the output of a program in the guest.
    pub(crate) fn guest(self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Data => self.data(bytes),
            Stream::Talk => {
                let mut out = io::stderr();
                let _ = if out.is_terminal() {
                    out.write_all(plain(bytes).as_bytes())
                } else {
                    out.write_all(bytes)
                };
            }
        }
    }

    /// Prints an error: `cli-failure/v1` if JSON was requested, else message and hints. Returns the
    /// exit status of the error.
    pub fn failure(self, command: &str, error: &ErrorBody) -> ExitCode {
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
            let mut out = Cleaned {
                out: Vec::new(),
                clean: plain_json,
                held: Vec::new(),
            };
            for piece in text.as_bytes().chunks(size) {
                out.write_all(piece).unwrap();
            }
            assert_eq!(String::from_utf8(out.out).unwrap(), plain_json(&text));
        }
    }
}
