//! Chooses the call before which a transaction is first interrupted.

use crate::meanwhile::Meanwhile;
use crate::targets::{Setup, States, Trees, staging};
use crate::tracer::{Ended, Fault, run};
use std::collections::BTreeMap;
use std::path::Path;

/// Moments of a transaction that lead to different recoveries: the phases of `src/document.rs`, in
/// the middle of what the phase does with the second target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// All targets have staged files, and the steps are not written yet.
    Staged,
    /// Some paths of the second target are exchanged.
    Exchanging,
    /// All paths are exchanged, and the staging directory of the second target is being removed.
    Exchanged,
    /// Some paths of the second target are put back.
    Reversing,
    /// All paths are put back, and the staging directory of the second target is being removed.
    Reversed,
}

impl Moment {
    /// Returns the moment of a transaction whose process is stopped.
    fn now(setup: &Setup, old: &Trees, new: &Trees) -> Option<Self> {
        let documents = setup.open_documents();
        let has = |name: &str| documents.iter().any(|document| document == name);
        let targets = setup.paths();
        let staging = targets.each_ref().map(|target| staging(target));
        let is_removed = staging[1]
            .iter()
            .any(|path| path.extension().is_some_and(|end| end == "old"));
        let mut second = setup.trees()[1].clone();
        second.retain(|path, _| !path.starts_with(".wp-codebox-"));
        let is_mixed = second != old[1] && second != new[1];
        match (has("journal.json"), has("exchanged"), has("reverse")) {
            (false, ..) if has("begin.json") && staging.iter().all(|s| !s.is_empty()) => {
                Some(Self::Staged)
            }
            (true, false, false) if is_mixed => Some(Self::Exchanging),
            (true, true, false) if is_removed => Some(Self::Exchanged),
            (true, false, true) if is_removed => Some(Self::Reversed),
            (true, false, true) if is_mixed => Some(Self::Reversing),
            _ => None,
        }
    }
}

/// What another program does before a call of a running transaction.
#[derive(Debug, Clone, Copy)]
pub enum Live {
    Act(Meanwhile),
    /// It fills the disk.
    FillsDisk,
}

/// The first disturbance of a transaction.
#[derive(Debug, Clone, Copy)]
pub struct Beginning {
    /// What happens before which call; the transaction then goes on.
    pub live: Option<(usize, Live)>,
    /// Call before which the transaction is killed.
    pub kill: usize,
}

impl Beginning {
    /// Runs a transaction until it is killed or ends.
    pub fn run(self, kind: &str, directory: &Path, setup: &Setup) -> Ended {
        run(kind, directory, |call| {
            let is_full = self.live_at(call.index, setup) && call.needs_space;
            match call.index == self.kill {
                true => Fault::Kill,
                false if is_full => Fault::NoSpace,
                false => Fault::None,
            }
        })
    }

    /// Lets another program act if this is its call. Returns whether the disk is full.
    fn live_at(self, index: usize, setup: &Setup) -> bool {
        match self.live {
            Some((call, Live::Act(meanwhile))) if call == index => meanwhile.happen(setup),
            Some((call, Live::FillsDisk)) => return index >= call,
            _ => {}
        }
        false
    }
}

/// Returns the first call of each moment in a transaction with this disturbance; for
/// [`Moment::Staged`] the last one.
pub fn moments(
    kind: &str,
    live: Option<(usize, Live)>,
    states: &States,
) -> BTreeMap<Moment, usize> {
    let (old, new) = states.of(kind);
    let temp = tempfile::tempdir().unwrap();
    let setup = Setup::begin(kind, temp.path(), states.size);
    let beginning = Beginning {
        live,
        kill: usize::MAX,
    };
    let mut all = BTreeMap::new();
    run(kind, temp.path(), |call| {
        let is_full = beginning.live_at(call.index, &setup) && call.needs_space;
        match Moment::now(&setup, old, new) {
            Some(Moment::Staged) => drop(all.insert(Moment::Staged, call.index)),
            Some(moment) => drop(all.entry(moment).or_insert(call.index)),
            None => {}
        }
        match is_full {
            true => Fault::NoSpace,
            false => Fault::None,
        }
    });
    all
}
