//! Kills processes that work on a ledger, at every system call and at random ones, and checks that
//! nothing acknowledged is lost, nothing is settled twice and all sums are right.
//!
//! The program runs itself as the child: `kill child ROLE DIRECTORY …`. The parent traces the child
//! with ptrace and sends SIGKILL at the entry of a system call, or sends SIGKILL to an untraced
//! child. A child writes one line to its standard output before and after each operation.

#![allow(clippy::unwrap_used, clippy::panic)]

mod bench;

use bench::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use wp_codebox_contracts::CodedError;
use wp_codebox_ledger::{Actuals, Ledger, LedgerFiles, Recorded, Usage};

/// Number of acknowledged operations under random kills.
const OPERATIONS: u64 = 10_000;
/// Number of kills of a process that works in a loop.
const KILLS: usize = 50;

type Case = (&'static str, fn());

const CASES: [Case; 5] = [
    (
        "operation_synchronises_log_then_anchor_then_directory_before_it_returns",
        order_of_synchronisation,
    ),
    (
        "operation_killed_at_any_system_call_is_recorded_once_or_not_at_all",
        every_system_call,
    ),
    (
        "ten_thousand_operations_killed_between_any_two_writes_balance",
        random_system_calls,
    ),
    (
        "fifty_kills_of_a_working_process_lose_nothing_acknowledged",
        fifty_kills,
    ),
    (
        "two_processes_on_one_ledger_balance_also_when_one_is_killed",
        two_processes,
    ),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == "child") {
        return child(&arguments[2], Path::new(&arguments[3]), &arguments[4..]);
    }
    if arguments.iter().any(|a| a == "--list") {
        CASES.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let wanted = arguments[1..].iter().find(|a| !a.starts_with("--"));
    let is_wanted = |name: &str| wanted.is_none_or(|part| name.contains(part.as_str()));
    let mut passed = 0;
    for (name, case) in CASES.iter().filter(|(name, _)| is_wanted(name)) {
        let begin = std::time::Instant::now();
        case();
        println!(
            "test {name} ... ok ({:.1} s)",
            begin.elapsed().as_secs_f64()
        );
        passed += 1;
    }
    println!("\ntest result: ok. {passed} passed; 0 failed\n");
}

// The child.

fn child(role: &str, directory: &Path, rest: &[String]) {
    let files = LedgerFiles::in_state(directory);
    let number = |nth: usize| rest[nth].parse::<u64>().unwrap();
    match role {
        "single" => single(&files, &rest[0]),
        // Stops itself before it opens the ledger, so that the parent can kill it while it opens.
        "traced" => {
            stop();
            work(&files, &rest[0], number(1), u64::MAX);
        }
        _ => work(&files, &rest[0], number(1), number(2)),
    }
    leave();
}

fn stop() {
    // SAFETY: raise only sends a signal to this process.
    unsafe { libc::raise(libc::SIGSTOP) };
}

fn leave() {
    // SAFETY: the process has nothing to clean up; the exit of the runtime would add system calls.
    unsafe { libc::_exit(0) };
}

fn single(files: &LedgerFiles, kind: &str) {
    if kind == "create" {
        stop();
        drop(Ledger::open(files).unwrap());
        return;
    }
    let ledger = Ledger::open(files).unwrap();
    stop();
    drop(one(&ledger, kind));
}

/// Does the operation that the parent prepared the ledger for.
fn one(ledger: &Ledger, kind: &str) -> Recorded {
    let (shop, key) = (account("shop"), sandbox("run_1"));
    match kind {
        "grant" => ledger.grant(&grant_of("shop", "g2", 7), NOW),
        "reserve" => ledger.reserve(&shop, &key, &quote(60), NOW),
        "extend" => ledger.extend(&key, 120_000, NOW),
        "release" => ledger.release(&key, &note("no space"), NOW),
        _ => ledger.settle(&key, Actuals::Used(&Usage::alive(1000)), NOW),
    }
    .unwrap()
}

/// Writes a line with one system call, so that a kill leaves no half of it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn work(files: &LedgerFiles, name: &str, seed: u64, rounds: u64) {
    let ledger = Ledger::open(files).unwrap();
    let mut random = Random(seed);
    for round in 0..rounds {
        say("try");
        match step(&ledger, &mut random, name, round) {
            Ok(Recorded::Now(entry)) => say(&format!("now {} {}", entry.content.seq, entry.hash)),
            Ok(Recorded::Before(entry)) => {
                say(&format!("before {} {}", entry.content.seq, entry.hash));
            }
            Err(error) => {
                // The only possible errors are refusals by the rules of the ledger.
                let code = error.code();
                assert_eq!(code.exit_status(), 1, "{error}");
                say(&format!("refused {code}"));
            }
        }
    }
}

