//! Client side of the frame protocol, for the process that starts the supervisor of a run.

use crate::channel::{Channel, ChannelError, Received};
use rustix::fd::OwnedFd;
use serde::Deserialize as _;
use serde_json::Value;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, Frame, LifecycleEvent, PROTOCOL_VERSION, RunId, RunRequest,
    RunResult, hex,
};

/// Length of a single wait for a frame; a wait without a time limit consists of many such waits.
const LONG_WAIT: Duration = Duration::from_secs(3600);

/// Error of reading a frame that the supervisor sent.
#[derive(Debug, thiserror::Error, CodedError)]
pub enum FrameError {
    /// The supervisor uses another version of the frame protocol.
    #[error(
        "the runner speaks protocol {theirs}, the caller {PROTOCOL_VERSION}; install the PHP extension and wp-codebox from the same release"
    )]
    #[code(ExtensionStale)]
    Stale {
        /// Protocol version that the supervisor sent.
        theirs: Value,
    },
    /// The line is not a valid frame, or the socket failed.
    #[error(transparent)]
    #[code(transparent)]
    Channel(#[from] ChannelError),
}

/// Frame that a supervisor sends to its caller. The members `document` and `request` also contain
/// JSON members that this version does not know.
#[derive(Debug)]
pub enum SupervisorFrame {
    /// The supervisor has created the run directory.
    Accepted,
    /// A lifecycle event of the run.
    Event {
        /// The event, parsed.
        event: LifecycleEvent,
        /// The event as JSON, unchanged.
        document: Value,
    },
    /// The agent calls a tool that the parent process must execute: `parent-tool-request/v1`.
    ToolRequest {
        /// The request as JSON, `parent-tool-request/v1`.
        request: Value,
    },
    /// The run has ended and has a result. Last frame.
    Result {
        /// The result, parsed.
        result: Box<RunResult>,
        /// The result as JSON, unchanged.
        document: Value,
    },
    /// The run could not start or could not be finished. Last frame.
    Error {
        /// Why the run could not start or be finished.
        error: ErrorBody,
    },
}

impl SupervisorFrame {
    /// Parses a line as a frame of the run with this id.
    ///
    /// # Errors
    /// Fails when the line is not a frame, is a frame that only callers send, belongs to another
    /// run, or is an `accepted` frame of another protocol version.
    pub fn read(line: &[u8], run_id: &RunId) -> Result<Self, FrameError> {
        let refused = |reason| FrameError::Channel(ChannelError::NotAFrame { reason });
        let mut value: Value =
            serde_json::from_slice(line).map_err(|_| refused("it is not JSON"))?;
        // The protocol version is checked before all other members, because a supervisor with
        // another version may send other members.
        if value["type"] == "accepted" && value["protocol"] != PROTOCOL_VERSION {
            let theirs = value["protocol"].take();
            return Err(FrameError::Stale { theirs });
        }
        let frame =
            Frame::deserialize(&value).map_err(|_| refused("its members do not fit its type"))?;
        match frame {
            Frame::Accepted { run_id: theirs, .. } if theirs == *run_id => Ok(Self::Accepted),
            Frame::Event { event } => Ok(Self::Event {
                event,
                document: value["event"].take(),
            }),
            Frame::ToolRequest { request } => Ok(Self::ToolRequest { request }),
            Frame::Result { result } if result.run_id == *run_id => Ok(Self::Result {
                result: Box::new(result),
                document: value["result"].take(),
            }),
            Frame::Error { error } => Ok(Self::Error { error }),
            Frame::Accepted { .. }
            | Frame::Result { .. }
            | Frame::Start { .. }
            | Frame::Cancel
            | Frame::Detach
            | Frame::ToolResult { .. } => Err(refused(
                "it belongs to another run, or only callers may send it",
            )),
        }
    }
}

/// Creates a new random run id. The caller chooses the id so that it can find the run even if its
/// supervisor dies at once.
///
/// # Errors
/// Fails when the kernel returns no random bytes.
pub fn new_run_id() -> Result<RunId, ErrorBody> {
    let failed = |reason: String| ErrorBody::new(ErrorCode::Internal, reason);
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| failed(e.to_string()))?;
    RunId::new(format!("run_{}", hex(&bytes))).map_err(|e| failed(e.to_string()))
}

