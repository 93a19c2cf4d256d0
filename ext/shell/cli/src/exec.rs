//! `wp-codebox exec`: runs a program in a held sandbox, a run that is kept open after its setup.

mod terminal;

use super::output::{Output, Stream};
use super::runs::{self, PlaceArgs};
use base64::Engine;
use clap::Args;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use terminal::{RawMode, size_of_terminal};
use wp_codebox_contracts::{
    Disconnect, ErrorBody, ErrorCode, GuestPath, LiveEnd, LiveExec, LiveReply, LiveRequest,
    OutputStream, StdinFlow, TerminalSize,
};
use wp_codebox_control::{LiveClient, ReplyTimeout};
use wp_codebox_policy::DeniedHosts;
use wp_codebox_runs::live::open;
use wp_codebox_runs::{ProgramInput, copy_stdin};
use wp_codebox_runtime::kernel_error;

/// Number of last bytes of the output in which a failed program's denied network requests are
/// searched, next to those that arrived last.
const LAST: usize = 64 * 1024;

/// Arguments of `exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --tty, standard input, output and error are pipes. With --tty the program has a terminal: \
keys go to it as they are typed, and its size follows yours. What a program prints is the \
guest's output: with --tty it reaches your terminal unchanged, except that secrets are redacted.

Standard input is read only as fast as the program reads it, and the program waits while its \
output is not read; neither has a time limit. When standard input cannot be read to its end, the \
program is killed.

With --json, standard output has one JSON event per line, the last one `exited` or \
`error`; if the sandbox cannot be reached, one cli-failure document.

Examples:
  wp-codebox exec 4f2a -- wp option get home
  wp-codebox exec --tty 4f2a -- bash
  tar c src | wp-codebox exec 4f2a --cwd /workspace/x -- tar x
  wp-codebox exec 4f2a --env API_TOKEN -- ./deploy.sh

Exit status: the program's, 128 and the signal when one ended it, 124 when its time was up, 141 \
when nobody reads its output any more, 1 when its output cannot be written or the sandbox refuses \
it, 125 when the program does not exist or the sandbox cannot be reached.")]
pub(crate) struct ExecArgs {
    /// Id of the run whose sandbox is kept running, or a unique prefix of the id.
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Program and arguments; run without a shell.
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    pub argv: Vec<String>,
    /// Give the program a terminal.
    #[arg(short = 't', long)]
    pub tty: bool,
    /// Environment variable of the program: NAME=VALUE, or NAME for the value in this environment.
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Working directory in the guest. [default: the first writable mount]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// Time limit after which the program is killed, such as 500ms, 90s or 15m.
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
    /// Let the program continue when this command exits; `runs events` then shows its output.
    #[arg(long)]
    pub leave: bool,
    /// Name of the user or program that makes the request, for the events of the run. [default:
    /// cli:$USER]
    #[arg(long, visible_alias = "user-actor", value_name = "NAME")]
    pub actor: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Form in which a program's output is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printing {
    /// Unchanged, to standard output and standard error.
    Streams,
    /// One line of JSON for each message of the sandbox.
    Events,
    /// Not at all: only the caller receives it.
    Nothing,
}

impl Printing {
    pub(crate) fn of(output: &Output) -> Self {
        match output.is_json() {
            true => Self::Events,
            false => Self::Streams,
        }
    }
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit status for the shell.
    pub status: u8,
    /// Report of the sandbox; `None` if nobody reads the output any more, and after an error that was
    /// printed as an event.
    pub end: Option<LiveEnd>,
}

impl Ended {
    const fn without_report(status: u8) -> Self {
        Self { status, end: None }
    }
}

pub(crate) fn main(output: &Output, args: ExecArgs) -> ExitCode {
    match run(output, Printing::of(output), args, &mut |_| {}) {
        Ok(ended) => ExitCode::from(ended.status),
        Err(error) => output.failure("exec", &error),
    }
}

/// Returns the actor name for the journal: the given one, else `cli:$USER`.
pub(crate) fn actor(given: Option<&str>) -> String {
    let user = || std::env::var("USER").ok().filter(|user| !user.is_empty());
    match given {
        Some(actor) => actor.to_owned(),
        None => user().map_or_else(|| "cli".to_owned(), |user| format!("cli:{user}")),
    }
}

