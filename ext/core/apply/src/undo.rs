//! Undoes applied changes, all files or single ones.

use crate::document::{read_own, unusable};
use crate::error::ApplyError;
use crate::journal::{Journal, UndoReport};
use crate::names::{LeftOut, Names};
use crate::path::{ancestors, open_dir};
use crate::plan::{Ground, Plan, Planned, inverse};
use crate::record::{Action, ApplyId, Need, Record, Step};
use crate::steps::{Seen, io, staged_name};
use crate::transaction::lock;
use crate::undone::{read_undone, write_undone};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::BTreeSet;
use wp_codebox_artifacts::{Conflict, sha256};
use wp_codebox_contracts::Sha256Hex;

/// Maximum size in bytes of the old contents of one file; an undo refuses larger ones.
const LARGEST: u64 = 1 << 30;

impl Journal {
    /// Undoes an applied change. `files` has the paths to undo, relative to their target or as guest
    /// paths; `None` undoes all that were not undone yet. `id` is the id of the new transaction.
    ///
    /// # Errors
    /// [`ApplyError::NotFound`] if the apply or one of `files` is unknown, [`ApplyError::Ambiguous`]
    /// if several targets have one of `files`, [`ApplyError::Undone`] if all wanted files were
    /// undone before, and the errors of locks, journal and disk. A conflict is not an error: the
    /// report lists it.
    pub fn undo(
        &self,
        applied: &ApplyId,
        files: Option<&[String]>,
        id: ApplyId,
        now: String,
    ) -> Result<UndoReport, ApplyError> {
        let (directory, before) = self.finished(applied)?;
        let record = Record {
            id,
            created_at: now,
            undoes: Some(applied.clone()),
            steps: Vec::new(),
            ..before.clone()
        };
        let names = Names::of(&before);
        let chosen: Option<BTreeSet<usize>> = files
            .map(|files| files.iter().map(|file| names.find(file)).collect())
            .transpose()?;
        let wanted = |index: usize, step: &Step| match &chosen {
            None => true,
            Some(chosen) if names.is_named(index) => chosen.contains(&index),
            Some(chosen) => is_above(&before, chosen, step),
        };
        let steps = before.steps.iter().enumerate();
        let needed = steps.filter(|(index, step)| wanted(*index, step));
        let roots = lock(&record, &needed.map(|(_, step)| step.target).collect())?;
        // Read after `lock`: another undo of this change may have ended since the record was read.
        let undone = read_undone(directory.as_fd(), applied)?;
        let old = open_dir(directory.as_fd(), b"old").map_err(|e| io("read", b"old", e))?;
        let mut plan = Plan::default();
        let mut indexes = Vec::new();
        let mut found = Vec::new();
        let mut open = false;
        for (index, step) in before.steps.iter().enumerate() {
            if !wanted(index, step) || undone.contains(&index) {
                continue;
            }
            open |= names.is_named(index);
            let Some(root) = roots.get(&step.target) else {
                if names.is_named(index) {
                    let path = names.name(step.target, &step.path);
                    let reason = "its directory does not exist";
                    found.push(Conflict { path, reason });
                }
                continue;
            };
            let ground = Ground {
                root: root.as_fd(),
                target: step.target,
            };
            let seen = match (ground.see(&step.path)?, &step.action) {
                // The change removed this path and replaced a directory above it by a link, which this
                // undo removes first. If it does not, the execution of the step reports a conflict.
                (Err(_), Action::Remove { .. } | Action::RemoveDirectory { .. }) => {
                    Ok(Seen::Absent)
                }
                (seen, _) => seen,
            };
            let action = seen.and_then(|seen| inverse(&step.action, seen));
            match action {
                Ok(None) => indexes.push(index),
                Ok(Some(mut action)) => {
                    if let (Action::RemoveDirectory { need, .. }, true) =
                        (&mut action, names.is_named(index))
                    {
                        *need = Need::Required;
                    }
                    let new = match &action {
                        Action::Replace { to, .. } | Action::Place { to } => {
                            Some(read_old(old.as_fd(), index, &to.sha256, applied)?)
                        }
                        _ => None,
                    };
                    let step = Step {
                        action,
                        ..step.clone()
                    };
                    plan.steps.push(Planned { step, new });
                    indexes.push(index);
                }
                Err(reason) => found.push(Conflict {
                    path: names.name(step.target, &step.path),
                    reason,
                }),
            }
        }
        if !open {
            return Err(ApplyError::Undone {
                id: applied.to_string(),
            });
        }
        plan.sort();
        let transaction = record.id.clone();
        let late = self.run(record, roots, plan.steps)?;
        found.extend(late.iter().map(|left_out| names.conflict(left_out)));
        let late = left_out(&late);
        // Other directories are not recorded as undone: a directory can still contain files, and a
        // later undo of these files removes the directory.
        indexes.retain(|index| {
            let step = before.steps.get(*index);
            names.is_named(*index) && step.is_some_and(|step| !late.contains(&place(step)))
        });
        let all: BTreeSet<usize> = undone.iter().chain(&indexes).copied().collect();
        write_undone(directory.as_fd(), &all)
            .and_then(|()| self.forget(&transaction))
            .map_err(ApplyError::after_exchange)?;
        let restored = indexes.iter().filter_map(|index| before.steps.get(*index));
        Ok(UndoReport {
            id: applied.clone(),
            restored: restored
                .map(|step| names.name(step.target, &step.path))
                .collect(),
            conflicts: found,
        })
    }

    /// Records which steps of the apply `applied` were reversed by `undo`, which recovery finished.
    pub(crate) fn mark_recovered(
        &self,
        undo: &Record,
        applied: &ApplyId,
        late: &[LeftOut],
    ) -> Result<(), ApplyError> {
        let (directory, before) = self.finished(applied)?;
        let mut all = read_undone(directory.as_fd(), applied)?;
        let late = left_out(late);
        let steps: BTreeSet<_> = undo.steps.iter().map(place).collect();
        let done = |step: &Step| steps.contains(&place(step)) && !late.contains(&place(step));
        all.extend(before.named().into_iter().filter(|index| {
            let step = before.steps.get(*index);
            step.is_some_and(done)
        }));
        write_undone(directory.as_fd(), &all)
    }
}

/// Returns whether a step changes a directory above one of the files `chosen`.
fn is_above(before: &Record, chosen: &BTreeSet<usize>, step: &Step) -> bool {
    let mut files = chosen.iter().filter_map(|index| before.steps.get(*index));
    files.any(|file| {
        file.target == step.target && ancestors(&file.path).any(|above| above == step.path)
    })
}

/// Target and path of a step.
fn place(step: &Step) -> (usize, &[u8]) {
    (step.target, &step.path)
}

/// Targets and paths that an undo left out.
fn left_out(late: &[LeftOut]) -> BTreeSet<(usize, &[u8])> {
    let places = late.iter().map(|one| (one.target, &one.path[..]));
    places.collect()
}

/// Reads the old contents of a path from the journal and checks their hash.
pub(crate) fn read_old(
    old: BorrowedFd<'_>,
    index: usize,
    hash: &Sha256Hex,
    id: &ApplyId,
) -> Result<Vec<u8>, ApplyError> {
    let refused = |why| unusable(id, why);
    let bytes = read_own(old, &staged_name(index), LARGEST).map_err(refused)?;
    match bytes {
        Some(bytes) if sha256(&bytes) == *hash => Ok(bytes),
        Some(_) => Err(refused("the old contents of a file are damaged")),
        None => Err(refused("the old contents of a file are missing")),
    }
}