/// Blocking client for a caller that follows one run until it ends.
#[derive(Debug)]
pub struct RunClient {
    run_id: RunId,
    channel: Channel,
}

impl RunClient {
    /// Creates the client and sends the request to the supervisor at the other end of this socket.
    ///
    /// # Errors
    /// Fails when the request is too long or the socket fails.
    pub fn start(
        socket: OwnedFd,
        asked_ns: u64,
        request: RunRequest,
    ) -> Result<Self, ChannelError> {
        let client = Self {
            run_id: request.run_id.clone(),
            channel: Channel::of_frames(socket),
        };
        client.send(&Frame::Start {
            protocol: PROTOCOL_VERSION,
            asked_ns: Some(asked_ns),
            request,
        })?;
        Ok(client)
    }

    /// Sends a frame; waits while the socket buffer is full. Returns success also if the
    /// supervisor has closed the socket; a later `next_frame` returns `None`.
    ///
    /// # Errors
    /// Fails when the frame is too long or the socket fails.
    pub fn send(&self, frame: &Frame) -> Result<(), ChannelError> {
        self.channel.send(frame, || Ok(()))
    }

    /// Waits for the next frame; returns `None` after the supervisor closed the socket.
    ///
    /// # Errors
    /// Fails as [`SupervisorFrame::read`] does, or when the socket fails.
    pub fn next_frame(&self) -> Result<Option<SupervisorFrame>, FrameError> {
        loop {
            match self.channel.receive(LONG_WAIT)? {
                Received::Nothing => {}
                Received::End => return Ok(None),
                Received::Line(line) => {
                    return SupervisorFrame::read(&line, &self.run_id).map(Some);
                }
            }
        }
    }

    /// Duplicates the socket for a thread that sends a cancel frame.
    ///
    /// # Errors
    /// Fails when the process has no free file descriptor.
    pub fn sender(&self) -> io::Result<UnixStream> {
        self.channel.try_clone_socket()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(document: &Value) -> Result<SupervisorFrame, FrameError> {
        let run_id = RunId::new(format!("run_{}", "0".repeat(32))).unwrap();
        SupervisorFrame::read(document.to_string().as_bytes(), &run_id)
    }

    fn accepted(protocol: u32, digit: &str) -> Value {
        let run_id = format!("run_{}", digit.repeat(32));
        json!({"type": "accepted", "protocol": protocol, "version": "x", "run_id": run_id})
    }

    #[test]
    fn frames_of_other_runs_and_other_protocol_versions_are_rejected() {
        let good = read(&accepted(PROTOCOL_VERSION, "0"));
        assert!(matches!(good, Ok(SupervisorFrame::Accepted)), "{good:?}");
        let other = read(&accepted(PROTOCOL_VERSION, "1"));
        assert!(matches!(other, Err(FrameError::Channel(_))), "{other:?}");
        // This frame has no `run_id`: the version is checked before the other members.
        let stale = read(&json!({"type": "accepted", "protocol": 99})).unwrap_err();
        let stale = ErrorBody::from(stale);
        assert_eq!(stale.code, ErrorCode::ExtensionStale);
        assert!(stale.message.contains("protocol 99,"), "{}", stale.message);
        for frame in [
            json!({"type": "cancel"}),
            json!({"type": "detach"}),
            json!([]),
        ] {
            let refused = read(&frame);
            assert!(
                matches!(refused, Err(FrameError::Channel(_))),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn error_frame_sent_before_the_connection_closes_is_received() {
        let request: RunRequest = serde_json::from_value(json!({
            "schema": "wp-codebox/run-request/v1",
            "run_id": format!("run_{}", "0".repeat(32)),
            "site": "site-1",
            "paths": {"state_dir": "/s", "share_dir": "/h", "launcher": "/l", "php_binary": "/p", "wordpress": "/w"},
        }))
        .unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let error = ErrorBody::new(ErrorCode::Busy, "no room");
        crate::write_frame(
            &theirs,
            &Frame::Error {
                error: error.clone(),
            },
        )
        .unwrap();
        drop(theirs);
        let client = RunClient::start(ours.into(), 0, request).unwrap();
        match client.next_frame() {
            Ok(Some(SupervisorFrame::Error { error: heard })) => assert_eq!(heard, error),
            other => panic!("{other:?}"),
        }
        assert!(matches!(client.next_frame(), Ok(None)));
    }
}
