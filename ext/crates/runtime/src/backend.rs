//! The traits that every backend implements, and the guarantees for callers.
//!
//! A backend builds a runtime from a specification. A runtime executes commands one after the
//! other in one guest until it is destroyed. All data about the guest's behaviour come from the
//! guest and are untrusted. All data about isolation were observed before untrusted code ran.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ExecutionId, GuestDeath, GuestPath, IsolationReport, OutputStream, SandboxAudit,
};

/// Error of a backend with its stable code.
pub type BackendError = ErrorBody;

/// Optional features of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether changed files can be captured.
    pub capture: bool,
    /// Whether state can be snapshotted and restored.
    pub snapshot: bool,
}

/// One program to execute.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Execution id, which all of its events contain.
    pub id: ExecutionId,
    /// Program and arguments, executed without a shell.
    pub argv: Vec<String>,
    /// Environment variables added to the guest's base environment.
    pub env: BTreeMap<String, String>,
    /// Working directory.
    pub cwd: GuestPath,
    /// Standard input; `None` means empty.
    pub stdin: Option<Vec<u8>>,
    /// Maximum number of output bytes passed to the caller's sink, counted over standard output and
    /// standard error together. Further output is read and dropped.
    pub output_bytes: u64,
    /// Time at which the program and its child processes are killed; the guest stays alive.
    pub stop_at: Instant,
    /// Time at which the whole guest is killed.
    pub deadline: Instant,
}

/// End of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionEnd {
    /// The program exited.
    Exited {
        /// Exit code.
        code: i32,
    },
    /// A signal killed the program.
    Signalled {
        /// Signal number.
        signal: i32,
    },
    /// The program could not be started.
    NotStarted {
        /// Error, e.g. `wp_codebox_agent_program_missing`.
        error: ErrorBody,
    },
    /// The deadline passed and the guest was killed.
    TimedOut,
    /// The run was cancelled and the guest was killed.
    Cancelled,
    /// The guest reached a resource limit and was killed.
    LimitReached {
        /// Error that names the limit.
        error: ErrorBody,
    },
    /// The guest ended without a request from the supervisor.
    GuestDied {
        /// Process of the guest that ended, and its exit status.
        death: GuestDeath,
    },
}

impl ExecutionEnd {
    /// Returns the end of an execution whose guest died for an unknown reason.
    #[must_use]
    pub fn unknown_death() -> Self {
        Self::GuestDied {
            death: GuestDeath::default(),
        }
    }

    /// Returns a sentence for an execution that a limit or the death of the guest ended: the limit,
    /// or the guest process that ended and its exit status. Returns an empty text for every other
    /// end.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::LimitReached { error } => error.message.clone(),
            Self::GuestDied { death } => death.to_string(),
            Self::Exited { .. }
            | Self::Signalled { .. }
            | Self::NotStarted { .. }
            | Self::TimedOut
            | Self::Cancelled => String::new(),
        }
    }
}

/// Result of an execution.
#[derive(Debug, Clone)]
pub struct ExecutionResult {
    /// How the program ended.
    pub end: ExecutionEnd,
    /// Whether the program was killed at `stop_at` while the guest stayed alive.
    pub stopped: bool,
    /// Whether output was dropped because it exceeded `output_bytes`.
    pub output_truncated: bool,
    /// Whether the disk limit was reached during the execution.
    pub disk_full: bool,
    /// Duration of the execution.
    pub duration: Duration,
}

/// A program that runs concurrently with others and uses standard streams of the caller.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Id of the program, unique among the programs of the guest.
    pub id: ExecutionId,
    /// Program and arguments, executed without a shell.
    pub argv: Vec<String>,
    /// Environment variables added to the guest's base environment.
    pub env: BTreeMap<String, String>,
    /// Working directory.
    pub cwd: GuestPath,
    /// Whether standard input is a terminal that becomes the controlling terminal.
    pub terminal: Terminal,
}

/// Kind of a launched program's standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// Pipes, sockets or files.
    None,
    /// All three are the slave side of one pseudo-terminal, which becomes the controlling
    /// terminal.
    Controlling,
}

/// End of a launched program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchedEnd {
    /// Id of the program.
    pub id: ExecutionId,
    /// How the program ended.
    pub end: ExecutionEnd,
}

/// Resource usage of a runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of the guest and of the processes that built it.
    pub cpu: Duration,
    /// Largest observed resident memory in bytes.
    pub peak_memory_bytes: u64,
}

/// Contents that the captured mounts have after the run, by mount index.
#[derive(Debug)]
pub enum CapturedMounts {
    /// Upper directories of overlays, with the differences from the mount's source.
    Layers(BTreeMap<u32, OwnedFd>),
    /// Complete trees that were copied from the mount's source.
    Trees(BTreeMap<u32, OwnedFd>),
}

impl Default for CapturedMounts {
    fn default() -> Self {
        Self::Layers(BTreeMap::new())
    }
}

