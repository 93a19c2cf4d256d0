//! A transaction: stages its steps beside the targets, and executes them.
//!
//! The exchange and the reversal only rename files and make directories, so they need almost no disk
//! space; a reversal copies old contents only if another program removed the staged ones. Each
//! target has a staging directory `.wp-codebox-<id>` with mode 0700, which holds new contents before
//! an exchange and old contents after it.

use crate::document::{BEGIN, EXCHANGED, JOURNAL, begin_phase, write_document, write_file};
use crate::error::ApplyError;
use crate::names::LeftOut;
use crate::path::{open_dir, shown, sync};
use crate::plan::{Ground, Planned, inverse};
use crate::record::{Action, Kind, Record, Step, Stored};
use crate::steps::{Place, io, staged_name, sync_parents};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wp_codebox_artifacts::{Conflict, remove_tree_in};

const OLD: &str = "old";

/// Open targets, by their index in [`Record::targets`].
pub(crate) type Roots = BTreeMap<usize, OwnedFd>;

/// Opens those of the `wanted` targets that exist and locks them against other transactions. The
/// kernel releases the locks when this process ends.
pub(crate) fn lock(record: &Record, wanted: &BTreeSet<usize>) -> Result<Roots, ApplyError> {
    let mut roots = Roots::new();
    for (index, target) in record.targets.iter().enumerate() {
        if !wanted.contains(&index) {
            continue;
        }
        let failed = |source| ApplyError::Target {
            target: target.path.clone(),
            source,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = match fs::open(Path::new(&target.path), flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            root => root.map_err(failed)?,
        };
        match fs::flock(&root, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => roots.insert(index, root),
            Err(Errno::WOULDBLOCK) => {
                return Err(ApplyError::Busy {
                    target: target.path.clone(),
                });
            }
            Err(error) => return Err(failed(error)),
        };
    }
    Ok(roots)
}

/// A transaction with its directory in the journal and its locked targets.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// Directory of the transaction in the journal.
    pub directory: OwnedFd,
    pub record: Record,
    pub roots: Roots,
}

impl Transaction {
    /// Begins a transaction: writes its targets to its empty directory.
    pub(crate) fn begin(
        directory: OwnedFd,
        mut record: Record,
        roots: Roots,
    ) -> Result<Self, ApplyError> {
        for (index, root) in &roots {
            let stat = fs::fstat(root).map_err(|e| io("read", b".", e))?;
            if let Some(target) = record.targets.get_mut(*index) {
                target.inode = Some(stat.st_ino);
            }
        }
        write_document(directory.as_fd(), BEGIN, &record)?;
        Ok(Self {
            directory,
            record,
            roots,
        })
    }

    /// Stages all steps and then executes them. Returns the steps that an undo left out.
    pub(crate) fn run(&mut self, planned: Vec<Planned>) -> Result<Vec<LeftOut>, ApplyError> {
        if let Err(error) = self.stage(planned) {
            // An error of discarding is ignored: it often has the same cause, e.g. a read-only file
            // system, which the first error names. The journal then stays.
            let _ = self.remove_staging();
            return Err(error);
        }
        self.execute()
    }

    /// Name of the staging directory in each target.
    fn staging_name(&self) -> String {
        format!(".wp-codebox-{}", self.record.id)
    }

    /// Name of a staging directory whose files are being removed.
    fn discarded_name(&self) -> String {
        format!("{}.old", self.staging_name())
    }

