//! The supervisor protocol: one request, many event frames, one terminal frame.
//!
//! Frames are newline-delimited JSON on a dedicated file descriptor, at most [`MAX_FRAME_BYTES`]
//! each. The caller's first frame is `start`, the supervisor's is `accepted`. If the caller does not
//! read for some time, the supervisor stops sending events and sends only the terminal frame. A notice
//! in the run's result then says that events were not sent; the journal has all events. The stream
//! may end without a terminal frame if the caller resumed reading too late; the result is then in
//! the stored state of the run.

use crate::{ErrorBody, LifecycleEvent, RunId, RunRequest, RunResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the supervisor protocol; caller and supervisor must have the same version.
pub const PROTOCOL_VERSION: u32 = 5;

/// Maximum length of a frame in bytes, newline included.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// One line of the supervisor protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)]
pub enum Frame {
    /// Caller: start this run.
    Start {
        /// [`PROTOCOL_VERSION`] of the caller.
        protocol: u32,
        /// `CLOCK_MONOTONIC` time in nanoseconds at which the caller began the call; the wall clock
        /// time in the run's cost begins then. If absent or not within the last hour, it begins
        /// with the supervisor's start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_ns: Option<u64>,
        /// The run request.
        request: RunRequest,
    },
    /// Caller: stop the run and write a recovery bundle: unsigned, with the changes so far.
    Cancel,
    /// Caller: the run must continue after this connection closes.
    Detach,
    /// Caller: result of a parent tool call.
    ToolResult {
        /// `wp-codebox/parent-tool-result/v1`; its `request_id` names the call.
        result: Value,
    },
    /// Supervisor: the request is well formed and the run directory exists.
    Accepted {
        /// [`PROTOCOL_VERSION`] of the supervisor.
        protocol: u32,
        /// Release version of the supervisor.
        version: String,
        /// Run id of the request.
        run_id: RunId,
    },
    /// Supervisor: a lifecycle event.
    Event {
        /// The event.
        event: LifecycleEvent,
    },
    /// Supervisor: the agent calls a tool that the parent process serves.
    ToolRequest {
        /// The call, `wp-codebox/parent-tool-request/v1`.
        request: Value,
    },
    /// Supervisor: the run ended with an outcome. Terminal frame.
    Result {
        /// Result of the run.
        result: RunResult,
    },
    /// Supervisor: the run could not start or could not be finished. Terminal frame.
    Error {
        /// Error that ended the run.
        error: ErrorBody,
    },
}
