//! The traits that every backend implements. Their comments state what callers can rely on.
//!
//! A backend builds a runtime (a guest that is ready for use) from a specification. A runtime
//! executes commands one after the other until it is destroyed. Data about the guest's behaviour
//! come from the guest and are untrusted. Data about isolation were observed before untrusted code
//! ran.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ExecutionId, GuestDeath, GuestPath, IsolationReport, OutputStream, SandboxAudit,
};

/// Error of a backend: machine-readable code and message.
pub type BackendError = ErrorBody;

/// Optional features of a backend, and whether it has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the backend can return the files that a guest changed.
    pub capture: bool,
    /// Whether the backend can save a guest's state and start a guest from it.
    pub snapshot: bool,
}

/// One program to execute in a guest, with its input and limits.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Execution id. Every journal event of this execution contains it.
    pub id: ExecutionId,
    /// Program and arguments, executed without a shell.
    pub argv: Vec<String>,
    /// Environment variables added to the guest's base environment.
    pub env: BTreeMap<String, String>,
    /// Working directory of the program in the guest.
    pub cwd: GuestPath,
    /// Standard input of the program; `None` means empty.
    pub stdin: Option<Vec<u8>>,
    /// Maximum number of output bytes that the caller receives, standard output and standard error
    /// together. Further output is read and dropped, so the program does not block.
    pub output_bytes: u64,
    /// Time at which the program and its child processes are killed; the guest stays alive.
    pub stop_at: Instant,
    /// Time at which the whole guest is killed.
    pub deadline: Instant,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionEnd {
    /// The program exited.
    Exited {
        /// Exit code of the program.
        code: i32,
    },
    /// A signal killed the program.
    Signalled {
        /// Number of the signal that killed the program.
        signal: i32,
    },
    /// The program could not be started.
    NotStarted {
        /// Why the program could not be started, e.g. `wp_codebox_agent_program_missing`.
        error: ErrorBody,
    },
    /// The deadline passed and the guest was killed.
    TimedOut,
    /// The run was cancelled and the guest was killed.
    Cancelled,
    /// The guest reached a resource limit and was killed.
    LimitReached {
        /// Error that names the reached limit.
        error: ErrorBody,
    },
    /// The guest ended although the supervisor (the host process that controls it) did not kill it.
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

    /// Returns a sentence about why the guest ended: the reached limit, or the guest process that
    /// ended and its exit status. Returns an empty text if neither applies.
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

/// How an execution ended, and what was observed about it.
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
    /// Wall-clock time from the start of the program to its end.
    pub duration: Duration,
}

/// A program that runs concurrently with other programs of the guest. The caller passes the file
/// descriptors of its standard streams to [`Runtime::launch`].
#[derive(Debug, Clone)]
pub struct Launch {
    /// Id of the program, unique among the programs of the guest.
    pub id: ExecutionId,
    /// Program and arguments, executed without a shell.
    pub argv: Vec<String>,
    /// Environment variables added to the guest's base environment.
    pub env: BTreeMap<String, String>,
    /// Working directory of the program in the guest.
    pub cwd: GuestPath,
    /// Whether the standard streams are a terminal.
    pub terminal: Terminal,
}

/// Whether a program's standard streams are a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// No terminal: the streams are pipes, sockets or files.
    None,
    /// All three streams are the slave side of one pseudo-terminal, which becomes the program's
    /// controlling terminal.
    Controlling,
}

/// Which launched program ended, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchedEnd {
    /// Id that the program was launched with.
    pub id: ExecutionId,
    /// How the program ended.
    pub end: ExecutionEnd,
}

/// CPU time and memory that a guest used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of the guest and of the processes that built it.
    pub cpu: Duration,
    /// Largest resident memory of the guest that was observed, in bytes.
    pub peak_memory_bytes: u64,
}

/// Directories from which the caller reads what the guest changed in its mounts, by index of the
/// mount in the run request. The index `u32::MAX` stands for the guest's `wp-content`. A mount
/// whose changes are not captured has no entry.
#[derive(Debug)]
pub enum CapturedMounts {
    /// Upper directories of overlays: they contain only what differs from the mount's host
    /// directory.
    Layers(BTreeMap<u32, OwnedFd>),
    /// Complete copies of the mounts' host directories, with the guest's changes in them.
    Trees(BTreeMap<u32, OwnedFd>),
}

impl Default for CapturedMounts {
    fn default() -> Self {
        Self::Layers(BTreeMap::new())
    }
}

