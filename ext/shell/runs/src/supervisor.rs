//! Starts supervisors for all commands and reads their frames (messages about the run), to the last
//! one or until the run can continue without this process.
//!
//! The frame socket is the only descriptor that a supervisor inherits. Supervisors are started one
//! after the other, because no other process may be spawned while that descriptor is inheritable.

use serde_json::{Map, Value, json};
use std::io;
use std::net::Shutdown;
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

/// Lock that is held while a supervisor is spawned.
static TURN: Mutex<()> = Mutex::new(());
/// Supervisors that this process started and that may outlive their request. A long-lived process
/// must wait for them after their end, else they stay as zombies.
static CHILDREN: Mutex<Vec<Child>> = Mutex::new(Vec::new());
/// Start time of this command, in nanoseconds of the monotonic clock.
static BEGAN: OnceLock<u64> = OnceLock::new();

/// Records the start time of this command, from which the duration of a run is counted. `main` must
/// call this before everything else.
pub fn command_begins() {
    BEGAN.get_or_init(monotonic_ns);
}

/// Returns the error for a run that cannot be supervised.
pub fn unavailable(what: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::RunnerUnavailable, what)
}

/// Returns the error of a supervisor that cannot be reached.
pub fn unreachable(e: &dyn std::error::Error) -> ErrorBody {
    unavailable(format!("the supervisor cannot be reached: {e}"))
}

/// Returns the error for a supervisor that exited without sending its last frame.
fn died(request: &RunRequest, when: &str) -> ErrorBody {
    let run = &request.run_id;
    unavailable(format!("the supervisor of {run} died {when}")).hint(format!(
        "run again; `wp-codebox runs get {run}` shows what was saved"
    ))
}

/// Starts a supervisor and sends it the request. The duration of the run counts from the start of
/// this command.
pub fn open(request: &RunRequest) -> Result<(RunClient, Option<Child>), ErrorBody> {
    Spawned::new(request.mode)?.begin(request)
}

/// Starts a supervisor for one of several requests of a command and sends it the request. The
/// duration of the run counts from this call, not from the start of the command.
pub fn open_next(request: &RunRequest) -> Result<(RunClient, Option<Child>), ErrorBody> {
    Spawned::next(request.mode)?.begin(request)
}

/// A supervisor that was started and waits for its request. The supervisor keeps the permissions
/// that this process had when it started the supervisor, even if this process gives up root later.
/// If this process sends no request, the supervisor exits.
#[derive(Debug)]
pub struct Spawned {
    stream: UnixStream,
    /// Absent if a service started the supervisor.
    child: Option<Child>,
    asked_ns: u64,
}

impl Spawned {
    /// Starts a supervisor that waits for its request.
    pub fn new(mode: RunMode) -> Result<Self, ErrorBody> {
        let (stream, child) = spawn(mode).map_err(|e| unreachable(&e))?;
        Ok(Self {
            stream,
            child: Some(child),
            asked_ns: *BEGAN.get_or_init(monotonic_ns),
        })
    }

    /// Starts a supervisor for one of several requests of this process. The duration of the run
    /// counts from this call, not from the start of the command.
    pub fn next(mode: RunMode) -> Result<Self, ErrorBody> {
        let asked_ns = monotonic_ns();
        let spawned = Self::new(mode)?;
        Ok(Self {
            asked_ns,
            ..spawned
        })
    }

    /// Returns the supervisor at the other end of a connection to a service that starts one for each
    /// connection.
    pub fn connected(stream: UnixStream) -> Self {
        Self {
            stream,
            child: None,
            asked_ns: monotonic_ns(),
        }
    }

    /// Sends the request and waits until the supervisor has created the directory of the run. The
    /// run, which is detached, continues without this process.
    pub fn until_accepted(self, request: &RunRequest) -> Result<(), ErrorBody> {
        let (client, child) = self.begin(request)?;
        reap_ended();
        CHILDREN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(child);
        accepted(&client, request)
    }

