//! The runner protocol: one request, many event frames, one terminal frame.
//!
//! Frames are newline-delimited JSON on a dedicated descriptor, at most [`MAX_FRAME_BYTES`] each.
//! The first frame of the caller is `start`, of the runner `accepted`. A caller that does not
//! read gets no more events after a while, and then the last frame: `seq` shows the gap, the
//! journal has what is missing. The stream may end without a last frame when its caller came
//! back too late; the record of the run has it.

use crate::{ErrorBody, LifecycleEvent, RunId, RunRequest, RunResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of this protocol; both sides must agree.
pub const PROTOCOL_VERSION: u32 = 5;

/// Longest frame, newline included.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// One line of the protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)]
pub enum Frame {
    /// Caller: start this run.
    Start {
        /// [`PROTOCOL_VERSION`] of the caller.
        protocol: u32,
        /// `CLOCK_MONOTONIC` of when the caller began to ask, nanoseconds; the cost of the run
        /// counts from then. Absent, or no time of the last hour on this clock: from when the
        /// runner started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_ns: Option<u64>,
        /// The request.
        request: RunRequest,
    },
    /// Caller: stop and salvage.
    Cancel,
    /// Caller: from now on the run survives the end of this conversation.
    Detach,
    /// Caller: what came of a parent tool.
    ToolResult {
        /// `wp-codebox/parent-tool-result/v1`; its `request_id` says of which call.
        result: Value,
    },
    /// Runner: the request is well formed and the run directory exists.
    Accepted {
        /// [`PROTOCOL_VERSION`] of the runner.
        protocol: u32,
        /// Version of the runner.
        version: String,
        /// Echo.
        run_id: RunId,
    },
    /// Runner: something happened.
    Event {
        /// What.
        event: LifecycleEvent,
    },
    /// Runner: the agent asks for a tool that the parent answers for.
    ToolRequest {
        /// `wp-codebox/parent-tool-request/v1`.
        request: Value,
    },
    /// Runner: the run came to an outcome. Last frame.
    Result {
        /// The result.
        result: RunResult,
    },
    /// Runner: the run could not start or could not be finished. Last frame.
    Error {
        /// Why.
        error: ErrorBody,
    },
}
