//! Helper process that removes the cgroups of a run after the supervisor has exited. If root
//! started the run, this is the only process of the run that keeps root; the supervisor has given
//! up root and lacks the permission to remove them.
//!
//! The process blocks on its standard input until end of file and does nothing before that. It
//! inherits no other descriptor of the run; its arguments name what to remove. It removes the record
//! in the state directory only after it has become the owner of that directory, who can replace
//! every part of the record's path.

use rustix::process::{Gid, Uid};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use wp_codebox_backend_native::remove_cgroups;
use wp_codebox_runtime::Owner;

/// The running reaper process and the pipe to its standard input.
#[derive(Debug)]
pub(crate) struct CgroupReaper {
    child: Child,
}

impl CgroupReaper {
    /// Starts the reaper for the cgroups `directories`, which the file `intent` of the user `owner`
    /// lists. The reaper outlives this process even if this process is killed.
    pub(crate) fn start(
        intent: &Path,
        owner: Owner,
        directories: &[PathBuf],
    ) -> std::io::Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .arg("keep-cgroups")
            .args([owner.uid.to_string(), owner.gid.to_string()])
            .arg(intent)
            .args(directories)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A separate process group, so that Ctrl-C on the terminal does not end the reaper.
            .process_group(0)
            .spawn()?;
        Ok(Self { child })
    }

    /// Closes the reaper's standard input and waits until it has removed the cgroups.
    pub(crate) fn finish(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Waits until the supervisor exits or closes the pipe, then removes the run's cgroups. If all of
/// them are gone, becomes `owner` and removes the intent file that lists them.
pub fn keep(intent: &Path, owner: Owner, directories: &[PathBuf]) -> ExitCode {
    // The supervisor never writes to the pipe: `read_to_end` returns at end of file or on an error.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    remove_cgroups(directories);
    if directories.iter().any(|path| path.exists()) || become_user(owner).is_err() {
        return ExitCode::FAILURE;
    }
    // A missing file needs no handling: the supervisor has already removed it.
    let _ = std::fs::remove_file(intent);
    ExitCode::SUCCESS
}

/// Gives up root. The process has one thread.
fn become_user(owner: Owner) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    rustix::thread::set_thread_groups(&[gid])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)
}
