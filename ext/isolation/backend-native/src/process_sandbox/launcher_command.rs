//! Makes the command that a process wrapper gets from the launcher and its plan.

use super::HostCommand;
use super::views::{system_links, views};
use std::collections::BTreeMap;
use wp_codebox_contracts::LaunchPlan;
use wp_codebox_process_wrapper::{Mount, Presence};

/// Command that starts the launcher without a wrapper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherCommand<'p> {
    /// Absolute path of the launcher.
    pub program: String,
    /// Arguments of the launcher.
    pub args: Vec<String>,
    /// Launch plan of the guest; it decides which host paths the launcher needs.
    pub plan: &'p LaunchPlan,
}

impl LauncherCommand<'_> {
    /// Returns the command with an empty environment. The launcher opens the sources of its plan by
    /// their host paths, so a wrapper shows each at its own path.
    #[must_use]
    pub fn host_command(&self) -> HostCommand {
        let mounts = views(self.plan)
            .into_iter()
            .map(|view| Mount {
                target: view.host.clone(),
                host: view.host,
                label: view.guest,
                access: view.access,
                // The launcher reports a missing source, with its guest path.
                presence: Presence::Optional,
            })
            .collect();
        HostCommand {
            program: self.program.clone(),
            args: self.args.clone(),
            env: BTreeMap::new(),
            cwd: None,
            links: system_links(self.plan),
            mounts,
        }
    }
}