/// Runs a program that reads no input for at most a minute, and returns what it wrote to standard
/// output.
pub(crate) fn captured(
    run: &str,
    argv: Vec<String>,
    place: &PlaceArgs,
) -> Result<Vec<u8>, ErrorBody> {
    let (_, found) = runs::found(place, run)?;
    let exec = LiveExec {
        argv,
        env: BTreeMap::new(),
        cwd: None,
        terminal: None,
        timeout_ms: Some(60_000),
        disconnect: Disconnect::End,
        stdin: StdinFlow::Credit,
    };
    let client = open(&found, &actor(None), LiveRequest::Exec(exec))?;
    let mut bytes = Vec::new();
    loop {
        match client.next(ReplyTimeout::Unlimited)? {
            LiveReply::Output {
                stream: OutputStream::Stdout,
                text,
                base64,
            } => bytes.extend(printed(text, base64)),
            LiveReply::Error { error } => return Err(error),
            LiveReply::Exited(_) => return Ok(bytes),
            LiveReply::Started { .. }
            | LiveReply::StdinCredit { .. }
            | LiveReply::StdinClosed
            | LiveReply::Output { .. }
            | LiveReply::Event { .. }
            | LiveReply::Answer { .. } => {}
        }
    }
}

/// Runs the program and returns how it ended. `seen` gets the program's output, unless it is printed
/// as events.
pub(crate) fn run(
    output: &Output,
    printing: Printing,
    args: ExecArgs,
    seen: &mut dyn FnMut(&[u8]),
) -> Result<Ended, ErrorBody> {
    let (_, found) = runs::found(&args.place, &args.run)?;
    let actor = actor(args.actor.as_deref());
    let exec = wanted(&args)?;
    let client = open(&found, &actor, LiveRequest::Exec(exec))?;
    let sender = client
        .sender()
        .map_err(|e| ErrorBody::new(ErrorCode::RunnerUnavailable, e.to_string()))?;
    let input = Arc::new(ProgramInput::new(sender));
    // The drop of `raw` restores the terminal, on every return path.
    let raw = match (args.tty, std::io::stdin().is_terminal()) {
        (true, true) => RawMode::enter(),
        _ => None,
    };
    terminal::follow(Arc::clone(&input), raw.as_ref().map(RawMode::restorer)).map_err(|e| {
        let message = format!("signals and terminal size changes cannot be received: {e}");
        kernel_error(ErrorCode::Internal, message, &e)
    })?;
    copy_stdin(Arc::clone(&input), args.tty)?;
    let done = follow(output, printing, &args, &input, &client, seen);
    drop(raw);
    done
}

fn wanted(args: &ExecArgs) -> Result<LiveExec, ErrorBody> {
    let invalid = |what: String| ErrorBody::new(ErrorCode::InputInvalid, what);
    let mut env = BTreeMap::new();
    if let (true, Ok(term)) = (args.tty, std::env::var("TERM")) {
        env.insert("TERM".to_owned(), term);
    }
    for pair in &args.env {
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            // The value comes from the environment, because every process of the host could read a
            // value on the command line.
            None => (
                pair.as_str(),
                std::env::var(pair).map_err(|_| {
                    invalid(format!(
                        "--env {pair}: the variable is not set in this environment"
                    ))
                })?,
            ),
        };
        env.insert(name.to_owned(), value);
    }
    let cwd = args
        .cwd
        .as_deref()
        .map(GuestPath::new)
        .transpose()
        .map_err(|e| invalid(format!("--cwd: {e}")))?;
    Ok(LiveExec {
        argv: args.argv.clone(),
        env,
        cwd,
        terminal: args.tty.then(|| {
            size_of_terminal().unwrap_or(TerminalSize {
                columns: 80,
                rows: 24,
            })
        }),
        timeout_ms: super::request::timeout(args.timeout.as_deref())?,
        disconnect: if args.leave {
            Disconnect::Leave
        } else {
            Disconnect::End
        },
        stdin: StdinFlow::Credit,
    })
}

