//! Records of the cgroups of runs: files `<state>/cgroups/<run id>` with the cgroup's paths,
//! written before the cgroups are created.
//!
//! The creator holds a lock on the file as long as it lives, so a file that another process can
//! lock belongs to a dead run. The owner of the state directory can write the file, and root does
//! not trust that owner: a path in the file is removed only if it is an empty cgroup with the name
//! of a run.

use super::parents::is_cgroup;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, fstat};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wp_codebox_contracts::RunId;
use wp_codebox_runtime::StateDir;

/// Name prefix of every run's cgroup; the run id follows.
pub(super) const PREFIX: &str = "wp-codebox-";

const DIRECTORY: &str = "cgroups";
/// Maximum wait for cgroups to become empty after their guest was killed.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes that are read from a record file.
const LARGEST: u64 = 64 * 1024;

/// Locked record file of one run's cgroup. Other processes count the run as alive as long as this
/// value holds the lock.
#[derive(Debug)]
pub struct Intent {
    directory: OwnedFd,
    run_id: RunId,
    _lock: fs::File,
}

impl Intent {
    /// Writes the record with the paths of the cgroup and locks the file.
    pub fn announce(state: &StateDir, run_id: &RunId, paths: &[PathBuf]) -> io::Result<Self> {
        let directory = open_directory(state)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = loop {
            let fd =
                rustix::fs::openat(&directory, run_id.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
            // A concurrent reaper may lock the new file first and delete it, because it mistakes
            // the file for the record of a dead run. Then create the file again.
            rustix::fs::flock(&fd, FlockOperation::LockExclusive)?;
            if fstat(&fd)?.st_nlink > 0 {
                break fd;
            }
        };
        give(state, lock.as_fd())?;
        let mut lock = fs::File::from(lock);
        for path in paths {
            writeln!(lock, "{}", path.display())?;
        }
        Ok(Self {
            directory,
            run_id: run_id.clone(),
            _lock: lock,
        })
    }

    /// Returns the path of the record file, `<state>/cgroups/<run id>`.
    #[must_use]
    pub fn path(&self, state: &StateDir) -> PathBuf {
        state.path().join(DIRECTORY).join(self.run_id.as_str())
    }

    /// Deletes the record file; called after the cgroup was removed.
    pub fn done(self) {
        let _ = rustix::fs::unlinkat(&self.directory, self.run_id.as_str(), AtFlags::empty());
    }
}

/// Opens `<state>/cgroups`; creates it for the owner of the state directory when missing.
fn open_directory(state: &StateDir) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::mkdirat(state, DIRECTORY, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let fd = rustix::fs::openat(state, DIRECTORY, flags, Mode::empty())?;
    give(state, fd.as_fd())?;
    Ok(fd)
}

/// Changes the owner of a new file or directory to the state directory's owner, so that the owner
/// can delete what root created.
fn give(state: &StateDir, fd: BorrowedFd<'_>) -> io::Result<()> {
    if rustix::process::geteuid().is_root() && fstat(fd)?.st_uid == 0 {
        let owner = state.owner();
        let (uid, gid) = (
            rustix::process::Uid::from_raw(owner.uid),
            rustix::process::Gid::from_raw(owner.gid),
        );
        rustix::fs::fchown(fd, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// Result of one call of [`reap_cgroups`]: numbers of cgroups of dead runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReapedCgroups {
    /// Number of removed cgroups of dead runs.
    pub removed: usize,
    /// Number of cgroups of dead runs that this user may not remove or that are not empty.
    pub left: usize,
}

/// Removes the cgroups of dead runs. Only root can remove cgroups that root created.
pub fn reap_cgroups(state: &StateDir) -> io::Result<ReapedCgroups> {
    let directory = open_directory(state)?;
    let mut found = ReapedCgroups::default();
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(RunId::new(name));
    }
    for run_id in names {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::openat(&directory, run_id.as_str(), flags, Mode::empty()) else {
            continue;
        };
        if rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        // The lock on the record file belongs to the open file description, which this duplicate
        // keeps open.
        let Ok(lock) = fd.try_clone() else {
            continue;
        };
        let file = fs::File::from(fd);
        let mut text = String::new();
        let _ = file.take(LARGEST).read_to_string(&mut text);
        let wanted = format!("{PREFIX}{run_id}");
        let paths: Vec<PathBuf> = text
            .lines()
            .map(PathBuf::from)
            .filter(|path| path.file_name() == Some(wanted.as_ref()))
            .collect();
        let there = paths.iter().filter(|path| path.exists()).count();
        remove_cgroups(&paths);
        let left = paths.iter().filter(|path| path.exists()).count();
        found.removed += there - left;
        found.left += left;
        if left == 0 {
            let _ = rustix::fs::unlinkat(&directory, run_id.as_str(), AtFlags::empty());
        }
        drop(lock);
    }
    Ok(found)
}

/// Removes the cgroups at `paths`; waits up to `EMPTY_TIMEOUT` in total until they have no
/// processes. Ignores a path that is not a run's cgroup on a cgroup file system.
pub fn remove_cgroups(paths: &[PathBuf]) {
    let until = Instant::now() + EMPTY_TIMEOUT;
    for path in paths.iter().filter(|path| is_group(path)) {
        loop {
            match fs::remove_dir(path) {
                Err(error)
                    if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until =>
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(()) | Err(_) => break,
            }
        }
    }
}

/// Returns whether a path is a cgroup with the name of a run.
fn is_group(path: &Path) -> bool {
    let named = path
        .file_name()
        .and_then(|name| name.to_str()?.strip_prefix(PREFIX))
        .is_some_and(|id| RunId::new(id).is_ok());
    let plain = path.is_absolute()
        && !path
            .components()
            .any(|part| part == std::path::Component::ParentDir);
    named && plain && is_cgroup(path)
}
