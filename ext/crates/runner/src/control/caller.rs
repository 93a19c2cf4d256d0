//! Asking a held sandbox for something, from another process.

use super::socket::address;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LIVE_PROTOCOL, LiveCall, LiveReply, LiveRequest, MAX_LIVE_LINE,
};
use wp_codebox_runtime::FoundRun;

/// Longest line of a sandbox, bytes: the trace of an episode is one.
const ANSWER: u64 = 96 * 1024 * 1024;
/// How long the request may take on its way to the sandbox.
const WRITING: Duration = Duration::from_secs(20);

/// Opens a conversation.
pub(crate) fn open(
    run: &FoundRun,
    actor: &str,
    request: LiveRequest,
) -> Result<UnixStream, ErrorBody> {
    let (_directory, path) = address(&run.path).map_err(|e| silent(run, &e))?;
    let stream = UnixStream::connect(path).map_err(|e| silent(run, &e))?;
    stream
        .set_write_timeout(Some(WRITING))
        .map_err(|e| silent(run, &e))?;
    let call = LiveCall {
        live: LIVE_PROTOCOL,
        actor: actor.to_owned(),
        request,
    };
    let mut line = serde_json::to_vec(&call)
        .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
    line.push(b'\n');
    if line.len() > MAX_LIVE_LINE {
        return Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "the request is larger than 2 MiB",
        ));
    }
    (&stream)
        .write_all(&line)
        .map_err(|e| refusal(&stream, &e).unwrap_or_else(|| silent(run, &e)))?;
    // Standard input follows at the pace of the program. A timeout would cut a line in the middle.
    stream
        .set_write_timeout(None)
        .map_err(|e| silent(run, &e))?;
    Ok(stream)
}

/// What the sandbox said before it closed the connection without hearing the request.
fn refusal(stream: &UnixStream, error: &std::io::Error) -> Option<ErrorBody> {
    use std::io::ErrorKind;
    // Of a connection that is still open no end would be read.
    if !matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
    ) {
        return None;
    }
    match ReplyReader::new(stream.try_clone().ok()?).next() {
        Ok(LiveReply::Error { error }) => Some(error),
        Ok(_) | Err(_) => None,
    }
}

fn silent(run: &FoundRun, error: &std::io::Error) -> ErrorBody {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            let why = run.recorded_error().map(|error| error.message);
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            ErrorBody::new(
                ErrorCode::SandboxNotHeld,
                format!("{} takes no requests: it has ended{why}", run.run_id),
            )
        }
        _ => ErrorBody::new(
            ErrorCode::RunnerUnavailable,
            format!("the supervisor of {} does not answer: {error}", run.run_id),
        ),
    }
}

/// Lines of a sandbox.
pub(crate) struct ReplyReader {
    stream: BufReader<UnixStream>,
}

impl ReplyReader {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// The next one; an end without a last word is an error.
    pub(crate) fn next(&mut self) -> Result<LiveReply, ErrorBody> {
        let gone = |why: &str| {
            ErrorBody::new(
                ErrorCode::RunnerUnavailable,
                format!("the sandbox ended the conversation: {why}"),
            )
        };
        let mut line = Vec::new();
        self.stream
            .by_ref()
            .take(ANSWER)
            .read_until(b'\n', &mut line)
            .map_err(|e| gone(&e.to_string()))?;
        if line.last() != Some(&b'\n') {
            return Err(gone("there was no last word"));
        }
        serde_json::from_slice(&line).map_err(|_| gone("a line is no reply"))
    }
}
