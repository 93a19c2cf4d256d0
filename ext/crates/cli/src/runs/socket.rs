//! A path to the control socket of a run that any program of this host can connect to.
//!
//! The address of a socket holds 107 bytes, and a state directory may lie deeper. Then a link
//! beside the state stands for it, in a directory that only its owner may enter or write: who
//! could change the link could answer in place of the supervisor. Links whose run is gone are
//! removed when the next one is made.

use rustix::fs::{self, AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{CONTROL_SOCKET, ErrorBody, ErrorCode, RunStatus};
use wp_codebox_runtime::{FoundRun, StateDir, status};

/// Bytes of the address of a socket, without the one that ends it.
const ADDRESS: usize = 107;

/// The socket of a run that is alive, by a path that is short enough.
pub(super) fn path(state: &StateDir, run: &FoundRun) -> Result<PathBuf, ErrorBody> {
    let socket = run.path.join(CONTROL_SOCKET);
    let ended = status(state, run).map_err(|e| e.body())? == RunStatus::Ended;
    if ended || !socket.exists() {
        let message = format!("{} has ended and hears nothing any more", run.run_id);
        return Err(ErrorBody::new(ErrorCode::SandboxNotHeld, message)
            .hint("wp-codebox runs list --status running names those that do"));
    }
    if fits(&socket) {
        return Ok(socket);
    }
    let name = format!("{}.sock", run.run_id);
    let mut why = "no place for it is short enough".to_owned();
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

/// Where the directory of links may be: the user's runtime directory if this is that user, else
/// the directory for temporary files.
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

/// The directory of links, made when there is none. One that others could have filled is refused.
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
            "it belongs to somebody else, or others may enter it",
        ));
    }
    Ok(open)
}

/// Makes the name a link to the socket, and removes links that lead nowhere.
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
        // Made before: for this run, whose id nobody else has, and its directory does not move.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    match fs::readlinkat(directory, name, Vec::new())?.as_bytes() == socket.as_os_str().as_bytes() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{name} in it leads elsewhere"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_link_is_made_kept_and_removed_with_its_socket() {
        let temp = tempfile::tempdir().unwrap();
        let (links, socket) = (temp.path().join("links"), temp.path().join("socket"));
        std::fs::write(&socket, "").unwrap();
        let open = own(&links).unwrap();
        for _ in 0..2 {
            point(&open, "one", &socket).unwrap();
            assert_eq!(std::fs::read_link(links.join("one")).unwrap(), socket);
        }
        // Another socket by the same name is not what was asked for.
        assert!(point(&open, "one", temp.path()).is_err());
        std::fs::remove_file(&socket).unwrap();
        point(&open, "two", temp.path()).unwrap();
        assert!(std::fs::read_link(links.join("one")).is_err());
    }

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
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
