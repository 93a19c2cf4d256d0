//! Interrupts transactions.

use crate::check::{Case, Tally};
use crate::meanwhile::{Act, Meanwhile};
use crate::moments::{Moment, moments};
use crate::targets::{Setup, Size, States, Trees};
use crate::tracer::{Ended, Fault, run, run_until};
use std::fs;
use std::path::Path;

pub fn kill_everywhere(kind: &str, meanwhile: Meanwhile, states: &States, tally: &mut Tally) {
    let case = Case::new(kind, meanwhile, states);
    let first = match meanwhile.act {
        Act::Nothing | Act::MovesTarget => 0,
        // While the transaction stages files, it matters only which staging directories exist, not
        // which files they have. So one call before the end of that phase stands for all of it.
        _ => moments(kind, None, states)[&Moment::Staged],
    };
    for call in first.. {
        let at = format!("{kind} {meanwhile:?} {call}");
        let temp = tempfile::tempdir().unwrap();
        let setup = Setup::begin(kind, temp.path(), states.size);
        let ended = run_until(kind, temp.path(), call);
        if ended != Ended::Killed {
            assert_eq!(ended, Ended::Done, "{at}");
            assert_eq!(setup.trees(), *states.of(kind).1, "{at}");
            break;
        }
        tally.kills += 1;
        meanwhile.happen(&setup);
        case.recover(&setup, &at, tally);
    }
}

/// Lets another program replace a file before each call, and kills the transaction before the next
/// call. The file of the other program must stay.
pub fn edit_a_file_everywhere(kind: &str, states: &States, tally: &mut Tally) {
    let (old, new) = states.of(kind);
    let removed = if kind == "undo" {
        "zz/new.txt"
    } else {
        "zz.txt"
    };
    for name in ["z.php", removed] {
        for call in 0.. {
            let at = format!("{kind} with {name} edited at {call}");
            let temp = tempfile::tempdir().unwrap();
            let setup = Setup::begin(kind, temp.path(), states.size);
            let edited = setup.paths()[1].join(name);
            let draft = temp.path().join("draft");
            fs::write(&draft, b"edited\n").unwrap();
            let (mut is_reached, mut is_edited) = (false, false);
            let ended = run(kind, temp.path(), |at| match at.index {
                index if index == call => {
                    is_reached = true;
                    is_edited = edited.exists() && fs::rename(&draft, &edited).is_ok();
                    Fault::None
                }
                index if index > call => Fault::Kill,
                _ => Fault::None,
            });
            tally.kills += usize::from(ended == Ended::Killed);
            setup.recover();
            let again = setup.recover();
            assert!(again.is_empty(), "{at}: {again:?}");
            setup.check_nothing_is_open(&at);
            if is_edited {
                let now = fs::read(&edited).ok();
                assert_eq!(now.as_deref(), Some(&b"edited\n"[..]), "{at}");
            }
            // The directory of the edited file stays with it.
            let others = |trees: &Trees| {
                let mut trees = trees.clone();
                trees[1].retain(|path, _| !is_edited || !name.starts_with(path.as_str()));
                trees
            };
            let now = others(&setup.trees());
            assert!(now == others(old) || now == others(new), "{at}: {now:#?}");
            if !is_reached {
                break;
            }
        }
    }
}

/// Kills an undo that leaves out a file which the user edited after the apply.
pub fn kill_undo_with_an_edited_file_everywhere(tally: &mut Tally) {
    for call in 0.. {
        let at = format!("undo of an edited file {call}");
        let temp = tempfile::tempdir().unwrap();
        let setup = Setup::begin("undo", temp.path(), Size::Full);
        let bench = &setup.bench;
        bench.write("a.php", b"edited\n");
        let ended = run_until("undo", temp.path(), call);
        tally.kills += usize::from(ended == Ended::Killed);
        let errors = setup.recover();
        assert!(errors.is_empty(), "{at}: {errors:?}");
        assert_eq!(fs::read(bench.path("a.php")).unwrap(), b"edited\n", "{at}");
        let mut all = bench.journal().list().unwrap().complete().unwrap();
        let change = all.remove(0);
        assert!(!change.undone.contains(&"a.php".to_owned()), "{at}");
        let is_undone = fs::read_link(bench.path("link")).unwrap() == Path::new("a.php");
        let others = if is_undone { change.files.len() - 1 } else { 0 };
        assert_eq!(change.undone.len(), others, "{at}");
        if ended == Ended::Done {
            assert!(is_undone, "{at}");
            break;
        }
    }
}

pub fn fill_the_disk_everywhere(kind: &str, states: &States, tally: &mut Tally) {
    let case = Case::new(kind, crate::NOTHING, states);
    for call in 0.. {
        let at = format!("{kind} full disk {call}");
        let temp = tempfile::tempdir().unwrap();
        let setup = Setup::begin(kind, temp.path(), states.size);
        let ended = run(kind, temp.path(), no_space_from(call));
        match ended {
            Ended::Refused => {
                // The error says that nothing was changed.
                assert_eq!(setup.trees(), *states.of(kind).0, "{at}");
            }
            Ended::Done | Ended::Stuck => {}
            Ended::Killed => panic!("{at}"),
        }
        // From here on the disk has space.
        case.recover(&setup, &at, tally);
        if ended == Ended::Done {
            break;
        }
        tally.full += 1;
    }
}

/// Lets each call that needs disk space fail, beginning with the one that has this index among them.
pub fn no_space_from(first: usize) -> impl FnMut(crate::tracer::Call) -> Fault {
    let mut seen = 0;
    move |call| {
        seen += usize::from(call.needs_space);
        match call.needs_space && seen > first {
            true => Fault::NoSpace,
            false => Fault::None,
        }
    }
}
