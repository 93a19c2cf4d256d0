//! The journal of a user: applies changes, lists them, undoes them and finishes interrupted ones.

use crate::document::{read, read_finished};
use crate::error::{ApplyError, conflicts};
use crate::names::{LeftOut, Names};
use crate::path::{open_dir, sync};
use crate::plan::{Ground, Plan, Planned};
use crate::record::{ApplyId, BundleReference, Record, SCHEMA, Target};
use crate::steps::io;
use crate::transaction::{Roots, Transaction, lock};
use crate::undone::read_undone;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, FlockOperation, Gid, Mode, Uid};
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{Conflict, Dir, MountChanges, remove_tree_in};

/// Directory of transactions that are running or were interrupted.
const OPEN: &str = "open";
/// Prefix of the names of directories in [`OPEN`] whose files are being removed.
const REMOVED: &str = "removed-";
/// Directory of finished applies.
const DONE: &str = "done";

/// Changes for one directory of the host.
#[derive(Debug)]
pub struct TargetChanges {
    /// Guest path of the mount in which the changes were made.
    pub mount: String,
    /// Host directory to change. It must exist; symbolic links in the path are followed.
    pub path: PathBuf,
    /// Changed paths, each with its contents before and after the change.
    pub changes: MountChanges,
}

/// A change to apply.
pub struct ApplyRequest {
    /// Id of the new transaction; no earlier transaction may have it.
    pub id: ApplyId,
    /// Present time, in RFC 3339.
    pub now: String,
    /// Bundle from which the changes come.
    pub bundle: BundleReference,
    /// Changes for each target.
    pub targets: Vec<TargetChanges>,
}

/// An applied change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppliedChange {
    /// Id of the transaction.
    pub id: ApplyId,
    /// Time of the apply, in RFC 3339.
    pub created_at: String,
    /// Bundle from which the change came.
    pub bundle: BundleReference,
    /// Host directories that were changed.
    pub targets: Vec<String>,
    /// Changed files, links and empty directories, as paths relative to their target, in the order of
    /// the targets. An entry has its guest path instead if several targets contain its relative path.
    pub files: Vec<String>,
    /// Those paths of `files` that were undone after the apply.
    pub undone: Vec<String>,
    /// Host paths of `files`, in the same order.
    #[serde(skip)]
    pub paths: Vec<PathBuf>,
}

/// The changes in a journal.
#[derive(Debug, Default)]
pub struct Listed {
    /// Applied changes, newest first.
    pub changes: Vec<AppliedChange>,
    /// For each other change, why its record cannot be read. It may be newer than all of `changes`,
    /// and may have changed any directory.
    pub unreadable: Vec<ApplyError>,
}

impl Listed {
    /// Returns all applied changes, newest first.
    ///
    /// # Errors
    /// The first error of `unreadable`.
    pub fn complete(self) -> Result<Vec<AppliedChange>, ApplyError> {
        match self.unreadable.into_iter().next() {
            None => Ok(self.changes),
            Some(error) => Err(error),
        }
    }
}

/// Result of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoReport {
    /// Id of the undone apply.
    pub id: ApplyId,
    /// Files that have their state from before the apply again, named as in [`AppliedChange::files`].
    pub restored: Vec<String>,
    /// Files that someone changed after the apply; the undo left them unchanged.
    pub conflicts: Vec<Conflict>,
}

/// Journal of the changes that the user of this process applied.
#[derive(Debug)]
pub struct Journal {
    pub(crate) open: OwnedFd,
    pub(crate) done: OwnedFd,
    pub(crate) own: OwnedFd,
}

