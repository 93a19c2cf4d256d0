//! Puts the exchanged paths of a transaction back.

use crate::document::{REVERSE, begin_phase, write_lost};
use crate::error::ApplyError;
use crate::plan::Ground;
use crate::record::{Action, Step};
use crate::steps::{Place, Seen, io, see, staged_name, sync_parents};
use crate::transaction::{Transaction, write_new};
use crate::undo::read_old;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, AtFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;

impl Transaction {
    /// Puts the exchanged paths back because of `error`. Returns `error`, or why not all paths were
    /// put back.
    pub(crate) fn turn_back(&self, error: ApplyError) -> ApplyError {
        let reversed = begin_phase(self.directory.as_fd(), REVERSE)
            .and_then(|()| self.reverse(&self.changed_targets()));
        match reversed {
            Ok(()) => error,
            Err(error) => error.after_exchange(),
        }
    }

    /// Puts the exchanged paths of `targets` back. A path that another program changed after the
    /// exchange stays unchanged.
    ///
    /// # Errors
    /// [`ApplyError::Lost`] if some targets are missing and all others were put back.
    pub(crate) fn reverse(&self, targets: &BTreeSet<usize>) -> Result<(), ApplyError> {
        let places = self.places()?;
        let (mut lost, mut failed) = (BTreeSet::new(), None);
        for target in targets {
            match places.get(target) {
                None => drop(lost.insert(*target)),
                // The other targets are put back also if this one is read-only.
                Some(place) => {
                    failed = failed.or(self.reverse_target(*target, place).err());
                }
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        sync_parents(&places, self.record.steps.iter())?;
        // Before `lost.json` is written: afterwards recovery works only in the lost targets.
        self.remove_staging()?;
        if lost.is_empty() {
            return Ok(());
        }
        write_lost(self.directory.as_fd(), &lost)?;
        Err(self.lost(&lost))
    }

    fn reverse_target(&self, target: usize, place: &Place) -> Result<(), ApplyError> {
        let old = self.old()?;
        let steps = self.record.steps.iter().enumerate().rev();
        for (index, step) in steps.filter(|(_, step)| step.target == target) {
            self.restage(index, step, place, old.as_fd())?;
            match place.backward(index, step)? {
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Copies the old contents from the journal to the staging directory if another program removed
    /// them there after the exchange.
    fn restage(
        &self,
        index: usize,
        step: &Step,
        place: &Place,
        old: BorrowedFd<'_>,
    ) -> Result<(), ApplyError> {
        let (Action::Replace { from, .. } | Action::Remove { from }) = &step.action else {
            return Ok(());
        };
        let staged = see(place.staging.as_fd(), staged_name(index).as_bytes());
        if !matches!(staged, Ok(Seen::Absent)) {
            return Ok(());
        }
        let root = place.root.as_fd();
        let target = step.target;
        let is_exchanged = match (Ground { root, target }.see(&step.path)?, &step.action) {
            (Ok(Seen::Stored(now)), Action::Replace { to, .. }) => now.is_same(to),
            (Ok(Seen::Absent), Action::Remove { .. }) => true,
            _ => false,
        };
        if !is_exchanged {
            return Ok(());
        }
        let bytes = read_old(old, index, &from.sha256, &self.record.id)?;
        // Under another name first: an interrupted call would leave a part under the staged name.
        let (staged, new) = (staged_name(index), format!("{}.new", staged_name(index)));
        let staging = place.staging.as_fd();
        let removed = match fs::unlinkat(staging, &*new, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        };
        removed
            .and_then(|()| write_new(staging, &new, from, &bytes))
            .and_then(|()| fs::renameat(staging, &*new, staging, &*staged))
            .map_err(|e| io("write the old contents of", &step.path, e))
    }

    /// Returns the error that names the targets in which nothing could be put back.
    pub(crate) fn lost(&self, targets: &BTreeSet<usize>) -> ApplyError {
        let named = targets.iter().filter_map(|t| self.record.targets.get(*t));
        ApplyError::Lost {
            id: self.record.id.to_string(),
            targets: named.map(|t| t.path.clone()).collect(),
        }
    }
}
