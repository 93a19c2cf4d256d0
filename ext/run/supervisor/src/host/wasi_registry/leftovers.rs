//! Lock of the registry, and removal of what killed processes left in it.

use super::WasiRegistryError;
use super::files::open_directory;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::Uid;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Beginning of the names of directories that a registration fills.
pub(super) const NEW: &str = ".new-";
/// Beginning of the names of directories that a removal empties.
pub(super) const OLD: &str = ".old-";
/// End of the names of files with compiled code.
pub(super) const COMPILED: &str = ".cwasm";
/// Beginning of the names of files that the runner has not finished.
const TEMPORARY: &[u8] = b".tmp";

/// Locks the registry `directory`, after waiting for another process that registers, removes or
/// compiles a tool. The kernel releases the lock when the descriptor is closed.
pub(super) fn lock(directory: &Path, owner: Uid) -> Result<OwnedFd, WasiRegistryError> {
    let locked = open_directory(directory, owner)?;
    loop {
        match rustix::fs::flock(&locked, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(locked),
            Err(Errno::INTR) => {}
            Err(source) => return Err(WasiRegistryError::io(directory)(source.into())),
        }
    }
}

/// Removes unfinished directories. In the directories of tools, also removes unfinished files, and
/// code that was compiled for another engine than `key`. The caller holds the lock, so no other
/// process works on these files.
pub(super) fn sweep(directory: &Path, key: &str) -> Result<(), WasiRegistryError> {
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().as_bytes();
        if name.starts_with(NEW.as_bytes()) || name.starts_with(OLD.as_bytes()) {
            fs::remove_dir_all(&path).map_err(WasiRegistryError::io(&path))?;
        } else if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            sweep_tool(&path, key)?;
        }
    }
    Ok(())
}

fn sweep_tool(directory: &Path, key: &str) -> Result<(), WasiRegistryError> {
    let current = format!("-{key}{COMPILED}");
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let is_old = name.ends_with(COMPILED.as_bytes()) && !name.ends_with(current.as_bytes());
        if is_old || name.starts_with(TEMPORARY) {
            fs::remove_file(&path).map_err(WasiRegistryError::io(&path))?;
        }
    }
    Ok(())
}

fn entries(directory: &Path) -> Result<Vec<std::path::PathBuf>, WasiRegistryError> {
    let listed = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    listed.map_err(WasiRegistryError::io(directory))
}
