//! The contract of a backend, and what every caller may rely on.
//!
//! A backend turns a request into a runtime. A runtime executes commands one after
//! the other in one guest until it is destroyed. Whatever a runtime answers about
//! the guest's behaviour is data from an untrusted side; whatever it answers about
//! isolation was observed before foreign code ran.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ExecutionId, GuestDeath, GuestPath, IsolationReport, OutputStream, SandboxAudit,
};

/// A backend's failure, already with its stable code.
pub type BackendError = ErrorBody;

/// What a backend can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Changed files can be captured.
    pub capture: bool,
    /// State can be snapshotted and restored.
    pub snapshot: bool,
}

/// One program to run.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Key of its events.
    pub id: ExecutionId,
    /// Program and arguments; no shell.
    pub argv: Vec<String>,
    /// Added to the guest's base environment.
    pub env: BTreeMap<String, String>,
    /// Working directory.
    pub cwd: GuestPath,
    /// Standard input; empty when absent.
    pub stdin: Option<Vec<u8>>,
    /// Bytes of both streams together that are handed on; the rest is read and dropped.
    pub output_bytes: u64,
    /// When it is ended, with what it started, while the guest lives on.
    pub stop_at: Instant,
    /// When the whole guest is ended.
    pub deadline: Instant,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionEnd {
    /// It exited.
    Exited {
        /// Exit code.
        code: i32,
    },
    /// A signal killed it.
    Signalled {
        /// Signal number.
        signal: i32,
    },
    /// It could not be started.
    NotStarted {
        /// Why, e.g. `wp_codebox_agent_program_missing`.
        error: ErrorBody,
    },
    /// The deadline passed; the guest is dead.
    TimedOut,
    /// The run was cancelled; the guest is dead.
    Cancelled,
    /// A limit was reached; the guest is dead.
    LimitReached {
        /// Which.
        error: ErrorBody,
    },
    /// The guest ended, and nothing had asked for it.
    GuestDied {
        /// Which of its processes ended, and by what.
        death: GuestDeath,
    },
}

impl ExecutionEnd {
    /// The guest ended, and it is not known how.
    #[must_use]
    pub fn unknown_death() -> Self {
        Self::GuestDied {
            death: GuestDeath::default(),
        }
    }

    /// What reached its limit, or which process of the guest ended and by what; else empty.
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

/// What an execution did.
#[derive(Debug, Clone)]
pub struct ExecutionResult {
    /// How it ended.
    pub end: ExecutionEnd,
    /// Whether its own time was up: `stop_at` came, it was killed, the guest lives.
    pub stopped: bool,
    /// Whether output was dropped because of `output_bytes`.
    pub output_truncated: bool,
    /// Whether the disk limit was hit while it ran.
    pub disk_full: bool,
    /// How long it ran.
    pub duration: Duration,
}

/// A program that runs beside others, with the caller's own standard streams.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Key of its end; unique among the programs of the guest.
    pub id: ExecutionId,
    /// Program and arguments; no shell.
    pub argv: Vec<String>,
    /// Added to the guest's base environment.
    pub env: BTreeMap<String, String>,
    /// Working directory.
    pub cwd: GuestPath,
    /// Whether its standard input is a terminal that becomes its controlling one.
    pub terminal: Terminal,
}

/// What a launched program's standard streams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// Pipes, sockets or files.
    None,
    /// The slave side of a pseudo-terminal, three times.
    Controlling,
}

/// A launched program that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchedEnd {
    /// Which.
    pub id: ExecutionId,
    /// How.
    pub end: ExecutionEnd,
}

/// What a runtime used in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU of the guest and what built it.
    pub cpu: Duration,
    /// Largest resident memory seen, bytes.
    pub peak_memory_bytes: u64,
}

/// What a guest left of its captured mounts, by mount index.
#[derive(Debug)]
pub enum Left {
    /// Upper directories of overlays: what differs from the mount's source.
    Layers(BTreeMap<u32, OwnedFd>),
    /// Whole trees that were copies of the mount's source.
    Trees(BTreeMap<u32, OwnedFd>),
}

impl Default for Left {
    fn default() -> Self {
        Self::Layers(BTreeMap::new())
    }
}

