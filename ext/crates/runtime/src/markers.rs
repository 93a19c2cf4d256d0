//! `sites/<site>/active/<run_id>`: marker files of runs without a final record.
//!
//! The supervisor of a run holds an exclusive lock on its marker as long as it lives. Other
//! processes take a shared lock, briefly to check the marker or while they settle the run. Hence
//! a marker on which a shared lock fails has a living supervisor, whichever other processes check
//! it at the same time.

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::Path;
use wp_codebox_contracts::RunId;

/// Name prefix of a marker being created.
pub(crate) const NEW_MARKER: &str = ".new-";

/// State of a run's supervisor, as its marker file and the lock on it show.
#[derive(Debug)]
pub(crate) enum MarkerState {
    /// The supervisor is alive, or its state is unknown.
    Alive,
    /// The supervisor is dead and the run is not settled: its final record is missing, or the
    /// supervisor died between writing the record and removing the marker. The value is the
    /// marker's descriptor, which holds the shared lock.
    Dead(OwnedFd),
    /// The marker does not exist: the run has its final record or never started.
    Settled,
}

/// Determines from a marker file whether the supervisor of its run is alive.
pub(crate) fn marker_state(marker: &Path) -> MarkerState {
    match lock(
        marker,
        OFlags::empty(),
        FlockOperation::NonBlockingLockShared,
    ) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => MarkerState::Settled,
        Err(_) => MarkerState::Alive,
        // Another process settled the run and removed the marker before this process locked it.
        Ok(mark) if is_removed(&mark) => MarkerState::Settled,
        Ok(mark) => MarkerState::Dead(mark),
    }
}

/// Returns whether an open marker file was deleted meanwhile; true if the file cannot be examined.
pub(crate) fn is_removed(mark: &OwnedFd) -> bool {
    rustix::fs::fstat(mark).map_or(true, |stat| stat.st_nlink == 0)
}

/// Returns true if a file name in `active` is that of a marker, false if it is the temporary name
/// of a marker that is being created.
pub(crate) fn is_marker(name: &std::ffi::OsStr) -> bool {
    !name.as_encoded_bytes().starts_with(NEW_MARKER.as_bytes())
}

/// Counts the runs of a site whose supervisor is alive.
pub(crate) fn count_alive(active: &Path) -> io::Result<usize> {
    let mut alive = 0;
    for entry in fs::read_dir(active)? {
        let entry = entry?;
        let is_alive = || matches!(marker_state(&entry.path()), MarkerState::Alive);
        if is_marker(&entry.file_name()) && is_alive() {
            alive += 1;
        }
    }
    Ok(alive)
}

/// Locks the site's directory `active`, so that runs of the site start one after the other. Closing
/// the descriptor releases the lock.
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

/// Creates and locks the marker under a temporary name, then renames it. A marker with its final
/// name but without a lock would make the run look dead, and another process would write the run's
/// final record.
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
            // Before this process locked the new file, another process took it for the file of a
            // dead creator and removed it. The loop creates the file again.
            Err(Errno::NOENT) => {}
            Err(error) => {
                let _ = fs::remove_file(&new);
                return Err(error.into());
            }
        }
    }
}

/// Removes a marker that still has its temporary name, if its creator is dead.
pub(crate) fn drop_unfinished(marker: &Path) {
    if lock_alone(marker, OFlags::empty()).is_ok() {
        let _ = fs::remove_file(marker);
    }
}

/// Locks the file `lease` of a run directory exclusively; fails if another process holds the lock.
/// The supervisor of the run holds this lock as long as it lives. After its death, another process
/// holds the lock while it settles or removes the run.
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
