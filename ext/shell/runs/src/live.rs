//! Sends requests to a held sandbox, over the control socket of its supervisor.

use serde_json::Value;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, LiveReply, LiveRequest};
use wp_codebox_control::{LiveClient, LiveError, ReplyTimeout};
use wp_codebox_runtime::FoundRun;

/// Maximum length of a reply in bytes. The longest reply is the trace of an episode: all commands
/// of clients in the sandbox and their results.
const LONGEST_REPLY: usize = 96 * 1024 * 1024;
/// Time limit for sending the request.
const SENDING: Duration = Duration::from_secs(20);
/// Delay before the next attempt when the listen backlog of the socket is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(20);

/// Sends the request and waits for its single reply.
pub fn ask(
    run: &FoundRun,
    actor: &str,
    request: LiveRequest,
    patience: ReplyTimeout,
) -> Result<Value, ErrorBody> {
    let client = open(run, actor, request)?;
    loop {
        match client.next(patience)? {
            LiveReply::Answer { answer } => return Ok(answer),
            LiveReply::Error { error } => return Err(error),
            LiveReply::Started { .. }
            | LiveReply::StdinCredit { .. }
            | LiveReply::StdinClosed
            | LiveReply::Output { .. }
            | LiveReply::Event { .. } => {}
            LiveReply::Exited(_) => {
                let message = format!("sandbox {} sent an unexpected reply", run.run_id);
                return Err(ErrorBody::new(ErrorCode::RunnerUnavailable, message));
            }
        }
    }
}

/// Connects and sends the request. If the sandbox rejects the request, the first reply states the
/// reason.
pub fn open(run: &FoundRun, actor: &str, request: LiveRequest) -> Result<LiveClient, ErrorBody> {
    let client = loop {
        match LiveClient::connect(&run.path, LONGEST_REPLY) {
            Err(LiveError::QueueFull) => std::thread::sleep(QUEUE_PAUSE),
            connected => break connected.map_err(|e| request_failed(run, e))?,
        }
    };
    let began = Instant::now();
    let in_time = || match began.elapsed() {
        elapsed if elapsed < SENDING => Ok(()),
        _ => Err(LiveError::Silent { time: SENDING }),
    };
    client
        .call(actor, request, in_time)
        .map_err(|e| request_failed(run, e))?;
    Ok(client)
}

/// Converts an error of the connection to the sandbox to an error about its run.
fn request_failed(run: &FoundRun, error: LiveError) -> ErrorBody {
    match error {
        LiveError::NotHeld => {
            let why = match run.recorded_error() {
                Ok(error) => error.map(|error| error.message),
                Err(error) => Some(error.to_string()),
            };
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            ErrorBody::new(
                ErrorCode::SandboxNotHeld,
                format!("{} accepts no requests: it has ended{why}", run.run_id),
            )
        }
        LiveError::RequestTooLarge => error.into(),
        LiveError::QueueFull
        | LiveError::Unreachable { .. }
        | LiveError::Silent { .. }
        | LiveError::Ended
        | LiveError::NotAReply
        | LiveError::Channel(_) => ErrorBody::new(
            ErrorCode::RunnerUnavailable,
            format!("the supervisor of {} does not answer: {error}", run.run_id),
        ),
    }
}
