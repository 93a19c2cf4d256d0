//! Names of changed paths for reports and callers.
//!
//! Invariant: two paths of one change never have the same name, also if several targets contain the
//! same relative path.

use crate::error::ApplyError;
use crate::path::shown;
use crate::record::{Record, Step};
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_artifacts::Conflict;

/// A step that an undo left out because another program changed its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeftOut {
    /// Index of the target in the record.
    pub target: usize,
    /// Path relative to the target.
    pub path: Vec<u8>,
    /// Reason, in words.
    pub reason: &'static str,
}

impl LeftOut {
    /// Leaves out `step` for this reason.
    pub(crate) fn of(step: &Step, reason: &'static str) -> Self {
        Self {
            target: step.target,
            path: step.path.clone(),
            reason,
        }
    }
}

/// Names of the paths in a record.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    record: &'a Record,
    /// Paths that occur in more than one target.
    several: BTreeSet<&'a [u8]>,
    /// Indexes of the steps that callers see.
    named: BTreeSet<usize>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(record: &'a Record) -> Self {
        let mut targets: BTreeMap<&[u8], BTreeSet<usize>> = BTreeMap::new();
        for step in &record.steps {
            targets.entry(&step.path).or_default().insert(step.target);
        }
        targets.retain(|_, targets| targets.len() > 1);
        Self {
            record,
            named: record.named(),
            several: targets.into_keys().collect(),
        }
    }

    /// Returns whether callers see this step.
    pub(crate) fn is_named(&self, index: usize) -> bool {
        self.named.contains(&index)
    }

    /// Returns the name of a path: relative to its target, or the guest path if several targets
    /// contain it.
    pub(crate) fn name(&self, target: usize, path: &[u8]) -> String {
        match self.several.contains(path) {
            true => self.guest_path(target, path),
            false => shown(path),
        }
    }

    /// Returns the path in the guest, as `changed-files.json` spells it.
    fn guest_path(&self, target: usize, path: &[u8]) -> String {
        let mount = self.record.targets.get(target).map(|t| t.mount.as_str());
        let mount = mount.unwrap_or_default().trim_end_matches('/');
        format!("{mount}/{}", shown(path))
    }

    /// Returns the conflict to report for a step that an undo left out.
    pub(crate) fn conflict(&self, left_out: &LeftOut) -> Conflict {
        Conflict {
            path: self.name(left_out.target, &left_out.path),
            reason: left_out.reason,
        }
    }

    /// Returns the index of the step that changes the file `wanted`: a path relative to its target,
    /// or a guest path.
    pub(crate) fn find(&self, wanted: &str) -> Result<usize, ApplyError> {
        let steps = self.record.steps.iter().enumerate();
        let mut fitting = steps.filter(|(index, step)| {
            let is_wanted =
                shown(&step.path) == wanted || self.guest_path(step.target, &step.path) == wanted;
            is_wanted && self.is_named(*index)
        });
        let Some((index, first)) = fitting.next() else {
            return Err(ApplyError::NotFound {
                reference: format!("{wanted} in {}", self.record.id),
            });
        };
        // A target has at most one step per file, so a second match is in another target.
        match fitting.next() {
            None => Ok(index),
            Some((_, second)) => Err(ApplyError::Ambiguous {
                file: wanted.to_owned(),
                names: [first, second].map(|s| self.guest_path(s.target, &s.path)),
            }),
        }
    }
}
