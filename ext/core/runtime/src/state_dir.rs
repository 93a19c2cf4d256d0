//! The state directory: its owner, access checks, and paths in it.

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{StateVersionError, check_state_version, write_state_version};
use wp_codebox_contracts::{CodedError, ErrorBody, SiteId};

/// Disk space in bytes that a run reserves for its end. Most recovery bundles and the last events of
/// a run need less.
const RESERVED: u64 = 16 << 20;

/// Directory below which root makes a state directory for each user.
pub const STATES: &str = "/var/lib/wp-codebox";

/// User id and group id that own the state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id of the owner.
    pub uid: u32,
    /// Group id of the owner.
    pub gid: u32,
}

/// Reason why a state directory cannot be used. Messages contain the path, because the operator
/// of the host reads them.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(StateDirInvalid, detail = Self::detail)]
pub enum StateDirError {
    /// The directory cannot be opened, or is missing and cannot be created.
    #[error("the state directory {path} does not exist or cannot be opened")]
    Missing {
        /// Path of the state directory.
        path: PathBuf,
        /// Error number of the system call that failed.
        source: rustix::io::Errno,
    },
    /// The directory belongs to root.
    #[error("the state directory {path} belongs to root; it needs an owner who is not root")]
    OwnedByRoot {
        /// Path of the state directory.
        path: PathBuf,
    },
    /// The directory belongs to a user other than the one that runs this process.
    #[error(
        "the state directory {path} belongs to uid {owner}, but this process runs as uid {current}"
    )]
    Foreign {
        /// Path of the state directory.
        path: PathBuf,
        /// User id that the directory belongs to.
        owner: u32,
        /// Effective user id of this process.
        current: u32,
    },
    /// Users other than the owner have permissions on the directory.
    #[error(
        "the state directory {path} has mode {mode:04o}: users other than its owner have permissions on it"
    )]
    TooOpen {
        /// Path of the state directory.
        path: PathBuf,
        /// Permission bits of the directory.
        mode: u32,
    },
    /// A newer program wrote the directory, or its version cannot be read.
    #[error("{path}: {source}")]
    Version {
        /// Path of the state directory.
        path: PathBuf,
        /// What is wrong with the version.
        source: StateVersionError,
    },
    /// A root process could not switch to the owner's user id.
    #[error(
        "this process, which runs as root, cannot become uid {owner}, the owner of the state directory"
    )]
    BecomeOwner {
        /// User id that the directory belongs to.
        owner: u32,
        /// Error number of the system call that failed.
        source: rustix::io::Errno,
    },
    /// A directory or file in the state directory cannot be created.
    #[error("this process cannot create {what} below the state directory {path}")]
    #[code(hint = "check free space and that the file system is not mounted read-only")]
    Create {
        /// Path of the state directory.
        path: PathBuf,
        /// Name of the directory or file that cannot be created.
        what: String,
        /// Error number of the system call that failed.
        source: rustix::io::Errno,
    },
}

impl StateDirError {
    /// A hint says how to fix the problem, if a fix is known.
    fn detail(&self, mut body: ErrorBody) -> ErrorBody {
        if let Self::Missing { source, .. }
        | Self::BecomeOwner { source, .. }
        | Self::Create { source, .. } = self
        {
            body.message = format!("{self}: {source}");
        }
        match self {
            Self::Missing { path, .. } if hosted(path) => body
                .hint(format!("as root: wp-codebox users add {}", path.file_name().unwrap_or_default().display())),
            // The directory may exist and only be inaccessible for this user. So this hint does not
            // say how to create a directory, unlike the hint for other errors.
            Self::Missing { source, .. } if *source == rustix::io::Errno::ACCESS => body
                .hint("run this as the owner of the directory, or choose a directory of your own with --state or the PHP setting wp_codebox.state_dir"),
            Self::Missing { path, .. } => body
                .hint(format!("install -d -m 0700 -o USER -g GROUP {} (USER: not root; for a site, the user that PHP runs as)", path.display())),
            Self::OwnedByRoot { path } => body
                .hint(format!("chown USER:GROUP {} (USER: not root; for a site, the user that PHP runs as)", path.display())),
            Self::Foreign { owner, .. } => body
                .hint(format!("run this as uid {owner} or as root, or choose a directory of your own with --state or the PHP setting wp_codebox.state_dir")),
            Self::TooOpen { path, .. } => body.hint(format!("chmod 0700 {}", path.display())),
            Self::Version { .. } | Self::BecomeOwner { .. } | Self::Create { .. } => body,
        }
    }
}

