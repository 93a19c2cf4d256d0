//! Control thread of the supervisor: reads the frames (messages) of the process that started the
//! run, signals and the control socket.
//!
//! The thread acts on the run only through [`ControlHandles`]. Number, length and duration of the
//! thread's inputs are limited, so a connected client cannot delay the run, and can end it only by
//! a request to cancel.

mod events;
mod exec;
mod handles;
mod http;
mod lines;
mod live;
mod socket;
mod stdin;
mod streams;

pub(crate) use handles::ControlHandles;

use serde_json::Value;
use std::io;
use std::os::unix::net::UnixStream;
use tokio::io::Interest;
use tokio::signal::unix::{Signal, SignalKind, signal};
use wp_codebox_contracts::{CancelDetails, ErrorBody, ErrorCode, Frame, RunMode};
use wp_codebox_control::FrameReader;
use wp_codebox_runtime::{CancelReason, RunDir, kernel_error};

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// Starts the control thread, which runs until the process exits. When this returns, the thread
/// receives signals, connections and frames.
pub(crate) fn listen(
    reader: FrameReader,
    run_dir: &RunDir,
    handles: ControlHandles,
) -> Result<(), ErrorBody> {
    let code = ErrorCode::RunnerUnavailable;
    let sentence = |e: &io::Error| format!("the supervisor cannot open its control socket: {e}");
    let unable = |e: io::Error| kernel_error(code, sentence(&e), &e);
    // Does not use `kernel_error`, which explains ENOSPC as too many epoll watches: `bind` returns
    // ENOSPC if the disk is full.
    let unnamed = |e: io::Error| {
        ErrorBody::new(code, sentence(&e))
            .hint("check that the state directory has free space and that its file system supports unix sockets")
    };
    let socket = socket::bind(run_dir.path()).map_err(unnamed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(unable)?;
    let (signals, socket) = {
        let _inside = runtime.enter();
        let heard = |kind| signal(kind).map_err(unable);
        let signals = Signals {
            terminate: heard(SignalKind::terminate())?,
            interrupt: heard(SignalKind::interrupt())?,
            hangup: heard(SignalKind::hangup())?,
        };
        (
            signals,
            streams::watched(socket, Interest::READABLE).map_err(unable)?,
        )
    };
    let (stream, buffered) = reader.into_parts();
    stream.set_nonblocking(false).map_err(unable)?;
    std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                // A blocking thread reads the frames. It shares the socket with the writer, which
                // must block; `O_NONBLOCK` applies to the whole socket and would affect the writer
                // as well.
                let caller = handles.clone();
                tokio::task::spawn_blocking(move || read_caller_frames(stream, buffered, &caller));
                tokio::join!(
                    handle_signals(signals, &handles),
                    socket::serve(socket, &handles)
                );
            });
        })
        .map_err(unable)?;
    Ok(())
}

/// What a frame from the caller requests.
#[derive(Debug, Clone, PartialEq)]
enum CallerFrame {
    Cancel,
    Detach,
    /// The caller's result for a tool that the run asked it to execute.
    Answer(Value),
    /// Frame that a caller must not send after the `start` frame.
    Invalid,
}

fn classify(frame: Frame) -> CallerFrame {
    match frame {
        Frame::Cancel => CallerFrame::Cancel,
        Frame::Detach => CallerFrame::Detach,
        Frame::ToolResult { result } => CallerFrame::Answer(result),
        Frame::Start { .. }
        | Frame::Accepted { .. }
        | Frame::Event { .. }
        | Frame::ToolRequest { .. }
        | Frame::Result { .. }
        | Frame::Error { .. } => CallerFrame::Invalid,
    }
}

/// Reads frames until end of file. An attached run is cancelled when its caller closes the socket
/// or sends an invalid frame; a detached run continues without its caller.
fn read_caller_frames(stream: UnixStream, buffered: Vec<u8>, handles: &ControlHandles) {
    let mut reader = FrameReader::resume(stream, buffered);
    while let Ok(Some(frame)) = reader.next_frame() {
        match classify(frame) {
            CallerFrame::Cancel => handles.cancel(CancelReason::Asked, CancelDetails::default()),
            CallerFrame::Detach => {
                handles.attachment.detach();
                handles.record.detached();
            }
            CallerFrame::Answer(result) => handles.answers.deliver(result),
            CallerFrame::Invalid => break,
        }
    }
    match handles.attachment.mode() {
        RunMode::Attached => handles.cancel(CancelReason::CallerGone, CancelDetails::default()),
        RunMode::Detached => {}
    }
}

async fn handle_signals(mut signals: Signals, handles: &ControlHandles) {
    loop {
        tokio::select! {
            Some(()) = signals.terminate.recv() => {}
            Some(()) = signals.interrupt.recv() => {}
            Some(()) = signals.hangup.recv() => match handles.attachment.mode() {
                RunMode::Attached => {}
                // A detached run ignores the hang-up of its caller's terminal.
                RunMode::Detached => continue,
            },
            else => return,
        }
        handles.cancel(CancelReason::Signal, CancelDetails::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wp_codebox_contracts::{ErrorBody, ErrorCode};

    #[test]
    fn caller_may_send_tool_results_and_cancel_but_not_tool_requests_or_errors() {
        let result = json!({"request_id": "r"});
        let answer = Frame::ToolResult {
            result: result.clone(),
        };
        assert_eq!(classify(answer), CallerFrame::Answer(result));
        assert_eq!(classify(Frame::Cancel), CallerFrame::Cancel);
        for frame in [
            Frame::ToolRequest { request: json!({}) },
            Frame::Error {
                error: ErrorBody::new(ErrorCode::RunFailed, "x"),
            },
        ] {
            assert_eq!(classify(frame), CallerFrame::Invalid);
        }
    }
}
