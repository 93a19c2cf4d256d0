//! Runs a program in a sandbox and passes its output on.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::time::Duration;
use wp_codebox_contracts::{
    Disconnect, ErrorBody, ErrorCode, GuestPath, LiveExec, LiveInput, LiveReply, LiveRequest,
    StdinFlow,
};
use wp_codebox_control::StdinCredit;
use wp_codebox_runs::live;
use wp_codebox_runtime::FoundRun;
use wp_codebox_service::{Actor, ExecEnd, ExecOutput, ExecRequest};

/// Maximum size of the standard input in one message, in bytes before base64 encoding.
const PIECE: usize = 48 * 1024;
/// Time limit of one wait for a reply. After it, check whether the client is still connected.
const WAIT: Duration = Duration::from_secs(1);

/// Runs the program and returns when it has ended. An error of `output` closes the connection, and
/// the sandbox then kills the program.
pub(super) fn run(
    run: &FoundRun,
    request: &ExecRequest,
    actor: &Actor,
    output: &mut dyn ExecOutput,
) -> Result<ExecEnd, ErrorBody> {
    let mut input = Input::new(stdin(request)?);
    let client = live::open(run, &actor.to_string(), LiveRequest::Exec(wanted(request)?))?;
    loop {
        input.fill()?;
        let (sent, reply) = client.exchange(&input.pending, WAIT)?;
        input.pending.drain(..sent);
        let Some(reply) = reply else {
            if output.is_closed() {
                return Err(gone("it closed the connection"));
            }
            continue;
        };
        input.credit.update(&reply);
        let passed_on = match reply {
            LiveReply::Started { execution_id, .. } => output.started(execution_id.as_str()),
            LiveReply::Output {
                stream,
                text,
                base64,
            } => output.write(stream, &printed(text, base64)),
            LiveReply::Exited(end) => return Ok(end),
            LiveReply::Error { error } => return Err(error),
            LiveReply::StdinCredit { .. }
            | LiveReply::StdinClosed
            | LiveReply::Event { .. }
            | LiveReply::Answer { .. } => Ok(()),
        };
        passed_on.map_err(|error| gone(&error.to_string()))?;
    }
}

/// Returns the error for a client that closed its connection. When [`run`] returns it, the
/// connection to the sandbox closes, and the sandbox kills the program.
fn gone(why: &str) -> ErrorBody {
    let message = format!("the client no longer reads the output of its program: {why}");
    ErrorBody::new(ErrorCode::RunCancelled, message)
}

fn invalid(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

fn wanted(request: &ExecRequest) -> Result<LiveExec, ErrorBody> {
    let cwd = request.cwd.as_deref().map(GuestPath::new).transpose();
    Ok(LiveExec {
        argv: request.argv.clone(),
        env: request.env.clone(),
        cwd: cwd.map_err(|e| invalid(format!("cwd: {e}")))?,
        terminal: None,
        timeout_ms: request.timeout_ms,
        disconnect: Disconnect::End,
        stdin: StdinFlow::Credit,
    })
}

fn stdin(request: &ExecRequest) -> Result<Vec<u8>, ErrorBody> {
    match (&request.stdin, &request.stdin_base64) {
        (Some(_), Some(_)) => Err(invalid("give stdin or stdin_base64, not both")),
        (Some(text), None) => Ok(text.clone().into_bytes()),
        (None, Some(text)) => STANDARD
            .decode(text)
            .map_err(|_| invalid("stdin_base64 is not base64")),
        (None, None) => Ok(Vec::new()),
    }
}

fn printed(text: Option<String>, base64: Option<String>) -> Vec<u8> {
    match (text, base64) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(base64)) => STANDARD.decode(base64).unwrap_or_default(),
        (None, None) => Vec::new(),
    }
}

/// Standard input of a program, sent only up to the credit: the number of bytes that the sandbox
/// can buffer.
struct Input {
    left: Vec<u8>,
    credit: StdinCredit,
    /// Lines that the socket has not accepted yet.
    pending: Vec<u8>,
    /// Whether the end of the input was put into `pending`.
    ended: bool,
}

impl Input {
    fn new(bytes: Vec<u8>) -> Self {
        Self {
            left: bytes,
            credit: StdinCredit::default(),
            pending: Vec::new(),
            ended: false,
        }
    }

    /// Puts the next piece of the input into `pending`, once the previous one was sent.
    fn fill(&mut self) -> Result<(), ErrorBody> {
        let open = !matches!(self.credit, StdinCredit::NotStarted | StdinCredit::Closed);
        if !open || self.ended || !self.pending.is_empty() {
            return Ok(());
        }
        let line = if self.left.is_empty() {
            self.ended = true;
            LiveInput::StdinEnd
        } else {
            let len = self.credit.next_chunk_len(PIECE).min(self.left.len());
            if len == 0 {
                return Ok(());
            }
            let rest = self.left.split_off(len);
            let piece = std::mem::replace(&mut self.left, rest);
            self.credit.spend(piece.len());
            LiveInput::Stdin {
                base64: STANDARD.encode(piece),
            }
        };
        self.pending = serde_json::to_vec(&line)
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        self.pending.push(b'\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The credit is the number of bytes that the sandbox accepts at this time. The base64 texts
    /// are `abcd` and `ef`.
    #[test]
    fn input_is_sent_only_up_to_the_credit_and_the_end_of_input_is_sent_once_after_the_last_byte() {
        let mut input = Input::new(b"abcdef".to_vec());
        input.fill().unwrap();
        assert!(input.pending.is_empty(), "the program has not started");
        input.credit = StdinCredit::Bytes(4);
        input.fill().unwrap();
        let line = String::from_utf8(std::mem::take(&mut input.pending)).unwrap();
        assert!(line.contains("YWJjZA==") && line.ends_with('\n'), "{line}");
        input.fill().unwrap();
        assert!(input.pending.is_empty(), "the credit is used up");
        input.credit = StdinCredit::Bytes(100);
        let mut lines = Vec::new();
        for _ in 0..3 {
            input.fill().unwrap();
            lines.push(String::from_utf8(std::mem::take(&mut input.pending)).unwrap());
        }
        assert!(lines[0].contains("ZWY="), "{lines:?}");
        assert!(
            lines[1].contains("stdin_end") && lines[2].is_empty(),
            "{lines:?}"
        );
    }

    #[test]
    fn input_as_text_and_as_base64_at_once_is_refused() {
        let both = ExecRequest {
            stdin: Some("a".to_owned()),
            stdin_base64: Some("YQ==".to_owned()),
            ..ExecRequest::default()
        };
        assert_eq!(stdin(&both).unwrap_err().code, ErrorCode::InputInvalid);
        let one = ExecRequest {
            stdin_base64: Some("AP8=".to_owned()),
            ..ExecRequest::default()
        };
        assert_eq!(stdin(&one).unwrap(), [0, 255]);
    }
}
