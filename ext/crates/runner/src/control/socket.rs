//! `control.sock` in the run directory: one frame in, one line out, then it is closed.
//!
//! It is reached through the descriptor of its directory, because the path of a state
//! directory may be longer than the address of a socket. Directory and socket are its
//! owner's alone; the peer's uid is checked as well, for descriptors that were passed on.

use super::Reins;
use crate::peer;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use wp_codebox_contracts::{
    CancelAnswer, CancelWish, ErrorBody, ErrorCode, Frame, RunCancellation, RunStatus, schema_id,
};
use wp_codebox_runtime::{CONTROL_SOCKET, CancelReason};

/// Conversations at once; further ones wait in the kernel's queue.
const CONVERSATIONS: usize = 64;
/// Longest conversation.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest frame, newline included.
const LONGEST: usize = 4096;

/// The socket's address by way of its open directory. It holds only as long as that is open.
pub(super) fn address(run_dir: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(run_dir, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}/{CONTROL_SOCKET}", directory.as_raw_fd());
    Ok((directory, path.into()))
}

/// Makes the socket, 0600, in a directory that is 0700.
pub(super) fn bind(run_dir: &Path) -> io::Result<UnixListener> {
    let (_directory, path) = address(run_dir)?;
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers until the process ends.
pub(super) async fn serve(listener: UnixListener, reins: &Reins) {
    let places = std::sync::Arc::new(Semaphore::new(CONVERSATIONS));
    loop {
        let Ok(place) = std::sync::Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptors left, for example: it may get better.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if !stream
            .peer_cred()
            .is_ok_and(|peer| peer::may_speak(peer.uid()))
        {
            continue;
        }
        let reins = reins.clone();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, converse(stream, &reins)).await;
            drop(place);
        });
    }
}

async fn converse(mut stream: UnixStream, reins: &Reins) -> io::Result<()> {
    let line = match read_line(&mut stream).await? {
        Some(line) => line,
        None => return refuse(&mut stream, "a frame ends with a line end").await,
    };
    match serde_json::from_slice(&line) {
        Ok(Frame::Cancel) => {
            // Beside the type; a frame without it, or with nonsense in it, cancels all the same.
            let wish: CancelWish = serde_json::from_slice(&line).unwrap_or_default();
            reins.cancel(CancelReason::Asked, wish);
            let answer = RunCancellation {
                schema: schema_id::RUN_CANCELLATION.to_owned(),
                run_id: reins.run_id.clone(),
                answer: CancelAnswer::Requested,
                status: RunStatus::Running,
            };
            answer_line(&mut stream, &answer).await
        }
        Ok(_) | Err(_) => refuse(&mut stream, "only a cancel frame is heard here").await,
    }
}

async fn read_line(stream: &mut UnixStream) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut piece = [0_u8; 512];
    while line.len() < LONGEST {
        let read = stream.read(&mut piece).await?;
        line.extend_from_slice(&piece[..read]);
        if line.contains(&b'\n') {
            return Ok(Some(line));
        }
        if read == 0 {
            break;
        }
    }
    Ok(None)
}

async fn refuse(stream: &mut UnixStream, why: &str) -> io::Result<()> {
    let error = ErrorBody::new(ErrorCode::InputInvalid, why);
    answer_line(stream, &Frame::Error { error }).await
}

async fn answer_line(stream: &mut UnixStream, answer: &impl serde::Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(answer)?;
    bytes.push(b'\n');
    stream.write_all(&bytes).await
}
