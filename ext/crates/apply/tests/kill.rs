//! Interrupts an apply and an undo of two directories before every system call that may change a file,
//! and checks that the next call finishes or reverses it.
//!
//! The program runs itself as the child: `kill child apply|undo|trial DIRECTORY`. The parent traces
//! the child with ptrace. At the entry of its Nth such call, for every N, it sends SIGKILL, or lets
//! this call and all later ones that need disk space fail with ENOSPC. Calls that only read are
//! skipped: a kill there leaves the same files as a kill before the next call that may change one.
//! After the kill, [`Meanwhile`] says what another program does before the next call.

#![allow(clippy::unwrap_used, clippy::panic)]

mod trees;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use trees::{Bench, added, changes, deleted, executable, file, link, modified, tree};
use wp_codebox_apply::{AppliedChange, ApplyError, TargetChanges};
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

/// Change of the first target where what happens to the second one is of interest.
fn small_change() -> MountChanges {
    changes(vec![
        modified("a.php", file(b"<?php 1;\n"), file(b"<?php 2;\n")),
        modified("link", link("a.php"), link("run.sh")),
    ])
}

/// Change of the second target, which is changed after the first one.
fn second_change() -> MountChanges {
    changes(vec![
        modified("z.php", file(b"<?php 1;\n"), file(b"<?php 2;\n")),
        deleted("zz.txt", file(b"gone\n")),
        added("zz/new.txt", file(b"new\n")),
    ])
}

fn prepare(bench: &Bench) {
    bench.write("a.php", b"<?php 1;\n");
    bench.write("run.sh", b"#!/bin/sh\n");
    bench.write("old/only.txt", b"old\n");
    bench.write("flat", b"flat\n");
    std::os::unix::fs::symlink("a.php", bench.path("link")).unwrap();
    let second = second(bench);
    fs::create_dir(&second).unwrap();
    fs::write(second.join("z.php"), b"<?php 1;\n").unwrap();
    fs::write(second.join("zz.txt"), b"gone\n").unwrap();
}

fn second(bench: &Bench) -> PathBuf {
    bench.target.with_file_name("second")
}

/// Beside the targets if the first one gets the small change.
const SMALL: &str = "small";

fn both(bench: &Bench) -> Vec<TargetChanges> {
    let first = match bench.target.with_file_name(SMALL).exists() {
        true => small_change(),
        false => change(),
    };
    let target = |mount: &str, path: &Path, changes| TargetChanges {
        mount: mount.to_owned(),
        path: path.to_owned(),
        changes,
    };
    vec![
        target("/workspace/x", &bench.target, first),
        target("/workspace/y", &second(bench), second_change()),
    ]
}

/// What another program does with the second target between the interruption and the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// Removes the staging directory, as `git clean -ffd` does.
    RemovesStaging,
    /// Removes the files in the staging directory.
    RemovesStagedFiles,
    /// Moves the target away, and back after the next call.
    MovesTarget,
    /// Removes the target and makes an empty directory at its path.
    ReplacesTarget,
    /// Makes the target read-only until the next call has failed.
    ReadOnly,
}

impl Meanwhile {
    fn happen(self, bench: &Bench) {
        let target = second(bench);
        match self {
            Self::Nothing => {}
            Self::RemovesStaging => staging(&target).iter().for_each(remove),
            Self::RemovesStagedFiles => {
                for directory in staging(&target) {
                    let entries = fs::read_dir(directory).unwrap();
                    entries.for_each(|entry| remove(&entry.unwrap().path()));
                }
            }
            Self::MovesTarget => fs::rename(&target, aside(&target)).unwrap(),
            Self::ReplacesTarget => {
                // The old directory still exists when the new one is made, so that they have
                // different inode numbers.
                fs::rename(&target, aside(&target)).unwrap();
                fs::create_dir(&target).unwrap();
                remove(&aside(&target));
            }
            Self::ReadOnly => set_read_only(&target, true),
        }
    }
}

fn aside(target: &Path) -> PathBuf {
    target.with_file_name("aside")
}

fn set_read_only(target: &Path, is_read_only: bool) {
    use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};
    if !is_read_only {
        return unmount(target, UnmountFlags::DETACH).unwrap();
    }
    mount_bind(target, target).unwrap();
    mount_remount(target, MountFlags::RDONLY | MountFlags::BIND, "").unwrap();
}

fn remove(path: &PathBuf) {
    match fs::symlink_metadata(path).unwrap().is_dir() {
        true => fs::remove_dir_all(path).unwrap(),
        false => fs::remove_file(path).unwrap(),
    }
}