/// What is left of a destroyed runtime.
#[derive(Debug, Default)]
pub struct Destroyed {
    /// Captured mounts.
    pub left: Left,
    /// Cost.
    pub usage: Usage,
}

/// Sockets that listen inside a guest; whoever holds them decides what leaves it.
#[derive(Debug)]
pub struct EgressListeners {
    /// The unix socket.
    pub unix: OwnedFd,
    /// The TCP socket on the guest's 127.0.0.1.
    pub tcp: OwnedFd,
}

/// Builds runtimes of one kind.
pub trait Backend {
    /// What a runtime of this backend is made from.
    type Spec;
    /// `native`, …
    fn kind(&self) -> &'static str;
    /// What it can do.
    fn capabilities(&self) -> Capabilities;
    /// Builds, isolates and probes a guest. On an error nothing is left behind.
    fn create(&self, spec: &Self::Spec) -> Result<Box<dyn Runtime>, BackendError>;
}

/// Takes a connection, or why there is none.
pub type Connected = Box<dyn FnOnce(Result<OwnedFd, BackendError>) + Send>;

/// Asks a guest for connections, from any thread, also while its owner waits for a program.
pub trait Connector: Send + Sync {
    /// Asks for one to a port on the guest's own 127.0.0.1, and waits for nothing. `answer` is
    /// called once, by the guest's owner as soon as it hears of it, or by whoever asks when
    /// there is nobody to ask. It must not wait either.
    fn ask(&self, port: u16, answer: Connected);
}

/// A guest that is ready.
pub trait Runtime {
    /// What probes saw in this guest before foreign code ran.
    fn isolation(&self) -> &IsolationReport;
    /// The sockets for the egress bridge, when the guest was asked for with some; once.
    fn take_egress(&mut self) -> Option<EgressListeners>;
    /// The socket on which its mail arrives, where it has one; once.
    fn take_mail(&mut self) -> Option<OwnedFd>;
    /// What was put around the process that built it.
    fn outer_sandbox(&self) -> &SandboxAudit;
    /// Runs one program to its end, handing on output as it comes.
    /// A limit, the deadline or a cancellation ends the whole guest. While nothing is printed
    /// the sink is called with no bytes, several times a second.
    fn execute(
        &mut self,
        execution: &Execution,
        sink: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<ExecutionResult, BackendError>;
    /// Starts a program and does not wait for it. It runs while others do, also while
    /// [`Runtime::execute`] waits for one of them; [`Runtime::ended`] tells its end.
    fn launch(&mut self, launch: &Launch, stdio: [OwnedFd; 3]) -> Result<(), BackendError>;
    /// Sends a signal to the process group in the foreground of a launched program; of one that
    /// ended, to nobody.
    fn signal(&mut self, id: &ExecutionId, signal: i32) -> Result<(), BackendError>;
    /// Kills a launched program and what it started; its end is told as any other.
    fn stop(&mut self, id: &ExecutionId) -> Result<(), BackendError>;
    /// The end of a launched program. Waits for one until `until`, or until `wake` is readable.
    /// When the guest is dead every launched program has ended; without one nothing is answered
    /// as soon as it dies.
    fn ended(&mut self, wake: BorrowedFd<'_>, until: Instant) -> Option<LaunchedEnd>;
    /// How the guest died, when it is dead.
    fn death(&mut self) -> Option<ExecutionEnd>;
    /// A connection to a port on the guest's own 127.0.0.1. Its descriptor does not block.
    fn connect(&mut self, port: u16) -> Result<OwnedFd, BackendError>;
    /// What asks for such connections from other threads, while this one waits for something.
    fn connector(&self) -> Result<Arc<dyn Connector>, BackendError>;
    /// Takes note of what the guest said meanwhile, for an owner who waits for something that is
    /// not the guest; waits for nothing.
    fn listen(&mut self);
    /// What its captured mounts hold by now. The guest lives: what is read there can change
    /// while it is read, and its names are the guest's.
    fn look(&self) -> Result<Left, BackendError>;
    /// Ends the guest and everything in it, then hands over what it left.
    fn destroy(self: Box<Self>) -> Destroyed;

    /// Ends it likewise, where nobody wants what it leaves.
    fn discard(self: Box<Self>) -> Usage {
        self.destroy().usage
    }
}