/// Returns whether a path is that of a state directory that `wp-codebox users add` makes, and
/// nothing is there.
fn hosted(path: &Path) -> bool {
    path.parent() == Some(Path::new(STATES)) && path.symlink_metadata().is_err()
}

/// An open state directory whose owner and mode were found correct.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    fd: OwnedFd,
    owner: Owner,
}

impl StateDir {
    /// Opens the state directory and checks its owner and mode. If it is missing, a process that is
    /// not root creates it, with its parents: a new user has no ~/.local/state. Root does not, because
    /// it would have to guess the owner.
    pub fn open(path: &Path) -> Result<Self, StateDirError> {
        let current = rustix::process::geteuid();
        let missing = |source| StateDirError::Missing {
            path: path.to_owned(),
            source,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(path, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) if !current.is_root() => {
                std::fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(path)
                    .map_err(|error| missing(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
                rustix::fs::open(path, flags, Mode::empty()).map_err(missing)?
            }
            opened => opened.map_err(missing)?,
        };
        let stat = rustix::fs::fstat(&fd).map_err(missing)?;
        if stat.st_uid == 0 {
            return Err(StateDirError::OwnedByRoot {
                path: path.to_owned(),
            });
        }
        if !current.is_root() && stat.st_uid != current.as_raw() {
            return Err(StateDirError::Foreign {
                path: path.to_owned(),
                owner: stat.st_uid,
                current: current.as_raw(),
            });
        }
        let mode = stat.st_mode & 0o7777;
        if mode & 0o077 != 0 {
            return Err(StateDirError::TooOpen {
                path: path.to_owned(),
                mode,
            });
        }
        check_state_version(fd.as_fd()).map_err(|source| StateDirError::Version {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            fd,
            owner: Owner {
                uid: stat.st_uid,
                gid: stat.st_gid,
            },
        })
    }

    /// Drops root privileges permanently. Must be called before the process has a second thread,
    /// because the system calls change only the calling thread.
    pub fn become_owner(&self) -> Result<(), StateDirError> {
        self.become_owner_with(None)
    }

    /// Drops root privileges as [`Self::become_owner`] does, and keeps a further group of the owner.
    pub fn become_owner_with(&self, group: Option<u32>) -> Result<(), StateDirError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let fail = |source| StateDirError::BecomeOwner {
            owner: self.owner.uid,
            source,
        };
        let (uid, gid) = (Uid::from_raw(self.owner.uid), Gid::from_raw(self.owner.gid));
        let groups = [gid].into_iter().chain(group.map(Gid::from_raw));
        rustix::thread::set_thread_groups(&groups.collect::<Vec<_>>()).map_err(fail)?;
        rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(fail)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(fail)?;
        if rustix::process::getuid().is_root()
            || rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok()
        {
            return Err(fail(rustix::io::Errno::PERM));
        }
        Ok(())
    }

    /// Calls `work` with the owner's user and group ids, so that root leaves no files of its own in
    /// the state directory; afterwards root's ids are restored. If this process is not root, its
    /// ids do not change. Must be called while the process has one thread, because the system calls
    /// change only the ids of the calling thread.
    pub fn as_owner<T>(&self, work: impl FnOnce() -> T) -> Result<T, StateDirError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(work());
        }
        let fail = |source| StateDirError::BecomeOwner {
            owner: self.owner.uid,
            source,
        };
        let (uid, gid) = (Uid::from_raw(self.owner.uid), Gid::from_raw(self.owner.gid));
        let groups = rustix::process::getgroups().map_err(fail)?;
        rustix::thread::set_thread_groups(&[gid]).map_err(fail)?;
        rustix::thread::set_thread_res_gid(Gid::ROOT, gid, Gid::ROOT).map_err(fail)?;
        rustix::thread::set_thread_res_uid(Uid::ROOT, uid, Uid::ROOT).map_err(fail)?;
        let result = work();
        rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(fail)?;
        rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).map_err(fail)?;
        rustix::thread::set_thread_groups(&groups).map_err(fail)?;
        Ok(result)
    }

    /// Returns the path of the state directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the user and group that the state directory belongs to.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Returns the path of a site's directory, `sites/<site>`, after creating it if missing.
    pub fn site(&self, site: &SiteId) -> Result<PathBuf, StateDirError> {
        self.ensure(&["sites", site.as_str()])
    }

    /// Returns the path of the directory `names` (one name a level) in the state directory, after
    /// creating missing levels with mode 0700. Also states the version of the state directory.
    pub fn ensure(&self, names: &[&str]) -> Result<PathBuf, StateDirError> {
        // A directory without a version has version 1. So a disk that is full for the file, but not
        // for the work of the caller, is no error.
        let _ = write_state_version(self.fd.as_fd());
        let mut at = self.path.clone();
        for name in names {
            at.push(name);
            match rustix::fs::mkdir(&at, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(source) => {
                    return Err(StateDirError::Create {
                        path: self.path.clone(),
                        what: names.join("/"),
                        source,
                    });
                }
            }
        }
        Ok(at)
    }

    /// Checks that a run could start: creates a file, removes it, and asks for the disk space that a
    /// run reserves. The file has no name while it is large, so a killed process leaves nothing behind.
    pub fn probe_room(&self) -> Result<(), StateDirError> {
        let name = format!(".probe-{}", rustix::process::getpid().as_raw_nonzero());
        let fail = |source| StateDirError::Create {
            path: self.path.clone(),
            what: format!("a file of {} MiB", RESERVED >> 20),
            source,
        };
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.fd, &*name, flags, Mode::from_raw_mode(0o600))
            .map_err(fail)?;
        rustix::fs::unlinkat(&self.fd, &*name, AtFlags::empty()).map_err(fail)?;
        reserve(file.as_fd()).map_err(fail)
    }
}