/// Returns the staging directories in a target.
fn staging(target: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(target).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_staging = |path: &PathBuf| path.to_string_lossy().contains("/.wp-codebox-");
    paths.filter(is_staging).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == "child") {
        return child(&arguments[2], Path::new(&arguments[3]));
    }
    if std::env::args().any(|a| a == "--list") {
        println!("interrupt_before_every_system_call_that_may_change_a_file: test");
        return;
    }
    let mut meanwhile = vec![
        Meanwhile::Nothing,
        Meanwhile::RemovesStaging,
        Meanwhile::RemovesStagedFiles,
        Meanwhile::MovesTarget,
        Meanwhile::ReplacesTarget,
    ];
    match private_mounts() {
        true => meanwhile.push(Meanwhile::ReadOnly),
        false => eprintln!("skipped: this user cannot mount, so no target is made read-only"),
    }
    let (full, small) = (
        States::of_change(Size::Full),
        States::of_change(Size::Small),
    );
    let mut tally = Tally::default();
    for kind in ["apply", "undo", "trial"] {
        for meanwhile in &meanwhile {
            if kind != "trial" || *meanwhile == Meanwhile::Nothing {
                let states = match meanwhile {
                    Meanwhile::Nothing => &full,
                    _ => &small,
                };
                kill_everywhere(kind, *meanwhile, states, &mut tally);
            }
        }
        if cfg!(target_arch = "x86_64") && kind != "trial" {
            fill_the_disk_everywhere(kind, &full, &mut tally);
        }
    }
    kill_undo_with_an_edited_file_everywhere(&mut tally);
    assert!(tally.kills >= 1500 && tally.lost >= 50, "{tally:?}");
    println!("test interrupt_before_every_system_call_that_may_change_a_file ... ok");
    println!(
        "\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; {tally:?}\n"
    );
}

/// Moves this process to a mount namespace of its own. Returns whether it may mount there.
fn private_mounts() -> bool {
    use rustix::mount::{MountPropagationFlags, mount_change};
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    // SAFETY: this process has one thread.
    let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    unshared.and_then(|()| mount_change("/", flags)).is_ok()
}

#[derive(Debug, Default)]
struct Tally {
    /// Interruptions by SIGKILL.
    kills: usize,
    /// Transactions that met a full disk.
    full: usize,
    /// Recoveries that reported a missing target.
    lost: usize,
}

/// Trees of both targets.
type Trees = [Tree; 2];

fn trees_of(bench: &Bench) -> Trees {
    [tree(&bench.target), tree(&second(bench))]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Full,
    Small,
}

/// Trees before and after an apply.
struct States {
    size: Size,
    before: Trees,
    after: Trees,
}

impl States {
    /// Returns the trees before and after the change.
    fn of_change(size: Size) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let bench = begin("apply", temp.path(), size);
        let before = trees_of(&bench);
        bench.apply_to(both(&bench)).unwrap();
        let after = trees_of(&bench);
        Self {
            size,
            before,
            after,
        }
    }

    /// Returns the trees before and after a transaction of this kind.
    fn of(&self, kind: &str) -> (&Trees, &Trees) {
        match kind {
            "undo" => (&self.after, &self.before),
            _ => (&self.before, &self.after),
        }
    }
}

/// Prepares the targets, with an applied change for `undo`.
fn begin(kind: &str, root: &Path, size: Size) -> Bench {
    let bench = Bench::at(root);
    prepare(&bench);
    if size == Size::Small {
        fs::write(root.join(SMALL), "").unwrap();
    }
    if kind == "undo" {
        bench.apply_to(both(&bench)).unwrap();
    }
    bench
}

/// Calls `recover` and returns its errors.
fn recover(bench: &Bench) -> Vec<ApplyError> {
    let recovered = bench.journal().recover().unwrap();
    recovered.into_iter().filter_map(|one| one.error).collect()
}

