//! What a running supervisor hears: its caller's frames, signals, and the control socket.
//!
//! One thread for all of it, which never touches the run but through [`Cancellation`], the
//! record and the attachment to the caller. Whatever arrives is bounded in number, length and
//! time, so that nobody who may connect can hold or end the run but by asking for its end.

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

/// Listens in a thread of its own until the process ends. When this returns, signals, socket
/// and frames are heard.
pub(crate) fn listen(
    reader: FrameReader,
    run_dir: &RunDir,
    handles: ControlHandles,
) -> Result<(), ErrorBody> {
    let code = ErrorCode::RunnerUnavailable;
    let sentence = |e: &io::Error| format!("the run cannot listen to anybody: {e}");
    let unable = |e: io::Error| kernel_error(code, sentence(&e), &e);
    // Of the socket's name ENOSPC means the disk.
    let unnamed = |e: io::Error| {
        ErrorBody::new(code, sentence(&e))
            .hint("check free space of the state directory, and that its file system has sockets")
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
                // Frames are read on a blocking thread: the socket is shared with the writer,
                // which must block, and O_NONBLOCK would be shared too.
                let caller = handles.clone();
                tokio::task::spawn_blocking(move || hear_caller(stream, buffered, &caller));
                tokio::join!(
                    hear_signals(signals, &handles),
                    socket::serve(socket, &handles)
                );
            });
        })
        .map_err(unable)?;
    Ok(())
}

/// What a caller's frame asks for.
#[derive(Debug, Clone, PartialEq)]
enum Heard {
    Cancel,
    Detach,
    /// To a question of the run.
    Answer(Value),
    /// It is none of a caller's, or belongs elsewhere.
    Nonsense,
}

fn heard(frame: Frame) -> Heard {
    match frame {
        Frame::Cancel => Heard::Cancel,
        Frame::Detach => Heard::Detach,
        Frame::ToolResult { result } => Heard::Answer(result),
        Frame::Start { .. }
        | Frame::Accepted { .. }
        | Frame::Event { .. }
        | Frame::ToolRequest { .. }
        | Frame::Result { .. }
        | Frame::Error { .. } => Heard::Nonsense,
    }
}

/// Until the end of the stream. An attached run ends with its caller, also with one that
/// sends what is no frame or belongs elsewhere; a detached one only hears no more of it.
fn hear_caller(stream: UnixStream, buffered: Vec<u8>, handles: &ControlHandles) {
    let mut reader = FrameReader::resume(stream, buffered);
    while let Ok(Some(frame)) = reader.next_frame() {
        match heard(frame) {
            Heard::Cancel => handles.cancel(CancelReason::Asked, CancelDetails::default()),
            Heard::Detach => {
                handles.attachment.detach();
                handles.record.detached();
            }
            Heard::Answer(result) => handles.answers.hear(result),
            Heard::Nonsense => break,
        }
    }
    handles.answers.close();
    match handles.attachment.mode() {
        RunMode::Attached => handles.cancel(CancelReason::CallerGone, CancelDetails::default()),
        RunMode::Detached => {}
    }
}

async fn hear_signals(mut signals: Signals, handles: &ControlHandles) {
    loop {
        tokio::select! {
            Some(()) = signals.terminate.recv() => {}
            Some(()) = signals.interrupt.recv() => {}
            Some(()) = signals.hangup.recv() => match handles.attachment.mode() {
                RunMode::Attached => {}
                // Its caller's terminal is not its own.
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
    fn an_answer_does_not_end_an_attached_run_and_a_runners_frame_does() {
        let result = json!({"request_id": "r"});
        let answer = Frame::ToolResult {
            result: result.clone(),
        };
        assert_eq!(heard(answer), Heard::Answer(result));
        assert_eq!(heard(Frame::Cancel), Heard::Cancel);
        for frame in [
            Frame::ToolRequest { request: json!({}) },
            Frame::Error {
                error: ErrorBody::new(ErrorCode::RunFailed, "x"),
            },
        ] {
            assert_eq!(heard(frame), Heard::Nonsense);
        }
    }
}
