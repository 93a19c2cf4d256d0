//! gVisor's runsc as process wrapper of the launcher.
//!
//! Observed with runsc 0.0~20221219: its kernel answers ENOSYS to `landlock_create_ruleset`,
//! `openat2`, `open_tree`, `fsopen`, `mount_setattr` and `pidfd_open`, maps the caller to root, and
//! passes only the three standard descriptors. So a guest directory could not be passed out for
//! capture. The launcher cannot reach level `full` in it and reports this by its exit status, and
//! the run is refused. A later runsc with these features needs no change here, because the launcher
//! and its probes decide, not this file.

use super::audit::audit;
use super::{LauncherCommand, ProcessSandbox, WrappedCommand};
use wp_codebox_contracts::OuterSandboxKind;

/// Settings of gVisor as process wrapper.
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

    fn wrap(&self, command: &LauncherCommand<'_>) -> WrappedCommand {
        let root = |directory: &str| format!("--root={directory}");
        let around = |root: String, launcher: &str| -> Vec<String> {
            let fixed = ["--rootless", "--network=none"].map(str::to_owned);
            let own = [root, "do".to_owned(), launcher.to_owned()];
            [&fixed[..], &own[..], &command.args].concat()
        };
        let shown = around(root("[host]"), &command.program);
        WrappedCommand {
            program: self.program.clone(),
            args: around(root(&self.directory), &command.program),
            audit: audit(
                self.kind(),
                &self.program,
                command,
                &shown,
                vec!["/".to_owned()],
            ),
        }
    }
}
