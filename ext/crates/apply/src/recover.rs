//! Finishes or reverses transactions that a crash interrupted.

use crate::document::{BEGIN, Phase, read, write_document, write_lost};
use crate::error::ApplyError;
use crate::journal::{Journal, host_paths, names};
use crate::names::LeftOut;
use crate::path::open_dir;
use crate::record::ApplyId;
use crate::steps::io;
use crate::transaction::{Transaction, lock};
use rustix::fd::AsFd;
use rustix::fs::{self, Mode};
use rustix::io::Errno;
use std::collections::BTreeSet;
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
        let Some((_, record)) = read(directory.as_fd(), id)? else {
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
        let roots = match lock(&record, &record.all_targets()) {
            Err(ApplyError::Busy { .. }) => return Ok(None),
            roots => roots?,
        };
        // Read again: another process may have finished the transaction before this one locked it.
        let (phase, record) = match open_dir(self.open.as_fd(), id.as_str().as_bytes()) {
            Err(Errno::NOENT) => return Ok(None),
            _ => match read(directory.as_fd(), id)? {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        let paths = host_paths(&record).collect();
        let mut transaction = Transaction {
            directory,
            record,
            roots,
        };
        match phase {
            Phase::Staging => {
                transaction.remove_staging()?;
                return self.end(&transaction).map(|()| Some(paths));
            }
            Phase::Moving => match transaction.execute() {
                Ok(late) => return self.settle(&transaction, &late).map(|()| Some(paths)),
                Err(error) => {
                    if !transaction.must_keep(&error) {
                        self.forget(id)?;
                    }
                    return Err(error);
                }
            },
            Phase::Exchanged => {
                let late = transaction.finish()?;
                return self.settle(&transaction, &late).map(|()| Some(paths));
            }
            Phase::Reversing => transaction.reverse(&transaction.changed_targets())?,
            Phase::Lost {
                targets,
                was_reversed,
            } => {
                let (back, lost): (BTreeSet<_>, BTreeSet<_>) =
                    targets.into_iter().partition(|t| transaction.is_staged(*t));
                if back.is_empty() {
                    return Ok(None);
                }
                transaction.roots.retain(|target, _| back.contains(target));
                match was_reversed {
                    true => transaction.reverse(&back)?,
                    false => transaction.remove_staging()?,
                }
                if !lost.is_empty() {
                    write_lost(transaction.directory.as_fd(), &lost)?;
                    return Ok(Some(paths));
                }
            }
        }
        self.forget(id)?;
        Ok(Some(paths))
    }

    /// Records that all paths of a transaction have their new state, except those that an undo left
    /// out.
    fn settle(&self, transaction: &Transaction, late: &[LeftOut]) -> Result<(), ApplyError> {
        let record = &transaction.record;
        if let Some(applied) = &record.undoes {
            self.mark_recovered(record, applied, late)?;
            return self.end(transaction);
        }
        self.finish(&record.id)?;
        let missing = transaction.missing();
        if missing.is_empty() {
            return Ok(());
        }
        let failed = |error| io("write the journal", record.id.as_str().as_bytes(), error);
        fs::mkdirat(&self.open, record.id.as_str(), Mode::RWXU).map_err(failed)?;
        let directory = open_dir(self.open.as_fd(), record.id.as_str().as_bytes());
        let directory = directory.map_err(failed)?;
        write_lost(directory.as_fd(), &missing)?;
        write_document(directory.as_fd(), BEGIN, record)
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
