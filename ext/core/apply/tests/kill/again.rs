//! Interrupts the reversal or recovery of a transaction that was disturbed or interrupted before.
//!
//! The first interruption is sampled: one call for each [`Moment`]. The second one comes before every
//! call.

use crate::check::{Case, Tally};
use crate::meanwhile::{Act, Meanwhile, NOTHING};
use crate::moments::{Beginning, Live, Moment, moments};
use crate::once::no_space_from;
use crate::targets::{Setup, States};
use crate::tracer::{Ended, Fault, run, run_until};

/// Kills reversals of running transactions, and all kinds of recoveries.
pub fn kill_everywhere(kind: &str, may_mount: bool, states: &States, tally: &mut Tally) {
    let calls = moments(kind, None, states);
    let exchanging = calls[&Moment::Exchanging];
    let act = |act, target| Meanwhile { act, target };
    // The last target still has staged files to exchange, so the transaction fails and puts its
    // paths back.
    let staged_removed = Live::Act(act(Act::RemovesStagedFiles, 2));
    for live in [staged_removed, Live::FillsDisk] {
        // An undo makes no directory, so it needs no disk space here.
        let fails = kind == "apply" || !matches!(live, Live::FillsDisk);
        let is_possible = cfg!(target_arch = "x86_64") || !matches!(live, Live::FillsDisk);
        if !(fails && is_possible) {
            continue;
        }
        let live = (exchanging, live);
        kill_reversals(kind, live, NOTHING, states, tally);
        kill_reversals(kind, live, act(Act::MovesTarget, 1), states, tally);
        let reversal = moments(kind, Some(live), states);
        for moment in [Moment::Reversing, Moment::Reversed] {
            let beginning = Beginning {
                live: Some(live),
                kill: reversal[&moment],
            };
            for meanwhile in [NOTHING, act(Act::RemovesStagedFiles, 1)] {
                kill_recoveries(kind, beginning, meanwhile, states, tally);
            }
        }
    }
    for moment in [Moment::Staged, Moment::Exchanging, Moment::Exchanged] {
        let beginning = Beginning {
            live: None,
            kill: calls[&moment],
        };
        let mut all = vec![
            NOTHING,
            act(Act::MovesTarget, 1),
            act(Act::ReturnsTarget, 1),
        ];
        if moment == Moment::Exchanging {
            all.push(act(Act::RemovesStaging, 0));
            all.push(act(Act::RemovesStagedFiles, 1));
            all.push(act(Act::MovesTarget, 0));
            all.push(act(Act::MovesTarget, 2));
            all.push(act(Act::ReplacesTarget, 1));
            if may_mount {
                all.push(act(Act::ReadOnly, 1));
            }
        }
        for meanwhile in all {
            kill_recoveries(kind, beginning, meanwhile, states, tally);
        }
    }
}

/// Kills a transaction before every call after `live`, which makes it put its paths back.
fn kill_reversals(
    kind: &str,
    live: (usize, Live),
    meanwhile: Meanwhile,
    states: &States,
    tally: &mut Tally,
) {
    let mut case = Case::new(kind, meanwhile, states);
    case.may_fail = matches!(live.1, Live::Act(_));
    for kill in live.0 + 1.. {
        let at = format!("{kind} {live:?} killed at {kill}, {meanwhile:?}");
        let temp = tempfile::tempdir().unwrap();
        let setup = Setup::begin(kind, temp.path(), states.size);
        let beginning = Beginning {
            live: Some(live),
            kill,
        };
        match beginning.run(kind, temp.path(), &setup) {
            Ended::Killed => {}
            Ended::Done => panic!("{at}: the transaction was not put back"),
            Ended::Refused | Ended::Stuck => {
                Case::new(kind, NOTHING, states).recover(&setup, &at, tally);
                break;
            }
        }
        tally.kills += 1;
        tally.again += 1;
        meanwhile.happen(&setup);
        case.recover(&setup, &at, tally);
    }
}

/// Begins a transaction, kills it, and lets another program act.
fn interrupted(
    kind: &str,
    beginning: Beginning,
    meanwhile: Meanwhile,
    states: &States,
    at: &str,
) -> (tempfile::TempDir, Setup) {
    let temp = tempfile::tempdir().unwrap();
    let setup = Setup::begin(kind, temp.path(), states.size);
    let ended = beginning.run(kind, temp.path(), &setup);
    assert_eq!(ended, Ended::Killed, "{at}");
    meanwhile.happen(&setup);
    (temp, setup)
}

/// Kills the recovery of a transaction before every call.
fn kill_recoveries(
    kind: &str,
    beginning: Beginning,
    meanwhile: Meanwhile,
    states: &States,
    tally: &mut Tally,
) {
    let case = Case::new(kind, meanwhile, states);
    for call in 0.. {
        let at = format!("recovery of {kind} {beginning:?} {meanwhile:?} {call}");
        let (temp, setup) = interrupted(kind, beginning, meanwhile, states, &at);
        let ended = run_until("recover", temp.path(), call);
        tally.kills += 1;
        tally.again += usize::from(ended == Ended::Killed);
        case.recover(&setup, &at, tally);
        if ended != Ended::Killed {
            break;
        }
    }
}

/// Lets the disk be full from every call of a recovery on that needs disk space.
pub fn fill_the_disk_everywhere(kind: &str, states: &States, tally: &mut Tally) {
    let kill = moments(kind, None, states)[&Moment::Exchanging];
    let beginning = Beginning { live: None, kill };
    for (act, target) in [
        (Act::Nothing, 0),
        (Act::RemovesStagedFiles, 0),
        (Act::RemovesStagedFiles, 1),
    ] {
        let meanwhile = Meanwhile { act, target };
        let case = Case::new(kind, meanwhile, states);
        for call in 0.. {
            let at = format!("recovery of {kind} {meanwhile:?} full disk {call}");
            let (temp, setup) = interrupted(kind, beginning, meanwhile, states, &at);
            let mut is_full = false;
            let mut fault = no_space_from(call);
            let ended = run("recover", temp.path(), |call| {
                let fault = fault(call);
                is_full |= fault == Fault::NoSpace;
                fault
            });
            if ended == Ended::Refused {
                // The error says that nothing was changed.
                assert_eq!(setup.trees(), *states.of(kind).0, "{at}");
            }
            case.recover(&setup, &at, tally);
            if !is_full {
                break;
            }
            tally.full += 1;
        }
    }
}

/// Lets `gc` remove the applied change while its undo is interrupted.
pub fn remove_the_applied_change(states: &States) {
    let calls = moments("undo", None, states);
    for moment in [Moment::Exchanging, Moment::Exchanged] {
        let temp = tempfile::tempdir().unwrap();
        let setup = Setup::begin("undo", temp.path(), states.size);
        let journal = setup.bench.journal();
        let applied = journal.list().unwrap().complete().unwrap().remove(0);
        run_until("undo", temp.path(), calls[&moment]);
        journal.remove(&applied.id).unwrap();
        let errors = setup.recover();
        assert!(errors.is_empty(), "{moment:?}: {errors:?}");
        assert_eq!(setup.trees(), states.before, "{moment:?}");
        setup.check_nothing_is_open("after the removal of an applied change");
    }
}
