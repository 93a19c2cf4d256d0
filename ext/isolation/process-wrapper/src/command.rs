//! Trait of process wrappers, with its input and output.

use std::collections::BTreeMap;
use wp_codebox_contracts::{OuterSandboxKind, SandboxAudit};

/// A command, and what it needs of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostCommand {
    /// Absolute path of the program on the host.
    pub program: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// All environment variables of the program.
    pub env: BTreeMap<String, String>,
    /// Working directory, `/` if absent: a path inside the wrapper, or a host path without a
    /// wrapper.
    pub cwd: Option<String>,
    /// Symbolic links inside the wrapper.
    pub links: Vec<Link>,
    /// Host paths that the program needs, parents first. A wrapper shows these paths and the
    /// program, and no other one.
    pub mounts: Vec<Mount>,
}

/// A symbolic link inside a wrapper, such as `/lib64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Path of the link.
    pub path: String,
    /// Target of the link.
    pub to: String,
}

/// A host path that a wrapper shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Absolute host path.
    pub host: String,
    /// Absolute path inside the wrapper.
    pub target: String,
    /// Name of the path in audit records, which must not contain host paths.
    pub label: String,
    /// Whether the program may change the path.
    pub access: MountAccess,
    /// What a wrapper does when the host has no such path.
    pub presence: Presence,
}

/// Whether a program may change a host path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MountAccess {
    /// The program only reads it.
    Read,
    /// The program may change it.
    Write,
}

/// What a wrapper does when a host path is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The wrapper does not start the program.
    Required,
    /// The wrapper leaves the path out, and the program inside reports that it is missing.
    Optional,
}

/// Command that is started in place of a [`HostCommand`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedCommand {
    /// Absolute path of the program.
    pub program: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// All environment variables of the program.
    pub env: BTreeMap<String, String>,
    /// Working directory on the host; `/` if absent.
    pub cwd: Option<String>,
    /// Audit record of the wrapper for the report of the run or call.
    pub audit: SandboxAudit,
}

impl WrappedCommand {
    /// Returns the command for the standard library; its only environment variables are those of
    /// `env`.
    #[must_use]
    pub fn to_std(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(&self.env)
            .current_dir(self.cwd.as_deref().unwrap_or("/"));
        command
    }
}

/// A process wrapper: a program that starts another program inside a sandbox of its own.
pub trait ProcessSandbox: std::fmt::Debug + Send + Sync {
    /// Returns which wrapper this is.
    fn kind(&self) -> OuterSandboxKind;
    /// Returns the command that starts `command` inside the wrapper. The result depends on `self`
    /// and `command` only. The wrapper must pass the descriptors of the launcher on under the same
    /// numbers.
    fn wrap(&self, command: &HostCommand) -> WrappedCommand;
}
