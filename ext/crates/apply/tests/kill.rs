//! Kills an apply and an undo before every system call that may change a file, and checks that the
//! next call finishes or reverses it.
//!
//! The program runs itself as the child: `kill child apply|undo|trial DIRECTORY`. The parent traces
//! the child with ptrace and sends SIGKILL at the entry of its Nth such call, for every N. Calls
//! that only read are skipped: a kill there leaves the same files as a kill before the next call
//! that may change one.

#![allow(clippy::unwrap_used, clippy::panic)]

mod trees;

use std::path::Path;
use std::process::Command;
use trees::{Bench, added, changes, deleted, executable, file, link, modified, tree};
use wp_codebox_artifacts::MountChanges;

fn change() -> MountChanges {
    changes(vec![
        modified("a.php", file(b"<?php 1;\n"), file(b"<?php 2;\n")),
        modified("run.sh", file(b"#!/bin/sh\n"), executable(b"#!/bin/sh\n")),
        deleted("old/only.txt", file(b"old\n")),
        added("new/deep/b.txt", file(b"new\n")),
        modified("link", link("a.php"), link("run.sh")),
        deleted("flat", file(b"flat\n")),
        added("flat/inner.txt", file(b"inner\n")),
    ])
}

fn prepare(bench: &Bench) {
    bench.write("a.php", b"<?php 1;\n");
    bench.write("run.sh", b"#!/bin/sh\n");
    bench.write("old/only.txt", b"old\n");
    bench.write("flat", b"flat\n");
    std::os::unix::fs::symlink("a.php", bench.path("link")).unwrap();
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == "child") {
        return child(&arguments[2], Path::new(&arguments[3]));
    }
    if std::env::args().any(|a| a == "--list") {
        println!("kill_before_every_system_call_that_may_change_a_file: test");
        return;
    }
    let (before, after) = both_states();
    let mut killed = 0;
    let mut finished = 0;
    let user = rustix::process::geteuid().as_raw();
    for kind in ["apply", "undo", "trial"] {
        for call in 0.. {
            let temp = tempfile::tempdir().unwrap();
            let bench = Bench::at(temp.path());
            prepare(&bench);
            if kind == "undo" {
                bench.apply(change()).unwrap();
            }
            let ended = run_and_kill(kind, temp.path(), call);
            let journal = bench.journal();
            let recovered = journal.recover().unwrap();
            assert!(
                recovered.iter().all(|r| r.error.is_none()),
                "{kind} {call}: {recovered:?}"
            );
            if kind == "trial" {
                let on_trial = bench.site.join(format!("applies/{user}/trial")).exists();
                bench.undo_trial();
                assert!(!on_trial || tree(&bench.target) == before, "{kind} {call}");
            }
            let now = tree(&bench.target);
            let (old, new) = if kind == "undo" {
                (&after, &before)
            } else {
                (&before, &after)
            };
            assert!(now == *old || now == *new, "{kind} {call}: {now:#?}");
            assert_eq!(journal.recover().unwrap().len(), 0, "{kind} {call}");
            consistent(&bench, now == after, &before, kind, call);
            match ended {
                Ended::Killed => killed += 1,
                Ended::Exited => {
                    assert_eq!(now, *new, "{kind}");
                    finished += 1;
                    break;
                }
            }
        }
    }
    assert!(killed >= 200, "only {killed} points");
    println!("test kill_before_every_system_call_that_may_change_a_file ... ok");
    println!(
        "\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; {killed} kills, {finished} complete runs\n"
    );
}

/// Returns the tree before and after the change.
fn both_states() -> (Tree, Tree) {
    let bench = Bench::new();
    prepare(&bench);
    let before = tree(&bench.target);
    bench.apply(change()).unwrap();
    (before, tree(&bench.target))
}

type Tree = std::collections::BTreeMap<String, (u32, Vec<u8>)>;

/// Checks that the journal agrees with the target: a change that it lists as applied can be undone,
/// and otherwise the target has the old tree and the change can be applied again.
fn consistent(bench: &Bench, is_applied: bool, before: &Tree, kind: &str, call: usize) {
    let journal = bench.journal();
    let open: Vec<_> = journal
        .list()
        .unwrap()
        .into_iter()
        .filter(|c| c.undone.len() < c.files.len())
        .collect();
    assert_eq!(open.len(), usize::from(is_applied), "{kind} {call}");
    match open.first() {
        Some(change) => {
            let report = bench.undo(&change.id, None).unwrap();
            assert_eq!(report.conflicts, [], "{kind} {call}");
        }
        None => {
            let applied = bench.apply(change()).unwrap();
            bench.undo(&applied.id, None).unwrap();
        }
    }
    assert_eq!(tree(&bench.target), *before, "{kind} {call}");
}

