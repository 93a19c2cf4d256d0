//! Questions to the supervisor of a run, one conversation each.

use crate::control;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::time::Duration;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LIVE_PROTOCOL, LiveCall, LiveReply, LiveRequest, MAX_LIVE_LINE,
};

/// How long an answer may take: a sandbox that is not ready lets its visitors wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// The way to one run.
#[derive(Debug)]
pub(super) struct Line {
    /// Its directory.
    pub run: PathBuf,
    pub actor: String,
}

impl Line {
    /// Asks and waits for the answer.
    pub(super) fn ask(&self, request: LiveRequest) -> Result<Value, ErrorBody> {
        let call = LiveCall {
            live: LIVE_PROTOCOL,
            actor: self.actor.clone(),
            request,
        };
        let mut said = serde_json::to_vec(&call)
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        said.push(b'\n');
        let line = self.converse(&said).map_err(|error| {
            let message = format!("no sandbox of this run answers: {error}");
            ErrorBody::new(ErrorCode::SandboxNotHeld, message)
                .hint("look with `wp-codebox runs get` whether it goes on")
        })?;
        let silent = || {
            let message = "the sandbox ended before it answered";
            ErrorBody::new(ErrorCode::SandboxNotHeld, message)
        };
        match line {
            Some(LiveReply::Answer { answer }) => Ok(answer),
            Some(LiveReply::Error { error }) => Err(error),
            Some(_) | None => Err(silent()),
        }
    }

    fn converse(&self, said: &[u8]) -> std::io::Result<Option<LiveReply>> {
        let mut stream = control::connect(&self.run)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(said)?;
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = Vec::new();
            let mut bounded = reader.by_ref().take(MAX_LIVE_LINE as u64);
            if bounded.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            let reply: LiveReply = serde_json::from_slice(&line)?;
            if reply.is_last() {
                return Ok(Some(reply));
            }
        }
    }
}
