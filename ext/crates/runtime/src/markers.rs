//! `sites/<site>/active/<run_id>`: the marks of runs that are not settled.
//!
//! The supervisor of a run holds its marker locked exclusively for as long as it lives.
//! Everyone else locks it shared and only for a look or for settling, so a marker that
//! cannot be locked shared has a living supervisor, whoever else looks at the same moment.

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::Path;
use wp_codebox_contracts::RunId;

/// A marker in the making.
pub(crate) const NEW_MARKER: &str = ".new-";

/// What a marker says of its run.
#[derive(Debug)]
pub(crate) enum Life {
    /// Its supervisor lives, or nobody can tell.
    Alive,
    /// Its supervisor is dead and the run is not settled. Holds the marker, shared.
    Dead(OwnedFd),
    /// There is no marker: settled, or never begun.
    Settled,
}

/// Looks at a marker.
pub(crate) fn life(marker: &Path) -> Life {
    match lock(
        marker,
        OFlags::empty(),
        FlockOperation::NonBlockingLockShared,
    ) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Life::Settled,
        Err(_) => Life::Alive,
        // Removed between the look and the lock.
        Ok(mark) if is_removed(&mark) => Life::Settled,
        Ok(mark) => Life::Dead(mark),
    }
}

/// Whether an open marker lost its name.
pub(crate) fn is_removed(mark: &OwnedFd) -> bool {
    rustix::fs::fstat(mark).map_or(true, |stat| stat.st_nlink == 0)
}

/// Whether a name in `active` is more than a marker in the making.
pub(crate) fn is_marker(name: &std::ffi::OsStr) -> bool {
    !name.as_encoded_bytes().starts_with(NEW_MARKER.as_bytes())
}

/// Runs of a site whose supervisor lives.
pub(crate) fn count_alive(active: &Path) -> io::Result<usize> {
    let alive = fs::read_dir(active)?
        .flatten()
        .filter(|entry| is_marker(&entry.file_name()))
        .filter(|entry| matches!(life(&entry.path()), Life::Alive))
        .count();
    Ok(alive)
}

/// Makes whoever would begin a run of this site wait for the others; let go with the descriptor.
pub(crate) fn lock_site(active: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(active, flags, Mode::empty())?;
    loop {
        match rustix::fs::flock(&fd, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(fd),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes the marker and locks it. It gets its name only once it is locked: reaping would
/// take one that is not for a dead run's, and give that run its record.
pub(crate) fn make_marker(active: &Path, run_id: &RunId) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (new, marker) = (
        active.join(format!("{NEW_MARKER}{run_id}")),
        active.join(run_id.as_str()),
    );
    loop {
        let fd = rustix::fs::open(&new, flags, Mode::from_raw_mode(0o600))?;
        rustix::fs::flock(&fd, FlockOperation::LockExclusive)?;
        match renameat_with(CWD, &new, CWD, &marker, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(fd),
            // Reaping was faster than the lock.
            Err(Errno::NOENT) => {}
            Err(error) => {
                let _ = fs::remove_file(&new);
                return Err(error.into());
            }
        }
    }
}

/// Removes a marker in the making that nobody is making.
pub(crate) fn drop_unfinished(marker: &Path) {
    if lock_alone(marker, OFlags::empty()).is_ok() {
        let _ = fs::remove_file(marker);
    }
}

/// The lease of a run directory, held alone: by its supervisor, else by whoever settles or
/// removes it.
pub(crate) fn take_lease(path: &Path, extra: OFlags) -> io::Result<OwnedFd> {
    lock_alone(&path.join("lease"), extra)
}

fn lock_alone(path: &Path, extra: OFlags) -> io::Result<OwnedFd> {
    lock(path, extra, FlockOperation::NonBlockingLockExclusive)
}

fn lock(path: &Path, extra: OFlags, operation: FlockOperation) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | extra;
    let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    rustix::fs::flock(&fd, operation)?;
    Ok(fd)
}
