//! Server of `control.sock` in the run directory. Each connection carries one cancel frame, one
//! request to the sandbox, or one HTTP request for the events.
//!
//! The socket is bound through the descriptor of its directory, because the path of a state
//! directory may be longer than `sun_path`. Only the owner has access to directory and socket; the
//! server also checks the peer's uid, because a descriptor may have been passed to another process.

use super::handles::ControlHandles;
use super::lines::{Lines, READING, Replies};
use super::{http, live};
use crate::host::peer;
use rustix::net::sockopt::socket_peercred;
use serde_json::json;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use wp_codebox_contracts::{
    CancelDetails, CancelEffect, ErrorBody, ErrorCode, Frame, LiveCall, RunCancellation, RunStatus,
    schema_id,
};
use wp_codebox_control::ControlSocket;
use wp_codebox_runtime::{CancelReason, kernel_error};

/// Maximum number of connections whose first line has not arrived yet; further clients wait in the
/// listen backlog.
const CONVERSATIONS: usize = 64;
/// Maximum number of connections that stay open for a live call or HTTP; further ones are refused.
/// A cancel frame is always accepted.
const LIVE: usize = 128;
/// Time limit for the first line of a connection.
const FIRST_LINE_TIMEOUT: Duration = Duration::from_secs(3);

/// Creates the control socket with mode 0600 in the run directory, which has mode 0700.
pub(super) fn bind(run_dir: &Path) -> io::Result<UnixListener> {
    let socket = ControlSocket::of(run_dir)?;
    let path = socket.path();
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts connections of clients until the process exits.
pub(super) async fn serve(listener: AsyncFd<UnixListener>, handles: &ControlHandles) {
    let places = Arc::new(Semaphore::new(CONVERSATIONS));
    // Separate permits for long conversations, so that these cannot block a cancel request.
    let live = Arc::new(Semaphore::new(LIVE));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let accept = |listener: &UnixListener| listener.accept();
        let stream = match listener.async_io(Interest::READABLE, accept).await {
            Ok((stream, _)) => stream,
            Err(_) => {
                // For example EMFILE: descriptors may become free, so accept is retried.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if !socket_peercred(&stream).is_ok_and(|peer| peer::may_connect(peer.uid.as_raw())) {
            continue;
        }
        let Some(stream) = watched(stream) else {
            continue;
        };
        let (handles, live) = (handles.clone(), Arc::clone(&live));
        tokio::spawn(async move {
            let (read, write) = stream.into_split();
            let (mut lines, mut replies) = (Lines::new(read), Replies::new(write, READING));
            let first = tokio::time::timeout(FIRST_LINE_TIMEOUT, lines.next()).await;
            let heard = match first {
                Ok(Ok(Some(line))) => handle_first_line(&line, &handles),
                Ok(Ok(None) | Err(_)) => {
                    FirstLine::Nonsense("the first line is missing or longer than 2 MiB")
                }
                // A client that sends no line in time must not occupy a permit.
                Err(_) => return,
            };
            drop(place);
            match heard {
                FirstLine::Cancelled(answer) => line(&mut replies, &answer).await,
                FirstLine::Nonsense(why) => {
                    let error = ErrorBody::new(ErrorCode::InputInvalid, why);
                    line(&mut replies, &Frame::Error { error }).await;
                }
                FirstLine::Refused(error) => replies.error(error).await,
                FirstLine::Live(_) | FirstLine::Http(_) if live.available_permits() == 0 => {
                    let error = ErrorBody::new(
                        ErrorCode::Busy,
                        format!("the run already has {LIVE} open connections; try again later"),
                    );
                    replies.error(error).await;
                }
                FirstLine::Live(call) => {
                    let _place = live.acquire_owned().await;
                    live::converse(*call, lines, replies, &handles).await;
                }
                FirstLine::Http(first) => {
                    let _place = live.acquire_owned().await;
                    http::answer(&first, lines, replies, &handles).await;
                }
            }
        });
    }
}

/// Registers a connection with epoll. If that fails, sends the client an error before the
/// connection is closed, because a closed connection alone gives no reason.
fn watched(stream: std::os::unix::net::UnixStream) -> Option<UnixStream> {
    let told = stream.try_clone();
    let stream = stream
        .set_nonblocking(true)
        .and_then(|()| UnixStream::from_std(stream));
    match (stream, told) {
        (Ok(stream), _) => Some(stream),
        (Err(error), Ok(mut told)) => {
            let sentence =
                format!("the supervisor cannot wait for data of this connection: {error}");
            let error = kernel_error(ErrorCode::RunnerUnavailable, sentence, &error);
            let line = json!({"type": "error", "error": error});
            // The socket is new, so its send buffer has room for the line.
            let _ = told.write_all(format!("{line}\n").as_bytes());
            None
        }
        (Err(_), Err(_)) => None,
    }
}

/// Kind of a connection, which its first line decides.
enum FirstLine {
    Cancelled(RunCancellation),
    Live(Box<LiveCall>),
    Http(Vec<u8>),
    Refused(ErrorBody),
    Nonsense(&'static str),
}

fn handle_first_line(first: &[u8], handles: &ControlHandles) -> FirstLine {
    if http::is_request(first) {
        return FirstLine::Http(first.to_vec());
    }
    match serde_json::from_slice(first) {
        Ok(Frame::Cancel) => {
            // Actor and reason are optional: a cancel frame cancels the run even if they are
            // missing or invalid.
            let wish: CancelDetails = serde_json::from_slice(first).unwrap_or_default();
            handles.cancel(CancelReason::Asked, wish);
            return FirstLine::Cancelled(RunCancellation {
                schema: schema_id::RUN_CANCELLATION.to_owned(),
                run_id: handles.run_id.clone(),
                answer: CancelEffect::Requested,
                status: RunStatus::Running,
            });
        }
        Ok(_) => {
            return FirstLine::Nonsense("of all frames, the control socket accepts only `cancel`");
        }
        Err(_) => {}
    }
    let says_live = serde_json::from_slice(first)
        .is_ok_and(|value: serde_json::Value| value.get("live").is_some());
    if !says_live {
        return FirstLine::Nonsense(
            "the first line is neither the frame `cancel` nor a call with the member `live`",
        );
    }
    match live::parse(first) {
        Ok(call) => FirstLine::Live(Box::new(call)),
        Err(error) => FirstLine::Refused(error),
    }
}

async fn line(replies: &mut Replies, answer: &impl serde::Serialize) {
    if let Ok(mut bytes) = serde_json::to_vec(answer) {
        bytes.push(b'\n');
        replies.bytes(&bytes).await;
    }
}