/// Reserves the disk space of a file that a run needs for its end.
pub(crate) fn reserve(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, RESERVED) {
        // Some network file systems cannot reserve space.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error),
    }
}

impl AsFd for StateDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use wp_codebox_contracts::ErrorCode;

    fn owned_by_somebody(dir: &Path) {
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(dir, Some(12_345), Some(12_345)).unwrap();
        }
    }

    #[test]
    fn state_dir_owned_by_root_or_accessible_to_other_users_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("state");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            assert!(matches!(
                StateDir::open(&path),
                Err(StateDirError::OwnedByRoot { .. })
            ));
        } else {
            assert!(matches!(
                StateDir::open(Path::new("/usr")),
                Err(StateDirError::OwnedByRoot { .. })
            ));
        }
        owned_by_somebody(&path);
        assert!(StateDir::open(&path).is_ok());
        for mode in [0o720, 0o702, 0o777, 0o755, 0o750, 0o710, 0o701] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = StateDir::open(&path).unwrap_err();
            assert!(matches!(error, StateDirError::TooOpen { .. }), "{mode:o}");
            assert!(error.body().hints[0].starts_with("chmod 0700 "));
        }
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(StateDir::open(&link).is_err());
    }

    #[test]
    fn directories_created_in_the_state_directory_have_mode_0700() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("state");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        owned_by_somebody(&path);
        let state = StateDir::open(&path).unwrap();
        state.probe_room().unwrap();
        let site = state.site(&SiteId::new("site-1").unwrap()).unwrap();
        assert_eq!(
            fs::metadata(&site).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(fs::read_to_string(path.join("version")).unwrap(), "1\n");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
        fs::write(path.join("version"), "2\n").unwrap();
        let error = StateDir::open(&path).unwrap_err().body();
        assert_eq!(error.code, ErrorCode::StateDirInvalid);
        assert!(
            error.message.contains("use the newer wp-codebox"),
            "{}",
            error.message
        );
    }
}
