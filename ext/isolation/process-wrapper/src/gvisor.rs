//! gVisor's runsc as process wrapper.
//!
//! `runsc do` maps the caller to root. Observed with runsc 0.0~20221219.
//!
//! - [`Gvisor`] shows the root of the host. It is for the launcher, which has to reach every source
//!   of its plan. gVisor's kernel answers ENOSYS to `landlock_create_ruleset`, `openat2`,
//!   `open_tree`, `fsopen`, `mount_setattr` and `pidfd_open`, and passes only the three standard
//!   descriptors. The launcher cannot reach level `full` in it and reports this by its exit status,
//!   and the run is refused. A later runsc with these features needs no change here, because the
//!   launcher and its probes decide, not this file.
//! - [`GvisorRoot`] shows a directory that [`crate::prepare_root`] made. With the root of the host,
//!   a program would read every file that the caller can read.

use crate::audit::audit;
use crate::command::{HostCommand, ProcessSandbox, WrappedCommand};
use wp_codebox_contracts::OuterSandboxKind;

/// Placeholder of runsc's directories in audit records.
const HIDDEN: &str = "[host]";

/// Settings of gVisor as process wrapper of the launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gvisor {
    /// Absolute path of the program `runsc` on the host.
    pub program: String,
    /// Existing host directory in which runsc keeps its own state.
    pub directory: String,
}

impl ProcessSandbox for Gvisor {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::Gvisor
    }

    fn wrap(&self, command: &HostCommand) -> WrappedCommand {
        let around = |state: &str| -> Vec<String> {
            let own = [format!("--root={state}"), "do".to_owned()];
            [
                &fixed()[..],
                &own[..],
                std::slice::from_ref(&command.program),
                &command.args,
            ]
            .concat()
        };
        WrappedCommand {
            program: self.program.clone(),
            args: around(&self.directory),
            env: command.env.clone(),
            cwd: None,
            audit: audit(
                self.kind(),
                &self.program,
                command,
                &around(HIDDEN),
                vec!["/".to_owned()],
            ),
        }
    }
}

/// Settings of gVisor as process wrapper of a program that sees a prepared root only.
///
/// Writes go to the prepared root itself. So it contains copies, except for the directories that
/// the program may change, and it is removed after the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GvisorRoot {
    /// Absolute path of the program `runsc` on the host.
    pub program: String,
    /// Existing host directory in which runsc keeps its own state.
    pub directory: String,
    /// Directory that [`crate::prepare_root`] made.
    pub root: String,
}

impl ProcessSandbox for GvisorRoot {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::Gvisor
    }

    fn wrap(&self, command: &HostCommand) -> WrappedCommand {
        let cwd = command.cwd.as_deref().unwrap_or("/");
        let around = |state: &str, root: &str, program: &str| -> Vec<String> {
            let own = [
                format!("--root={state}"),
                "do".to_owned(),
                "-quiet".to_owned(),
                format!("-root={root}"),
                // Otherwise the program would write to an overlay in memory that runsc drops.
                "-force-overlay=false".to_owned(),
                format!("-cwd={cwd}"),
                "--".to_owned(),
                program.to_owned(),
            ];
            [&fixed()[..], &own[..], &command.args].concat()
        };
        let inside = crate::bubblewrap::program_inside(&command.program);
        let shown = around(HIDDEN, HIDDEN, &inside);
        WrappedCommand {
            program: self.program.clone(),
            args: around(&self.directory, &self.root, &inside),
            env: command.env.clone(),
            cwd: None,
            audit: audit(
                self.kind(),
                &self.program,
                command,
                &shown,
                command
                    .mounts
                    .iter()
                    .map(|mount| mount.label.clone())
                    .collect(),
            ),
        }
    }
}

/// Returns the options of every call: runsc needs no root, and the program gets only a loopback
/// interface.
fn fixed() -> [String; 2] {
    ["--rootless", "--network=none"].map(str::to_owned)
}