fn kill_everywhere(kind: &str, meanwhile: Meanwhile, states: &States, tally: &mut Tally) {
    let (old, new) = states.of(kind);
    let user = rustix::process::geteuid().as_raw();
    for call in 0.. {
        let at = format!("{kind} {meanwhile:?} {call}");
        let temp = tempfile::tempdir().unwrap();
        let bench = begin(kind, temp.path(), states.size);
        let ended = run(kind, temp.path(), call, Fault::Kill);
        if ended != Ended::Killed {
            assert_eq!(ended, Ended::Done, "{at}");
            assert_eq!(trees_of(&bench), *new, "{at}");
            break;
        }
        tally.kills += 1;
        meanwhile.happen(&bench);
        let mut errors = recover(&bench);
        if meanwhile == Meanwhile::ReadOnly {
            set_read_only(&second(&bench), false);
            errors = recover(&bench);
        }
        if kind == "trial" {
            let on_trial = bench.site.join(format!("applies/{user}/trial")).exists();
            bench.undo_trial();
            assert!(!on_trial || trees_of(&bench) == states.before, "{at}");
        }
        let again = recover(&bench);
        assert!(again.is_empty(), "{at}: {again:?} after {errors:?}");
        assert!(staging(&bench.target).is_empty(), "{at}");
        assert!(staging(&second(&bench)).is_empty(), "{at}");
        let first = tree(&bench.target);
        let is_new = first == new[0];
        assert!(is_new || first == old[0], "{at}: {first:#?}");
        match meanwhile {
            Meanwhile::MovesTarget | Meanwhile::ReplacesTarget => {
                let is_lost = matches!(errors[..], [ApplyError::Lost { .. }]);
                tally.lost += usize::from(is_lost);
                assert!(errors.is_empty() || is_lost && !is_new, "{at}: {errors:?}");
                let rest = fs::read_dir(second(&bench));
                assert!(rest.is_err() || rest.unwrap().count() == 0, "{at}");
                if meanwhile == Meanwhile::ReplacesTarget {
                    continue;
                }
                fs::rename(aside(&second(&bench)), second(&bench)).unwrap();
                let errors = recover(&bench);
                assert!(errors.is_empty(), "{at}: {errors:?}");
            }
            Meanwhile::RemovesStaging | Meanwhile::RemovesStagedFiles => {
                let is_turned_back = matches!(
                    errors[..],
                    [ApplyError::Io { .. } | ApplyError::Conflict { .. }]
                );
                assert!(
                    errors.is_empty() || is_turned_back && !is_new,
                    "{at}: {errors:?}"
                );
            }
            Meanwhile::Nothing | Meanwhile::ReadOnly => {
                assert!(errors.is_empty(), "{at}: {errors:?}");
            }
        }
        let now = trees_of(&bench);
        assert!(now == *old || now == *new, "{at}: {now:#?}");
        consistent(&bench, now == states.after, &states.before, &at);
    }
}

