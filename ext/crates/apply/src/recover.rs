//! Finishes or reverses transactions that a crash interrupted.

use crate::error::ApplyError;
use crate::journal::{Journal, names};
use crate::path::open_dir;
use crate::record::ApplyId;
use crate::steps::io;
use crate::transaction::{Phase, Transaction, lock, read};
use rustix::fd::AsFd;
use rustix::fs;
use rustix::io::Errno;

impl Journal {
    /// Finishes or reverses the transactions that a crash interrupted. A transaction that another
    /// process is running is left alone. Call this before [`Self::apply`] and [`Self::undo`].
    /// Returns the ids with their errors.
    ///
    /// # Errors
    /// [`ApplyError::Io`] if the journal cannot be listed.
    pub fn recover(&self) -> Result<Vec<(ApplyId, Option<ApplyError>)>, ApplyError> {
        let mut all = Vec::new();
        for id in names(&self.open)? {
            match self.recover_one(&id) {
                Ok(true) => all.push((id, None)),
                Ok(false) => {}
                Err(error) => all.push((id, Some(error))),
            }
        }
        Ok(all)
    }

    /// Returns whether the transaction was interrupted.
    fn recover_one(&self, id: &ApplyId) -> Result<bool, ApplyError> {
        let directory = match open_dir(self.open.as_fd(), id.as_str().as_bytes()) {
            Err(Errno::NOENT) => return Ok(false),
            directory => directory.map_err(|e| io("read", id.as_str().as_bytes(), e))?,
        };
        let (_, record) = read(directory.as_fd(), id)?;
        let Some(record) = record else {
            // Killed between two system calls, or running in another process that has not locked
            // its targets visibly; removing an empty directory harms neither.
            return Ok(fs::unlinkat(&self.open, id.as_str(), fs::AtFlags::REMOVEDIR).is_ok());
        };
        let roots = match lock(&record) {
            Err(ApplyError::Busy { .. }) => return Ok(false),
            // The target was removed, and with it everything that was staged there.
            Err(ApplyError::Target {
                source: Errno::NOENT,
                ..
            }) => {
                self.forget(id)?;
                return Ok(true);
            }
            roots => roots?,
        };
        // Another process may have finished it before this one got the locks.
        let (phase, record) = match open_dir(self.open.as_fd(), id.as_str().as_bytes()) {
            Err(Errno::NOENT) => return Ok(false),
            _ => match read(directory.as_fd(), id)? {
                (phase, Some(record)) => (phase, record),
                (_, None) => return Ok(false),
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
        Ok(true)
    }
}
