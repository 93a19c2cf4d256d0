//! Requests to a held sandbox (one that is kept open after its setup) over the control socket of
//! its run. It does not matter which caller started the sandbox.
//!
//! The supervisor first updates the records of dead runs and resolves the run reference. Then this
//! process itself connects to the control socket, so that no part of a request appears in an
//! argument list. If the caller disconnects before a program that it started has ended, the sandbox
//! ends that program, as for any client of the socket.

use crate::arguments::call;
use crate::fields::Fields;
use crate::guard::Failure;
use crate::ini::Settings;
use crate::interrupt::{TICK, tick};
use crate::runs;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ext_php_rs::types::ZendCallable;
use ext_php_rs::zend::BailoutGuard;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LiveInput, LiveReply, LiveRequest, MAX_FRAME_BYTES, OutputStream, SiteId,
    StdinFlow, unknown_member,
};
use wp_codebox_control::{LiveClient, LiveError, StdinCredit};

/// Size limit of each output stream in a reply, in bytes. A caller that needs more output reads the
/// events of the run.
const MAX_STREAM_BYTES: usize = 8 * 1024 * 1024;
/// Size of one chunk of standard input, in bytes.
const CHUNK_BYTES: usize = 256 * 1024;
/// Size limit of an actor's name, in bytes.
const MAX_ACTOR_BYTES: usize = 100;

/// Options of a request: who sends it, how long to wait for the response, and the standard input of
/// a program that the request starts.
#[derive(Debug)]
pub(crate) struct RequestOptions {
    actor: String,
    deadline: Option<Instant>,
    stdin: Option<String>,
}

impl RequestOptions {
    /// Reads `actor`, `timeout_ms` and `stdin`.
    pub(crate) fn read(options: Map<String, Value>) -> Result<Self, ErrorBody> {
        const KNOWN: &[&str] = &["actor", "timeout_ms", "stdin"];
        let mut fields = Fields::new(options, "", KNOWN, ErrorCode::InputInvalid)?;
        let actor = fields.text("actor")?.unwrap_or_else(|| "php".to_owned());
        if actor.trim().is_empty()
            || actor.len() > MAX_ACTOR_BYTES
            || actor.chars().any(char::is_control)
        {
            let rule = format!(
                "text of at most {MAX_ACTOR_BYTES} bytes that is not blank and has no control characters"
            );
            return Err(fields.refuse("actor", &rule));
        }
        let deadline = fields
            .count("timeout_ms")?
            .and_then(|time| Instant::now().checked_add(Duration::from_millis(time)));
        Ok(Self {
            actor,
            deadline,
            stdin: fields.text("stdin")?,
        })
    }
}

/// Sends a request and returns the sandbox's response; for a program its exit and its output.
pub(crate) fn ask(
    settings: &Settings,
    site: &SiteId,
    reference: &str,
    request: Map<String, Value>,
    options: &RequestOptions,
    on_output: Option<&ZendCallable<'_>>,
) -> Result<Value, Failure> {
    let mut request = parse(request)?;
    let mut input = Input::default();
    if let LiveRequest::Exec(exec) = &mut request {
        exec.stdin = StdinFlow::Credit;
        input.rest = Some(options.stdin.as_deref().unwrap_or_default().as_bytes());
    }
    let client = BailoutGuard::new(connect(settings, site, reference)?);
    let idle = || options.in_time().and_then(|()| tick());
    client.call(&options.actor, request, idle)?;
    let mut output = ProgramOutput::default();
    loop {
        input.prepare();
        let (sent, reply) = client
            .exchange(input.pending(), TICK)
            .map_err(|error| failed(reference, error))?;
        input.at += sent;
        if let Some(reply) = reply {
            input.credit.update(&reply);
            match reply {
                LiveReply::Started { execution_id, .. } => {
                    output.id = Some(execution_id.to_string());
                }
                LiveReply::StdinCredit { .. } | LiveReply::StdinClosed => {}
                LiveReply::Output {
                    stream,
                    text,
                    base64,
                } => output.append(stream, text, base64, on_output)?,
                LiveReply::Exited(end) => return Ok(output.ended(json!(end))),
                LiveReply::Answer { answer } => return Ok(answer),
                LiveReply::Error { error } => return Err(error.into()),
                LiveReply::Event { .. } => return Err(foreign().into()),
            }
        }
        options.in_time()?;
        tick()?;
    }
}

/// The part of a program's standard input that the sandbox has not got yet. It is sent in lines of
/// the live protocol.
#[derive(Default)]
struct Input<'a> {
    /// Line being sent.
    line: Vec<u8>,
    /// Number of bytes of `line` that were sent.
    at: usize,
    /// Input that no line contains yet; `None` once `line` is the end-of-file message.
    rest: Option<&'a [u8]>,
    credit: StdinCredit,
}

