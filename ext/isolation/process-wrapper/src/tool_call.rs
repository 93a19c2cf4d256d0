//! Command that runs a WASI tool on the host.

use crate::command::{HostCommand, Link, Mount, MountAccess, Presence};
use std::collections::BTreeMap;
use wp_codebox_contracts::OuterSandboxKind;

/// Path at which a tool sees its directory.
pub const TOOL_WORK: &str = "/work";
/// Directory inside a wrapper or guest with the files of the tool: `definition.json`, `module.wasm`
/// and, if there is compiled code, `module.cwasm`.
pub const TOOL_FILES: &str = "/tool";

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

/// Which paths the arguments of the runner name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paths {
    /// Paths on the host.
    Host,
    /// Paths inside a wrapper or guest, the same for every call.
    Inside,
}

impl ToolCall {
    /// Returns the command for a wrapper of this kind. Without a wrapper the runner gets host
    /// paths, otherwise paths inside the wrapper. The environment is empty.
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
        let (paths, links) = match kind {
            OuterSandboxKind::None => (Paths::Host, Vec::new()),
            // A runner that is linked dynamically needs the loader and the C library.
            OuterSandboxKind::Bubblewrap => {
                mounts.push(mount("/usr", "/usr", MountAccess::Read));
                let links = ["bin", "lib", "lib64"].map(|name| Link {
                    path: format!("/{name}"),
                    to: format!("usr/{name}"),
                });
                (Paths::Inside, links.to_vec())
            }
            OuterSandboxKind::Gvisor => (Paths::Inside, Vec::new()),
        };
        let files = self.files();
        mounts.extend(files.map(|(_, host, target)| mount(host, target, MountAccess::Read)));
        if let Some(directory) = &self.directory {
            mounts.push(mount(&directory.host, TOOL_WORK, directory.access));
        }
        HostCommand {
            program: self.runner.clone(),
            args: self.arguments(paths),
            env: BTreeMap::new(),
            cwd: None,
            links,
            mounts,
        }
    }

    /// Returns the arguments of the runner in a guest, which shows the tool's files in
    /// [`TOOL_FILES`] and the directory at [`TOOL_WORK`].
    #[must_use]
    pub fn guest_arguments(&self) -> Vec<String> {
        self.arguments(Paths::Inside)
    }

    /// Returns the files of the tool: option of the runner, host path, path inside.
    fn files(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        [
            (
                "--definition",
                Some(&self.definition),
                "/tool/definition.json",
            ),
            ("--module", Some(&self.module), "/tool/module.wasm"),
            ("--compiled", self.compiled.as_ref(), "/tool/module.cwasm"),
        ]
        .into_iter()
        .filter_map(|(option, host, inside)| Some((option, host?.as_str(), inside)))
    }

    fn arguments(&self, paths: Paths) -> Vec<String> {
        // The last line that `--confirm` prints shows that the exit status is not that of a failed
        // wrapper.
        let mut args = ["run", "--confirm"].map(str::to_owned).to_vec();
        let seen = |host: &str, inside: &str| {
            match paths {
                Paths::Host => host,
                Paths::Inside => inside,
            }
            .to_owned()
        };
        for (option, host, inside) in self.files() {
            args.extend([option.to_owned(), seen(host, inside)]);
        }
        if let Some(directory) = &self.directory {
            let mode = match directory.access {
                MountAccess::Read => "ro",
                MountAccess::Write => "rw",
            };
            let seen = seen(&directory.host, TOOL_WORK);
            args.extend(["--dir".to_owned(), format!("{seen}={TOOL_WORK}:{mode}")]);
        }
        if !self.args.is_empty() {
            args.push("--".to_owned());
            args.extend(self.args.iter().cloned());
        }
        args
    }
}
