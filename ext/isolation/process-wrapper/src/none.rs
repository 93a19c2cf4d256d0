//! No wrapper: the program is started directly.

use crate::audit::audit;
use crate::command::{HostCommand, ProcessSandbox, WrappedCommand};
use wp_codebox_contracts::OuterSandboxKind;

/// No wrapper: the program is started directly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoSandbox;

impl ProcessSandbox for NoSandbox {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::None
    }

    fn wrap(&self, command: &HostCommand) -> WrappedCommand {
        WrappedCommand {
            program: command.program.clone(),
            args: command.args.clone(),
            env: command.env.clone(),
            cwd: command.cwd.clone(),
            audit: audit(self.kind(), "", command, &command.args, Vec::new()),
        }
    }
}

/// Used in place of a preferred wrapper that is not installed: the program is started directly,
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

    fn wrap(&self, command: &HostCommand) -> WrappedCommand {
        let mut wrapped = NoSandbox.wrap(command);
        wrapped.audit.reason = Some(self.reason.clone());
        wrapped
    }
}
