//! Interrupts transactions of three directories, and their recoveries, before every system call that
//! may change a file, and checks that the next call finishes or reverses the transaction.
//!
//! The program runs itself as the child: `kill child apply|undo|trial|recover DIRECTORY`. The parent
//! traces the child with ptrace. At the entry of its Nth such call, for every N, it sends SIGKILL, or
//! lets this call and all later ones that need disk space fail with ENOSPC. Calls that only read are
//! skipped: a kill there leaves the same files as a kill before the next call that may change one.
//! [`Meanwhile`] says what another program does to one of the targets after the kill. `once` kills
//! transactions; `again` kills the reversal or recovery that follows.

#![allow(clippy::unwrap_used, clippy::panic)]

mod again;
mod check;
mod meanwhile;
mod moments;
mod once;
mod targets;
mod tracer;
#[path = "../trees/mod.rs"]
mod trees;

use check::Tally;
use meanwhile::{Act, Meanwhile, NOTHING, private_mounts};
use targets::{COUNT, Size, States};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == "child") {
        return tracer::child(&arguments[2], std::path::Path::new(&arguments[3]));
    }
    if arguments.iter().any(|a| a == "--list") {
        println!("interrupt_before_every_system_call_that_may_change_a_file: test");
        return;
    }
    let may_mount = private_mounts();
    if !may_mount {
        eprintln!("skipped: this user cannot mount, so no target is made read-only");
    }
    let full = States::of_change(Size::Full);
    let small = States::of_change(Size::Small);
    let mut tally = Tally::default();
    for kind in ["apply", "undo", "trial"] {
        once::kill_everywhere(kind, NOTHING, &full, &mut tally);
    }
    for kind in ["apply", "undo"] {
        for meanwhile in acts(may_mount) {
            once::kill_everywhere(kind, meanwhile, &small, &mut tally);
        }
        once::edit_a_file_everywhere(kind, &small, &mut tally);
        again::kill_everywhere(kind, may_mount, &small, &mut tally);
        if cfg!(target_arch = "x86_64") {
            once::fill_the_disk_everywhere(kind, &full, &mut tally);
            again::fill_the_disk_everywhere(kind, &small, &mut tally);
        }
    }
    once::kill_undo_with_an_edited_file_everywhere(&mut tally);
    again::remove_the_applied_change(&small);
    assert!(
        tally.kills >= 3000 && tally.again >= 1000 && tally.lost >= 300,
        "{tally:?}"
    );
    println!("test interrupt_before_every_system_call_that_may_change_a_file ... ok");
    println!(
        "\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; {tally:?}\n"
    );
}

/// Returns what another program does to each of the targets between the kill and the next call.
fn acts(may_mount: bool) -> impl Iterator<Item = Meanwhile> {
    let acts = [
        Act::RemovesStaging,
        Act::RemovesStagedFiles,
        Act::MovesTarget,
        Act::ReplacesTarget,
        Act::ReadOnly,
    ];
    let possible = move |act: &Act| *act != Act::ReadOnly || may_mount;
    acts.into_iter()
        .filter(possible)
        .flat_map(|act| (0..COUNT).map(move |target| Meanwhile { act, target }))
}