fn follow(
    output: &Output,
    printing: Printing,
    args: &ExecArgs,
    input: &ProgramInput,
    client: &LiveClient,
    seen: &mut dyn FnMut(&[u8]),
) -> Result<Ended, ErrorBody> {
    let events = printing == Printing::Events;
    let mut last = Vec::new();
    loop {
        let reply = match (client.next(ReplyTimeout::Unlimited)?, input.failure()) {
            // Standard input was not copied completely, so report that error instead of the
            // program's exit status.
            (LiveReply::Exited(_), Some(error)) => LiveReply::Error { error },
            (reply, _) => reply,
        };
        let hint = wp_codebox_policy::shell_hint(&args.argv);
        input.update_credit(&reply);
        if matches!(
            reply,
            LiveReply::StdinCredit { .. } | LiveReply::StdinClosed
        ) {
            continue;
        }
        if events {
            output.line(&serde_json::to_string(&reply).unwrap_or_default());
        }
        match reply {
            LiveReply::Error { error } if events => {
                return Ok(Ended::without_report(error.code.exit_status()));
            }
            LiveReply::Error { error } => {
                return Err(hint.into_iter().fold(error, ErrorBody::hint));
            }
            LiveReply::Output {
                stream,
                text,
                base64,
            } if !events => {
                let bytes = printed(text, base64);
                seen(&bytes);
                if printing == Printing::Streams {
                    show(output, args, stream, &bytes);
                }
                last.drain(..last.len().saturating_sub(LAST));
                last.extend(bytes);
            }
            LiveReply::Exited(end) => {
                let status = status(output, &end);
                if status != 0 && printing == Printing::Streams {
                    let mut denied = DeniedHosts::default();
                    denied.read(&String::from_utf8_lossy(&last));
                    for hint in hint.into_iter().chain(denied.hint()) {
                        output.note(&format!("hint: {hint}"));
                    }
                }
                return Ok(Ended {
                    status,
                    end: Some(end),
                });
            }
            LiveReply::Started { .. }
            | LiveReply::StdinCredit { .. }
            | LiveReply::StdinClosed
            | LiveReply::Output { .. }
            | LiveReply::Event { .. }
            | LiveReply::Answer { .. } => {}
        }
        if let Some(status) = output.stopped() {
            // When this connection closes, the sandbox ends the program, unless --leave was given.
            return Ok(Ended::without_report(status));
        }
    }
}

fn printed(text: Option<String>, base64: Option<String>) -> Vec<u8> {
    let engine = &base64::engine::general_purpose::STANDARD;
    match (text, base64) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(base64)) => engine.decode(base64).unwrap_or_default(),
        (None, None) => Vec::new(),
    }
}

fn show(output: &Output, args: &ExecArgs, stream: OutputStream, bytes: &[u8]) {
    if args.tty {
        return output.screen(bytes);
    }
    output.guest(
        match stream {
            OutputStream::Stdout => Stream::Data,
            OutputStream::Stderr => Stream::Talk,
        },
        bytes,
    );
}

fn status(output: &Output, end: &LiveEnd) -> u8 {
    if end.output_truncated {
        output.note(
            "the end of the program's output was dropped: the program has ended, but a process that it started still prints",
        );
    }
    match (end.code, end.signal) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(1),
        (None, None) => {
            let reason = match end.reason.as_str() {
                "" => String::new(),
                reason => format!(": {reason}"),
            };
            output.note(&format!(
                "the program did not exit by itself: {}{reason}",
                end.end
            ));
            match end.end.as_str() {
                "timed-out" => 124,
                "cancelled" => 130,
                _ => 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exec_exit_status_is_the_programs_or_derived_from_signal_timeout_or_cancellation() {
        let output = Output::new(true);
        let end = |code, signal, end: &str| LiveEnd {
            code,
            signal,
            end: end.to_owned(),
            reason: String::new(),
            duration_ms: 0,
            output_truncated: false,
        };
        for (ended, wanted) in [
            (end(Some(0), None, "exited"), 0),
            (end(Some(255), None, "exited"), 255),
            (end(None, Some(9), "signalled"), 137),
            (end(None, None, "timed-out"), 124),
            (end(None, None, "cancelled"), 130),
            (end(None, None, "guest-died"), 1),
        ] {
            assert_eq!(status(&output, &ended), wanted);
        }
    }
}
