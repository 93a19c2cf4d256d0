//! Where groups were made, written down before they are: `<state>/cgroups/<run id>`.
//!
//! The maker holds a lock on the file for as long as it lives, so a file that can be locked
//! speaks of a dead run. The file lies in a directory of the state's owner, who is not
//! trusted by root: what it names is removed only when it is an empty group with the name
//! of a run, which nobody misses.

use super::place::is_cgroup;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, fstat};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wp_codebox_contracts::RunId;
use wp_codebox_runtime::StateDir;

/// Prefix of every group's name; the run id follows.
pub(super) const PREFIX: &str = "wp-codebox-";

const DIRECTORY: &str = "cgroups";
/// Time for a group to become empty after its guest was killed.
const PATIENCE: Duration = Duration::from_secs(2);
/// Largest file read.
const LARGEST: u64 = 64 * 1024;

/// The record of one run's group; while it lives, the run does.
#[derive(Debug)]
pub struct Intent {
    directory: OwnedFd,
    run_id: RunId,
    _lock: fs::File,
}

impl Intent {
    /// Writes down where the group will be and takes the lock.
    pub fn announce(state: &StateDir, run_id: &RunId, paths: &[PathBuf]) -> io::Result<Self> {
        let directory = open_directory(state)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = loop {
            let fd =
                rustix::fs::openat(&directory, run_id.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
            // A reaper may have taken the new file for one of a dead run: it lets go soon.
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

    /// Where it is written down.
    #[must_use]
    pub fn path(&self, state: &StateDir) -> PathBuf {
        state.path().join(DIRECTORY).join(self.run_id.as_str())
    }

    /// The group is gone.
    pub fn done(self) {
        let _ = rustix::fs::unlinkat(&self.directory, self.run_id.as_str(), AtFlags::empty());
    }
}

/// `<state>/cgroups`, made for the owner of the state directory when missing.
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

/// Root makes nothing that the owner of the state directory could not remove.
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

/// What reaping found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftCgroups {
    /// Groups of dead runs that are gone now.
    pub removed: usize,
    /// Groups of dead runs that this user may not remove, or that are not empty.
    pub left: usize,
}

/// Removes the groups of runs whose maker is dead. Only root can remove what root made.
pub fn reap_cgroups(state: &StateDir) -> io::Result<LeftCgroups> {
    let directory = open_directory(state)?;
    let mut found = LeftCgroups::default();
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
        // The lock is on the description, which this copy keeps open.
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

/// Removes these groups as they become empty. Anything but a run's group of a cgroup file
/// system is left alone.
pub fn remove_cgroups(paths: &[PathBuf]) {
    let until = Instant::now() + PATIENCE;
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

/// Whether a path is a group that a run could have made.
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
