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
    let mut wrapped_args: Vec<String> = args
        .iter()
        .take(ARGUMENTS)
        .map(|arg| cut(&without_host_paths(arg, command)))
        .collect();
    if args.len() > ARGUMENTS {
        wrapped_args.push(format!("[{} more]", args.len() - ARGUMENTS));
    }
    SandboxAudit {
        kind: kind_name(kind).to_owned(),
        wrapper_name: base_name(wrapper).to_owned(),
        wrapped_cmd: base_name(&command.program).to_owned(),
        wrapped_args,
        mounts,
        reason: None,
    }
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
