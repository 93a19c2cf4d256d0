//! How every command of this program starts a supervisor, and how far it follows one that is
//! to go on without it.
//!
//! The frame socket is the only descriptor a supervisor inherits, which is why starts take
//! turns: between the moment a descriptor becomes inheritable and the start no other may begin.

use serde_json::{Map, Value, json};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use wp_codebox_agent::parent_unavailable;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventType, Frame, LifecycleEvent, RunMode, RunRequest, RunResult,
};
use wp_codebox_control::{RunClient, SupervisorFrame, monotonic_ns};

static TURN: Mutex<()> = Mutex::new(());
/// When this command began.
static BEGAN: OnceLock<u64> = OnceLock::new();

/// To be called first: what a run costs counts from here.
pub(super) fn command_begins() {
    BEGAN.get_or_init(monotonic_ns);
}

pub(super) fn unavailable(what: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::RunnerUnavailable, what)
}

pub(super) fn unreachable(e: &dyn std::error::Error) -> ErrorBody {
    unavailable(format!("the supervisor cannot be reached: {e}"))
}

/// Starts a supervisor and hands it the request, which is all that this command is for.
pub(super) fn open(request: &RunRequest) -> Result<(RunClient, Child), ErrorBody> {
    Spawned::new(request.mode)?.begin(request)
}

/// The same for one of several requests: its time begins now.
pub(super) fn open_next(request: &RunRequest) -> Result<(RunClient, Child), ErrorBody> {
    let asked_ns = monotonic_ns();
    let spawned = Spawned::new(request.mode)?;
    Spawned {
        asked_ns,
        ..spawned
    }
    .begin(request)
}

/// A supervisor that waits for its request. It was started with the rights that this process had
/// then; it ends when nobody gives it a request.
#[derive(Debug)]
pub(super) struct Spawned {
    stream: UnixStream,
    child: Child,
    asked_ns: u64,
}

impl Spawned {
    /// Starts one.
    pub(super) fn new(mode: RunMode) -> Result<Self, ErrorBody> {
        let (stream, child) = spawn(mode).map_err(|e| unreachable(&e))?;
        Ok(Self {
            stream,
            child,
            asked_ns: *BEGAN.get_or_init(monotonic_ns),
        })
    }

    fn begin(self, request: &RunRequest) -> Result<(RunClient, Child), ErrorBody> {
        let client = RunClient::start(self.stream.into(), self.asked_ns, request.clone())
            .map_err(|e| unreachable(&e))?;
        Ok((client, self.child))
    }
}

fn spawn(mode: RunMode) -> io::Result<(UnixStream, Child)> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs);
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty())?;
    let child = Command::new(std::env::current_exe()?)
        .arg("supervise")
        .arg(format!("--frames-fd={}", theirs.as_raw_fd()))
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(match mode {
            RunMode::Attached => Stdio::inherit(),
            // It outlives whoever reads that.
            RunMode::Detached => Stdio::null(),
        })
        .spawn()?;
    drop(theirs);
    Ok((ours, child))
}

/// Names the host path of a mount that could not be used. The supervisor leaves it out: its
/// answers also reach callers of a site who may not see the host's paths.
pub(super) fn with_source(error: ErrorBody, request: &RunRequest) -> ErrorBody {
    let of_a_source = matches!(
        error.code,
        ErrorCode::MountSourceInvalid
            | ErrorCode::MountUnreadable
            | ErrorCode::MountSpecialFile
            | ErrorCode::MountTooLarge
    );
    let target = error
        .data
        .as_ref()
        .and_then(|data| data.get("target")?.as_str());
    let mount = request
        .mounts
        .iter()
        .find(|m| Some(m.target.as_str()) == target);
    match mount.filter(|_| of_a_source) {
        None => error,
        Some(mount) => {
            let source = mount.source.clone();
            let message = format!("{source}: {}", error.message);
            ErrorBody { message, ..error }.with("source", source)
        }
    }
}

/// How far a run was followed.
#[derive(Debug)]
pub(crate) enum Followed<T> {
    /// To its last frame.
    Ended(Box<RunResult>),
    /// Until the caller had what it wanted. The run goes on by itself.
    Left(T),
}

/// Reads the frames of a run to the last, or until `seen` breaks with one. Nobody answers here for
/// the tools of a parent.
pub(super) fn follow<T>(
    client: &RunClient,
    request: &RunRequest,
    mut seen: impl FnMut(&SupervisorFrame) -> ControlFlow<T>,
) -> Result<Followed<T>, ErrorBody> {
    while let Some(frame) = client.next_frame().map_err(|e| unreachable(&e))? {
        match frame {
            SupervisorFrame::Event { .. } | SupervisorFrame::Accepted => {
                if let ControlFlow::Break(wanted) = seen(&frame) {
                    return Ok(Followed::Left(wanted));
                }
            }
            SupervisorFrame::ToolRequest { request } => {
                let result = parent_unavailable(&request);
                // A supervisor that is gone is noticed by the next read.
                let _ = client.send(&Frame::ToolResult { result });
            }
            SupervisorFrame::Result { result, .. } => return Ok(Followed::Ended(result)),
            SupervisorFrame::Error { error } => return Err(error),
        }
    }
    Err(unavailable(format!(
        "the supervisor of {} died without a result",
        request.run_id
    )))
}

/// Starts a run that goes on without this process, and waits until it has its directory.
pub(super) fn until_accepted(request: &RunRequest) -> Result<(), ErrorBody> {
    let (client, _child) = open(request)?;
    match client.next_frame() {
        Ok(Some(SupervisorFrame::Accepted)) => Ok(()),
        Ok(Some(SupervisorFrame::Error { error })) => Err(with_source(error, request)),
        Ok(_) => Err(unavailable("the supervisor did not accept the run")),
        Err(e) => Err(unreachable(&e)),
    }
}

/// Starts a sandbox that goes on without this process; answers what it said when it was ready.
/// `on_event` gets every event before that.
pub(super) fn until_ready(
    request: &RunRequest,
    on_event: impl FnMut(&LifecycleEvent),
) -> Result<Map<String, Value>, ErrorBody> {
    Spawned::new(request.mode)?.until_ready(request, on_event)
}

impl Spawned {
    /// The same with a supervisor that was started before.
    pub(super) fn until_ready(
        self,
        request: &RunRequest,
        mut on_event: impl FnMut(&LifecycleEvent),
    ) -> Result<Map<String, Value>, ErrorBody> {
        let (client, _child) = self.begin(request)?;
        loop {
            match client.next_frame().map_err(|e| unreachable(&e))? {
                Some(SupervisorFrame::Event { event, .. })
                    if event.kind == EventType::StateChanged
                        && event.data.get("to") == Some(&json!("ready")) =>
                {
                    return Ok(event.data);
                }
                Some(SupervisorFrame::Event { event, .. }) => on_event(&event),
                Some(SupervisorFrame::Error { error }) => return Err(with_source(error, request)),
                Some(SupervisorFrame::Result { result, .. }) => {
                    let summary =
                        format!("the sandbox ended before it was ready: {}", result.summary);
                    return Err(result.error.unwrap_or_else(|| {
                        ErrorBody::new(ErrorCode::SandboxStartFailed, summary)
                    }));
                }
                Some(SupervisorFrame::Accepted | SupervisorFrame::ToolRequest { .. }) => {}
                None => {
                    return Err(unavailable(format!(
                        "the supervisor of {} died before the sandbox was ready",
                        request.run_id
                    )));
                }
            }
        }
    }
}
