//! Files of a transaction in the journal and in its targets, and its phases.
//!
//! The transaction's directory in the journal has these files; which of them exist tells the phase:
//!
//! | file | written | meaning |
//! |---|---|---|
//! | `begin.json` | first | targets; staging may be incomplete, no path was exchanged |
//! | `old/NNNNNN` | while staging | old contents of the path of step N |
//! | `journal.json` | after everything is staged | all steps; paths may be exchanged |
//! | `reverse` | renamed from `begin.json` | the exchanged paths are being put back |
//!
//! The exchange and the reversal only rename files, so they need no disk space. Each target has a
//! staging directory `.wp-codebox-<id>` with mode 0700, which holds new contents before an exchange
//! and old contents after it.

use crate::error::ApplyError;
use crate::names::LeftOut;
use crate::path::{open_dir, shown, sync};
use crate::plan::Planned;
use crate::record::{Action, ApplyId, Kind, Record, SCHEMA, Step, Stored};
use crate::steps::{Place, io, staged_name, sync_parents};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::path::Path;
use wp_codebox_artifacts::{Conflict, remove_tree_in};

const BEGIN: &str = "begin.json";
const JOURNAL: &str = "journal.json";
const REVERSE: &str = "reverse";
const OLD: &str = "old";
/// Maximum size of a journal document in bytes; a larger one is refused.
const LARGEST: u64 = 256 * 1024 * 1024;

