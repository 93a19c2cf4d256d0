//! Undoes applied changes, all files or single ones.

use crate::document::{read_own, unusable};
use crate::error::ApplyError;
use crate::journal::{Journal, UndoReport};
use crate::names::{LeftOut, Names};
use crate::path::{ancestors, open_dir};
use crate::plan::{Ground, Plan, Planned, inverse};
use crate::record::{Action, ApplyId, Record, Step, is_file};
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
            Some(chosen) => is_chosen(&before, chosen, index, step),
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
            open |= is_file(step);
            let Some(root) = roots.get(&step.target) else {
                if is_file(step) {
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
                Ok(Some(action)) => {
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
        // Directories are not recorded as undone: a directory can still contain files, and a later
        // undo of these files removes the directory.
        indexes.retain(|index| {
            let step = before.steps.get(*index);
            step.is_some_and(|step| is_file(step) && !is_left_out(&late, step))
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
        let done = |step: &Step| {
            let same = |other: &&Step| other.target == step.target && other.path == step.path;
            is_file(step) && undo.steps.iter().any(|s| same(&s)) && !is_left_out(late, step)
        };
        let steps = before.steps.iter().enumerate();
        all.extend(steps.filter(|(_, step)| done(step)).map(|(index, _)| index));
        write_undone(directory.as_fd(), &all)
    }
}

/// Returns whether the undo of the files `chosen` includes a step: it changes such a file, or a
/// directory above one.
fn is_chosen(before: &Record, chosen: &BTreeSet<usize>, index: usize, step: &Step) -> bool {
    if is_file(step) {
        return chosen.contains(&index);
    }
    let mut files = chosen.iter().filter_map(|index| before.steps.get(*index));
    files.any(|file| {
        file.target == step.target && ancestors(&file.path).any(|above| above == step.path)
    })
}

/// Returns whether the undo left out this path of this target.
fn is_left_out(late: &[LeftOut], step: &Step) -> bool {
    late.iter()
        .any(|left_out| left_out.target == step.target && left_out.path == step.path)
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