// The parent.

/// What a child acknowledged.
#[derive(Default)]
struct Acknowledged {
    /// Number and hash of each entry that an operation returned.
    entries: Vec<(u64, String)>,
    /// Number of new entries.
    new: u64,
    /// Number of operations that returned.
    operations: u64,
    /// Whether the last operation did not return.
    is_open: bool,
}

impl Acknowledged {
    fn read(&mut self, text: &str) {
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            self.is_open = words[0] == "try";
            self.operations += u64::from(!self.is_open);
            self.new += u64::from(words[0] == "now");
            if let [_, seq, hash] = words[..] {
                self.entries.push((seq.parse().unwrap(), hash.to_owned()));
            }
        }
    }

    /// Checks that the ledger has every acknowledged entry with its hash, and that it got no other
    /// entries than the acknowledged ones, `others` of other processes, and that of an operation
    /// that did not return. `before` is the number of entries when the process started.
    fn check(&self, ledger: &Ledger, before: u64, others: u64) {
        let entries = ledger.entries(before, usize::MAX).unwrap();
        for (seq, hash) in &self.entries {
            let at = usize::try_from(seq - before - 1).unwrap();
            assert_eq!(
                entries[at].hash.as_str(),
                hash,
                "entry {seq} was acknowledged"
            );
        }
        let more = entries.len() as u64 - self.new - others;
        assert!(more <= u64::from(self.is_open), "{more} more");
    }
}

fn spawn(arguments: &[&str], directory: &Path, rest: &[&str], traced: bool) -> Child {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .arg("child")
        .args(arguments)
        .arg(directory)
        .args(rest);
    command.stdout(Stdio::piped());
    if traced {
        // SAFETY: ptrace is async-signal-safe, and the closure allocates nothing.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
    }
    command.spawn().unwrap()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Killed,
    Exited,
}

/// Runs a traced child, kills it at the entry of its system call number `call`, counted from its
/// SIGSTOP, and returns what it wrote.
fn run_and_kill(role: &str, directory: &Path, rest: &[&str], call: u64) -> (Ended, String) {
    trace(role, directory, rest, call, &mut |_| {})
}

/// Works like [`run_and_kill`]; calls `observe` at the entry of each system call before the kill.
fn trace(
    role: &str,
    directory: &Path,
    rest: &[&str],
    call: u64,
    observe: &mut dyn FnMut(libc::pid_t),
) -> (Ended, String) {
    #[allow(clippy::zombie_processes)] // waitpid below reaps it.
    let mut child = spawn(&[role], directory, rest, true);
    let pid = libc::pid_t::try_from(child.id()).unwrap();
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
    // Without this option PTRACE_GET_SYSCALL_INFO does not tell the stops of a system call apart.
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    resume(libc::PTRACE_SETOPTIONS, options);
    loop {
        resume(libc::PTRACE_CONT, 0);
        let status = wait();
        assert!(libc::WIFSTOPPED(status), "{role}: the child ended early");
        if libc::WSTOPSIG(status) == libc::SIGSTOP {
            break;
        }
    }
    let mut stops = 0;
    let ended = loop {
        resume(libc::PTRACE_SYSCALL, 0);
        let status = wait();
        if libc::WIFEXITED(status) {
            assert_eq!(libc::WEXITSTATUS(status), 0, "{role} {call}");
            break Ended::Exited;
        }
        // The child stops at the entry and at the exit of each call.
        if stops == 2 * call {
            // SAFETY: kill only sends a signal to the child.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            wait();
            break Ended::Killed;
        }
        if stops % 2 == 0 {
            observe(pid);
        }
        stops += 1;
    };
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (ended, text)
}