/// Opens the targets of a transaction and locks them against other transactions. The kernel
/// releases the locks when this process ends.
pub(crate) fn lock(record: &Record) -> Result<Vec<OwnedFd>, ApplyError> {
    let mut roots = Vec::new();
    for target in &record.targets {
        let failed = |source| ApplyError::Target {
            target: target.path.clone(),
            source,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = fs::open(Path::new(&target.path), flags, Mode::empty()).map_err(failed)?;
        match fs::flock(&root, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => roots.push(root),
            Err(Errno::WOULDBLOCK) => {
                return Err(ApplyError::Busy {
                    target: target.path.clone(),
                });
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(roots)
}

/// A transaction with its directory in the journal and its locked targets.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// Directory of the transaction in the journal.
    pub directory: OwnedFd,
    pub record: Record,
    pub roots: Vec<OwnedFd>,
}

impl Transaction {
    /// Begins a transaction: writes its targets to its empty directory.
    pub(crate) fn begin(
        directory: OwnedFd,
        record: Record,
        roots: Vec<OwnedFd>,
    ) -> Result<Self, ApplyError> {
        let begun = Self {
            directory,
            record,
            roots,
        };
        begun.write_document(BEGIN, &begun.record)?;
        sync(&begun.directory).map_err(|e| io("synchronise", BEGIN.as_bytes(), e))?;
        Ok(begun)
    }

    /// Stages all steps and then executes them. Returns the steps that an undo left out.
    pub(crate) fn run(mut self, planned: Vec<Planned>) -> Result<Vec<LeftOut>, ApplyError> {
        let staged = self.stage(planned);
        if let Err(error) = staged {
            // An error of discarding is ignored: it often has the same cause, e.g. a read-only file
            // system, which the first error names.
            let _ = self.discard();
            return Err(error);
        }
        self.execute()
    }

    fn write_document(&self, name: &str, record: &Record) -> Result<(), ApplyError> {
        let bytes = serde_json::to_vec_pretty(record).unwrap_or_default();
        let new = format!(".{name}.new");
        write_file(self.directory.as_fd(), &new, &bytes)
            .and_then(|_| fs::renameat(&self.directory, &new, &self.directory, name))
            .map_err(|e| io("write the journal", name.as_bytes(), e))
    }

    /// Name of the staging directory in each target.
    fn staging_name(&self) -> String {
        staging_name(&self.record.id)
    }

    /// Writes all new contents to the staging directories and all old contents to the journal, and
    /// then the list of steps.
    fn stage(&mut self, planned: Vec<Planned>) -> Result<(), ApplyError> {
        let failed = |action, path: &[u8]| {
            let path = path.to_vec();
            move |error| io(action, &path, error)
        };
        fs::mkdirat(&self.directory, OLD, Mode::RWXU).map_err(failed("write", OLD.as_bytes()))?;
        let old = open_dir(self.directory.as_fd(), OLD.as_bytes());
        let old = old.map_err(failed("write", OLD.as_bytes()))?;
        let name = self.staging_name();
        let mut places = Vec::new();
        for root in &self.roots {
            let staging = fs::mkdirat(root, &*name, Mode::RWXU)
                .and_then(|()| open_dir(root.as_fd(), name.as_bytes()))
                .map_err(failed("create a directory in the target:", name.as_bytes()))?;
            let root = root.try_clone().map_err(|e| io("open", b".", errno(&e)))?;
            places.push(Place { root, staging });
        }
        for (index, Planned { step, new }) in planned.into_iter().enumerate() {
            let place = places.get(step.target);
            let place = place.ok_or_else(|| io("open the target of", &step.path, Errno::INVAL))?;
            if let Action::Replace { from, .. } | Action::Remove { from } = &step.action {
                keep_old(place, &step, from, old.as_fd(), index)
                    .map_err(failed("save the old contents of", &step.path))?;
            }
            if let Action::Replace { to, .. } | Action::Place { to } = &step.action {
                write_new(place.staging.as_fd(), index, to, &new.unwrap_or_default())
                    .map_err(failed("write the new contents of", &step.path))?;
            }
            self.record.steps.push(step);
        }
        for place in &places {
            sync(&place.staging)
                .and_then(|()| sync(&place.root))
                .map_err(failed("synchronise", name.as_bytes()))?;
        }
        sync(&old).map_err(failed("synchronise", OLD.as_bytes()))?;
        self.write_document(JOURNAL, &self.record)?;
        sync(&self.directory).map_err(failed("synchronise", JOURNAL.as_bytes()))
    }

    /// Opens the staging directories; `None` if one is missing, because the transaction was
    /// finished except for the removal of these directories.
    fn places(&self) -> Result<Option<Vec<Place>>, ApplyError> {
        let name = self.staging_name();
        let mut places = Vec::new();
        for root in &self.roots {
            let staging = match open_dir(root.as_fd(), name.as_bytes()) {
                Ok(staging) => staging,
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(io("open", name.as_bytes(), error)),
            };
            let root = root.try_clone().map_err(|e| io("open", b".", errno(&e)))?;
            places.push(Place { root, staging });
        }
        Ok(Some(places))
    }

    /// Executes all steps that are not done yet, also those of an interrupted transaction. Returns
    /// the steps that an undo left out; a conflict of an apply is an error.
    pub(crate) fn execute(self) -> Result<Vec<LeftOut>, ApplyError> {
        // An interrupted transaction may have exchanged paths before.
        let Some(places) = self.places().map_err(ApplyError::after_exchange)? else {
            self.remove_staging().map_err(ApplyError::after_exchange)?;
            return Ok(Vec::new());
        };
        let is_undo = self.record.undoes.is_some();
        let mut found = Vec::new();
        for (index, step) in self.record.steps.iter().enumerate() {
            let outcome = match places.get(step.target) {
                Some(place) => place.forward(index, step),
                None => Ok(Err("in no target directory")),
            };
            match outcome {
                Ok(Ok(())) => {}
                Ok(Err(reason)) if is_undo => found.push(LeftOut {
                    target: step.target,
                    path: step.path.clone(),
                    reason,
                }),
                Ok(Err(reason)) => {
                    let path = shown(&step.path);
                    let conflict = ApplyError::of_conflict(Conflict { path, reason });
                    return Err(self.turn_back(&places, conflict));
                }
                Err(error) => return Err(self.turn_back(&places, error)),
            }
        }
        sync_parents(&places, self.record.steps.iter())
            .and_then(|()| self.remove_staging())
            .map_err(ApplyError::after_exchange)?;
        Ok(found)
    }

    /// Puts the exchanged paths back because of `error`. Returns `error`, or why putting back
    /// failed.
    fn turn_back(&self, places: &[Place], error: ApplyError) -> ApplyError {
        match self.start_reverse().and_then(|()| self.reverse(places)) {
            Ok(()) => error,
            Err(error) => error.after_exchange(),
        }
    }

    fn start_reverse(&self) -> Result<(), ApplyError> {
        fs::renameat(&self.directory, BEGIN, &self.directory, REVERSE)
            .and_then(|()| sync(&self.directory))
            .map_err(|e| io("write the journal", REVERSE.as_bytes(), e))
    }

    /// Puts the exchanged paths back. A path that another program changed after the exchange stays
    /// unchanged.
    fn reverse(&self, places: &[Place]) -> Result<(), ApplyError> {
        for (index, step) in self.record.steps.iter().enumerate().rev() {
            let Some(place) = places.get(step.target) else {
                continue;
            };
            match place.backward(index, step) {
                Ok(Ok(()) | Err(_)) => {}
                Err(error) => return Err(error.after_exchange()),
            }
        }
        sync_parents(places, self.record.steps.iter())?;
        self.remove_staging()
    }

    /// Finishes the reversal of an interrupted transaction.
    pub(crate) fn continue_reverse(&self) -> Result<(), ApplyError> {
        match self.places()? {
            Some(places) => self.reverse(&places),
            None => self.remove_staging(),
        }
    }

    /// Removes everything that was staged. Only for a transaction that has exchanged no path yet.
    pub(crate) fn discard(&self) -> Result<(), ApplyError> {
        self.remove_staging()
    }

    /// Removes the staging directories. Each directory is renamed before its files are removed.
    /// Otherwise, if the removal were interrupted, recovery would draw wrong conclusions from the
    /// missing files about which steps were executed.
    fn remove_staging(&self) -> Result<(), ApplyError> {
        let name = self.staging_name();
        let old = format!("{name}.old");
        let failed = |error| io("remove", name.as_bytes(), error);
        for root in &self.roots {
            match fs::renameat(root, &*name, root, &*old) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(failed(error)),
            }
            match fs::statat(root, &*old, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(failed(error)),
                Ok(_) => {}
            }
            remove_tree_in(root.as_fd(), old.as_bytes()).map_err(|_| failed(Errno::NOTEMPTY))?;
            sync(root).map_err(failed)?;
        }
        Ok(())
    }
}

/// Phase of a transaction, derived from the files in its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The directory is empty: nothing began.
    Empty,
    Staging,
    Moving,
    Reversing,
}

/// Reads the phase and the record of a transaction from its directory in the journal.
pub(crate) fn read(
    directory: BorrowedFd<'_>,
    id: &ApplyId,
) -> Result<(Phase, Option<Record>), ApplyError> {
    let record = |name| read_document(directory, name, id);
    let reversing = fs::statat(directory, REVERSE, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    if let Some(record) = record(JOURNAL)? {
        let phase = if reversing {
            Phase::Reversing
        } else {
            Phase::Moving
        };
        return Ok((phase, Some(record)));
    }
    Ok(match record(BEGIN)? {
        Some(record) => (Phase::Staging, Some(record)),
        None => (Phase::Empty, None),
    })
}

/// Reads the record of a finished transaction.
pub(crate) fn read_finished(directory: BorrowedFd<'_>, id: &ApplyId) -> Result<Record, ApplyError> {
    let damaged = |why| ApplyError::Journal {
        id: id.to_string(),
        why,
    };
    read_document(directory, JOURNAL, id)?.ok_or_else(|| damaged("its journal.json is missing"))
}

fn read_document(
    directory: BorrowedFd<'_>,
    name: &str,
    id: &ApplyId,
) -> Result<Option<Record>, ApplyError> {
    let refused = |why| ApplyError::Journal {
        id: id.to_string(),
        why,
    };
    let Some(bytes) = read_own(directory, name, LARGEST).map_err(refused)? else {
        return Ok(None);
    };
    let record: Record =
        serde_json::from_slice(&bytes).map_err(|_| refused("a JSON file of it is damaged"))?;
    match record.schema == SCHEMA && record.id == *id {
        true => Ok(Some(record)),
        false => Err(refused(
            "it has an unknown schema or the id of another change",
        )),
    }
}

/// Reads a file of the journal. It must belong to the user of this process: another user, such as
/// the owner of the state directory, must not decide what root writes.
pub(crate) fn read_own(
    directory: BorrowedFd<'_>,
    name: &str,
    most: u64,
) -> Result<Option<Vec<u8>>, &'static str> {
    use std::io::Read;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match fs::openat(directory, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        file => file.map_err(|_| "a file of it cannot be opened")?,
    };
    let stat = fs::fstat(&file).map_err(|_| "a file of it cannot be read")?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user; call this as the user who applied the change");
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(file)
        .take(most + 1)
        .read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() as u64 <= most => Ok(Some(bytes)),
        Ok(_) => Err("a file of it is too large"),
        Err(_) => Err("a file of it cannot be read"),
    }
}

