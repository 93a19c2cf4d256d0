//! `--socket-group`: the directory of a unix socket that members of a group may connect to.
//!
//! The process becomes the owner of the state directory before it binds the socket, and that user
//! need not be a member of the group. So root gives the group to the directory, with the
//! set-group-ID bit: the kernel gives a new file in it the group of the directory.

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, mkdirat, openat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{CodedError, ErrorBody};
use wp_codebox_runtime::StateDir;
use wp_codebox_service::SocketAccess;

/// Failures of the option.
#[derive(Debug, thiserror::Error, CodedError)]
enum SocketGroupError {
    #[error("--socket-group {name:?}: there is no such group; create it, or name another one")]
    #[code(InputInvalid)]
    Unknown { name: String },
    #[error(
        "--socket {socket:?} with --socket-group must be outside of the state directory, which only its owner may enter; choose another path, for example below /run"
    )]
    #[code(InputInvalid)]
    InState { socket: PathBuf },
    #[error(
        "the directory {directory:?} of the socket can be changed by users other than root and the owner of the state directory; choose another one, or take their write permission away"
    )]
    #[code(ConfigInvalid)]
    Unsafe { directory: PathBuf },
    #[error(
        "the directory {directory:?} of the socket cannot be created or used: {source}; create it so that the group may enter it, or choose another one"
    )]
    #[code(ConfigInvalid)]
    Directory {
        directory: PathBuf,
        #[source]
        source: Errno,
    },
}

/// Creates the directory of the socket if it does not exist. The process still has the rights with
/// which it was started.
///
/// # Errors
/// When the group does not exist, or the directory cannot be used.
pub(super) fn prepare(
    socket: &Path,
    group: &str,
    state: &StateDir,
) -> Result<SocketAccess, ErrorBody> {
    let gid = group_id(group)?;
    let directory = match socket.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create(directory, gid, state)?;
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if real(directory).starts_with(real(state.path())) {
        let socket = socket.to_owned();
        return Err(SocketGroupError::InState { socket }.into());
    }
    Ok(SocketAccess::Group { gid })
}

fn create(directory: &Path, gid: u32, state: &StateDir) -> Result<(), SocketGroupError> {
    let failed = |source| SocketGroupError::Directory {
        directory: directory.to_owned(),
        source,
    };
    let made = mkdirat(CWD, directory, Mode::from_raw_mode(0o700));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(CWD, directory, flags, Mode::empty()).map_err(failed)?;
    let owner = state.owner().uid;
    match made {
        Ok(()) => {
            let uid = geteuid().is_root().then(|| Uid::from_raw(owner));
            let shared = fchown(&opened, uid, Some(Gid::from_raw(gid)))
                .and_then(|()| fchmod(&opened, Mode::from_raw_mode(0o2750)));
            if shared.is_err() {
                // The next start would take the directory, which the group cannot enter, for one of
                // the operator.
                let _ = unlinkat(CWD, directory, AtFlags::REMOVEDIR);
            }
            shared.map_err(failed)
        }
        Err(Errno::EXIST) => {
            let stat = fstat(&opened).map_err(failed)?;
            let known = [0, owner, geteuid().as_raw()].contains(&stat.st_uid);
            match known && stat.st_mode & 0o022 == 0 {
                true => Ok(()),
                false => Err(SocketGroupError::Unsafe {
                    directory: directory.to_owned(),
                }),
            }
        }
        Err(source) => Err(failed(source)),
    }
}

/// Returns the id of a group; a number is an id.
fn group_id(name: &str) -> Result<u32, SocketGroupError> {
    let found = name
        .parse()
        .ok()
        .or_else(|| wp_codebox_settings::group_id(name));
    found.ok_or_else(|| SocketGroupError::Unknown {
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use wp_codebox_contracts::ErrorCode;

    fn state(temp: &Path) -> StateDir {
        let path = temp.join("state");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        if geteuid().is_root() {
            chown(&path, Some(12_345), Some(12_345)).unwrap();
        }
        StateDir::open(&path).unwrap()
    }

    /// A directory is unsafe if its group or others may write it, or if it lies in the state
    /// directory. An unknown group is refused too.
    #[test]
    fn new_socket_directory_has_the_given_group_and_mode_2750_and_an_unsafe_one_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(temp.path());
        let gid = rustix::process::getegid().as_raw();
        let at = |name: &str| temp.path().join(name).join("api.sock");
        let access = prepare(&at("new"), &gid.to_string(), &state).unwrap();
        assert_eq!(access, SocketAccess::Group { gid });
        let made = fs::metadata(temp.path().join("new")).unwrap();
        assert_eq!((made.mode() & 0o7777, made.gid()), (0o2750, gid));
        // A second start accepts the directory that the first one created.
        prepare(&at("new"), &gid.to_string(), &state).unwrap();
        for mode in [0o770, 0o777, 0o1777] {
            let path = temp.path().join(format!("open-{mode:o}"));
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = prepare(&path.join("s"), &gid.to_string(), &state).unwrap_err();
            assert_eq!(refused.code, ErrorCode::ConfigInvalid, "{mode:o}");
        }
        let inside = prepare(&at("state"), &gid.to_string(), &state).unwrap_err();
        assert_eq!(inside.code, ErrorCode::InputInvalid);
        assert_eq!(group_id("root").unwrap(), 0);
        for unknown in ["no-such-group-here", "", "--help"] {
            group_id(unknown).unwrap_err();
        }
    }
}