/// Lock on a site for a change that the caller checks after it was applied, see [`Journal::claim`].
/// The lock is released when this value is dropped or the process ends.
#[derive(Debug)]
#[must_use]
pub struct Claim(#[allow(dead_code)] OwnedFd);

impl Journal {
    /// Opens the journal of this process's user, the directory `applies/<uid>/` below `site`, and
    /// creates it if missing. `site` is the directory of a site in the state directory.
    ///
    /// # Errors
    /// [`ApplyError::Io`] if a directory cannot be created.
    pub fn open(site: &Path) -> Result<Self, ApplyError> {
        let failed = |error| io("open the journal", b"applies", error);
        let site = Dir::open(site).map_err(failed)?;
        let owner = fs::fstat(&site).map_err(failed)?;
        let applies = subdirectory(site.as_fd(), "applies").map_err(failed)?;
        let user = rustix::process::geteuid();
        if user.is_root() {
            // `applies` contains one journal per user. The owner of the state directory must be
            // able to create a journal in it, even if root created `applies`.
            let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
            fs::fchown(&applies, Some(uid), Some(gid)).map_err(failed)?;
        }
        let own = subdirectory(applies.as_fd(), &user.as_raw().to_string()).map_err(failed)?;
        if fs::fstat(&own).map_err(failed)?.st_uid != user.as_raw() {
            return Err(failed(Errno::PERM));
        }
        Ok(Self {
            open: subdirectory(own.as_fd(), OPEN).map_err(failed)?,
            done: subdirectory(own.as_fd(), DONE).map_err(failed)?,
            own,
        })
    }

    /// Locks the site for a change that lasts longer than its transaction, e.g. because the caller
    /// checks the site afterwards. The lock only excludes other claims: [`Self::apply`] and
    /// [`Self::undo`] neither need nor check it.
    ///
    /// # Errors
    /// [`ApplyError::Busy`] if this user has claimed the site already, in this or another process.
    pub fn claim(&self) -> Result<Claim, ApplyError> {
        // flock locks an open file description, so each claim needs a description of its own.
        let lock = open_dir(self.own.as_fd(), b".");
        let lock = lock.map_err(|e| io("lock", b"the journal", e))?;
        match fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Claim(lock)),
            Err(Errno::WOULDBLOCK) => Err(ApplyError::Busy {
                target: "this site".to_owned(),
            }),
            Err(error) => Err(io("lock", b"the journal", error)),
        }
    }

    /// Applies changes: all of them or, after an error, none.
    ///
    /// # Errors
    /// Every [`ApplyError`] except [`ApplyError::Undone`].
    pub fn apply(&self, request: ApplyRequest) -> Result<AppliedChange, ApplyError> {
        let mut record = Record {
            schema: SCHEMA.to_owned(),
            id: request.id,
            created_at: request.now,
            bundle: request.bundle,
            undoes: None,
            targets: Vec::new(),
            steps: Vec::new(),
        };
        for target in &request.targets {
            let named = target.path.display().to_string();
            let failed = |source| ApplyError::Target {
                target: named.clone(),
                source,
            };
            let real = target.path.canonicalize();
            let real = real.map_err(|e| failed(Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
            let path = real
                .to_str()
                .ok_or_else(|| failed(Errno::ILSEQ))?
                .to_owned();
            record.targets.push(Target {
                mount: target.mount.clone(),
                path,
                inode: None,
            });
        }
        let roots = lock(&record, &record.all_targets())?;
        let mut all = Plan::default();
        for (index, target) in request.targets.iter().enumerate() {
            let root = roots.get(&index).ok_or_else(|| ApplyError::Target {
                target: target.path.display().to_string(),
                source: Errno::NOENT,
            })?;
            let plan = Ground {
                root: root.as_fd(),
                target: index,
            }
            .apply(&target.changes)?;
            all.steps.extend(plan.steps);
            all.conflicts.extend(plan.conflicts);
        }
        if let Some(error) = conflicts(all.conflicts) {
            return Err(error);
        }
        let id = record.id.clone();
        self.run(record, roots, all.steps)?;
        self.finish(&id).map_err(ApplyError::after_exchange)?;
        self.applied(&id)
    }

    /// Runs a transaction in a new directory below `open`. Returns the steps that an undo left out.
    pub(crate) fn run(
        &self,
        record: Record,
        roots: Roots,
        steps: Vec<Planned>,
    ) -> Result<Vec<LeftOut>, ApplyError> {
        let id = record.id.clone();
        let name = id.to_string();
        let failed = |error| io("write the journal", name.as_bytes(), error);
        fs::mkdirat(&self.open, &*name, Mode::RWXU).map_err(failed)?;
        let directory = open_dir(self.open.as_fd(), name.as_bytes()).map_err(failed)?;
        sync(&self.open).map_err(failed)?;
        let begun = Transaction::begin(directory, record, roots);
        let (result, must_keep) = match begun {
            Ok(mut transaction) => {
                let result = transaction.run(steps);
                let failed = result.as_ref().err();
                let must_keep = failed.is_none_or(|error| transaction.must_keep(error));
                (result, must_keep)
            }
            Err(error) => (Err(error), false),
        };
        if !must_keep {
            // The targets are as before, so the transaction's directory is not needed any more. If
            // it cannot be removed now, the next `recover` removes it.
            let _ = self.forget(&id);
        }
        result
    }

    /// Moves the directory of a completed apply from `open` to `done`.
    pub(crate) fn finish(&self, id: &ApplyId) -> Result<(), ApplyError> {
        fs::renameat(&self.open, id.as_str(), &self.done, id.as_str())
            .and_then(|()| sync(&self.done))
            .and_then(|()| sync(&self.open))
            .map_err(|e| io("write the journal", id.as_str().as_bytes(), e))
    }

    /// Returns an applied change.
    ///
    /// # Errors
    /// [`ApplyError::NotFound`] if no apply has this id, [`ApplyError::Journal`] if the journal of
    /// the apply is damaged or belongs to another user.
    pub fn applied(&self, id: &ApplyId) -> Result<AppliedChange, ApplyError> {
        let (directory, record) = self.finished(id)?;
        let undone = read_undone(directory.as_fd(), id)?;
        let names = Names::of(&record);
        let named = |wanted: &dyn Fn(usize) -> bool| {
            let steps = record.steps.iter().enumerate();
            let files = steps.filter(|(index, _)| wanted(*index) && names.is_named(*index));
            files
                .map(|(_, step)| names.name(step.target, &step.path))
                .collect()
        };
        Ok(AppliedChange {
            paths: host_paths(&record).collect(),
            id: record.id.clone(),
            created_at: record.created_at.clone(),
            bundle: record.bundle.clone(),
            targets: record.targets.iter().map(|t| t.path.clone()).collect(),
            files: named(&|_| true),
            undone: named(&|index| undone.contains(&index)),
        })
    }

    pub(crate) fn finished(&self, id: &ApplyId) -> Result<(OwnedFd, Record), ApplyError> {
        let directory = match open_dir(self.done.as_fd(), id.as_str().as_bytes()) {
            Err(Errno::NOENT) => {
                return Err(ApplyError::NotFound {
                    reference: id.to_string(),
                });
            }
            directory => directory.map_err(|e| io("read", id.as_str().as_bytes(), e))?,
        };
        let record = read_finished(directory.as_fd(), id)?;
        Ok((directory, record))
    }

    /// Returns all applied changes, and those whose record cannot be read.
    ///
    /// # Errors
    /// [`ApplyError::Io`] if the journal cannot be listed.
    pub fn list(&self) -> Result<Listed, ApplyError> {
        let mut all = Listed::default();
        for id in names(&self.done)? {
            match self.applied(&id) {
                Ok(change) => all.changes.push(change),
                // Another process removed it after the directory was listed.
                Err(ApplyError::NotFound { .. }) => {}
                Err(error) => all.unreadable.push(error),
            }
        }
        let newest_first = |a: &AppliedChange, b: &AppliedChange| {
            (&b.created_at, &b.id).cmp(&(&a.created_at, &a.id))
        };
        all.changes.sort_by(newest_first);
        Ok(all)
    }

    /// Returns whether a transaction was interrupted and can still change its targets.
    pub(crate) fn is_open(&self, id: &ApplyId) -> bool {
        let directory = open_dir(self.open.as_fd(), id.as_str().as_bytes());
        directory.is_ok_and(|directory| match read(directory.as_fd(), id) {
            Ok(found) => found.is_some_and(|open| open.lost.is_none()),
            Err(_) => true,
        })
    }

    /// Removes the directory of a transaction from `open`.
    pub(crate) fn forget(&self, id: &ApplyId) -> Result<(), ApplyError> {
        self.remove_from(&self.open, id)
    }

    /// Removes the directory of a transaction from `open` or `done`. The directory is renamed before
    /// its files are removed: if the removal were interrupted, the rest would show a wrong phase.
    pub(crate) fn remove_from(&self, parent: &OwnedFd, id: &ApplyId) -> Result<(), ApplyError> {
        let failed = |error| io("remove", id.as_str().as_bytes(), error);
        let removed = format!("{REMOVED}{id}");
        let _ = remove_tree_in(self.open.as_fd(), removed.as_bytes());
        match fs::renameat(parent, id.as_str(), &self.open, &*removed) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(failed(error)),
        }
        sync(parent).map_err(failed)?;
        remove_tree_in(self.open.as_fd(), removed.as_bytes())
            .map(drop)
            .map_err(|_| failed(Errno::NOTEMPTY))
    }

    /// Removes the rest of directories whose removal was interrupted.
    pub(crate) fn remove_rest(&self) -> Result<(), ApplyError> {
        for name in entries(&self.open)? {
            if name.starts_with(REMOVED.as_bytes()) {
                // The next call tries again.
                let _ = remove_tree_in(self.open.as_fd(), &name);
            }
        }
        Ok(())
    }
}

