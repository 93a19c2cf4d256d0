//! The seam for a further wrapper around the launcher's invocation.
//!
//! Wrapping is pure: the same command gives the same wrapped command and the same
//! audit record, and no file is touched. A wrapper never replaces the launcher.

use wp_codebox_contracts::SandboxAudit;

/// Longest single argument kept in an audit record, bytes.
const AUDIT_ARGUMENT: usize = 256;
/// Most arguments kept in an audit record.
const AUDIT_ARGUMENTS: usize = 64;

/// The launcher's invocation, before wrapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherCommand {
    /// Absolute path of the launcher.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
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

/// The record for `command` under a wrapper of this kind and program name.
#[must_use]
pub fn audit(kind: &str, wrapper_name: &str, command: &LauncherCommand) -> SandboxAudit {
    SandboxAudit {
        kind: kind.to_owned(),
        wrapper_name: wrapper_name.to_owned(),
        wrapped_cmd: base_name(&command.program).to_owned(),
        wrapped_args: command
            .args
            .iter()
            .take(AUDIT_ARGUMENTS)
            .map(|arg| cut(arg))
            .collect(),
        mounts: Vec::new(),
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(AUDIT_ARGUMENT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Wraps the launcher's invocation.
pub trait ProcessSandbox: Send + Sync {
    /// The command to start instead; pure and deterministic.
    fn wrap(&self, command: &LauncherCommand) -> WrappedCommand;
}

/// No wrapper: the launcher is started as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoSandbox;

impl ProcessSandbox for NoSandbox {
    fn wrap(&self, command: &LauncherCommand) -> WrappedCommand {
        WrappedCommand {
            program: command.program.clone(),
            args: command.args.clone(),
            audit: audit("none", "", command),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sandbox_changes_nothing_and_records_names_only() {
        let command = LauncherCommand {
            program: "/opt/x/wp-codebox-launch".to_owned(),
            args: vec!["é".repeat(200), "b".to_owned()],
        };
        let wrapped = NoSandbox.wrap(&command);
        assert_eq!(wrapped, NoSandbox.wrap(&command));
        assert_eq!(
            (&wrapped.program, &wrapped.args),
            (&command.program, &command.args)
        );
        assert_eq!(wrapped.audit.wrapped_cmd, "wp-codebox-launch");
        assert_eq!(wrapped.audit.wrapped_args[0].len(), 256);
        assert_eq!(wrapped.audit.kind, "none");
    }
}
