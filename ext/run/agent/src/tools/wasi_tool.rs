//! A WASI tool in the guest: where it is mounted, and the command line that runs it.

use std::time::Duration;
use wp_codebox_contracts::{GuestPath, MountAccess, WasiFiles, WasiToolId};
use wp_codebox_runtime::GuestMount;

/// A registered WASI tool as it is mounted in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestWasiTool {
    /// Id of the tool.
    pub id: WasiToolId,
    /// Guest path of the program `wp-codebox-wasi`.
    pub runner: String,
    /// Guest directory with `definition.json`, `module.wasm` and `module.cwasm`.
    pub directory: GuestPath,
    /// Access that the tool has to the mounts: none, read or write.
    pub files: WasiFiles,
    /// Time limit in the tool's definition.
    pub limit: Duration,
}

impl GuestWasiTool {
    /// Returns the command line that runs the tool: the same for every call.
    #[must_use]
    pub fn argv(&self, mounts: &[GuestMount]) -> Vec<String> {
        let file = |name: &str| format!("{}/{name}", self.directory);
        let mut argv = vec![self.runner.clone(), "run".to_owned()];
        for (option, name) in [
            ("--definition", "definition.json"),
            ("--module", "module.wasm"),
            ("--compiled", "module.cwasm"),
        ] {
            argv.extend([option.to_owned(), file(name)]);
        }
        for mount in mounts {
            let access = match (self.files, mount.access) {
                (WasiFiles::None, _) => continue,
                (WasiFiles::Write, MountAccess::Readwrite) => "rw",
                (WasiFiles::Read, _) | (WasiFiles::Write, MountAccess::Readonly) => "ro",
            };
            let at = &mount.target;
            argv.extend(["--dir".to_owned(), format!("{at}={at}:{access}")]);
        }
        argv
    }
}
