//! bubblewrap around the launcher.
//!
//! The launcher gets namespaces of its own for users, processes, IPC, network and host
//! name, and a root in which nothing of the host is but the plan's sources, `/proc` and
//! the plain devices. It can still make the guest's user namespace in there. bubblewrap
//! passes descriptors on and closes its own copies. The launcher is pid 1 of the outer
//! process namespace and dies with bubblewrap, which dies with the thread of the runner
//! that started it, so that killing any of them leaves nothing.

use super::audit::audit;
use super::views::{Access, system_links, views};
use super::{LauncherCommand, ProcessSandbox, WrappedCommand};
use wp_codebox_contracts::OuterSandboxKind;

/// Where the launcher lies inside.
const LAUNCHER: &str = "/run/wp-codebox-launch";
/// Options that depend on nothing.
const FIXED: [&str; 14] = [
    "--unshare-user",
    "--unshare-pid",
    // bubblewrap then waits for the launcher itself, so that its CPU time is accounted.
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
    // The launcher builds the guest's root on top of it.
    "--dir",
    "/tmp",
];

/// bubblewrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bubblewrap {
    /// Absolute path of `bwrap`.
    pub program: String,
}

impl ProcessSandbox for Bubblewrap {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::Bubblewrap
    }

    fn wrap(&self, command: &LauncherCommand<'_>) -> WrappedCommand {
        let mut args: Vec<String> = FIXED.map(str::to_owned).to_vec();
        let mut option = |words: [&str; 3]| args.extend(words.map(str::to_owned));
        for (path, to) in system_links(command.plan) {
            option(["--symlink", &to, &path]);
        }
        let views = views(command.plan);
        for view in &views {
            // What is missing is left to the launcher, which names it in guest terms.
            let bind = match view.access {
                Access::Read => "--ro-bind-try",
                Access::Write => "--bind-try",
            };
            option([bind, &view.host, &view.host]);
        }
        option(["--ro-bind", &command.program, LAUNCHER]);
        args.extend(["--chdir", "/", "--", LAUNCHER].map(str::to_owned));
        args.extend(command.args.iter().cloned());
        let mut mounts: Vec<String> = views.into_iter().map(|view| view.guest).collect();
        mounts.extend(["/dev", "/proc", "/tmp"].map(str::to_owned));
        mounts.sort();
        mounts.dedup();
        WrappedCommand {
            program: self.program.clone(),
            audit: audit(self.kind(), &self.program, command, &args, mounts),
            args,
        }
    }
}