/// Returns number and first argument of the system call at whose entry a traced process stopped.
fn system_call(pid: libc::pid_t) -> (libc::c_long, u64) {
    // SAFETY: the structure consists of integers, for which zeros are valid.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of_val(&info);
    // SAFETY: the kernel writes at most `size` bytes to `info`.
    let done = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size, &raw mut info) };
    assert!(done > 0, "{}", std::io::Error::last_os_error());
    assert_eq!(info.op, libc::PTRACE_SYSCALL_INFO_ENTRY);
    // SAFETY: `op` says that the kernel filled this member of the union.
    let entry = unsafe { info.u.entry };
    (libc::c_long::try_from(entry.nr).unwrap(), entry.args[0])
}

/// A kill does not show whether data would survive a power failure. The order of the calls does.
fn order_of_synchronisation() {
    for kind in ["grant", "reserve", "extend", "release", "settle"] {
        let bench = Bench::new();
        let ledger = bench.open();
        let _ = ledger.grant(&grant_of("shop", "g1", 1000), NOW).unwrap();
        if ["extend", "release", "settle"].contains(&kind) {
            drop(one(&ledger, "reserve"));
        }
        let mut calls = Vec::new();
        let directory = bench.directory.path();
        let (ended, _) = trace("single", directory, &[kind], u64::MAX / 2, &mut |pid| {
            let (number, first) = system_call(pid);
            if [libc::SYS_fsync, libc::SYS_fdatasync].contains(&number) {
                let file = std::fs::read_link(format!("/proc/{pid}/fd/{first}")).unwrap();
                calls.push(file.file_name().unwrap().to_str().unwrap().to_owned());
            } else if number == libc::SYS_renameat2 || RENAMES.contains(&number) {
                calls.push("rename".to_owned());
            }
        });
        assert_eq!(ended, Ended::Exited);
        // SQLite synchronises its directory, too, because the first operation creates the log.
        let expected = [
            "ledger.sqlite-wal",
            "ledger",
            ".anchor.json.new",
            "rename",
            "ledger-anchor",
        ];
        assert_eq!(calls[..5], expected, "{kind}: {calls:?}");
    }
}

/// System calls other than renameat2 that rename; the kernel's newer architectures lack some.
#[cfg(target_arch = "x86_64")]
const RENAMES: &[libc::c_long] = &[libc::SYS_rename, libc::SYS_renameat];
#[cfg(not(target_arch = "x86_64"))]
const RENAMES: &[libc::c_long] = &[libc::SYS_renameat];

fn every_system_call() {
    let mut killed = 0;
    for kind in ["create", "grant", "reserve", "extend", "release", "settle"] {
        let mut recorded_before_the_end = 0;
        for call in 0.. {
            let bench = Bench::new();
            let mut length = 0;
            if kind != "create" {
                let ledger = bench.open();
                let _ = ledger.grant(&grant_of("shop", "g1", 1000), NOW).unwrap();
                if ["extend", "release", "settle"].contains(&kind) {
                    drop(one(&ledger, "reserve"));
                }
                length = all(&ledger).len();
            }
            let (ended, _) = run_and_kill("single", bench.directory.path(), &[kind], call);
            let ledger = bench.open();
            check(&ledger, &["shop"]);
            let found = all(&ledger).len();
            assert!(
                found == length || found == length + 1,
                "{kind} {call}: {found}"
            );
            if kind != "create" {
                let again = one(&ledger, kind);
                let is_before = matches!(again, Recorded::Before(_));
                assert_eq!(is_before, found > length, "{kind} {call}");
                assert_eq!(all(&ledger).len(), length + 1, "{kind} {call}");
                check(&ledger, &["shop"]);
                recorded_before_the_end += usize::from(is_before && ended == Ended::Killed);
            }
            if ended == Ended::Exited {
                break;
            }
            killed += 1;
        }
        // Some kills came after the commit and before the end.
        assert!(kind == "create" || recorded_before_the_end > 3, "{kind}");
    }
    assert!(killed >= 200, "only {killed} points");
}

