//! Finishes or reverses transactions that a crash interrupted.

use crate::document::{Phase, read, read_finished, read_lost, remove_lost, write_lost};
use crate::error::ApplyError;
use crate::journal::{Journal, host_paths, names};
use crate::names::LeftOut;
use crate::path::open_dir;
use crate::record::ApplyId;
use crate::steps::io;
use crate::transaction::{Transaction, lock};
use rustix::fd::AsFd;
use rustix::fs;
use rustix::io::Errno;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Age from which a transaction without a document is one whose process was killed.
const ABANDONED: Duration = Duration::from_secs(60);

/// A transaction that a crash interrupted.
#[derive(Debug)]
pub struct Recovered {
    /// Id of the transaction.
    pub id: ApplyId,
    /// Host paths of its files and links, which are now in their old or new state; empty after an
    /// error.
    pub paths: Vec<PathBuf>,
    /// Error of the recovery. A later call tries again if the transaction is still in the journal.
    /// After a conflict the transaction was reversed, so it is no longer in the journal.
    pub error: Option<ApplyError>,
}

/// Returns whether nothing was written to a directory for a time that no live process needs.
fn is_abandoned(directory: impl AsFd) -> bool {
    let Ok(stat) = fs::fstat(directory) else {
        return false;
    };
    let changed = UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
    SystemTime::now()
        .duration_since(changed)
        .is_ok_and(|age| age > ABANDONED)
}

impl Journal {
    /// Finishes or reverses the transactions that a crash interrupted. A transaction that another
    /// process is running is left alone. Call this before [`Self::apply`] and [`Self::undo`].
    ///
    /// # Errors
    /// [`ApplyError::Io`] if the journal cannot be listed.
    pub fn recover(&self) -> Result<Vec<Recovered>, ApplyError> {
        self.remove_rest()?;
        let mut all = Vec::new();
        for id in names(&self.open)? {
            let (paths, error) = match self.recover_one(&id) {
                Ok(None) => continue,
                Ok(Some(paths)) => (paths, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            all.push(Recovered { id, paths, error });
        }
        for id in names(&self.done)? {
            if let Err(error) = self.clean_returned(&id) {
                let (paths, error) = (Vec::new(), Some(error));
                all.push(Recovered { id, paths, error });
            }
        }
        Ok(all)
    }

    /// Finishes or reverses one transaction. Returns the host paths of its files if a crash had
    /// interrupted it; `None` if another process runs it or has finished it, or if it waits for a
    /// missing target.
    fn recover_one(&self, id: &ApplyId) -> Result<Option<Vec<PathBuf>>, ApplyError> {
        let directory = match open_dir(self.open.as_fd(), id.as_str().as_bytes()) {
            Err(Errno::NOENT) => return Ok(None),
            directory => directory.map_err(|e| io("read", id.as_str().as_bytes(), e))?,
        };
        let Some(open) = read(directory.as_fd(), id)? else {
            // Either the process of the transaction was killed before it had written a document, or
            // it is just starting. Removing an empty directory is harmless in both cases: a starting
            // transaction then fails before it changes anything. A directory with a document that
            // was not renamed yet is removed later, so that a starting transaction can go on.
            let removed = fs::unlinkat(&self.open, id.as_str(), fs::AtFlags::REMOVEDIR);
            if removed == Err(Errno::NOTEMPTY) && is_abandoned(&directory) {
                self.forget(id)?;
                return Ok(Some(Vec::new()));
            }
            return Ok(removed.is_ok().then(Vec::new));
        };
        let roots = match lock(&open.record, &open.record.all_targets()) {
            Err(ApplyError::Busy { .. }) => return Ok(None),
            roots => roots?,
        };
        // Read again: another process may have finished the transaction before this one locked it.
        let open = match open_dir(self.open.as_fd(), id.as_str().as_bytes()) {
            Err(Errno::NOENT) => return Ok(None),
            _ => match read(directory.as_fd(), id)? {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        let paths = host_paths(&open.record).collect();
        let mut transaction = Transaction {
            directory,
            record: open.record,
            roots,
        };
        let is_back = |target: &usize| transaction.is_back(*target);
        if open
            .lost
            .as_ref()
            .is_some_and(|lost| !lost.iter().any(is_back))
        {
            return Ok(None);
        }
        match open.phase {
            Phase::Staging => {
                transaction.remove_staging()?;
                self.end(&transaction)?;
            }
            Phase::Moving => match transaction.execute() {
                Ok(late) => self.settle(&transaction, &late)?,
                Err(error) => {
                    if !transaction.must_keep(&error) {
                        self.forget(id)?;
                    }
                    return Err(error);
                }
            },
            Phase::Exchanged => {
                let late = transaction.finish()?;
                self.settle(&transaction, &late)?;
            }
            Phase::Reversing => {
                let targets = open.lost.unwrap_or_else(|| transaction.changed_targets());
                transaction
                    .roots
                    .retain(|target, _| targets.contains(target));
                transaction
                    .reverse(&targets)
                    .map_err(ApplyError::after_exchange)?;
                self.forget(id)?;
            }
        }
        Ok(Some(paths))
    }

    /// Removes the staging directories of a finished apply from targets that were missing at its end
    /// and are back.
    fn clean_returned(&self, id: &ApplyId) -> Result<(), ApplyError> {
        let directory = match open_dir(self.done.as_fd(), id.as_str().as_bytes()) {
            Err(Errno::NOENT) => return Ok(()),
            directory => directory.map_err(|e| io("read", id.as_str().as_bytes(), e))?,
        };
        let Some(mut lost) = read_lost(directory.as_fd(), id)? else {
            return Ok(());
        };
        let record = read_finished(directory.as_fd(), id)?;
        let roots = match lock(&record, &lost) {
            Err(ApplyError::Busy { .. }) => return Ok(()),
            roots => roots?,
        };
        let mut transaction = Transaction {
            directory,
            record,
            roots,
        };
        lost.retain(|target| !transaction.is_back(*target));
        transaction.roots.retain(|target, _| !lost.contains(target));
        if transaction.roots.is_empty() {
            return Ok(());
        }
        transaction.remove_staging()?;
        match lost.is_empty() {
            true => remove_lost(transaction.directory.as_fd()),
            false => write_lost(transaction.directory.as_fd(), &lost),
        }
    }

    /// Records that all paths of a transaction have their new state, except those that an undo left
    /// out.
    fn settle(&self, transaction: &Transaction, late: &[LeftOut]) -> Result<(), ApplyError> {
        let record = &transaction.record;
        if let Some(applied) = &record.undoes {
            let marked = match self.mark_recovered(record, applied, late) {
                // The applied change was removed as expired, so nothing lists its undone files.
                Err(ApplyError::NotFound { .. }) => Ok(()),
                marked => marked,
            };
            return marked
                .and_then(|()| self.end(transaction))
                .map_err(ApplyError::after_exchange);
        }
        let missing = transaction.missing();
        if !missing.is_empty() {
            // The finished apply keeps the document, so that no kill loses it.
            write_lost(transaction.directory.as_fd(), &missing)
                .map_err(ApplyError::after_exchange)?;
        }
        self.finish(&record.id).map_err(ApplyError::after_exchange)
    }

    /// Removes a transaction that has ended, or lets it wait for its missing targets, which can have
    /// staging directories.
    fn end(&self, transaction: &Transaction) -> Result<(), ApplyError> {
        let missing = transaction.missing();
        match missing.is_empty() {
            true => self.forget(&transaction.record.id),
            false => write_lost(transaction.directory.as_fd(), &missing),
        }
    }
}