/// Returns the host paths of the entries that the transaction changes, in the order of their names.
pub(crate) fn host_paths(record: &Record) -> impl Iterator<Item = PathBuf> + '_ {
    record.named().into_iter().filter_map(|index| {
        let step = record.steps.get(index)?;
        let target = Path::new(&record.targets.get(step.target)?.path);
        Some(target.join(OsStr::from_bytes(&step.path)))
    })
}

/// Opens a directory and creates it with mode 0700 if missing.
fn subdirectory(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    match open_dir(parent, name.as_bytes()) {
        Err(Errno::NOENT) => match fs::mkdirat(parent, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => open_dir(parent, name.as_bytes()),
            Err(error) => Err(error),
        },
        opened => opened,
    }
}

/// Returns the ids of the transactions in a directory of the journal; other names are ignored.
pub(crate) fn names(directory: &OwnedFd) -> Result<Vec<ApplyId>, ApplyError> {
    let ids = entries(directory)?
        .into_iter()
        .filter_map(|name| ApplyId::new(String::from_utf8(name).ok()?).ok());
    Ok(ids.collect())
}

/// Returns the names of all entries of a directory of the journal.
fn entries(directory: &OwnedFd) -> Result<Vec<Vec<u8>>, ApplyError> {
    Dir::reopen(directory.as_fd())
        .and_then(|dir| dir.names())
        .map_err(|error| io("list the journal", b".", error))
}