/// Result of destroying a runtime.
#[derive(Debug, Default)]
pub struct Destroyed {
    /// Contents of the captured mounts.
    pub left: CapturedMounts,
    /// Resource usage of the runtime.
    pub usage: Usage,
}

/// Sockets that listen inside a guest. The process that accepts their connections controls all
/// outgoing traffic.
#[derive(Debug)]
pub struct EgressListeners {
    /// Unix domain socket.
    pub unix: OwnedFd,
    /// TCP socket on the guest's 127.0.0.1.
    pub tcp: OwnedFd,
}

/// Factory for runtimes of one kind.
pub trait Backend {
    /// Specification from which this backend builds a runtime.
    type Spec;
    /// Returns the name of the backend, e.g. `native`.
    fn kind(&self) -> &'static str;
    /// Returns the optional features of the backend.
    fn capabilities(&self) -> Capabilities;
    /// Builds, isolates and probes a guest. On an error, every partial resource is removed.
    fn create(&self, spec: &Self::Spec) -> Result<Box<dyn Runtime>, BackendError>;
}

/// Callback that receives a connection or an error.
pub type Connected = Box<dyn FnOnce(Result<OwnedFd, BackendError>) + Send>;

/// Opens connections into a guest from any thread, even while the owner of the guest waits for a
/// program.
pub trait Connector: Send + Sync {
    /// Requests a connection to a port on the guest's own 127.0.0.1 and returns immediately.
    /// `answer` is called exactly once: by the owner of the guest when the result arrives, or by
    /// the requesting thread if the guest is gone. `answer` must not block.
    fn ask(&self, port: u16, answer: Connected);
}

/// A guest that is ready to execute programs.
pub trait Runtime {
    /// Returns what the probes observed in this guest before untrusted code ran.
    fn isolation(&self) -> &IsolationReport;
    /// Returns the sockets on which the egress bridge accepts the guest's outgoing connections, if
    /// the guest has such sockets. Only the first call returns them.
    fn take_egress(&mut self) -> Option<EgressListeners>;
    /// Returns the socket that receives the guest's mail if the guest has one. Only the first
    /// call returns it.
    fn take_mail(&mut self) -> Option<OwnedFd>;
    /// Returns the restrictions that the host's process wrapper placed on the process that built
    /// the guest.
    fn outer_sandbox(&self) -> &SandboxAudit;
    /// Executes one program and passes its output to the sink as it arrives. If a limit or the
    /// deadline is reached, or the run is cancelled, the whole guest is killed. While the program
    /// prints nothing, the sink is called with no bytes several times a second.
    fn execute(
        &mut self,
        execution: &Execution,
        sink: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<ExecutionResult, BackendError>;
    /// Starts a program without waiting for it. The program runs concurrently with others, also
    /// during [`Runtime::execute`]; [`Runtime::ended`] returns its end.
    fn launch(&mut self, launch: &Launch, stdio: [OwnedFd; 3]) -> Result<(), BackendError>;
    /// Sends a signal to the foreground process group of a launched program. Has no effect if the
    /// program has ended.
    fn signal(&mut self, id: &ExecutionId, signal: i32) -> Result<(), BackendError>;
    /// Kills a launched program and its child processes. [`Runtime::ended`] returns its end as
    /// usual.
    fn stop(&mut self, id: &ExecutionId) -> Result<(), BackendError>;
    /// Returns the end of a launched program. Blocks until `until`, or until `wake` is readable.
    /// When the guest dies, the ends of all launched programs are returned; without launched
    /// programs, the call returns `None` as soon as the guest dies.
    fn ended(&mut self, wake: BorrowedFd<'_>, until: Instant) -> Option<LaunchedEnd>;
    /// Returns how the guest died, or `None` if it is alive.
    fn death(&mut self) -> Option<ExecutionEnd>;
    /// Opens a connection to a port on the guest's own 127.0.0.1. The returned descriptor is
    /// non-blocking.
    fn connect(&mut self, port: u16) -> Result<OwnedFd, BackendError>;
    /// Returns an object that opens connections like [`Runtime::connect`], but from other threads
    /// and while this thread blocks.
    fn connector(&self) -> Result<Arc<dyn Connector>, BackendError>;
    /// Processes pending messages of the guest without blocking, for a thread that owns the guest
    /// and is waiting for something else.
    fn listen(&mut self);
    /// Returns the current contents of the captured mounts. The guest is alive, so contents can
    /// change during a read, and file names are chosen by the guest.
    fn look(&self) -> Result<CapturedMounts, BackendError>;
    /// Kills the guest with all of its processes and returns the contents of its captured mounts.
    fn destroy(self: Box<Self>) -> Destroyed;

    /// Kills the guest like [`Runtime::destroy`] and drops the contents of its mounts.
    fn discard(self: Box<Self>) -> Usage {
        self.destroy().usage
    }
}
