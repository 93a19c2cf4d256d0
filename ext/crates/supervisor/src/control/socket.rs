//! `control.sock` in the run directory: a cancel frame, a live call or an HTTP request for the
//! events, each in a connection of its own.
//!
//! It is reached through the descriptor of its directory, because the path of a state
//! directory may be longer than the address of a socket. Directory and socket are its
//! owner's alone; the peer's uid is checked as well, for descriptors that were passed on.

use super::handles::ControlHandles;
use super::lines::{Lines, READING, Replies};
use super::{http, live};
use crate::peer;
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

/// First lines awaited at once; further clients wait in the kernel's queue.
const CONVERSATIONS: usize = 64;
/// Conversations beyond their first line at once; further ones are refused.
const LIVE: usize = 128;
/// How long a client may take for its first line, and an answer to a frame.
const PATIENCE: Duration = Duration::from_secs(3);

/// Makes the socket, 0600, in a directory that is 0700.
pub(super) fn bind(run_dir: &Path) -> io::Result<UnixListener> {
    let socket = ControlSocket::of(run_dir)?;
    let path = socket.path();
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Answers until the process ends.
pub(super) async fn serve(listener: AsyncFd<UnixListener>, handles: &ControlHandles) {
    let places = Arc::new(Semaphore::new(CONVERSATIONS));
    // Of their own: nobody who converses at length keeps a cancellation out.
    let live = Arc::new(Semaphore::new(LIVE));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let accept = |listener: &UnixListener| listener.accept();
        let stream = match listener.async_io(Interest::READABLE, accept).await {
            Ok((stream, _)) => stream,
            Err(_) => {
                // No descriptors left, for example: it may get better.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if !socket_peercred(&stream).is_ok_and(|peer| peer::may_speak(peer.uid.as_raw())) {
            continue;
        }
        let Some(stream) = watched(stream) else {
            continue;
        };
        let (handles, live) = (handles.clone(), Arc::clone(&live));
        tokio::spawn(async move {
            let (read, write) = stream.into_split();
            let (mut lines, mut replies) = (Lines::new(read), Replies::new(write, READING));
            let first = tokio::time::timeout(PATIENCE, lines.next()).await;
            let heard = match first {
                Ok(Ok(Some(line))) => hear(&line, &handles),
                Ok(Ok(None) | Err(_)) => Heard::Nonsense("a line of at most 2 MiB is awaited"),
                // Nobody who says nothing keeps a place.
                Err(_) => return,
            };
            drop(place);
            match heard {
                Heard::Cancelled(answer) => line(&mut replies, &answer).await,
                Heard::Nonsense(why) => {
                    let error = ErrorBody::new(ErrorCode::InputInvalid, why);
                    line(&mut replies, &Frame::Error { error }).await;
                }
                Heard::Refused(error) => replies.error(error).await,
                Heard::Live(_) | Heard::Http(_) if live.available_permits() == 0 => {
                    let error = ErrorBody::new(
                        ErrorCode::Busy,
                        format!("{LIVE} conversations with this run go on already"),
                    );
                    replies.error(error).await;
                }
                Heard::Live(call) => {
                    let _place = live.acquire_owned().await;
                    live::converse(*call, lines, replies, &handles).await;
                }
                Heard::Http(first) => {
                    let _place = live.acquire_owned().await;
                    http::answer(&first, lines, replies, &handles).await;
                }
            }
        });
    }
}

/// The connection of a client, which is told when the kernel has no epoll watch for it: a
/// connection that just ends says nothing.
fn watched(stream: std::os::unix::net::UnixStream) -> Option<UnixStream> {
    let told = stream.try_clone();
    let stream = stream
        .set_nonblocking(true)
        .and_then(|()| UnixStream::from_std(stream));
    match (stream, told) {
        (Ok(stream), _) => Some(stream),
        (Err(error), Ok(mut told)) => {
            let sentence = format!("the run cannot hear this connection: {error}");
            let error = kernel_error(ErrorCode::RunnerUnavailable, sentence, &error);
            let line = json!({"type": "error", "error": error});
            // The socket is new and has room for a line.
            let _ = told.write_all(format!("{line}\n").as_bytes());
            None
        }
        (Err(_), Err(_)) => None,
    }
}

/// What a first line is.
enum Heard {
    Cancelled(RunCancellation),
    Live(Box<LiveCall>),
    Http(Vec<u8>),
    Refused(ErrorBody),
    Nonsense(&'static str),
}

fn hear(first: &[u8], handles: &ControlHandles) -> Heard {
    if http::is_request(first) {
        return Heard::Http(first.to_vec());
    }
    match serde_json::from_slice(first) {
        Ok(Frame::Cancel) => {
            // Beside the type; a frame without it, or with nonsense in it, cancels all the same.
            let wish: CancelDetails = serde_json::from_slice(first).unwrap_or_default();
            handles.cancel(CancelReason::Asked, wish);
            return Heard::Cancelled(RunCancellation {
                schema: schema_id::RUN_CANCELLATION.to_owned(),
                run_id: handles.run_id.clone(),
                answer: CancelEffect::Requested,
                status: RunStatus::Running,
            });
        }
        Ok(_) => return Heard::Nonsense("only a cancel frame is heard here"),
        Err(_) => {}
    }
    let says_live = serde_json::from_slice(first)
        .is_ok_and(|value: serde_json::Value| value.get("live").is_some());
    if !says_live {
        return Heard::Nonsense("only a cancel frame or a live call is heard here");
    }
    match live::parse(first) {
        Ok(call) => Heard::Live(Box::new(call)),
        Err(error) => Heard::Refused(error),
    }
}

async fn line(replies: &mut Replies, answer: &impl serde::Serialize) {
    if let Ok(mut bytes) = serde_json::to_vec(answer) {
        bytes.push(b'\n');
        replies.bytes(&bytes).await;
    }
}
