//! Files with secrets, which other users can neither read nor change.

use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::Path;
use wp_codebox_runtime::Owner;

/// Maximum size of a secret in bytes.
const LARGEST: usize = 64 * 1024;

/// Reads a file that only its owner can read, and whose owner is root, this process's user or the
/// owner of the state directory. A line end at its end does not belong to the value.
///
/// # Errors
/// Why the file cannot be used, without its content.
pub fn private_text(
    directory: BorrowedFd<'_>,
    path: &Path,
    owner: Owner,
) -> Result<String, String> {
    // The open of a named pipe would block until a process writes to it.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(directory, path, flags, Mode::empty()).map_err(open_failed)?;
    let stat = fstat(&file).map_err(open_failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("it is not a regular file".to_owned());
    }
    if ![0, owner.uid, geteuid().as_raw()].contains(&stat.st_uid) {
        return Err(
            "it belongs neither to root nor to the owner of the state directory".to_owned(),
        );
    }
    if stat.st_mode & 0o077 != 0 {
        return Err("users other than its owner have permissions on it; chmod 0600".to_owned());
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file)
        .take(LARGEST as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() > LARGEST {
        return Err(format!("it is longer than {LARGEST} bytes"));
    }
    let mut value = String::from_utf8(bytes).map_err(|_| "it is not valid UTF-8".to_owned())?;
    if value.ends_with('\n') {
        value.pop();
    }
    if value.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(value)
}

/// Returns why a file cannot be opened, without its path.
pub fn open_failed(errno: Errno) -> String {
    match errno {
        Errno::NOENT => "there is no such file".to_owned(),
        Errno::LOOP => "it is a symbolic link".to_owned(),
        errno => errno.to_string(),
    }
}
