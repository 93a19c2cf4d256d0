//! Changes on trial: their files are written, but the site was not checked since then.
//!
//! The file `trial` of the journal has the id of the change. It is written before the transaction
//! and removed after the check. A process that is killed in between leaves it, and
//! [`Journal::undo_trial`] then undoes the change, because no check says that the site works.

use crate::document::{read_own, unusable, write_file};
use crate::error::ApplyError;
use crate::journal::{Claim, Journal, UndoReport};
use crate::path::sync;
use crate::record::ApplyId;
use crate::steps::io;
use rustix::fd::AsFd;
use rustix::fs::{self, AtFlags};
use rustix::io::Errno;
use std::path::PathBuf;

const FILE: &str = "trial";
const NEW: &str = ".trial.new";
/// Maximum size of the file `trial` in bytes; a larger file is refused.
const LARGEST: u64 = 128;

/// The trial of one change. It lasts until [`Trial::end`] or, if the process dies,
/// [`Journal::undo_trial`].
#[derive(Debug)]
#[must_use]
pub struct Trial<'a>(&'a Journal);

/// A change that was undone because the process that checks the site was interrupted.
#[derive(Debug)]
pub struct UndoneTrial {
    /// Host paths of the files of the change.
    pub paths: Vec<PathBuf>,
    /// Files that were restored, and files that were left because they changed since.
    pub report: UndoReport,
}

impl Journal {
    /// Begins the trial of a change. Call this before the change is applied.
    ///
    /// # Errors
    /// [`ApplyError::Io`] if the journal cannot be written.
    pub fn begin_trial(&self, _claim: &Claim, id: &ApplyId) -> Result<Trial<'_>, ApplyError> {
        write_file(self.own.as_fd(), NEW, id.as_str().as_bytes())
            .and_then(|_| fs::renameat(&self.own, NEW, &self.own, FILE))
            .and_then(|()| sync(&self.own))
            .map_err(failed)?;
        Ok(Trial(self))
    }

    /// Undoes the change whose trial was interrupted, and ends the trial. Call [`Self::recover`]
    /// before. Returns `None` if there was no trial, or its change was not applied or is undone.
    ///
    /// # Errors
    /// Those of [`Self::undo`], except [`ApplyError::Undone`]. The trial lasts until a call succeeds.
    pub fn undo_trial(
        &self,
        _claim: &Claim,
        now: String,
    ) -> Result<Option<UndoneTrial>, ApplyError> {
        let refused = |why| ApplyError::Journal {
            id: FILE.to_owned(),
            why,
        };
        let Some(bytes) = read_own(self.own.as_fd(), FILE, LARGEST).map_err(refused)? else {
            return Ok(None);
        };
        let change = String::from_utf8(bytes)
            .ok()
            .and_then(|id| ApplyId::new(id).ok());
        let change = change.ok_or_else(|| refused("it does not contain the id of a change"))?;
        let undone = match self.applied(&change) {
            Err(ApplyError::NotFound { .. }) if self.is_open(&change) => {
                return Err(unusable(
                    &change,
                    "it was interrupted and cannot be finished yet; remove the cause and call again",
                ));
            }
            Err(ApplyError::NotFound { .. }) => None,
            Err(error) => return Err(error),
            Ok(applied) => match self.undo(&change, None, change.of_undo(), now) {
                Ok(report) => Some(UndoneTrial {
                    paths: applied.paths,
                    report,
                }),
                Err(ApplyError::Undone { .. }) => None,
                Err(error) => return Err(error),
            },
        };
        Trial(self).end()?;
        Ok(undone)
    }
}

impl Trial<'_> {
    /// Ends the trial; the change stays as it is.
    ///
    /// # Errors
    /// [`ApplyError::Io`] if the journal cannot be written.
    pub fn end(self) -> Result<(), ApplyError> {
        match fs::unlinkat(&self.0.own, FILE, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => sync(&self.0.own).map_err(failed),
            Err(error) => Err(failed(error)),
        }
    }
}

fn failed(error: Errno) -> ApplyError {
    io("write the journal", FILE.as_bytes(), error)
}
