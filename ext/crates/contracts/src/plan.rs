//! The launch plan and the messages between the runner, the launcher and guest pid 1.
//!
//! The runner starts the launcher with three descriptors (see [`LauncherFd`]). The
//! plan is one JSON document. The channel is a SEQPACKET socket: one JSON message
//! per packet, descriptors as SCM_RIGHTS. What arrives from the guest's side is
//! untrusted once the guest has run foreign code.

use crate::{ExecutionId, GuestPath, IsolationLevel, IsolationReport, Limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Descriptors the launcher inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum LauncherFd {
    /// The plan, readable to its end.
    Plan = 3,
    /// The SEQPACKET channel.
    Channel = 4,
    /// Read end of the lifetime pipe: end of file means the runner is gone.
    Lifetime = 5,
}

/// A path of the host, and which inode the runner saw there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSource {
    /// Absolute, canonical path; no component may be a link when it is opened.
    pub path: String,
    /// When set, the launch fails unless the path still leads to this inode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<InodeId>,
}

impl HostSource {
    /// A path that only root can change, e.g. `/usr`.
    #[must_use]
    pub fn of(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            inode: None,
        }
    }
}

/// Device and inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InodeId {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

/// What the launcher is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchPurpose {
    /// A guest that serves executions.
    #[default]
    Serve,
    /// The self-test: a guest of the same shape reports every axis and ends. A missing
    /// mechanism is a row of the report, not a failure, wherever the guest can still be built.
    Probe,
}

/// Which system calls a guest has; the lists are the launcher's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallSet {
    /// What PHP, shells and agents need.
    #[default]
    Programs,
    /// What a browser needs beyond that; never for a guest with project code.
    Browser,
}

/// Whose kernel uid a guest has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanIdentity {
    /// The runner's.
    #[default]
    Shared,
    /// One of its own: a spawner started the launcher, and the runner may read what the guest
    /// leaves only through a mount that the spawner changed for it.
    Own,
}

/// Sockets that the launcher makes inside the guest for the egress bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressSockets {
    /// Path of the unix socket in the guest.
    pub socket: GuestPath,
    /// Port on the guest's 127.0.0.1 for clients that cannot use a unix socket.
    pub port: u16,
}

/// What a [`LaunchMount::Bind`] shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BindSource {
    /// A path of the host.
    Host(HostSource),
    /// A path that an earlier step of the plan put into the guest.
    Guest {
        /// Guest path.
        path: GuestPath,
    },
}

/// What a file made by the plan contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TmpfsEntry {
    /// Where.
    pub target: GuestPath,
    /// Text.
    pub contents: String,
    /// Permission bits.
    pub mode: u32,
}

/// One step of building the guest's root; steps run in order on an empty tmpfs root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum LaunchMount {
    /// An empty directory on the root tmpfs, read-only for the guest.
    Directory {
        /// Where.
        target: GuestPath,
    },
    /// A small text file on the root tmpfs, read-only for the guest.
    File(TmpfsEntry),
    /// A symbolic link on the root tmpfs.
    Symlink {
        /// Where.
        target: GuestPath,
        /// Link text.
        to: String,
    },
    /// Something shown at another path; nosuid, nodev. Read-only of the host: a directory is the
    /// lower of a read-only overlay, a file is copied. Everything else is a bind mount.
    Bind {
        /// What.
        source: BindSource,
        /// Where; created when missing.
        target: GuestPath,
        /// Read-only unless said otherwise.
        writable: bool,
    },
    /// A writable directory on the run's scratch tmpfs, which counts against the disk limit.
    Scratch {
        /// Where.
        target: GuestPath,
        /// Permission bits.
        mode: u32,
    },
    /// An overlay whose upper directory lies on the scratch tmpfs.
    Overlay {
        /// Host directories, topmost first.
        lowers: Vec<HostSource>,
        /// Where.
        target: GuestPath,
        /// When set, the upper directory's descriptor is sent as `GuestReply::Layer` with this index.
        capture: Option<u32>,
    },
    /// Directories of the host merged into one that is read-only, nosuid and nodev: an overlay
    /// without an upper directory.
    Merged {
        /// Host directories, topmost first; two or more.
        lowers: Vec<HostSource>,
        /// Where.
        target: GuestPath,
    },
    /// `/proc` with `subset=pid`.
    Proc,
    /// `/dev` with null, zero, full, random, urandom, tty and the std links.
    Dev,
}

/// The plan format that launcher and runner of one build share.
pub const PLAN_VERSION: u32 = 7;

