//! The launch plan (how to build a guest), and the messages between the supervisor, the launcher and
//! pid 1 of the guest.
//!
//! The supervisor starts the launcher with three file descriptors (see [`LauncherFd`]). The plan is
//! one JSON document. The channel is a SEQPACKET socket: one JSON message per packet, file
//! descriptors as SCM_RIGHTS. Messages from the guest's side are untrusted once the guest has
//! run untrusted code.

use crate::{ExecutionId, GuestPath, IsolationLevel, IsolationReport, Limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// File descriptors that the launcher inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum LauncherFd {
    /// Descriptor from which the launcher reads the launch plan, to end of file.
    Plan = 3,
    /// SEQPACKET socket for messages between supervisor and launcher.
    Channel = 4,
    /// Stream socket to the supervisor: end of file means that the supervisor has exited. At level `full` a
    /// byte from the supervisor asks the launcher to count the guest's open directories; a byte in the
    /// other direction says that there are too many. A spawner gets a pipe instead.
    Lifetime = 5,
}

/// A host path and the inode that the supervisor found there when it checked the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSource {
    /// Absolute, canonical path; opening it fails if a component is a symbolic link.
    pub path: String,
    /// When set, the launch fails unless the path still leads to this inode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<InodeId>,
}

impl HostSource {
    /// Creates a source without an inode check, for a path that only root can change, e.g.
    /// `/usr`.
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
    /// `st_dev` of the file.
    pub device: u64,
    /// `st_ino` of the file.
    pub inode: u64,
}

/// Whether a guest serves executions or only tests the isolation of this host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchPurpose {
    /// A guest that serves executions.
    #[default]
    Serve,
    /// A guest for the self-test. It is built like a guest that serves executions, reports every
    /// isolation axis and exits. A missing mechanism becomes a row of the report instead of a
    /// failure, as long as the guest can be built.
    Probe,
}

/// Set of system calls that a guest may use; the launcher defines the lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallSet {
    /// System calls that PHP, shells and agents need.
    #[default]
    Programs,
    /// The system calls of `Programs` and those that a browser needs; never for a guest with
    /// project code.
    Browser,
}

/// Whether a guest shares the supervisor's kernel uid or has one of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanIdentity {
    /// The guest shares the supervisor's kernel uid.
    #[default]
    Shared,
    /// The guest has its own kernel uid: a spawner started the launcher, and the supervisor may
    /// read the guest's files only through a mount that the spawner mapped to the supervisor's uid.
    Own,
}

/// Sockets that the launcher creates inside the guest for the egress bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressSockets {
    /// Path of the unix socket in the guest, on which clients reach the egress bridge.
    pub socket: GuestPath,
    /// Port on the guest's 127.0.0.1 for clients that cannot use a unix socket.
    pub port: u16,
}

/// Source of a [`LaunchMount::Bind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BindSource {
    /// A host path.
    Host(HostSource),
    /// A guest path that an earlier step of the plan created.
    Guest {
        /// The guest path.
        path: GuestPath,
    },
}

/// A file that the plan creates on a tmpfs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TmpfsEntry {
    /// Path of the file in the guest.
    pub target: GuestPath,
    /// Contents of the file.
    pub contents: String,
    /// Permission bits of the file.
    pub mode: u32,
}

/// One step of building the guest's root; steps run in order on an empty tmpfs root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum LaunchMount {
    /// An empty directory on the root tmpfs, read-only for the guest.
    Directory {
        /// Path of the directory in the guest.
        target: GuestPath,
    },
    /// A small text file on the root tmpfs, read-only for the guest.
    File(TmpfsEntry),
    /// A symbolic link on the root tmpfs.
    Symlink {
        /// Path of the link in the guest.
        target: GuestPath,
        /// Path that the link contains.
        to: String,
    },
    /// A file or directory shown at another path, with nosuid and nodev. A read-only directory
    /// of the host becomes the lower directory of a read-only overlay, and a read-only file of
    /// the host is copied. All other sources are bind-mounted.
    Bind {
        /// Source of the mount.
        source: BindSource,
        /// Path of the mount in the guest; created if missing.
        target: GuestPath,
        /// Whether the guest may write to the mount.
        writable: bool,
    },
    /// A writable directory on the run's scratch tmpfs; its files count towards the disk limit.
    Scratch {
        /// Path of the directory in the guest.
        target: GuestPath,
        /// Permission bits of the directory.
        mode: u32,
    },
    /// An overlay with its upper directory on the scratch tmpfs.
    Overlay {
        /// Host directories that the overlay merges below the upper directory, topmost first.
        lowers: Vec<HostSource>,
        /// Path of the overlay in the guest.
        target: GuestPath,
        /// When set, the launcher sends the upper directory's file descriptor as
        /// `GuestReply::Layer` with this index, so that the supervisor can read what the guest wrote.
        capture: Option<u32>,
    },
    /// Host directories merged into one that is read-only, nosuid and nodev: an overlay without
    /// an upper directory.
    Merged {
        /// Host directories, topmost first; at least two.
        lowers: Vec<HostSource>,
        /// Path of the merged directory in the guest.
        target: GuestPath,
    },
    /// `/proc` with `subset=pid`.
    Proc,
    /// `/dev` with null, zero, full, random, urandom, tty, and the links fd, stdin, stdout, stderr.
    Dev,
}

