//! Command that runs a WASI tool on the host.

use crate::command::{HostCommand, Link, Mount, MountAccess, Presence};
use std::collections::BTreeMap;
use wp_codebox_contracts::OuterSandboxKind;

/// Path at which a tool sees its directory.
const WORK: &str = "/work";

/// Files and arguments of one call of the runner `wp-codebox-wasi`. Paths are absolute host paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The runner.
    pub runner: String,
    /// Definition of the tool.
    pub definition: String,
    /// Module of the tool.
    pub module: String,
    /// Compiled code of the module, if there is any.
    pub compiled: Option<String>,
    /// Directory that the tool sees at `/work`.
    pub directory: Option<ToolDirectory>,
    /// Arguments of the module.
    pub args: Vec<String>,
}

/// Directory of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDirectory {
    /// Absolute host path; a copy that belongs to this call.
    pub host: String,
    /// Whether the tool may change it.
    pub access: MountAccess,
}

impl ToolCall {
    /// Returns the command for a wrapper of this kind. Without a wrapper the runner gets host paths,
    /// inside one the paths there. The environment is empty.
    #[must_use]
    pub fn command(&self, kind: OuterSandboxKind) -> HostCommand {
        let mount = |host: &str, target: &str, access| Mount {
            host: host.to_owned(),
            target: target.to_owned(),
            label: target.to_owned(),
            access,
            presence: Presence::Required,
        };
        let mut mounts = Vec::new();
        let links = match kind {
            OuterSandboxKind::None => Vec::new(),
            // A runner that is linked dynamically needs the loader and the C library.
            OuterSandboxKind::Bubblewrap => {
                mounts.push(mount("/usr", "/usr", MountAccess::Read));
                ["bin", "lib", "lib64"]
                    .map(|name| Link {
                        path: format!("/{name}"),
                        to: format!("usr/{name}"),
                    })
                    .to_vec()
            }
            OuterSandboxKind::Gvisor => Vec::new(),
        };
        // With the last line of `--confirm`, the caller knows that not the wrapper has failed.
        let mut args = ["run", "--confirm"].map(str::to_owned).to_vec();
        let mut file = |option: &str, host: &str, target: &str| {
            mounts.push(mount(host, target, MountAccess::Read));
            let seen = match kind {
                OuterSandboxKind::None => host,
                OuterSandboxKind::Bubblewrap | OuterSandboxKind::Gvisor => target,
            };
            args.extend([option.to_owned(), seen.to_owned()]);
        };
        file("--definition", &self.definition, "/tool/definition.json");
        file("--module", &self.module, "/tool/module.wasm");
        if let Some(compiled) = &self.compiled {
            file("--compiled", compiled, "/tool/module.cwasm");
        }
        if let Some(directory) = &self.directory {
            mounts.push(mount(&directory.host, WORK, directory.access));
            let seen = match kind {
                OuterSandboxKind::None => directory.host.as_str(),
                OuterSandboxKind::Bubblewrap | OuterSandboxKind::Gvisor => WORK,
            };
            let mode = match directory.access {
                MountAccess::Read => "ro",
                MountAccess::Write => "rw",
            };
            args.extend(["--dir".to_owned(), format!("{seen}={WORK}:{mode}")]);
        }
        if !self.args.is_empty() {
            args.push("--".to_owned());
            args.extend(self.args.iter().cloned());
        }
        HostCommand {
            program: self.runner.clone(),
            args,
            env: BTreeMap::new(),
            cwd: None,
            links,
            mounts,
        }
    }
}
