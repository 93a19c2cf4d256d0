//! Audit record of a process wrapper: names and labels, never a host path.
//!
//! The record lists the arguments of the wrapper's command. An argument that is the host path of a
//! mount is replaced by the mount's label. As a last safeguard, any other argument that contains
//! such a path or the program's directory is replaced by a placeholder.

use crate::command::HostCommand;
use wp_codebox_contracts::{OuterSandboxKind, SandboxAudit};

/// Size limit of one argument in an audit record, in bytes.
const ARGUMENT: usize = 256;
/// Maximum number of arguments in an audit record.
const ARGUMENTS: usize = 256;
/// Placeholder for an argument that contains a host path.
const HIDDEN: &str = "[host]";

/// Returns the audit record of a wrapper of this kind that was started as `program` with `args`.
pub(crate) fn audit(
    kind: OuterSandboxKind,
    wrapper: &str,
    command: &HostCommand,
    args: &[String],
    mounts: Vec<String>,
) -> SandboxAudit {
    let shown = |arg: &String| without_host_paths(arg, command);
    SandboxAudit {
        kind: kind_name(kind).to_owned(),
        wrapper_name: base_name(wrapper).to_owned(),
        wrapped_cmd: base_name(&command.program).to_owned(),
        wrapped_args: bounded(args, shown),
        mounts,
        reason: None,
    }
}

/// Guest in which a program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestKind<'a> {
    /// The work guest of a run. The program has no wrapper of its own: kind `none`.
    Run,
    /// A guest that the launcher builds for this program alone: kind [`LAUNCHER`].
    Own {
        /// Path or name of the launcher.
        launcher: &'a str,
        /// Guest paths that the program sees.
        mounts: Vec<String>,
    },
}

/// Kind of wrapper in audit records of programs that run in a guest of their own.
pub const LAUNCHER: &str = "launcher";

/// Returns the audit record of a program in a guest, with the same bounds as the record of a
/// wrapper. Every argument must have guest paths only, because none is replaced.
#[must_use]
pub fn guest_audit(kind: GuestKind<'_>, program: &str, args: &[String]) -> SandboxAudit {
    let (kind, wrapper, mut mounts) = match kind {
        GuestKind::Run => (kind_name(OuterSandboxKind::None), "", Vec::new()),
        GuestKind::Own { launcher, mounts } => (LAUNCHER, launcher, mounts),
    };
    mounts.sort();
    mounts.dedup();
    SandboxAudit {
        kind: kind.to_owned(),
        wrapper_name: base_name(wrapper).to_owned(),
        wrapped_cmd: base_name(program).to_owned(),
        wrapped_args: bounded(args, String::clone),
        mounts,
        reason: None,
    }
}

/// Returns the arguments for an audit record: at most [`ARGUMENTS`], each as `shown` returns it and
/// cut to [`ARGUMENT`] bytes. One more entry says how many are missing.
fn bounded(args: &[String], shown: impl Fn(&String) -> String) -> Vec<String> {
    let listed = args.iter().take(ARGUMENTS);
    let mut bounded: Vec<String> = listed.map(|arg| cut(&shown(arg))).collect();
    if args.len() > ARGUMENTS {
        bounded.push(format!("[{} more]", args.len() - ARGUMENTS));
    }
    bounded
}

/// Returns the argument without host paths: the program's path becomes its file name, the host path
/// of a mount becomes its label, and an argument that contains a host path becomes [`HIDDEN`].
fn without_host_paths(argument: &str, command: &HostCommand) -> String {
    if argument == command.program {
        return base_name(argument).to_owned();
    }
    let mounts = &command.mounts;
    if let Some(mount) = mounts.iter().find(|mount| mount.host == argument) {
        return mount.label.clone();
    }
    let parent = command.program.rsplit_once('/').map_or("", |(dir, _)| dir);
    let known = mounts
        .iter()
        .map(|mount| mount.host.as_str())
        // Paths such as `/usr` are the same in the guest and need no replacement.
        .filter(|host| mounts.iter().all(|mount| mount.label != *host))
        .chain((parent.len() > 1).then_some(parent));
    for host in known {
        if argument.contains(host) {
            return HIDDEN.to_owned();
        }
    }
    argument.to_owned()
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(ARGUMENT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Returns the name of a kind of wrapper as used in records and settings.
#[must_use]
pub const fn kind_name(kind: OuterSandboxKind) -> &'static str {
    match kind {
        OuterSandboxKind::None => "none",
        OuterSandboxKind::Bubblewrap => "bubblewrap",
        OuterSandboxKind::Gvisor => "gvisor",
    }
}
