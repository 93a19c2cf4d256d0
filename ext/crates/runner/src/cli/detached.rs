//! A run that survives the command that starts it, followed until its sandbox is ready.

use crate::frames::{FrameReader, write_frame};
use serde_json::{Map, Value, json};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use wp_codebox_contracts::{ErrorBody, ErrorCode, EventType, Frame, PROTOCOL_VERSION, RunRequest};

/// Starts a supervisor of its own; answers what its sandbox said when it was ready.
pub(super) fn start(request: &RunRequest) -> Result<Map<String, Value>, ErrorBody> {
    let unavailable = |what: String| ErrorBody::new(ErrorCode::RunnerUnavailable, what);
    let io = |e: std::io::Error| unavailable(format!("the supervisor cannot be reached: {e}"));
    let (ours, theirs) = UnixStream::pair().map_err(io)?;
    let theirs = OwnedFd::from(theirs);
    // The only descriptor the child inherits; this process has no other thread.
    rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty()).map_err(|e| io(e.into()))?;
    Command::new(std::env::current_exe().map_err(io)?)
        .arg("supervise")
        .arg(format!("--frames-fd={}", theirs.as_raw_fd()))
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Whoever reads this command's talk is not to wait for the sandbox.
        .stderr(Stdio::null())
        .spawn()
        .map_err(io)?;
    drop(theirs);
    let start = Frame::Start {
        protocol: PROTOCOL_VERSION,
        request: request.clone(),
    };
    write_frame(&ours, &start).map_err(io)?;
    let mut reader = FrameReader::new(ours);
    loop {
        match reader.next().map_err(io)? {
            Some(Frame::Event { event })
                if event.kind == EventType::StateChanged
                    && event.data.get("to") == Some(&json!("ready")) =>
            {
                return Ok(event.data);
            }
            Some(Frame::Error { error }) => return Err(error),
            Some(Frame::Result { result }) => {
                let summary = format!("the sandbox ended before it was ready: {}", result.summary);
                return Err(result
                    .error
                    .unwrap_or_else(|| ErrorBody::new(ErrorCode::SandboxStartFailed, summary)));
            }
            Some(_) => {}
            None => {
                return Err(unavailable(format!(
                    "the supervisor of {} died before the sandbox was ready",
                    request.run_id
                )));
            }
        }
    }
}
