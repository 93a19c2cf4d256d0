//! Asking a held sandbox for something that has one answer.

use super::socket::address;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LIVE_PROTOCOL, LiveCall, LiveReply, LiveRequest, MAX_LIVE_LINE,
};
use wp_codebox_runtime::FoundRun;

/// Asks, and waits for the answer at most so long.
pub(crate) fn ask(
    run: &FoundRun,
    actor: &str,
    request: LiveRequest,
    patience: Duration,
) -> Result<Value, ErrorBody> {
    let call = LiveCall {
        live: LIVE_PROTOCOL,
        actor: actor.to_owned(),
        request,
    };
    match talk(run, &call, patience) {
        Ok(LiveReply::Answer { answer }) => Ok(answer),
        Ok(LiveReply::Error { error }) => Err(error),
        Ok(_) => Err(silent(run, "it answers something else")),
        Err(error) => Err(silent(run, &error.to_string())),
    }
}

fn silent(run: &FoundRun, why: &str) -> ErrorBody {
    let message = format!("sandbox {} does not answer: {why}", run.run_id);
    ErrorBody::new(ErrorCode::RunnerUnavailable, message)
        .hint("look at it with `wp-codebox sandbox get`; `wp-codebox sandbox destroy` ends it")
}

fn talk(run: &FoundRun, call: &LiveCall, patience: Duration) -> io::Result<LiveReply> {
    let (_directory, path) = address(&run.path)?;
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut line = serde_json::to_vec(call)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let most = u64::try_from(MAX_LIVE_LINE).unwrap_or(u64::MAX);
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        (&mut reader).take(most).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(io::Error::other("it hung up"));
        }
        let reply: LiveReply = serde_json::from_slice(&line)?;
        if reply.is_last() {
            return Ok(reply);
        }
    }
}
