//! What a wrapper is given and what it makes of it.

use wp_codebox_contracts::{LaunchPlan, OuterSandboxKind, SandboxAudit};

/// The launcher's invocation, before wrapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherCommand<'p> {
    /// Absolute path of the launcher.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The plan it is given: what of the host it has to see.
    pub plan: &'p LaunchPlan,
}

/// What is really started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedCommand {
    /// Absolute path of the program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What the run's record says about it.
    pub audit: SandboxAudit,
}

/// Wraps the launcher's invocation.
pub trait ProcessSandbox: std::fmt::Debug + Send + Sync {
    /// Which kind this is.
    fn kind(&self) -> OuterSandboxKind;
    /// The command to start instead; pure and deterministic. The launcher's three descriptors
    /// must reach it under their numbers.
    fn wrap(&self, command: &LauncherCommand<'_>) -> WrappedCommand;
}
