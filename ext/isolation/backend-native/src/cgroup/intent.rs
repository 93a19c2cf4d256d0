//! Records of the cgroups of runs: files `<state>/cgroups/<run id>` with the cgroup's paths,
//! written before the cgroups are created.
//!
//! The creator holds a lock on the file as long as it lives, so a file that another process can
//! lock belongs to a dead run. The owner of the state directory can write the file, and root does
//! not trust that owner: root accesses the records with the owner's ids, and a path in a record is
//! removed only if it is an empty cgroup with the name of a run.

use super::parents::is_cgroup;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, ResolveFlags, fstat};
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

/// Maximum number of records that one call of [`reap_cgroups`] reads; each needs a descriptor.
const RECORDS: usize = 256;

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
        as_owner(state, || Self::write(state, run_id, paths))
    }

    fn write(state: &StateDir, run_id: &RunId, paths: &[PathBuf]) -> io::Result<Self> {
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
    Ok(rustix::fs::openat(state, DIRECTORY, flags, Mode::empty())?)
}

/// Calls `work` with the ids of the state directory's owner, who can replace every name in it.
fn as_owner<T>(state: &StateDir, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    state.as_owner(work).map_err(io::Error::other)?
}

/// Result of one call of [`reap_cgroups`]: numbers of cgroups of dead runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReapedCgroups {
    /// Number of removed cgroups of dead runs.
    pub removed: usize,
    /// Number of cgroups of dead runs that this user may not remove or that are not empty.
    pub left: usize,
}

/// Record of a dead run.
struct DeadRecord {
    run_id: RunId,
    /// Cgroups in the record that have the name of the run.
    paths: Vec<PathBuf>,
    /// The lock on the record, without which another process would remove the cgroups too.
    _lock: OwnedFd,
}

/// Removes the cgroups of dead runs. Only root can remove cgroups that root created.
pub fn reap_cgroups(state: &StateDir) -> io::Result<ReapedCgroups> {
    let (directory, records) = as_owner(state, || {
        let directory = open_directory(state)?;
        let records = dead_records(directory.as_fd())?;
        Ok((directory, records))
    })?;
    let mut found = ReapedCgroups::default();
    let mut done = Vec::new();
    for record in &records {
        let there = record.paths.iter().filter(|path| is_group(path)).count();
        remove_cgroups(&record.paths);
        let left = record.paths.iter().filter(|path| is_group(path)).count();
        found.removed += there.saturating_sub(left);
        found.left += left;
        if left == 0 {
            done.push(&record.run_id);
        }
    }
    as_owner(state, || {
        for run_id in done {
            let _ = rustix::fs::unlinkat(&directory, run_id.as_str(), AtFlags::empty());
        }
        Ok(())
    })?;
    Ok(found)
}

/// Locks and reads the records of dead runs.
fn dead_records(directory: BorrowedFd<'_>) -> io::Result<Vec<DeadRecord>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(RunId::new(name));
    }
    let mut records = Vec::new();
    for run_id in names {
        if records.len() == RECORDS {
            break;
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::openat(directory, run_id.as_str(), flags, Mode::empty()) else {
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
        let mut text = String::new();
        // An unreadable record must not count as empty: it would be removed, and its cgroups would stay.
        fs::File::from(fd).take(LARGEST).read_to_string(&mut text)?;
        let wanted = format!("{PREFIX}{run_id}");
        let paths = text
            .lines()
            .map(PathBuf::from)
            .filter(|path| path.file_name() == Some(wanted.as_ref()))
            .collect();
        records.push(DeadRecord {
            run_id,
            paths,
            _lock: lock,
        });
    }
    Ok(records)
}

/// Removes the cgroups at `paths`; waits up to `EMPTY_TIMEOUT` in total until they have no
/// processes. Ignores a path that is not a run's cgroup on a cgroup file system.
pub fn remove_cgroups(paths: &[PathBuf]) {
    let until = Instant::now() + EMPTY_TIMEOUT;
    for path in paths {
        let Some((parent, name)) = open_parent(path) else {
            continue;
        };
        while let Err(Errno::BUSY) =
            rustix::fs::unlinkat(&parent, name.as_str(), AtFlags::REMOVEDIR)
            && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns whether a path is an existing cgroup with the name of a run.
fn is_group(path: &Path) -> bool {
    open_parent(path).is_some_and(|(parent, name)| {
        rustix::fs::statat(&parent, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    })
}

/// Opens the directory above a run's cgroup, and returns it with the name of the cgroup. `None` if
/// the name is not that of a run's cgroup, a part of the path is a symbolic link, or the directory
/// is not on a cgroup file system: a record's path is only used through a descriptor that passed
/// these checks.
fn open_parent(path: &Path) -> Option<(OwnedFd, String)> {
    let name = path.file_name()?.to_str()?;
    RunId::new(name.strip_prefix(PREFIX)?).ok()?;
    let above = path.parent().filter(|above| above.is_absolute())?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let parent = rustix::fs::openat2(CWD, above, flags, Mode::empty(), resolve).ok()?;
    is_cgroup(&parent).then(|| (parent, name.to_owned()))
}
