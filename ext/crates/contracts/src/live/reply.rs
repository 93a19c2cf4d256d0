//! What a sandbox says in a conversation.

use super::StdinFlow;
use crate::{ErrorBody, ExecutionId, OutputStream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveReply {
    /// The program runs under this id, which its events carry too.
    Started {
        /// Key of its events.
        execution_id: ExecutionId,
        /// How standard input is taken: `credit` only when the client asked for it.
        #[serde(default, skip_serializing_if = "StdinFlow::is_plain")]
        stdin: StdinFlow,
    },
    /// So many further bytes of standard input may be sent, counted after base64.
    StdinCredit {
        /// Added to what is left of earlier credit.
        bytes: u64,
    },
    /// The program closed its standard input: further bytes are dropped.
    StdinClosed,
    /// It printed something; a terminal has only `stdout`.
    Output {
        /// Which stream.
        stream: OutputStream,
        /// Text, when it is UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Otherwise base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
    },
    /// One event of the journal, in the words asked for.
    Event {
        /// It.
        event: Value,
    },
    /// The program ended. Last line of an exec.
    Exited(LiveEnd),
    /// The answer. Last line of everything else.
    Answer {
        /// By request: `sandbox/v1`, an observation, …
        answer: Value,
    },
    /// It was refused or failed. Last line.
    Error {
        /// Why.
        error: ErrorBody,
    },
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveEnd {
    /// Exit code, when it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Signal, when it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// `exited`, `signalled`, `timed-out`, `cancelled`, `limit-reached`, `guest-died` or `not-started`.
    pub end: String,
    /// What reached its limit, or which process of the sandbox ended and by what; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Milliseconds.
    pub duration_ms: u64,
    /// Whether the end of the output was dropped: a process that the program left behind went on
    /// printing. From `Sandbox::ask()` also: more came than the answer holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_truncated: bool,
}

impl LiveReply {
    /// Whether nothing follows.
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
