//! Files of the registry: reads them only if no other user could have changed them.

use super::WasiRegistryError;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::process::Uid;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a directory of the registry without following a link.
pub(super) fn open_directory(path: &Path, owner: Uid) -> Result<OwnedFd, WasiRegistryError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fail = |source| WasiRegistryError::Read {
        path: path.to_owned(),
        source,
    };
    let directory = rustix::fs::open(path, flags, Mode::empty()).map_err(fail)?;
    let stat = rustix::fs::fstat(&directory).map_err(fail)?;
    trusted(&stat, path, owner)?;
    Ok(directory)
}

/// Reads a regular file of at most `most` bytes in an open directory, whose path is `at`.
pub(super) fn read(
    directory: &OwnedFd,
    name: &str,
    at: &Path,
    most: u64,
    owner: Uid,
) -> Result<Vec<u8>, WasiRegistryError> {
    let path = at.join(name);
    let fail = |source| WasiRegistryError::Read {
        path: path.clone(),
        source,
    };
    let untrusted = |reason| WasiRegistryError::Untrusted {
        path: path.clone(),
        reason,
    };
    // NONBLOCK: opening a FIFO would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Err(rustix::io::Errno::LOOP) => return Err(untrusted("it is a symbolic link")),
        // The directory was opened before, so this file alone is missing.
        Err(rustix::io::Errno::NOENT) => return Err(untrusted("it is missing")),
        opened => opened.map_err(fail)?,
    };
    let stat = rustix::fs::fstat(&file).map_err(fail)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(untrusted("it is not a regular file"));
    }
    trusted(&stat, &path, owner)?;
    let mut bytes = Vec::new();
    File::from(file)
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(WasiRegistryError::io(&path))?;
    if bytes.len() as u64 > most {
        return Err(untrusted("it is too large"));
    }
    Ok(bytes)
}

/// Fails unless the file belongs to `owner` or to root, and no other user may write it.
fn trusted(stat: &Stat, path: &Path, owner: Uid) -> Result<(), WasiRegistryError> {
    let reason = if stat.st_uid != 0 && stat.st_uid != owner.as_raw() {
        "it belongs to another user"
    } else if stat.st_mode & 0o022 != 0 {
        "its group or every user may write it"
    } else {
        return Ok(());
    };
    Err(WasiRegistryError::Untrusted {
        path: path.to_owned(),
        reason,
    })
}

/// Writes a new file with mode 0600 and syncs it.
pub(super) fn write(at: &Path, name: &str, bytes: &[u8]) -> Result<(), WasiRegistryError> {
    let path = at.join(name);
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    options
        .open(&path)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(WasiRegistryError::io(&path))
}

/// Syncs the names in a directory.
pub(super) fn sync_directory(path: &Path) -> Result<(), WasiRegistryError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(WasiRegistryError::io(path))
}
