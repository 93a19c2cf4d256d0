//! Asking a held sandbox for something that has one answer.

use super::caller::{ReplyReader, open};
use serde_json::Value;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, ErrorCode, LiveReply, LiveRequest};
use wp_codebox_runtime::FoundRun;

/// How long an answer may take.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// As long as the sandbox lives: it may have to do first what was asked before.
    Endless,
    /// So long between two of its words.
    AtMost(Duration),
}

/// Asks, and waits for the answer.
pub(crate) fn ask(
    run: &FoundRun,
    actor: &str,
    request: LiveRequest,
    patience: Patience,
) -> Result<Value, ErrorBody> {
    let stream = open(run, actor, request)?;
    if let Patience::AtMost(time) = patience {
        let unable = |e: std::io::Error| ErrorBody::new(ErrorCode::Internal, e.to_string());
        stream.set_read_timeout(Some(time)).map_err(unable)?;
    }
    let mut replies = ReplyReader::new(stream);
    loop {
        match replies.next()? {
            LiveReply::Answer { answer } => return Ok(answer),
            LiveReply::Error { error } => return Err(error),
            LiveReply::Started { .. }
            | LiveReply::StdinCredit { .. }
            | LiveReply::StdinClosed
            | LiveReply::Output { .. }
            | LiveReply::Event { .. } => {}
            LiveReply::Exited(_) => {
                let message = format!("sandbox {} answered something else", run.run_id);
                return Err(ErrorBody::new(ErrorCode::RunnerUnavailable, message));
            }
        }
    }
}
