//! Checks targets and journal after an interruption.

use crate::meanwhile::{Act, Meanwhile, aside};
use crate::targets::{Setup, States, Trees, staging};
use std::fs;
use wp_codebox_apply::ApplyError;

#[derive(Debug, Default)]
pub struct Tally {
    /// Interruptions by SIGKILL.
    pub kills: usize,
    /// Kills of a recovery, or of a transaction that was putting its paths back.
    pub again: usize,
    /// Transactions and recoveries that met a full disk.
    pub full: usize,
    /// Recoveries that reported a missing target.
    pub lost: usize,
}

/// What is interrupted, and what another program does then.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub kind: &'a str,
    pub meanwhile: Meanwhile,
    pub states: &'a States,
    /// Whether staged files were removed, so that a recovery may report an error and put all back.
    pub may_fail: bool,
}

impl<'a> Case<'a> {
    pub fn new(kind: &'a str, meanwhile: Meanwhile, states: &'a States) -> Self {
        Self {
            kind,
            meanwhile,
            states,
            may_fail: matches!(meanwhile.act, Act::RemovesStaging | Act::RemovesStagedFiles),
        }
    }

    /// Recovers after the last interruption, and checks that the targets have their old or new state
    /// as a whole and that the journal says so.
    pub fn recover(&self, setup: &Setup, at: &str, tally: &mut Tally) {
        let mut errors = setup.recover();
        if self.meanwhile.act == Act::ReadOnly {
            self.meanwhile.end(setup);
            errors = setup.recover();
        }
        if self.kind == "trial" {
            let is_on_trial = setup.journal().join("trial").exists();
            setup.bench.undo_trial();
            let before = &self.states.before;
            assert!(!is_on_trial || setup.trees() == *before, "{at}");
        }
        let again = setup.recover();
        assert!(again.is_empty(), "{at}: {again:?} after {errors:?}");
        let is_new = self.check_trees(setup, at);
        let errors = &errors[..];
        match self.meanwhile.act {
            Act::MovesTarget | Act::ReplacesTarget => {
                let is_lost = matches!(errors, [ApplyError::Lost { .. }]);
                tally.lost += usize::from(is_lost);
                let fits = errors.is_empty() || is_lost && !is_new;
                assert!(fits, "{at}: {errors:?}");
                let target = &setup.paths()[self.meanwhile.target];
                let rest = fs::read_dir(target).map_or(0, Iterator::count);
                assert_eq!(rest, 0, "{at}");
                if self.meanwhile.act == Act::ReplacesTarget {
                    return;
                }
                fs::rename(aside(target), target).unwrap();
                let errors = setup.recover();
                assert!(errors.is_empty(), "{at}: {errors:?}");
            }
            _ if self.may_fail => {
                let is_turned_back = matches!(
                    errors,
                    [ApplyError::Io { .. } | ApplyError::Conflict { .. }]
                );
                let fits = errors.is_empty() || is_turned_back && !is_new;
                assert!(fits, "{at}: {errors:?}");
            }
            _ => assert!(errors.is_empty(), "{at}: {errors:?}"),
        }
        let settled = Case {
            meanwhile: crate::NOTHING,
            ..*self
        };
        let is_new = settled.check_trees(setup, at);
        let is_applied = is_new == (self.kind != "undo");
        setup.check_journal(is_applied, &self.states.before, at);
    }

    /// Checks that no staging directory is left and that all targets have their old trees or all
    /// have their new ones, except a missing one. Returns whether they have the new ones.
    fn check_trees(&self, setup: &Setup, at: &str) -> bool {
        for target in setup.paths() {
            let left = staging(&target);
            assert!(left.is_empty(), "{at}: {left:?}");
        }
        let (old, new) = self.states.of(self.kind);
        let now = setup.trees();
        let is = |trees: &Trees| {
            let mut pairs = now.iter().zip(trees).enumerate();
            pairs.all(|(target, (now, wanted))| {
                now == wanted || self.meanwhile.loses_target() && target == self.meanwhile.target
            })
        };
        let is_new = is(new);
        assert!(is_new || is(old), "{at}: {now:#?}");
        is_new
    }
}