    /// Writes all new contents to the staging directories and all old contents to the journal, and
    /// then the list of steps.
    fn stage(&mut self, planned: Vec<Planned>) -> Result<(), ApplyError> {
        let failed = |action, path: &[u8]| {
            let path = path.to_vec();
            move |error| io(action, &path, error)
        };
        fs::mkdirat(&self.directory, OLD, Mode::RWXU).map_err(failed("write", OLD.as_bytes()))?;
        let old = self.old()?;
        let places = self.places()?;
        for (index, Planned { step, new }) in planned.into_iter().enumerate() {
            let place = places.get(&step.target);
            let place = place.ok_or_else(|| io("open the target of", &step.path, Errno::INVAL))?;
            if let Action::Replace { from, .. } | Action::Remove { from } = &step.action {
                keep_old(place, &step, from, old.as_fd(), index)
                    .map_err(failed("save the old contents of", &step.path))?;
            }
            if let Action::Replace { to, .. } | Action::Place { to } = &step.action {
                let name = staged_name(index);
                let new = new.unwrap_or_default();
                let written = write_new(place.staging.as_fd(), &name, to, &new);
                written.map_err(|error| match error {
                    Errno::PERM => ApplyError::Ownership {
                        path: shown(&step.path),
                        uid: to.metadata.uid,
                        gid: to.metadata.gid,
                    },
                    error => io("write the new contents of", &step.path, error),
                })?;
            }
            self.record.steps.push(step);
        }
        for place in places.values() {
            sync(&place.staging)
                .and_then(|()| sync(&place.root))
                .map_err(failed("synchronise", self.staging_name().as_bytes()))?;
        }
        sync(&old).map_err(failed("synchronise", OLD.as_bytes()))?;
        write_document(self.directory.as_fd(), JOURNAL, &self.record)
    }

    /// Opens the directory with the old contents.
    pub(crate) fn old(&self) -> Result<OwnedFd, ApplyError> {
        open_dir(self.directory.as_fd(), OLD.as_bytes()).map_err(|e| io("open", OLD.as_bytes(), e))
    }

    /// Indexes of the targets that have steps.
    pub(crate) fn changed_targets(&self) -> BTreeSet<usize> {
        self.record.steps.iter().map(|step| step.target).collect()
    }

    /// Indexes of the targets that do not exist.
    pub(crate) fn missing(&self) -> BTreeSet<usize> {
        let mut missing = self.record.all_targets();
        missing.retain(|target| !self.roots.contains_key(target));
        missing
    }

    /// Opens the staging directories of the open targets, and creates those that are missing: at the
    /// beginning, and if another program removed one. A directory that replaced a target gets none.
    pub(crate) fn places(&self) -> Result<BTreeMap<usize, Place>, ApplyError> {
        let name = self.staging_name();
        let mut places = BTreeMap::new();
        for (index, root) in &self.roots {
            let failed = |error| io("create a directory in the target:", name.as_bytes(), error);
            let staging = match open_dir(root.as_fd(), name.as_bytes()) {
                Err(Errno::NOENT) if self.is_same(*index, root) == Some(false) => continue,
                Err(Errno::NOENT) => fs::mkdirat(root, &*name, Mode::RWXU)
                    .and_then(|()| open_dir(root.as_fd(), name.as_bytes())),
                staging => staging,
            };
            let staging = staging.map_err(failed)?;
            let root = root.try_clone().map_err(|e| failed(errno(&e)))?;
            places.insert(*index, Place { root, staging });
        }
        Ok(places)
    }

    /// Returns whether the directory at the path of a target is the one of the beginning; `None` if
    /// that is not known.
    fn is_same(&self, index: usize, root: &OwnedFd) -> Option<bool> {
        let inode = self.record.targets.get(index)?.inode?;
        fs::fstat(root).ok().map(|stat| stat.st_ino == inode)
    }

    /// Returns whether a target that was missing is back: it is the same directory, or it has a staging
    /// directory of this transaction or the rest of one.
    pub(crate) fn is_back(&self, index: usize) -> bool {
        let root = self.roots.get(&index);
        root.is_some_and(|root| self.is_same(index, root) == Some(true) || !self.is_unstaged(root))
    }

    fn is_unstaged(&self, root: &OwnedFd) -> bool {
        let mut names = [self.staging_name(), self.discarded_name()].into_iter();
        names.all(|name| {
            let stat = fs::statat(root, &*name, AtFlags::SYMLINK_NOFOLLOW);
            matches!(stat, Err(Errno::NOENT))
        })
    }

