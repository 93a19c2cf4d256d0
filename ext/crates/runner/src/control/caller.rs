//! Asking a held sandbox for something, from another process.

use super::socket::address;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LIVE_PROTOCOL, LiveCall, LiveReply, LiveRequest, MAX_LIVE_LINE,
};
use wp_codebox_runtime::FoundRun;

/// Longest line of a sandbox, bytes: the trace of an episode is one.
const ANSWER: u64 = 96 * 1024 * 1024;
/// How long the request may take on its way to the sandbox.
const WRITING: Duration = Duration::from_secs(20);

/// How long a run that starts may take until it listens.
const STARTING: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Connects. A run is found from its record on, which comes before its socket.
fn connect(run: &FoundRun, mut pause: impl FnMut()) -> std::io::Result<UnixStream> {
    use std::io::ErrorKind;
    let (_directory, path) = address(&run.path)?;
    let deadline = Instant::now() + STARTING;
    loop {
        // Before the attempt: a run that ends after it is not taken for one that starts.
        let goes_on = run.goes_on();
        match UnixStream::connect(&path) {
            Err(error)
                if error.kind() == ErrorKind::NotFound && goes_on && Instant::now() < deadline =>
            {
                pause();
            }
            Err(error) if error.kind() == ErrorKind::NotFound && goes_on => {
                return Err(std::io::Error::new(
                    ErrorKind::TimedOut,
                    "it is starting and does not listen yet",
                ));
            }
            connected => return connected,
        }
    }
}

/// Opens a conversation.
pub(crate) fn open(
    run: &FoundRun,
    actor: &str,
    request: LiveRequest,
) -> Result<UnixStream, ErrorBody> {
    let pause = || std::thread::sleep(LOOK_AGAIN);
    let stream = connect(run, pause).map_err(|e| silent(run, &e))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::{RunId, SiteId};
    use wp_codebox_runtime::{NewRun, RunDir, StateDir};

    /// A run whose supervisor is this process.
    fn starting() -> (tempfile::TempDir, RunDir, FoundRun) {
        let directory = tempfile::tempdir().unwrap();
        let own = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(directory.path(), own).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(directory.path(), Some(12_345), Some(12_345)).unwrap();
        }
        let state = StateDir::open(directory.path()).unwrap();
        let run_id = RunId::new(format!("run_{:032x}", 1)).unwrap();
        let site = SiteId::new("default").unwrap();
        let run_dir = RunDir::create(&state, &site, &NewRun::new(run_id.clone()), 9).unwrap();
        let path = run_dir.path().to_owned();
        (directory, run_dir, FoundRun { site, run_id, path })
    }

    #[test]
    fn a_run_without_its_socket_yet_is_waited_for() {
        let (_directory, _run_dir, run) = starting();
        let mut listener = None;
        connect(&run, || {
            listener = super::super::socket::bind(&run.path).ok()
        })
        .unwrap();
        assert!(listener.is_some(), "it was there at once");
    }

    #[test]
    fn a_run_that_ends_before_it_listens_is_not_waited_for() {
        let (_directory, run_dir, run) = starting();
        let mut run_dir = Some(run_dir);
        let error = connect(&run, || drop(run_dir.take())).unwrap_err();
        assert!(run_dir.is_none(), "it was not waited for");
        assert_eq!(silent(&run, &error).code, ErrorCode::SandboxNotHeld);
    }
}
