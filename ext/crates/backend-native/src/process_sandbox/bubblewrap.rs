//! bubblewrap as process wrapper of the launcher.
//!
//! The launcher gets its own user, pid, IPC, network and UTS namespaces, and a root that contains
//! only the launch plan's sources, `/proc` and the basic devices. It can still create the guest's
//! user namespace inside. bubblewrap passes file descriptors on and closes its own copies. The
//! launcher is pid 1 of the outer pid namespace and dies with bubblewrap; bubblewrap dies with the
//! runner's thread that started it. Killing the runner, bubblewrap or the launcher therefore ends
//! all processes of the guest.

use super::audit::audit;
use super::views::{Access, system_links, views};
use super::{LauncherCommand, ProcessSandbox, WrappedCommand};
use wp_codebox_contracts::OuterSandboxKind;

/// Path at which the launcher is mounted inside the wrapper.
const LAUNCHER: &str = "/run/wp-codebox-launch";
/// bubblewrap options that are the same for every launch plan.
const FIXED: [&str; 14] = [
    "--unshare-user",
    "--unshare-pid",
    // Without this option, an init process of bubblewrap would be the launcher's parent. With it,
    // bubblewrap waits for the launcher, so bubblewrap's resource usage includes the launcher's CPU
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
    // Directory over which the launcher mounts the guest's root.
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

    fn wrap(&self, command: &LauncherCommand<'_>) -> WrappedCommand {
        let mut args: Vec<String> = FIXED.map(str::to_owned).to_vec();
        let mut option = |words: [&str; 3]| args.extend(words.map(str::to_owned));
        for (path, to) in system_links(command.plan) {
            option(["--symlink", &to, &path]);
        }
        let views = views(command.plan);
        for view in &views {
            // With the suffix `-try`, bubblewrap ignores a missing source. The launcher reports the
            // missing source later, with its guest path.
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