/// A directory of the host in which a guest's writable files lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanScratch {
    /// The directory, which is empty and belongs to the guest's user.
    pub directory: HostSource,
    /// What limits the size of its files.
    pub size: ScratchSize,
}

/// What limits the size of all files of a guest together, if they do not lie on a tmpfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScratchSize {
    /// The size in bytes of their file system, which all guests of the run share.
    Limited(u64),
    /// Nothing: the supervisor polls the size.
    Unlimited,
}

/// Version of the plan format; launcher and supervisor must have the same version.
pub const PLAN_VERSION: u32 = 10;

/// Everything that the launcher needs to build a guest. Serialisation is deterministic: equal
/// plans give equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// Version of the plan format, [`PLAN_VERSION`].
    pub version: u32,
    /// Whether the guest serves executions or only runs the self-test.
    #[serde(default)]
    pub purpose: LaunchPurpose,
    /// Isolation level `full` or `reduced`; the launcher never falls back to another level.
    pub level: IsolationLevel,
    /// uid and gid of programs as seen inside the guest; on the host, these programs have the uid
    /// and gid of the launcher.
    pub guest_id: u32,
    /// Whether the guest shares the supervisor's kernel uid or has one of its own.
    #[serde(default)]
    pub identity: PlanIdentity,
    /// Host name of the guest (UTS namespace).
    pub hostname: String,
    /// Steps that build the root, in order. At `reduced` no root is built: each step is a
    /// `Bind` of a host path onto itself and allows the guest to read, or also write, that path
    /// and everything below it. A writable path must have an inode check. The guest can open no
    /// other file.
    pub mounts: Vec<LaunchMount>,
    /// Paths that the guest may write, enforced by Landlock; everything else is read and execute
    /// only. Empty at `reduced`.
    pub writable: Vec<GuestPath>,
    /// Set of system calls that the guest may use; at `reduced` always [`CallSet::Programs`].
    #[serde(default)]
    pub calls: CallSet,
    /// Limits of the run. `disk_bytes` is the size of the scratch tmpfs.
    pub limits: Limits,
    /// Directory for everything that the guest may write; absent: the launcher mounts a tmpfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<PlanScratch>,
    /// Listening sockets for the egress bridge; absent: the guest has no network access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<EgressSockets>,
    /// Port on the guest's 127.0.0.1 on which the supervisor receives mail; absent: no mail port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<u16>,
}

/// Resource limits of one execution, set in the child before `execve`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecLimits {
    /// Limit of the program's CPU time in seconds (RLIMIT_CPU).
    pub cpu_seconds: Option<u64>,
}

/// Starts a program in the guest. The packet carries the file descriptors of stdin, stdout and
/// stderr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// Id of the execution, used in all messages about it.
    pub id: ExecutionId,
    /// Program and arguments; a bare name is looked up in `env.PATH`.
    pub argv: Vec<String>,
    /// Complete environment of the program.
    pub env: BTreeMap<String, String>,
    /// Working directory of the program in the guest.
    pub cwd: GuestPath,
    /// Resource limits of this program, in addition to the guest's.
    #[serde(default)]
    pub limits: ExecLimits,
    /// Whether the standard streams are a terminal, which becomes the controlling terminal.
    #[serde(default)]
    pub terminal: ExecTerminal,
}

/// Whether a program's standard streams are a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecTerminal {
    /// Pipes, sockets or files.
    #[default]
    None,
    /// All three streams are the slave side of one of the supervisor's pseudo-terminals. The guest
    /// can reach this terminal only through these file descriptors and `/dev/tty`, and it can
    /// open no other terminal.
    Controlling,
}