/// Runs in the child process: stops this process with SIGSTOP, so that the parent can begin to
/// count system calls, then applies or undoes.
fn child(kind: &str, directory: &Path) {
    let bench = Bench::at(directory);
    let open = bench.journal().list().unwrap();
    // SAFETY: raise only sends a signal to this process.
    unsafe { libc::raise(libc::SIGSTOP) };
    match kind {
        "apply" => drop(bench.apply(change()).unwrap()),
        "undo" => drop(bench.undo(&open[0].id, None).unwrap()),
        _ => {
            let applied = bench.apply_on_trial(change()).unwrap();
            bench.end_trial(&applied.id);
        }
    }
    // SAFETY: the process has nothing to clean up; the exit of the runtime would add system calls.
    unsafe { libc::_exit(0) };
}

enum Ended {
    Killed,
    Exited,
}

/// System calls that change no file. Every other call counts as one that may change a file.
const READING: [libc::c_long; 24] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_futex,
    libc::SYS_getdents64,
    libc::SYS_geteuid,
    libc::SYS_getrandom,
    libc::SYS_lseek,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_newfstatat,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_statx,
];

/// Returns whether the system call at whose entry a traced process stopped may change a file.
fn may_change_a_file(pid: libc::pid_t) -> bool {
    // SAFETY: the structure consists of integers, for which zeros are valid.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of_val(&info);
    // SAFETY: the kernel writes at most `size` bytes to `info`.
    let done = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size, &raw mut info) };
    assert!(done > 0, "{}", std::io::Error::last_os_error());
    assert_eq!(info.op, libc::PTRACE_SYSCALL_INFO_ENTRY);
    // SAFETY: `op` says that the kernel filled this member of the union.
    let entry = unsafe { info.u.entry };
    let flags = match libc::c_long::try_from(entry.nr).unwrap() {
        libc::SYS_openat => entry.args[2],
        // The flags are the first member of `struct open_how`.
        // SAFETY: the child is stopped, and the address is one of its own.
        libc::SYS_openat2 => unsafe {
            libc::ptrace(libc::PTRACE_PEEKDATA, pid, entry.args[2], 0).cast_unsigned()
        },
        call => return !READING.contains(&call),
    };
    // An access mode other than O_RDONLY changes nothing by itself.
    flags & (libc::O_CREAT | libc::O_TRUNC) as u64 != 0
}

/// Runs the child and kills it as it enters the `call`-th system call that may change a file. The
/// count starts at 0 when the child stops itself with SIGSTOP.
fn run_and_kill(kind: &str, directory: &Path, call: usize) -> Ended {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("child").arg(kind).arg(directory);
    // SAFETY: ptrace is async-signal-safe, and the closure allocates nothing.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    #[allow(clippy::zombie_processes)] // waitpid below reaps it.
    let child = command.spawn().unwrap();
    let pid = child.id() as libc::pid_t;
    let wait = || {
        let mut status = 0;
        // SAFETY: status is a valid pointer, and the process is a child of this one.
        let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
        assert_eq!(waited, pid);
        status
    };
    let resume = |request, signal: i32| {
        // SAFETY: the child is stopped and traced by this process; the calls pass no memory.
        let done = unsafe { libc::ptrace(request, pid, 0, signal) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    };
    // The child first stops because of execve, then by the SIGSTOP that it sends to itself.
    wait();
    // Without this option PTRACE_GET_SYSCALL_INFO does not recognise a stop as one of a system
    // call.
    resume(libc::PTRACE_SETOPTIONS, libc::PTRACE_O_TRACESYSGOOD);
    loop {
        resume(libc::PTRACE_CONT, 0);
        if libc::WSTOPSIG(wait()) == libc::SIGSTOP {
            break;
        }
    }
    let (mut is_entry, mut changing) = (false, 0);
    loop {
        resume(libc::PTRACE_SYSCALL, 0);
        let status = wait();
        if libc::WIFEXITED(status) {
            assert_eq!(libc::WEXITSTATUS(status), 0, "{kind} {call}");
            return Ended::Exited;
        }
        // The child stops at the entry and at the exit of each call.
        is_entry = !is_entry;
        if !is_entry || !may_change_a_file(pid) {
            continue;
        }
        if changing == call {
            // SAFETY: kill only sends a signal to the child.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            wait();
            return Ended::Killed;
        }
        changing += 1;
    }
}