/// Data of a guest that remain available after the guest was destroyed.
#[derive(Debug, Default)]
pub struct Destroyed {
    /// Directories with the files of the captured mounts.
    pub left: CapturedMounts,
    /// CPU time and memory that the guest used.
    pub usage: Usage,
}

/// Sockets that listen inside a guest for its outgoing connections. The process that accepts them
/// controls all outgoing traffic.
#[derive(Debug)]
pub struct EgressListeners {
    /// Unix domain socket that listens in the guest.
    pub unix: OwnedFd,
    /// TCP socket that listens on the guest's 127.0.0.1.
    pub tcp: OwnedFd,
}

/// Builds guests with one technology, e.g. native Linux namespaces.
pub trait Backend {
    /// Description from which the backend builds a guest.
    type Spec;
    /// Returns the name of the backend, e.g. `native`.
    fn kind(&self) -> &'static str;
    /// Returns the optional features of the backend.
    fn capabilities(&self) -> Capabilities;
    /// Builds a guest, isolates it, and tests the isolation from inside. On an error, everything
    /// that was created for the guest is removed.
    fn create(&self, spec: &Self::Spec) -> Result<Box<dyn Runtime>, BackendError>;
}

/// Callback that receives a connection into the guest, or the error that prevented it.
pub type Connected = Box<dyn FnOnce(Result<OwnedFd, BackendError>) + Send>;

/// Opens connections into a guest from any thread, even while the thread that owns the guest waits
/// for a program.
pub trait Connector: Send + Sync {
    /// Requests a connection to a port on the guest's own 127.0.0.1 and returns without waiting for
    /// the connection. `answer` is called exactly once and must not block. Normally the thread that
    /// owns the guest calls `answer` when the result arrives. If the request cannot be sent or gets
    /// no result within its time limit, a thread that sends this or a later request calls `answer`.
    fn ask(&self, port: u16, answer: Connected);
}

/// A guest that is ready to execute programs.
pub trait Runtime {
    /// Returns the isolation that probes inside this guest observed before untrusted code ran.
    fn isolation(&self) -> &IsolationReport;
    /// Returns the sockets on which the host accepts the guest's outgoing connections, or `None` if
    /// the guest has no such sockets or they were returned before.
    fn take_egress(&mut self) -> Option<EgressListeners>;
    /// Returns the socket that receives mail sent by the guest, or `None` if the guest has no such
    /// socket or it was returned before.
    fn take_mail(&mut self) -> Option<OwnedFd>;
    /// Returns the command line that started the process which built the guest, including the
    /// sandboxing program around it if the host is configured with one.
    fn outer_sandbox(&self) -> &SandboxAudit;
    /// Executes one program and passes its output to the sink as it arrives. If a limit or the
    /// deadline is reached, or the run is cancelled, the whole guest is killed. While the program
    /// prints nothing, the sink is called with an empty slice several times a second, so that the
    /// caller can do other work meanwhile.
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
    /// Waits for a launched program to end and returns how it ended. Returns `None` at the time
    /// `until` or when `wake` is readable. If the guest dies, all launched programs end with it,
    /// and each call returns one of them. If the guest dies while no launched program runs, returns
    /// `None` immediately.
    fn ended(&mut self, wake: BorrowedFd<'_>, until: Instant) -> Option<LaunchedEnd>;
    /// Returns how the guest died, or `None` if it is alive.
    fn death(&mut self) -> Option<ExecutionEnd>;
    /// Opens a connection to a port on the guest's own 127.0.0.1. The returned descriptor is
    /// non-blocking.
    fn connect(&mut self, port: u16) -> Result<OwnedFd, BackendError>;
    /// Returns an object that opens connections like [`Runtime::connect`], but from other threads
    /// and while this thread blocks.
    fn connector(&self) -> Result<Arc<dyn Connector>, BackendError>;
    /// Processes pending messages of the guest without blocking. The thread that owns the guest
    /// calls this while it waits for something other than the guest.
    fn listen(&mut self);
    /// Returns the directories of the captured mounts while the guest is alive. The caller must
    /// expect that files change while it reads them, and must not trust file names.
    fn look(&self) -> Result<CapturedMounts, BackendError>;
    /// Kills all processes of the guest and returns the directories of its captured mounts.
    fn destroy(self: Box<Self>) -> Destroyed;

    /// Kills the guest like [`Runtime::destroy`], and closes the directories of its mounts.
    fn discard(self: Box<Self>) -> Usage {
        self.destroy().usage
    }
}
