//! Audit record of a process wrapper, the sandbox around the launcher: names and guest paths, never
//! a host path.
//!
//! The record lists the arguments of the wrapper's command. An argument that is a host path of the
//! launch plan is replaced by its guest path. As a last safeguard, any other argument that contains
//! such a path or the launcher's directory is replaced by a placeholder.

use super::views::views;
use super::wrapper::LauncherCommand;
use wp_codebox_contracts::{OuterSandboxKind, SandboxAudit};

/// Size limit of one argument in an audit record, in bytes.
const ARGUMENT: usize = 256;
/// Maximum number of arguments in an audit record.
const ARGUMENTS: usize = 256;
/// Placeholder for an argument that contains a host path.
const HIDDEN: &str = "[host]";

/// Returns the audit record of a wrapper of this kind that was started as `program` with `args`.
pub(super) fn audit(
    kind: OuterSandboxKind,
    wrapper: &str,
    command: &LauncherCommand<'_>,
    args: &[String],
    mounts: Vec<String>,
) -> SandboxAudit {
    let mut wrapped_args: Vec<String> = args
        .iter()
        .take(ARGUMENTS)
        .map(|arg| cut(&in_guest_terms(arg, command)))
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

/// Returns the argument without host paths: the launcher's path becomes its file name, a host path
/// of the plan becomes its guest path, and an argument that contains a host path becomes
/// [`HIDDEN`].
fn in_guest_terms(argument: &str, command: &LauncherCommand<'_>) -> String {
    if argument == command.program {
        return base_name(argument).to_owned();
    }
    let views = views(command.plan);
    if let Some(view) = views.iter().find(|view| view.host == argument) {
        return view.guest.clone();
    }
    let parent = command.program.rsplit_once('/').map_or("", |(dir, _)| dir);
    let known = views
        .iter()
        .map(|view| view.host.as_str())
        // Paths such as `/usr` are the same in the guest and need no replacement.
        .filter(|host| views.iter().all(|view| view.guest != *host))
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
pub(super) const fn kind_name(kind: OuterSandboxKind) -> &'static str {
    match kind {
        OuterSandboxKind::None => "none",
        OuterSandboxKind::Bubblewrap => "bubblewrap",
        OuterSandboxKind::Gvisor => "gvisor",
    }
}