    /// Executes all steps that are not done yet, also those of an interrupted transaction. Returns
    /// the steps that an undo left out; a conflict of an apply is an error.
    pub(crate) fn execute(&self) -> Result<Vec<LeftOut>, ApplyError> {
        // An interrupted transaction may have exchanged paths before.
        let places = self.places().map_err(ApplyError::after_exchange)?;
        let mut lost = self.changed_targets();
        lost.retain(|target| !places.contains_key(target));
        if !lost.is_empty() {
            return Err(self.turn_back(self.lost(&lost)));
        }
        let is_undo = self.record.undoes.is_some();
        let mut found = Vec::new();
        for (index, step) in self.record.steps.iter().enumerate() {
            let outcome = match places.get(&step.target) {
                Some(place) => place.forward(index, step),
                None => Ok(Err("in no target directory")),
            };
            match outcome {
                Ok(Ok(())) => {}
                Ok(Err(reason)) if is_undo => found.push(LeftOut::of(step, reason)),
                Ok(Err(reason)) => {
                    let path = shown(&step.path);
                    let conflict = ApplyError::of_conflict(Conflict { path, reason });
                    return Err(self.turn_back(conflict));
                }
                Err(error) => return Err(self.turn_back(error)),
            }
        }
        sync_parents(&places, self.record.steps.iter())
            .and_then(|()| begin_phase(self.directory.as_fd(), EXCHANGED))
            .and_then(|()| self.remove_staging())
            .map_err(ApplyError::after_exchange)?;
        Ok(found)
    }

    /// Removes what is left after the exchange. Returns the steps that an undo left out: those whose
    /// paths do not have the new state.
    pub(crate) fn finish(&self) -> Result<Vec<LeftOut>, ApplyError> {
        self.remove_staging().map_err(ApplyError::after_exchange)?;
        let mut found = Vec::new();
        for step in &self.record.steps {
            let seen = self.roots.get(&step.target).map(|root| {
                let root = root.as_fd();
                let target = step.target;
                Ground { root, target }.see(&step.path)
            });
            let is_done = match seen {
                // The inverse of a step exists exactly if the path has the state after the step.
                Some(Ok(Ok(seen))) => matches!(inverse(&step.action, seen), Ok(Some(_))),
                Some(Ok(Err(_)) | Err(_)) | None => false,
            };
            if !is_done {
                found.push(LeftOut::of(step, "changed after an interrupted undo"));
            }
        }
        Ok(found)
    }

    /// Removes the staging directories. Each directory is renamed before its files are removed.
    /// Otherwise, if the removal were interrupted, recovery would draw wrong conclusions from the
    /// missing files about which steps were executed.
    pub(crate) fn remove_staging(&self) -> Result<(), ApplyError> {
        let (name, old) = (self.staging_name(), self.discarded_name());
        let failed = |error| io("remove", name.as_bytes(), error);
        for root in self.roots.values() {
            let discard = || match fs::statat(root, &*old, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(failed(error)),
                Ok(_) => {
                    remove_tree_in(root.as_fd(), old.as_bytes())
                        .map_err(|_| failed(Errno::NOTEMPTY))?;
                    sync(root).map_err(failed)
                }
            };
            // The rest of a removal that was interrupted would prevent the rename.
            discard()?;
            match fs::renameat(root, &*name, root, &*old) {
                Ok(()) => discard()?,
                Err(Errno::NOENT) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// Returns whether the journal of this transaction is still needed after `error`: it is not
    /// reversed, or the targets have staging directories.
    pub(crate) fn must_keep(&self, error: &ApplyError) -> bool {
        let is_open = matches!(error, ApplyError::Stuck { .. } | ApplyError::Lost { .. });
        is_open || !self.roots.values().all(|root| self.is_unstaged(root))
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
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

/// Creates a file or link in the staging directory, with its metadata.
pub(crate) fn write_new(
    staging: BorrowedFd<'_>,
    name: &str,
    to: &Stored,
    bytes: &[u8],
) -> Result<(), Errno> {
    match to.kind {
        Kind::File => {
            let file = write_file(staging, name, bytes)?;
            to.metadata.write(&file)?;
            fs::fsync(&file)
        }
        Kind::Link => {
            fs::symlinkat(bytes, staging, name)?;
            let stat = fs::statat(staging, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let (uid, gid) = (to.metadata.uid, to.metadata.gid);
            if (stat.st_uid, stat.st_gid) == (uid, gid) {
                return Ok(());
            }
            let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            fs::chownat(staging, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
        }
    }
}