impl Input<'_> {
    fn pending(&self) -> &[u8] {
        &self.line[self.at..]
    }

    /// Puts the next piece of input into `line`, if the previous line was sent completely and the
    /// sandbox accepts more input (`credit`).
    fn prepare(&mut self) {
        let (true, Some(rest)) = (self.pending().is_empty(), self.rest) else {
            return;
        };
        let room = match self.credit {
            StdinCredit::NotStarted | StdinCredit::Closed => return,
            credit @ (StdinCredit::Unlimited | StdinCredit::Bytes(_)) => {
                credit.next_chunk_len(CHUNK_BYTES)
            }
        };
        let input = match rest.split_at(room.min(rest.len())) {
            ([], []) => {
                self.rest = None;
                LiveInput::StdinEnd
            }
            // The credit is used up: the sandbox grants more when the program has read some input.
            ([], _) => return,
            (piece, rest) => {
                self.rest = Some(rest);
                self.credit.spend(piece.len());
                let base64 = STANDARD.encode(piece);
                LiveInput::Stdin { base64 }
            }
        };
        self.at = 0;
        self.line = serde_json::to_vec(&input).unwrap_or_default();
        self.line.push(b'\n');
    }
}

impl RequestOptions {
    fn in_time(&self) -> Result<(), Failure> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(ErrorBody::new(
                ErrorCode::RunTimeout,
                "the sandbox did not answer within timeout_ms; the requested action may still happen",
            )
            .into()),
            Some(_) | None => Ok(()),
        }
    }
}

/// Parses a request. PHP has one empty array for lists and objects, so empty optional members are
/// removed first.
fn parse(mut request: Map<String, Value>) -> Result<LiveRequest, ErrorBody> {
    request.retain(|_, value| !value.as_array().is_some_and(Vec::is_empty));
    if request.get("type").is_some_and(|kind| kind == "events") {
        let message =
            "a request cannot read events; call Runs::events(), which returns them page by page";
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message).with("field", "request"));
    }
    serde_json::from_value(Value::Object(request)).map_err(|error| {
        let message = match unknown_member(&error) {
            Some(said) => format!("the request has an {said}"),
            // The parser's message is not used, because it could quote a value of the request.
            None => "the request must have a `type` and its members; see the documentation of Sandbox::ask()".to_owned(),
        };
        ErrorBody::new(ErrorCode::InputInvalid, message).with("field", "request")
    })
}

fn connect(settings: &Settings, site: &SiteId, reference: &str) -> Result<LiveClient, Failure> {
    let run = runs::get(settings, site, reference)?;
    let not_held = |what: &str| {
        ErrorBody::new(
            ErrorCode::SandboxNotHeld,
            format!("the sandbox {reference} does not accept requests: {what}"),
        )
    };
    if run["status"] != "running" {
        return Err(not_held("it has ended").into());
    }
    let id = run["run_id"].as_str().unwrap_or_default();
    let path = format!("{}/sites/{site}/runs/{id}", settings.state_dir);
    LiveClient::connect(Path::new(&path), MAX_FRAME_BYTES).map_err(|error| match error {
        LiveError::NotHeld => not_held("it has just ended").into(),
        error => ErrorBody::new(ErrorCode::RunnerUnavailable, error.to_string()).into(),
    })
}

/// The part of a program's output that was received so far.
#[derive(Debug, Default)]
struct ProgramOutput {
    id: Option<String>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    cut: bool,
}

impl ProgramOutput {
    fn append(
        &mut self,
        stream: OutputStream,
        text: Option<String>,
        base64: Option<String>,
        on_output: Option<&ZendCallable<'_>>,
    ) -> Result<(), Failure> {
        if let Some(callable) = on_output {
            let piece = json!({"stream": stream, "text": text, "base64": base64});
            call(callable, "onOutput", piece)?;
            return Ok(());
        }
        let kept = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        let bytes = match (text, base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(base64)) => STANDARD.decode(base64).unwrap_or_default(),
            (None, None) => Vec::new(),
        };
        let room = MAX_STREAM_BYTES.saturating_sub(kept.len());
        self.cut |= bytes.len() > room;
        kept.extend(bytes.into_iter().take(room));
        Ok(())
    }

    fn ended(self, mut end: Value) -> Value {
        end["execution_id"] = json!(self.id);
        end["stdout"] = json!(String::from_utf8_lossy(&self.stdout));
        end["stderr"] = json!(String::from_utf8_lossy(&self.stderr));
        if self.cut {
            end["output_truncated"] = json!(true);
        }
        end
    }
}

/// Converts a failed exchange with a sandbox to an error of the PHP API.
fn failed(reference: &str, error: LiveError) -> ErrorBody {
    match error {
        LiveError::Ended => gone(reference),
        LiveError::NotAReply => foreign(),
        error => error.into(),
    }
}

fn gone(reference: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunnerUnavailable,
        format!(
            "the sandbox {reference} ended before it answered; Runs::get() returns its outcome"
        ),
    )
}

fn foreign() -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunnerUnavailable,
        "the sandbox answered with a line that this extension does not know; install the same version of the extension and of `wp-codebox`",
    )
}
