//! Trait of process wrappers (sandboxes around the launcher), with input and output types.

use wp_codebox_contracts::{LaunchPlan, OuterSandboxKind, SandboxAudit};

/// Command that starts the launcher without a wrapper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherCommand<'p> {
    /// Absolute path of the launcher.
    pub program: String,
    /// Arguments of the launcher.
    pub args: Vec<String>,
    /// Launch plan of the guest; it decides which host paths the launcher needs.
    pub plan: &'p LaunchPlan,
}

/// Command that is started in place of the [`LauncherCommand`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedCommand {
    /// Absolute path of the program.
    pub program: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Audit record of the wrapper for the run's report.
    pub audit: SandboxAudit,
}

/// A process wrapper: a program that starts the launcher inside a sandbox of its own.
pub trait ProcessSandbox: std::fmt::Debug + Send + Sync {
    /// Returns which wrapper this is.
    fn kind(&self) -> OuterSandboxKind;
    /// Returns the command that starts the launcher inside the wrapper. The result depends on
    /// `self` and `command` only. The wrapper must pass the launcher's three descriptors on under
    /// the same numbers.
    fn wrap(&self, command: &LauncherCommand<'_>) -> WrappedCommand;
}
