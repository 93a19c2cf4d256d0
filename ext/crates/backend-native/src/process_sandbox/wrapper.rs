//! Trait of process wrappers, with input and output types.

use wp_codebox_contracts::{LaunchPlan, OuterSandboxKind, SandboxAudit};

/// Command of the launcher before wrapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherCommand<'p> {
    /// Absolute path of the launcher.
    pub program: String,
    /// Arguments of the launcher.
    pub args: Vec<String>,
    /// Plan of the guest; determines the host paths that the launcher needs.
    pub plan: &'p LaunchPlan,
}

/// Command that is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedCommand {
    /// Absolute path of the program.
    pub program: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Audit record of the wrapper.
    pub audit: SandboxAudit,
}

/// A wrapper around the launcher's command.
pub trait ProcessSandbox: std::fmt::Debug + Send + Sync {
    /// Returns the kind of wrapper.
    fn kind(&self) -> OuterSandboxKind;
    /// Returns the command to start instead; pure and deterministic. The command must pass the
    /// launcher's three descriptors on under the same numbers.
    fn wrap(&self, command: &LauncherCommand<'_>) -> WrappedCommand;
}
