//! Replies from a sandbox to a client of the live protocol.

use super::StdinFlow;
use crate::{ErrorBody, ExecutionId, OutputStream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line from the sandbox to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveReply {
    /// The program started. Its events in the journal carry this execution id.
    Started {
        /// Execution id of the program.
        execution_id: ExecutionId,
        /// Flow control of standard input: `credit` only if the client requested it.
        #[serde(default, skip_serializing_if = "StdinFlow::is_plain")]
        stdin: StdinFlow,
    },
    /// The client may send this many more bytes of standard input, counted after base64
    /// decoding.
    StdinCredit {
        /// Additional bytes, added to the remaining credit.
        bytes: u64,
    },
    /// The program closed its standard input; further input is dropped.
    StdinClosed,
    /// The program printed output; with a terminal all output is `stdout`.
    Output {
        /// Stream to which the program wrote.
        stream: OutputStream,
        /// The output as text, if it is valid UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The output as base64, if it is not valid UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
    },
    /// One event of the journal, in the requested format.
    Event {
        /// The event, as JSON.
        event: Value,
    },
    /// The program ended. Final reply to `exec`.
    Exited(LiveEnd),
    /// Final reply to every successful request except `exec`.
    Answer {
        /// Result document; its type depends on the request: `sandbox/v1`, an observation, … For
        /// `events`: `cursor`, the sequence number of the last sent event.
        answer: Value,
    },
    /// The request was refused or failed. Final reply.
    Error {
        /// Error of the request.
        error: ErrorBody,
    },
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveEnd {
    /// Exit code, if the program exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Signal, if a signal killed the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How the program ended: `exited`, `signalled`, `timed-out`, `cancelled`, `limit-reached`,
    /// `guest-died` or `not-started`.
    pub end: String,
    /// For `limit-reached` the exceeded limit; for `guest-died` the sandbox process that ended, and
    /// why; otherwise empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Run time of the program in milliseconds.
    pub duration_ms: u64,
    /// Whether the end of the output was dropped because a background process of the program kept
    /// printing. In results of the PHP method `Sandbox::ask()` it is also true if the output was
    /// longer than the result can hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_truncated: bool,
}

impl LiveReply {
    /// Returns true if this is the last reply to the request.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        match self {
            LiveReply::Started { .. }
            | LiveReply::StdinCredit { .. }
            | LiveReply::StdinClosed
            | LiveReply::Output { .. }
            | LiveReply::Event { .. } => false,
            LiveReply::Exited(_) | LiveReply::Answer { .. } | LiveReply::Error { .. } => true,
        }
    }
}
