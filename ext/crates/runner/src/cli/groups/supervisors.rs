//! Runs in supervisors of their own, several at once, and one hand that stops all of them.
//!
//! A caller here is a thread: it starts a supervisor, reads its frames and keeps nothing but the
//! last. The frame socket is the only descriptor a supervisor inherits, which is why starts take
//! turns: between the moment a descriptor becomes inheritable and the start no other may begin.

use crate::agent::parent_unavailable;
use crate::frames::{FrameReader, write_frame};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, Frame, PROTOCOL_VERSION, RunId, RunRequest, RunResult,
};

/// Every run of this process that is alive.
#[derive(Debug, Default)]
pub(super) struct Supervisors {
    stopped: AtomicBool,
    alive: Mutex<BTreeMap<RunId, UnixStream>>,
    start: Mutex<()>,
}

fn unavailable(what: String) -> ErrorBody {
    ErrorBody::new(ErrorCode::RunnerUnavailable, what)
}

fn unreachable(e: &io::Error) -> ErrorBody {
    unavailable(format!("the supervisor cannot be reached: {e}"))
}

impl Supervisors {
    /// None yet. From here on Ctrl-C, SIGTERM and SIGHUP end the runs, not this process: the
    /// user gets what was salvaged.
    pub(super) fn begin() -> Result<Arc<Self>, ErrorBody> {
        let supervisors = Arc::new(Self::default());
        let reached = Arc::clone(&supervisors);
        on_signal(move || reached.stop())
            .map_err(|e| unavailable(format!("signals cannot be heard: {e}")))?;
        Ok(supervisors)
    }

    /// Whether everything is to end.
    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Ends everything: runs that are alive are cancelled, and none that starts later goes on.
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for stream in self.alive().values() {
            // One that is gone needs no cancelling.
            let _ = write_frame(stream, &Frame::Cancel);
        }
    }

    fn alive(&self) -> MutexGuard<'_, BTreeMap<RunId, UnixStream>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a request to its last frame. `accepted` hears once the run has its directory.
    pub(super) fn run(
        &self,
        request: &RunRequest,
        accepted: impl FnOnce(),
    ) -> Result<RunResult, ErrorBody> {
        let (stream, mut child) = self.spawn(Stdio::inherit()).map_err(|e| unreachable(&e))?;
        let answer = self.converse(stream, request, accepted);
        self.alive().remove(&request.run_id);
        // Its last frame comes after everything was settled: it is about to be gone.
        let _ = child.wait();
        answer
    }

    /// `errors`: where it says what it cannot say in frames.
    fn spawn(&self, errors: Stdio) -> io::Result<(UnixStream, Child)> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = OwnedFd::from(theirs);
        let _turn = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty())?;
        let child = Command::new(std::env::current_exe()?)
            .arg("supervise")
            .arg(format!("--frames-fd={}", theirs.as_raw_fd()))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()?;
        drop(theirs);
        Ok((ours, child))
    }

    fn converse(
        &self,
        stream: UnixStream,
        request: &RunRequest,
        accepted: impl FnOnce(),
    ) -> Result<RunResult, ErrorBody> {
        let start = Frame::Start {
            protocol: PROTOCOL_VERSION,
            request: request.clone(),
        };
        write_frame(&stream, &start).map_err(|e| unreachable(&e))?;
        drop(start);
        let clone = || stream.try_clone().map_err(|e| unreachable(&e));
        let answers = clone()?;
        self.alive().insert(request.run_id.clone(), clone()?);
        // Either the stop saw it among those alive, or it is seen here.
        if self.stopped() {
            let _ = write_frame(&answers, &Frame::Cancel);
        }
        let mut accepted = Some(accepted);
        let mut reader = FrameReader::new(stream);
        loop {
            match reader.next() {
                Ok(Some(Frame::Event { .. })) => {}
                Ok(Some(Frame::Accepted { .. })) => {
                    if let Some(accepted) = accepted.take() {
                        accepted();
                    }
                }
                Ok(Some(Frame::ToolRequest { request })) => {
                    let result = parent_unavailable(&request);
                    let _ = write_frame(&answers, &Frame::ToolResult { result });
                }
                Ok(Some(Frame::Result { result })) => return Ok(result),
                Ok(Some(Frame::Error { error })) => return Err(error),
                Ok(Some(
                    Frame::Start { .. } | Frame::Cancel | Frame::Detach | Frame::ToolResult { .. },
                )) => {
                    return Err(unavailable(
                        "the supervisor sent a frame it may not send".to_owned(),
                    ));
                }
                Ok(None) => {
                    return Err(unavailable(format!(
                        "the supervisor of {} died without a result",
                        request.run_id
                    )));
                }
                Err(e) => return Err(unreachable(&e)),
            }
        }
    }
}

/// Starts a run that goes on without this process, and waits until it has its directory.
pub(in crate::cli) fn start_detached(request: &RunRequest) -> Result<(), ErrorBody> {
    let (stream, _child) = Supervisors::default()
        .spawn(Stdio::null())
        .map_err(|e| unreachable(&e))?;
    let start = Frame::Start {
        protocol: PROTOCOL_VERSION,
        request: request.clone(),
    };
    write_frame(&stream, &start).map_err(|e| unreachable(&e))?;
    match FrameReader::new(stream).next() {
        Ok(Some(Frame::Accepted { .. })) => Ok(()),
        Ok(Some(Frame::Error { error })) => Err(error),
        Ok(_) => Err(unavailable(
            "the supervisor did not accept the run".to_owned(),
        )),
        Err(e) => Err(unreachable(&e)),
    }
}

/// Calls back on each signal that means the end.
fn on_signal(mut call: impl FnMut() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut interrupt, mut terminate, mut hangup) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        )
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        _ = hangup.recv() => {}
                    }
                    call();
                }
            });
        })?;
    Ok(())
}
