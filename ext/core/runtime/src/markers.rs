//! `sites/<site>/active/<run_id>`: marker files of runs without a final record.
//!
//! The supervisor of a run holds an exclusive lock on its marker as long as it lives. Other
//! processes take a shared lock, briefly to check the marker or while they settle the run. Hence
//! a marker on which a shared lock fails has a living supervisor, whichever other processes check
//! it at the same time.
//!
//! A marker contains the requester of its run, or [`WITHOUT_REQUESTER`]. It gets this content before
//! it gets its name, so a process that counts the runs of a requester never finds it empty. The
//! markers of older programs are empty.

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;
use wp_codebox_contracts::{Requester, RunId};

/// Name prefix of a marker being created.
pub(crate) const NEW_MARKER: &str = ".new-";
/// Content of the marker of a run that counts for no requester.
const WITHOUT_REQUESTER: &str = "-";
/// Longer than the longest content of a marker, in bytes.
const LONGEST_MARKER: u64 = 64;

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

/// A run whose supervisor is alive.
#[derive(Debug)]
pub(crate) struct AliveRun {
    /// Name of the marker: the id of the run.
    pub(crate) name: String,
    /// Start of the run; the epoch if it is unknown.
    since: SystemTime,
    requester: CountsFor,
}

/// Requester for whom a living run counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountsFor {
    /// This requester.
    One(Requester),
    /// No requester: the run has no share.
    Nobody,
    /// Any requester: the marker cannot be read or is empty, so the run may be anybody's.
    Anybody,
}

/// Returns the runs of a site whose supervisor is alive.
pub(crate) fn alive(active: &Path) -> io::Result<Vec<AliveRun>> {
    let mut alive = Vec::new();
    for entry in fs::read_dir(active)? {
        let entry = entry?;
        let is_alive = || matches!(marker_state(&entry.path()), MarkerState::Alive);
        if is_marker(&entry.file_name()) && is_alive() {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            alive.push(AliveRun {
                name: entry.file_name().to_string_lossy().into_owned(),
                since: changed.unwrap_or(SystemTime::UNIX_EPOCH),
                requester: counts_for(&entry.path()),
            });
        }
    }
    Ok(alive)
}

/// Returns those of the runs that count for a requester, the oldest first.
pub(crate) fn alive_of(requester: Requester, alive: Vec<AliveRun>) -> Vec<AliveRun> {
    let own = [CountsFor::One(requester), CountsFor::Anybody];
    let mut found: Vec<AliveRun> = alive
        .into_iter()
        .filter(|run| own.contains(&run.requester))
        .collect();
    found.sort_by(|one, other| (one.since, &one.name).cmp(&(other.since, &other.name)));
    found
}

fn counts_for(marker: &Path) -> CountsFor {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut text = String::new();
    let read = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(marker)
        .and_then(|file| file.take(LONGEST_MARKER).read_to_string(&mut text));
    match (read, text.trim_end()) {
        (Ok(_), WITHOUT_REQUESTER) => CountsFor::Nobody,
        (Ok(_), text) => text.parse().map_or(CountsFor::Anybody, CountsFor::One),
        (Err(_), _) => CountsFor::Anybody,
    }
}

/// Locks a directory, for example `active`, so that runs of the site start one after the other.
/// Closing the descriptor releases the lock.
pub(crate) fn lock_directory(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(directory, flags, Mode::empty())?;
    loop {
        match rustix::fs::flock(&fd, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(fd),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Creates and locks the marker under a temporary name, writes the requester into it, then renames
/// it. A marker with its final name but without a lock would make the run look dead, and another
/// process would write the run's final record.
pub(crate) fn make_marker(
    active: &Path,
    run_id: &RunId,
    requester: Option<Requester>,
) -> io::Result<OwnedFd> {
    let content = requester.map_or_else(|| WITHOUT_REQUESTER.to_owned(), |who| who.to_string());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (new, marker) = (
        active.join(format!("{NEW_MARKER}{run_id}")),
        active.join(run_id.as_str()),
    );
    loop {
        let fd = rustix::fs::open(&new, flags, Mode::from_raw_mode(0o600))?;
        rustix::fs::flock(&fd, FlockOperation::LockExclusive)?;
        if let Err(error) = fs::File::from(fd.try_clone()?).write_all(content.as_bytes()) {
            let _ = fs::remove_file(&new);
            return Err(error);
        }
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
