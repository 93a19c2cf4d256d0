//! bubblewrap as process wrapper.
//!
//! The program gets its own user, pid, IPC, network and UTS namespaces, and a root that contains
//! only the command's mounts, `/proc` and the basic devices. The launcher can still create the
//! guest's user namespace inside. bubblewrap passes file descriptors on and closes its own copies.
//! The program is pid 1 of the outer pid namespace and dies with bubblewrap; bubblewrap dies with
//! the thread that started it. Killing the caller, bubblewrap or the program therefore ends all
//! processes inside.

use crate::audit::audit;
use crate::command::{HostCommand, MountAccess, Presence, ProcessSandbox, WrappedCommand};
use wp_codebox_contracts::OuterSandboxKind;

/// bubblewrap options that are the same for every command.
const FIXED: [&str; 14] = [
    "--unshare-user",
    "--unshare-pid",
    // Without this option, an init process of bubblewrap would be the program's parent. With it,
    // bubblewrap waits for the program, so bubblewrap's resource usage includes the program's CPU
    // time.
    "--as-pid-1",
    "--unshare-ipc",
    "--unshare-net",
    "--unshare-uts",
    "--die-with-parent",
    "--new-session",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    // For the launcher: directory over which it mounts the guest's root.
    "--dir",
    "/tmp",
];

/// Settings of bubblewrap as process wrapper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bubblewrap {
    /// Absolute path of the program `bwrap` on the host.
    pub program: String,
}

impl ProcessSandbox for Bubblewrap {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::Bubblewrap
    }

    fn wrap(&self, command: &HostCommand) -> WrappedCommand {
        let mut args: Vec<String> = FIXED.map(str::to_owned).to_vec();
        let mut option = |words: [&str; 3]| args.extend(words.map(str::to_owned));
        for link in &command.links {
            option(["--symlink", &link.to, &link.path]);
        }
        for mount in &command.mounts {
            let bind = match (mount.access, mount.presence) {
                (MountAccess::Read, Presence::Required) => "--ro-bind",
                (MountAccess::Write, Presence::Required) => "--bind",
                (MountAccess::Read, Presence::Optional) => "--ro-bind-try",
                (MountAccess::Write, Presence::Optional) => "--bind-try",
            };
            option([bind, &mount.host, &mount.target]);
        }
        let inside = program_inside(&command.program);
        option(["--ro-bind", &command.program, &inside]);
        let cwd = command.cwd.as_deref().unwrap_or("/");
        args.extend(["--chdir", cwd, "--", &inside].map(str::to_owned));
        args.extend(command.args.iter().cloned());
        let labels = command.mounts.iter().map(|mount| mount.label.clone());
        let mut mounts: Vec<String> = labels.collect();
        mounts.extend(["/dev", "/proc", "/tmp"].map(str::to_owned));
        mounts.sort();
        mounts.dedup();
        WrappedCommand {
            program: self.program.clone(),
            audit: audit(self.kind(), &self.program, command, &args, mounts),
            args,
            env: command.env.clone(),
            cwd: None,
        }
    }
}

/// Returns the path of the program inside a wrapper that has a root of its own.
pub(crate) fn program_inside(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program);
    format!("/run/{name}")
}