/// Messages from supervisor to guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GuestRequest {
    /// Starts a program.
    Exec(ExecRequest),
    /// Kills one program and its descendants; the guest reports the program's end as usual.
    Stop {
        /// Id of the execution whose program is killed.
        id: ExecutionId,
    },
    /// Sends a signal to the foreground process group of the program's terminal, or without a
    /// terminal to the program's own process group. Ignored if the program has ended.
    Signal {
        /// Id of the execution.
        id: ExecutionId,
        /// Number of the signal.
        signal: i32,
    },
    /// Connects to a port of the guest's own 127.0.0.1.
    Connect {
        /// Number that the supervisor chooses; the reply repeats it.
        ticket: u64,
        /// Port on the guest's 127.0.0.1.
        port: u16,
    },
    /// Ends the guest and all programs in it.
    Shutdown,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecExit {
    /// Id of the execution.
    pub id: ExecutionId,
    /// Exit code, if the program exited.
    pub code: Option<i32>,
    /// Signal, if a signal killed the program.
    pub signal: Option<i32>,
    /// User CPU time of the program and its waited-for children, in microseconds.
    pub user_us: u64,
    /// System CPU time of the program and its waited-for children, in microseconds.
    pub system_us: u64,
    /// Largest resident set of any single process among the program and its waited-for children,
    /// in bytes.
    pub max_rss_bytes: u64,
}

/// Kernel objects of a guest that the launcher counts for the supervisor, which cannot look at the
/// processes of a guest with another uid. The supervisor asks with a packet of 8 bytes, the number of
/// memory areas up to which the launcher counts them; the answer is a packet of [`Self::SIZE`] bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GuestObjects {
    /// Descriptors of directories that exist in several layers of an overlay.
    pub directories: u64,
    /// Names in these directories, once for each descriptor.
    pub names: u64,
    /// Areas in the memory maps of all processes.
    pub areas: u64,
}

impl GuestObjects {
    /// Size of an answer in bytes.
    pub const SIZE: usize = 24;

    /// Returns the answer with these numbers.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let numbers = [self.directories, self.names, self.areas];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Returns the numbers of an answer.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        let mut numbers = bytes
            .chunks_exact(8)
            .map(|place| place.try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX));
        let mut next = || numbers.next().unwrap_or(u64::MAX);
        Self {
            directories: next(),
            names: next(),
            areas: next(),
        }
    }
}

/// Messages from launcher or guest to supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GuestReply {
    /// Pid 1 of the guest exists; the packet carries its pidfd.
    Spawned {
        /// Pid in the launcher's pid namespace.
        pid: i32,
    },
    /// The guest's scratch tmpfs; the packet carries a detached mount of it. Sent once and only
    /// with [`PlanIdentity::Own`], before the first `Layer`.
    Scratch,
    /// Upper directory of a captured overlay; the packet carries the directory's file descriptor,
    /// or no file descriptor if `Scratch` was sent before.
    Layer {
        /// Value of `capture` in the plan's mount step for this overlay.
        index: u32,
        /// Name of the upper directory on the scratch tmpfs.
        directory: String,
    },
    /// The two listening sockets of [`EgressSockets`]; the packet carries the unix socket, then
    /// the TCP socket.
    Egress,
    /// The listening socket of [`LaunchPlan::mail`]; the packet carries it.
    Mail,
    /// Isolation is in force and was probed; the supervisor may send executions.
    Ready {
        /// Isolation that the probes observed.
        report: IsolationReport,
    },
    /// A program started.
    Started {
        /// Id of the execution.
        id: ExecutionId,
    },
    /// A program could not be started.
    ExecFailed {
        /// Id of the execution.
        id: ExecutionId,
        /// errno of the failing call.
        errno: i32,
        /// Failing step: `chdir`, `lookup`, `fork`, `execve`, `limits`, `terminal` or `input`.
        step: String,
    },
    /// A connection was opened; the packet carries its file descriptor.
    Connected {
        /// Ticket of the `Connect` request.
        ticket: u64,
    },
    /// A connection could not be opened.
    ConnectFailed {
        /// Ticket of the `Connect` request.
        ticket: u64,
        /// errno of the failing call.
        errno: i32,
    },
    /// A program ended.
    Exit(ExecExit),
    /// The guest could not be built, or its first process cannot continue; the launcher exits
    /// with 125.
    Failed {
        /// Failing step, e.g. `unshare`, `uid_map`, `overlay`, `seccomp`, `probe`.
        step: String,
        /// What failed in the step: a guest path or a mechanism, never a host path.
        subject: String,
        /// errno; 0 when none applies.
        errno: i32,
    },
    /// The guest's first process ended; the launcher sends this message and then exits.
    Over {
        /// Exit code of the guest's first process, if it exited.
        code: Option<i32>,
        /// Signal that killed the guest's first process, if one did.
        signal: Option<i32>,
    },
}