/// Kills an undo that leaves out a file which the user edited after the apply.
fn kill_undo_with_an_edited_file_everywhere(tally: &mut Tally) {
    for call in 0.. {
        let at = format!("undo of an edited file {call}");
        let temp = tempfile::tempdir().unwrap();
        let bench = begin("undo", temp.path(), Size::Full);
        bench.write("a.php", b"edited\n");
        let ended = run("undo", temp.path(), call, Fault::Kill);
        tally.kills += usize::from(ended == Ended::Killed);
        let errors = recover(&bench);
        assert!(errors.is_empty(), "{at}: {errors:?}");
        assert_eq!(fs::read(bench.path("a.php")).unwrap(), b"edited\n", "{at}");
        let change = bench
            .journal()
            .list()
            .unwrap()
            .complete()
            .unwrap()
            .remove(0);
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

fn fill_the_disk_everywhere(kind: &str, states: &States, tally: &mut Tally) {
    let (old, new) = states.of(kind);
    for call in 0.. {
        let at = format!("{kind} full disk {call}");
        let temp = tempfile::tempdir().unwrap();
        let bench = begin(kind, temp.path(), states.size);
        let ended = run(kind, temp.path(), call, Fault::NoSpace);
        let now = trees_of(&bench);
        match ended {
            Ended::Refused => {
                // The error says that nothing was changed.
                assert_eq!(now, *old, "{at}");
            }
            Ended::Done | Ended::Stuck => {}
            Ended::Killed => panic!("{at}"),
        }
        // From here on the disk has space.
        assert_eq!(recover(&bench).len(), 0, "{at}");
        let now = trees_of(&bench);
        assert!(now == *old || now == *new, "{at}: {now:#?}");
        consistent(&bench, now == states.after, &states.before, &at);
        if ended == Ended::Done {
            assert_eq!(recover(&bench).len(), 0, "{at}");
            break;
        }
        tally.full += 1;
    }
}

type Tree = std::collections::BTreeMap<String, (u32, Vec<u8>)>;

/// Checks that the journal agrees with the target: a change that it lists as applied can be undone,
/// and otherwise the target has the old tree and the change can be applied again.
fn consistent(bench: &Bench, is_applied: bool, before: &Trees, at: &str) {
    let is_open = |c: &AppliedChange| c.undone.len() < c.files.len();
    let all = bench.journal().list().unwrap().complete().unwrap();
    let open: Vec<_> = all.into_iter().filter(is_open).collect();
    // While a target was missing, recovery could not see that its files were undone.
    let is_unseen = open.len() == 1 && at.starts_with("undo MovesTarget");
    assert!(
        open.len() == usize::from(is_applied) || is_unseen,
        "{at}: {open:?}"
    );
    match open.first() {
        Some(change) => {
            let report = bench.undo(&change.id, None).unwrap();
            assert_eq!(report.conflicts, [], "{at}");
        }
        None => {
            let applied = bench.apply_to(both(bench)).unwrap();
            bench.undo(&applied.id, None).unwrap();
        }
    }
    assert_eq!(trees_of(bench), *before, "{at}");
}

/// Runs in the child process: stops this process with SIGSTOP, so that the parent can begin to
/// count system calls, then applies or undoes.
fn child(kind: &str, directory: &Path) {
    let bench = Bench::at(directory);
    let open = bench.journal().list().unwrap().complete().unwrap();
    // SAFETY: raise only sends a signal to this process.
    unsafe { libc::raise(libc::SIGSTOP) };
    let result = match kind {
        "apply" => bench.apply_to(both(&bench)).map(drop),
        "undo" => bench.undo(&open[0].id, None).map(drop),
        _ => bench
            .apply_on_trial_to(both(&bench))
            .and_then(|applied| bench.end_trial(&applied.id)),
    };
    let status = match result {
        Ok(()) => 0,
        Err(ApplyError::Stuck { .. }) => STUCK,
        Err(_) => REFUSED,
    };
    // SAFETY: the process has nothing to clean up; the exit of the runtime would add system calls.
    unsafe { libc::_exit(status) };
}

/// Exit statuses of the child.
const STUCK: i32 = 3;
const REFUSED: i32 = 4;

/// What happens at the chosen system call of the child.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The child is killed before the call.
    Kill,
    /// This call and all later ones that need disk space fail with ENOSPC.
    NoSpace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Killed,
    Done,
    Refused,
    Stuck,
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

/// System calls that need disk space, besides an open that creates a file.
const WRITING: [libc::c_long; 4] = [
    libc::SYS_fsetxattr,
    libc::SYS_mkdirat,
    libc::SYS_symlinkat,
    libc::SYS_write,
];

/// Returns whether the system call at whose entry a traced process stopped may change a file, and
/// whether it needs disk space.
fn effect(pid: libc::pid_t) -> (bool, bool) {
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
        call => return (!READING.contains(&call), WRITING.contains(&call)),
    };
    // An access mode other than O_RDONLY changes nothing by itself.
    let creates = flags & (libc::O_CREAT | libc::O_TRUNC) as u64 != 0;
    (creates, creates)
}

/// At the entry of a system call: replaces it by a call that does not exist. At its exit: lets it
/// return this error.
#[cfg(target_arch = "x86_64")]
fn fail_call(pid: libc::pid_t, is_entry: bool, error: i32) {
    // SAFETY: the structure consists of integers, for which zeros are valid.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the child is stopped, and the kernel writes one structure of this type.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers) };
    match is_entry {
        true => registers.orig_rax = u64::MAX,
        false => registers.rax = i64::from(-error).cast_unsigned(),
    }
    // SAFETY: the child is stopped, and the kernel reads one structure of this type.
    let set = unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0, &raw const registers) };
    assert_eq!((got, set), (0, 0), "{}", std::io::Error::last_os_error());
}

#[cfg(not(target_arch = "x86_64"))]
fn fail_call(_: libc::pid_t, _: bool, _: i32) {}

/// Starts the child and lets `fault` happen at the entry of its `call`-th system call that may change
/// a file or, for a full disk, needs disk space. The count starts at 0 when the child stops itself
/// with SIGSTOP.
fn run(kind: &str, directory: &Path, call: usize, fault: Fault) -> Ended {
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
    let (mut is_entry, mut is_failing, mut counted) = (false, false, 0);
    loop {
        resume(libc::PTRACE_SYSCALL, 0);
        let status = wait();
        if libc::WIFEXITED(status) {
            return match libc::WEXITSTATUS(status) {
                0 => Ended::Done,
                STUCK => Ended::Stuck,
                REFUSED => Ended::Refused,
                other => panic!("{kind} {call}: exit status {other}"),
            };
        }
        // The child stops at the entry and at the exit of each call.
        is_entry = !is_entry;
        if !is_entry {
            if is_failing {
                fail_call(pid, false, libc::ENOSPC);
            }
            is_failing = false;
            continue;
        }
        let (changes, needs_space) = effect(pid);
        match fault {
            Fault::Kill if changes && counted == call => {
                // SAFETY: kill only sends a signal to the child.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                wait();
                return Ended::Killed;
            }
            Fault::NoSpace if needs_space && counted >= call => {
                fail_call(pid, true, libc::ENOSPC);
                is_failing = true;
            }
            Fault::Kill => counted += usize::from(changes),
            Fault::NoSpace => counted += usize::from(needs_space),
        }
    }
}