fn random_system_calls() {
    let bench = Bench::new();
    let mut random = Random(7);
    let (mut operations, mut rounds, mut mid) = (0, 0u64, 0);
    while operations < OPERATIONS {
        let before = bench.open().head().unwrap().length;
        // Opening takes about 150 calls, an operation about 40.
        let call = random.below(4000);
        let (name, seed) = (format!("r{rounds}"), random.next().to_string());
        let rest = [name.as_str(), seed.as_str()];
        let (ended, text) = run_and_kill("traced", bench.directory.path(), &rest, call);
        assert_eq!(ended, Ended::Killed);
        let mut acknowledged = Acknowledged::default();
        acknowledged.read(&text);
        let ledger = bench.open();
        acknowledged.check(&ledger, before, 0);
        // Replaying all entries takes longer with every round.
        if rounds % 25 == 0 {
            check(&ledger, &ACCOUNTS);
        }
        operations += acknowledged.operations;
        mid += u64::from(acknowledged.is_open);
        rounds += 1;
    }
    check(&bench.open(), &ACCOUNTS);
    assert!(mid > rounds / 4, "{mid} of {rounds} kills hit an operation");
}

fn fifty_kills() {
    let bench = Bench::new();
    let mut random = Random(50);
    let mut new = 0;
    for round in 0..KILLS {
        let before = bench.open().head().unwrap().length;
        let (name, seed) = (format!("k{round}"), random.next().to_string());
        let rest = [name.as_str(), seed.as_str(), "1000000"];
        let mut child = spawn(&["loop"], bench.directory.path(), &rest, false);
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        for _ in 0..random.below(60) {
            reader.read_line(&mut text).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        reader.read_to_string(&mut text).unwrap();
        let mut acknowledged = Acknowledged::default();
        acknowledged.read(&text);
        let ledger = bench.open();
        acknowledged.check(&ledger, before, 0);
        check(&ledger, &ACCOUNTS);
        new += acknowledged.new;
    }
    assert!(new > 100, "{new} entries");
}

fn two_processes() {
    let bench = Bench::new();
    let start = |name: &str, seed: &str, rounds: &str| {
        let rest = [name, seed, rounds];
        spawn(&["loop"], bench.directory.path(), &rest, false)
    };
    let end = |mut child: Child| {
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        let mut acknowledged = Acknowledged::default();
        acknowledged.read(&text);
        (child.wait().unwrap().code(), acknowledged)
    };
    // Both create the ledger at the same time.
    let (a, b) = (start("a", "1", "300"), start("b", "2", "300"));
    let ((a_code, a), (b_code, b)) = (end(a), end(b));
    assert_eq!((a_code, b_code), (Some(0), Some(0)));
    assert_eq!((a.operations, b.operations), (300, 300));
    let ledger = bench.open();
    a.check(&ledger, 0, b.new);
    b.check(&ledger, 0, a.new);
    check(&ledger, &ACCOUNTS);
    // When one process is killed, the other one can use the ledger at once.
    let before = ledger.head().unwrap().length;
    let (mut c, d) = (start("c", "3", "1000000"), start("d", "4", "300"));
    let mut reader = BufReader::new(c.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..50 {
        reader.read_line(&mut text).unwrap();
    }
    c.kill().unwrap();
    c.wait().unwrap();
    reader.read_to_string(&mut text).unwrap();
    let mut killed = Acknowledged::default();
    killed.read(&text);
    let (code, d) = end(d);
    assert_eq!((code, d.operations), (Some(0), 300));
    killed.check(&ledger, before, d.new);
    check(&ledger, &ACCOUNTS);
}