/// Name of the staging directory of a transaction in each of its targets.
pub(crate) fn staging_name(id: &ApplyId) -> String {
    format!(".wp-codebox-{id}")
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Writes a new file with mode 0600 and synchronises it.
pub(crate) fn write_file(
    directory: BorrowedFd<'_>,
    name: &str,
    bytes: &[u8],
) -> Result<OwnedFd, Errno> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::openat(directory, name, flags, Mode::from_raw_mode(0o600))?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = rest.get(written..).unwrap_or_default();
    }
    fs::fsync(&file)?;
    Ok(file)
}

/// Copies the contents that a step replaces or removes to the journal. The copy is not checked
/// here: executing and undoing the step compare hashes.
fn keep_old(
    place: &Place,
    step: &Step,
    from: &Stored,
    old: BorrowedFd<'_>,
    index: usize,
) -> Result<(), Errno> {
    use std::io::Read;
    let (parent, name) = crate::path::split(&step.path);
    let parent = open_dir(place.root.as_fd(), parent)?;
    let bytes = match from.kind {
        Kind::Link => fs::readlinkat(&parent, name, Vec::new())?.into_bytes(),
        Kind::File => {
            let file = crate::path::open_file(parent.as_fd(), name)?;
            let mut bytes = Vec::new();
            let read = std::fs::File::from(file).read_to_end(&mut bytes);
            read.map_err(|e| errno(&e))?;
            bytes
        }
    };
    write_file(old, &staged_name(index), &bytes).map(drop)
}

/// Creates the new file or link of a step in the staging directory, with its metadata.
fn write_new(
    staging: BorrowedFd<'_>,
    index: usize,
    to: &Stored,
    bytes: &[u8],
) -> Result<(), Errno> {
    let name = staged_name(index);
    match to.kind {
        Kind::File => {
            let file = write_file(staging, &name, bytes)?;
            to.metadata.write(&file)?;
            fs::fsync(&file)
        }
        Kind::Link => {
            fs::symlinkat(bytes, staging, &*name)?;
            let stat = fs::statat(staging, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
            let (uid, gid) = (to.metadata.uid, to.metadata.gid);
            if (stat.st_uid, stat.st_gid) == (uid, gid) {
                return Ok(());
            }
            let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            fs::chownat(staging, &*name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
        }
    }
}
