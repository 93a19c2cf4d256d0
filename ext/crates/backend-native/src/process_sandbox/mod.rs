//! A further sandbox around the launcher's invocation, never instead of it.
//!
//! Wrapping is pure: the same command gives the same wrapped command and the same audit
//! record, and no file is touched. What is inside the wrapper must come to level `full`
//! by itself: the launcher is started the same, its probes run the same, and a wrapper
//! in which it cannot build its guest makes the run fail. Only [`choose`] looks at the
//! host, for whether the wrapper's program is there.

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

/// No wrapper: the launcher is started as it is.
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

/// A preferred wrapper that is not there: the launcher is started as it is, and the record says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwrapped {
    /// One sentence without host paths.
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
