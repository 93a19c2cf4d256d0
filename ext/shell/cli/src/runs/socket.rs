//! Finds a path of a run's control socket that is short enough for a socket address.
//!
//! The path in a socket address has at most 107 bytes, and a path in the state directory may be
//! longer. Then a short symbolic link outside the state directory is used, in a directory that only
//! this user can enter or write: another user who could change the link could impersonate the
//! supervisor. Creating a link also removes links to ended runs.

use rustix::fs::{self, AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{CONTROL_SOCKET, ErrorBody, ErrorCode, RunStatus};
use wp_codebox_runtime::{FoundRun, StateDir, status};

/// Maximum length of a socket path in bytes: that of `sun_path` without the final NUL.
const ADDRESS: usize = 107;

/// Returns a path of a running run's socket that fits into `sun_path`; creates a link if necessary.
pub(super) fn path(state: &StateDir, run: &FoundRun) -> Result<PathBuf, ErrorBody> {
    let socket = run.path.join(CONTROL_SOCKET);
    let ended = status(state, run)? == RunStatus::Ended;
    if ended || !socket.exists() {
        let message = format!(
            "{} has ended or is still starting, so it has no control socket",
            run.run_id
        );
        return Err(ErrorBody::new(ErrorCode::SandboxNotHeld, message).hint(
            "`wp-codebox runs list --status running` lists the runs that have a control socket",
        ));
    }
    if fits(&socket) {
        return Ok(socket);
    }
    let name = format!("{}.sock", run.run_id);
    let mut why = "no directory with a short enough path is available".to_owned();
    for parent in parents() {
        let directory = parent.join(format!(
            "wp-codebox-{}",
            rustix::process::geteuid().as_raw()
        ));
        let link = directory.join(&name);
        if !fits(&link) {
            continue;
        }
        match own(&directory).and_then(|open| point(&open, &name, &socket)) {
            Ok(()) => return Ok(link),
            Err(error) => why = format!("{}: {error}", directory.display()),
        }
    }
    let message = format!(
        "the path of the socket is longer than {ADDRESS} bytes, and no link to it can be made: {why}"
    );
    Err(ErrorBody::new(ErrorCode::StateDirInvalid, message).hint(
        "remove that directory if it is not yours, or use a state directory with a shorter path",
    ))
}

fn fits(path: &Path) -> bool {
    path.as_os_str().as_bytes().len() <= ADDRESS
}

/// Returns the possible parents of the link directory: the user's runtime directory if it belongs
/// to this user, then the directory for temporary files.
fn parents() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let uid = rustix::process::geteuid().as_raw();
    runtime
        .filter(|path| path.is_absolute())
        .filter(|path| std::fs::symlink_metadata(path).is_ok_and(|found| found.uid() == uid))
        .into_iter()
        .chain([PathBuf::from("/tmp")])
        .collect()
}

/// Opens the link directory and creates it if necessary. Rejects a directory that other users could
/// have written to.
fn own(directory: &Path) -> io::Result<OwnedFd> {
    match fs::mkdir(directory, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = fs::openat(CWD, directory, flags, Mode::empty())?;
    let found = fs::fstat(&open)?;
    let ours = found.st_uid == rustix::process::geteuid().as_raw();
    if !ours || found.st_mode & 0o077 != 0 {
        return Err(io::Error::other(
            "the directory belongs to another user, or other users may enter it",
        ));
    }
    Ok(open)
}

/// Creates a symbolic link to a run's control socket, and removes links to those of ended runs.
fn point(directory: &OwnedFd, name: &str, socket: &Path) -> io::Result<()> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let link = entry.file_type() == FileType::Symlink;
        let gone = || fs::statat(directory, entry.file_name(), AtFlags::empty());
        if link && matches!(gone(), Err(Errno::NOENT)) {
            let _ = fs::unlinkat(directory, entry.file_name(), AtFlags::empty());
        }
    }
    match fs::symlinkat(socket, directory, name) {
        // An existing link was made for this run, because ids are unique; its target is checked
        // below.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    match fs::readlinkat(directory, name, Vec::new())?.as_bytes() == socket.as_os_str().as_bytes() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "the link {name} in this directory leads to another path"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn socket_link_is_created_and_reused_and_removed_when_its_socket_is_gone() {
        let temp = tempfile::tempdir().unwrap();
        let (links, socket) = (temp.path().join("links"), temp.path().join("socket"));
        std::fs::write(&socket, "").unwrap();
        let open = own(&links).unwrap();
        for _ in 0..2 {
            point(&open, "one", &socket).unwrap();
            assert_eq!(std::fs::read_link(links.join("one")).unwrap(), socket);
        }
        // A link of this name to another socket is an error.
        assert!(point(&open, "one", temp.path()).is_err());
        std::fs::remove_file(&socket).unwrap();
        point(&open, "two", temp.path()).unwrap();
        assert!(std::fs::read_link(links.join("one")).is_err());
    }

    #[test]
    fn socket_link_directory_open_to_other_users_is_rejected() {
        let temp = tempfile::tempdir().unwrap();
        let links = temp.path().join("links");
        own(&links).unwrap();
        std::fs::set_permissions(&links, std::fs::Permissions::from_mode(0o711)).unwrap();
        assert!(own(&links).is_err());
        let elsewhere = temp.path().join("elsewhere");
        std::os::unix::fs::symlink(temp.path(), &elsewhere).unwrap();
        assert!(own(&elsewhere).is_err());
    }
}
