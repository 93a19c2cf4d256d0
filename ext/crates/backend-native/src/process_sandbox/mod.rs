//! Process wrappers: an additional sandbox around the launcher process.
//!
//! Wrapping only computes a command: the same input gives the same wrapped command and audit
//! record, and no file is touched. The guest must reach level `full` inside the wrapper. The
//! launcher and its probes run unchanged, and a wrapper that prevents the launcher from building
//! its guest makes the run fail. Only [`choose`] reads the host, to find the wrapper's program.

mod audit;
mod bubblewrap;
mod choice;
mod gvisor;
mod views;
mod wrapper;

pub use bubblewrap::Bubblewrap;
pub use choice::{Choice, WrapperError, choose};
pub use gvisor::Gvisor;
pub use wrapper::{LauncherCommand, ProcessSandbox, WrappedCommand};

use audit::audit;
use wp_codebox_contracts::OuterSandboxKind;

/// No wrapper: the launcher is started directly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoSandbox;

impl ProcessSandbox for NoSandbox {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::None
    }

    fn wrap(&self, command: &LauncherCommand<'_>) -> WrappedCommand {
        WrappedCommand {
            program: command.program.clone(),
            args: command.args.clone(),
            audit: audit(self.kind(), "", command, &command.args, Vec::new()),
        }
    }
}

/// Used in place of a preferred wrapper that is not installed: the launcher is started directly,
/// and the audit record states the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwrapped {
    /// Why no wrapper is used: one sentence without host paths.
    pub reason: String,
}

impl ProcessSandbox for Unwrapped {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::None
    }

    fn wrap(&self, command: &LauncherCommand<'_>) -> WrappedCommand {
        let mut wrapped = NoSandbox.wrap(command);
        wrapped.audit.reason = Some(self.reason.clone());
        wrapped
    }
}

#[cfg(test)]
mod tests;
