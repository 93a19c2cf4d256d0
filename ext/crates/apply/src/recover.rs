//! Finishes or reverses transactions that a crash interrupted.

use crate::error::ApplyError;
use crate::journal::{Journal, host_paths, names};
use crate::path::open_dir;
use crate::record::ApplyId;
use crate::steps::io;
use crate::transaction::{Phase, Transaction, lock, read};
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
    /// interrupted it; `None` if another process runs it or has finished it.
    fn recover_one(&self, id: &ApplyId) -> Result<Option<Vec<PathBuf>>, ApplyError> {
        let directory = match open_dir(self.open.as_fd(), id.as_str().as_bytes()) {
            Err(Errno::NOENT) => return Ok(None),
            directory => directory.map_err(|e| io("read", id.as_str().as_bytes(), e))?,
        };
        let (_, record) = read(directory.as_fd(), id)?;
        let Some(record) = record else {
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
        let roots = match lock(&record) {
            Err(ApplyError::Busy { .. }) => return Ok(None),
            // The target directory does not exist any more, and neither do the files that the
            // transaction staged in it.
            Err(ApplyError::Target {
                source: Errno::NOENT,
                ..
            }) => {
                self.forget(id)?;
                return Ok(Some(Vec::new()));
            }
            roots => roots?,
        };
        // Read again: another process may have finished the transaction before this one locked it.
        let (phase, record) = match open_dir(self.open.as_fd(), id.as_str().as_bytes()) {
            Err(Errno::NOENT) => return Ok(None),
            _ => match read(directory.as_fd(), id)? {
                (phase, Some(record)) => (phase, record),
                (_, None) => return Ok(None),
            },
        };
        let undoes = record.undoes.clone();
        let transaction = Transaction {
            directory,
            record: record.clone(),
            roots,
        };
        match phase {
            Phase::Empty | Phase::Staging => {
                transaction.discard()?;
                self.forget(id)?;
            }
            Phase::Reversing => {
                transaction.continue_reverse()?;
                self.forget(id)?;
            }
            Phase::Moving => {
                let result = transaction.execute();
                match (result, undoes) {
                    (Ok(_), None) => self.finish(id)?,
                    (Ok(late), Some(applied)) => {
                        self.mark_recovered(&record, &applied, &late)?;
                        self.forget(id)?;
                    }
                    (Err(error @ ApplyError::Stuck { .. }), _) => return Err(error),
                    (Err(error), _) => {
                        self.forget(id)?;
                        return Err(error);
                    }
                }
            }
        }
        Ok(Some(host_paths(&record).collect()))
    }
}