    /// Sends the request.
    pub fn begin(self, request: &RunRequest) -> Result<(RunClient, Option<Child>), ErrorBody> {
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
            // A detached supervisor outlives the reader of this process's standard error.
            RunMode::Detached => Stdio::null(),
        })
        .spawn()?;
    drop(theirs);
    Ok((ours, child))
}

/// Adds the host path of an unusable mount to the error. The supervisor omits it, because its
/// errors also reach website users who may not see host paths.
pub fn with_source(error: ErrorBody, request: &RunRequest) -> ErrorBody {
    let of_a_source = matches!(
        error.code,
        ErrorCode::MountSourceInvalid
            | ErrorCode::MountDenied
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

/// Reason why this process stopped reading the frames of a run.
#[derive(Debug)]
pub enum Followed<T> {
    /// The run sent its last frame.
    Ended(Box<RunResult>),
    /// The caller has the value that it waited for; the run continues without this process.
    Left(T),
}

/// Reads the frames of a run to the last one, or until `seen` breaks with a value. Rejects calls of
/// tools that run on the parent site, because this program has no parent site.
pub fn follow<T>(
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
                // Ignore a failed send: the next read notices that the supervisor has exited.
                let _ = client.send(&Frame::ToolResult { result });
            }
            SupervisorFrame::Result { result, .. } => return Ok(Followed::Ended(result)),
            SupervisorFrame::Error { error } => return Err(error),
        }
    }
    Err(died(request, "without a result"))
}

/// Ends the conversation with a supervisor and waits until it has exited.
pub fn wait_for_exit(client: RunClient, child: Option<Child>) {
    if let Ok(socket) = client.sender() {
        hang_up(&socket);
    }
    drop(client);
    let _ = child.map(|mut child| child.wait());
}

/// Shuts down all copies of the socket to a supervisor. If one stayed open, a supervisor whose frames
/// this process no longer reads would go on with an attached run, and one that a service started would
/// occupy a connection of that service.
fn hang_up(socket: &UnixStream) {
    // The socket is already shut down if the supervisor has exited.
    let _ = socket.shutdown(Shutdown::Both);
}

/// Starts a detached run and waits until the supervisor has created the directory of the run.
pub fn until_accepted(request: &RunRequest) -> Result<(), ErrorBody> {
    Spawned::new(request.mode)?.until_accepted(request)
}

/// Waits for the first frame of a supervisor, which says that the directory of the run exists.
fn accepted(client: &RunClient, request: &RunRequest) -> Result<(), ErrorBody> {
    match client.next_frame() {
        Ok(Some(SupervisorFrame::Accepted)) => Ok(()),
        Ok(Some(SupervisorFrame::Error { error })) => Err(with_source(error, request)),
        Ok(_) => Err(unavailable(
            "the supervisor exited or replied something else before it accepted the run; try again",
        )),
        Err(e) => Err(unreachable(&e)),
    }
}

/// Waits for those supervisors of this process that have ended, so that no zombie is left.
pub fn reap_ended() {
    let mut children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
}

/// Starts a detached sandbox, waits for the event that it is ready, and returns the data of that
/// event. Calls `on_event` for every earlier event.
pub fn until_ready(
    request: &RunRequest,
    on_event: impl FnMut(&LifecycleEvent),
) -> Result<Map<String, Value>, ErrorBody> {
    Spawned::new(request.mode)?.until_ready(request, on_event)
}

impl Spawned {
    /// Waits until a sandbox of this supervisor is ready, as the function [`until_ready`] does.
    pub fn until_ready(
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
                None => return Err(died(request, "before the sandbox was ready")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// `cat` stands for a supervisor that ends when its caller has closed the socket.
    #[test]
    fn supervisor_sees_the_end_of_its_socket_although_a_copy_is_still_open() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let copy = ours.try_clone().unwrap();
        let mut child = Command::new("cat")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Control: it goes on while the socket is open.
        assert!(child.try_wait().unwrap().is_none());
        hang_up(&ours);
        let (sender, ended) = mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait().unwrap().success()));
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true));
        drop((ours, copy));
    }
}
