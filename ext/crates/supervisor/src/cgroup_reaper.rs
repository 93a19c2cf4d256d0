//! The one process of a run that stays root, when root started it: it removes the run's
//! groups once the supervisor is gone, which by then has no right to.
//!
//! It waits for the end of its standard input and does nothing else before. It reads
//! nothing, has no descriptor of the run, and is told what to remove by its arguments.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use wp_codebox_backend_native::remove_cgroups;

/// A reaper of this process's groups.
#[derive(Debug)]
pub(crate) struct CgroupReaper {
    child: Child,
}

impl CgroupReaper {
    /// Starts one. It outlives this process, however that ends.
    pub(crate) fn start(intent: &Path, directories: &[PathBuf]) -> std::io::Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .arg("keep-cgroups")
            .arg(intent)
            .args(directories)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A terminal's Ctrl-C is for the run, not for what cleans up after it.
            .process_group(0)
            .spawn()?;
        Ok(Self { child })
    }

    /// Lets it do its work and waits for it.
    pub(crate) fn finish(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Waits for the supervisor's end, then removes its groups and the file that names them.
pub fn keep(intent: &Path, directories: &[PathBuf]) -> ExitCode {
    // Nobody writes: this returns at the end of file, or when reading is impossible.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    remove_cgroups(directories);
    if directories.iter().any(|path| path.exists()) {
        return ExitCode::FAILURE;
    }
    // Already gone is what is wanted.
    let _ = std::fs::remove_file(intent);
    ExitCode::SUCCESS
}