/// Everything the launcher needs; a value: same input, same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// Plan format, [`PLAN_VERSION`].
    pub version: u32,
    /// Serve or probe.
    #[serde(default)]
    pub purpose: LaunchPurpose,
    /// `full` or `reduced`; the launcher never falls back by itself.
    pub level: IsolationLevel,
    /// uid and gid inside; mapped to the launcher's own.
    pub guest_id: u32,
    /// Whose kernel uid the launcher has.
    #[serde(default)]
    pub identity: PlanIdentity,
    /// UTS name.
    pub hostname: String,
    /// Root construction, in order. At `reduced` there is no root to build: every step is a
    /// `Bind` of a host path onto itself and means that the guest may read it, and what lies
    /// below, or write it; what it may write is pinned. No other file can be opened.
    pub mounts: Vec<LaunchMount>,
    /// Paths the guest may write (Landlock); everything else is read and execute only. Empty at
    /// `reduced`.
    pub writable: Vec<GuestPath>,
    /// Which system calls it has; at `reduced` always [`CallSet::Programs`].
    #[serde(default)]
    pub calls: CallSet,
    /// Limits of the run. `disk_bytes` is the size of the scratch tmpfs.
    pub limits: Limits,
    /// Listening sockets for the egress bridge; absent: nothing leaves the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<EgressSockets>,
    /// Port on the guest's 127.0.0.1 on which the runner receives mail; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<u16>,
}

/// Per-execution resource limits set in the child before `execve`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecLimits {
    /// RLIMIT_CPU, seconds.
    pub cpu_seconds: Option<u64>,
}

/// Start a program in the guest. Packet carries stdin, stdout, stderr descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// Key of everything about this execution.
    pub id: ExecutionId,
    /// Program and arguments; a bare name is looked up in `env.PATH`.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Working directory.
    pub cwd: GuestPath,
    /// Further limits.
    #[serde(default)]
    pub limits: ExecLimits,
    /// Whether its standard input is a terminal that becomes its controlling one.
    #[serde(default)]
    pub terminal: ExecTerminal,
}

/// What a program's standard streams are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecTerminal {
    /// Pipes, sockets or files.
    #[default]
    None,
    /// The slave side of a pseudo-terminal of the runner, three times. The guest can open no
    /// other terminal, and this one only through its descriptors and `/dev/tty`.
    Controlling,
}

/// Runner to guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GuestRequest {
    /// Start a program.
    Exec(ExecRequest),
    /// End one program and what it started; its end is reported as any other.
    Stop {
        /// Which.
        id: ExecutionId,
    },
    /// Send a signal to a program: to the process group in the foreground of its terminal, or to
    /// its own group when it has none. To one that ended, nothing.
    Signal {
        /// Which.
        id: ExecutionId,
        /// Number.
        signal: i32,
    },
    /// Connect to a port of the guest's own 127.0.0.1.
    Connect {
        /// Stands in the answer.
        ticket: u64,
        /// Port.
        port: u16,
    },
    /// End the guest.
    Shutdown,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecExit {
    /// Which.
    pub id: ExecutionId,
    /// Exit code, when it exited.
    pub code: Option<i32>,
    /// Signal, when it was killed.
    pub signal: Option<i32>,
    /// User CPU of the process and its waited-for children, microseconds.
    pub user_us: u64,
    /// System CPU, microseconds.
    pub system_us: u64,
    /// Largest resident set of a single process, bytes.
    pub max_rss_bytes: u64,
}

/// Launcher or guest to runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GuestReply {
    /// Guest pid 1 exists; packet carries its pidfd.
    Spawned {
        /// Its pid in the launcher's pid namespace.
        pid: i32,
    },
    /// The guest's scratch; packet carries a detached mount of it. Only, and before every
    /// `Layer`, with [`PlanIdentity::Own`].
    Scratch,
    /// Upper directory of a captured overlay; packet carries its descriptor, or none after
    /// `Scratch`.
    Layer {
        /// The plan's `capture` index.
        index: u32,
        /// Its name on the scratch.
        directory: String,
    },
    /// The two listening sockets of [`EgressSockets`]; packet carries unix, then TCP.
    Egress,
    /// The listening socket of [`LaunchPlan::mail`]; packet carries it.
    Mail,
    /// Isolation is in force and was probed; executions may be sent.
    Ready {
        /// What the probes saw.
        report: IsolationReport,
    },
    /// A program runs.
    Started {
        /// Which.
        id: ExecutionId,
    },
    /// A program could not be started.
    ExecFailed {
        /// Which.
        id: ExecutionId,
        /// errno of the failing call.
        errno: i32,
        /// `chdir`, `lookup`, `fork`, `execve`, `limits`, `terminal` or `input`.
        step: String,
    },
    /// A connection; packet carries its descriptor.
    Connected {
        /// Of the request.
        ticket: u64,
    },
    /// There is no connection.
    ConnectFailed {
        /// Of the request.
        ticket: u64,
        /// errno.
        errno: i32,
    },
    /// A program ended.
    Exit(ExecExit),
    /// The guest could not be built, or its first process cannot go on; the launcher exits with 125.
    Failed {
        /// Which step, e.g. `unshare`, `uid_map`, `overlay`, `seccomp`, `probe`.
        step: String,
        /// What it was about: a guest path or a mechanism, never a host path.
        subject: String,
        /// errno; 0 when none applies.
        errno: i32,
    },
    /// The guest's first process ended; told by the launcher, which ends next.
    Over {
        /// Exit code, when it exited.
        code: Option<i32>,
        /// Signal, when it was killed.
        signal: Option<i32>,
    },
}
