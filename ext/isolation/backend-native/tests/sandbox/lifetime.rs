//! No process of a guest survives when the supervisor, the launcher or the guest's pid 1 is killed.

use crate::fixture::*;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use wp_codebox_backend_native::{ExecCall, ExecError, Guest};
use wp_codebox_contracts::GuestProcess;

pub(crate) fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit(')').next().unwrap();
    rest.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn children(pid: i32) -> Vec<i32> {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// Returns the pid and those of all its descendants.
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        next += 1;
        let path = format!("/proc/{pid}/task/{pid}/children");
        let text = fs::read_to_string(path).unwrap_or_default();
        all.extend(
            text.split_whitespace()
                .map(|pid| pid.parse::<i32>().unwrap()),
        );
    }
    all
}

/// Starts programs in a guest; returns the pids of the launcher, pid 1 and all programs.
pub(crate) fn all_processes(guest: &mut Guest) -> Vec<i32> {
    sh(
        guest,
        "setsid sleep 77 >/dev/null 2>&1 & trap '' TERM; sleep 78 >/dev/null 2>&1 & true",
    )
    .ok();
    let pid = guest.pid();
    let mut all = vec![parent(pid), pid];
    all.extend(children(pid));
    assert!(all.len() >= 4, "{all:?}");
    assert!(all.iter().all(|pid| alive(*pid)), "control: they live");
    all
}

pub(crate) fn kill(pid: i32) {
    // SAFETY: sends a signal to a process this test started.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
}

pub(crate) fn all_gone(pids: &[i32]) -> bool {
    pids.iter().all(|pid| !alive(*pid))
}

#[test]
fn killing_the_launcher_ends_every_guest_process() {
    let mut guest = guest();
    let all = all_processes(&mut guest);
    kill(all[0]);
    let took = in_time(|| all_gone(&all[1..]));
    println!("after kill -9 of the launcher: {took:?}");
    let result = guest.exec(
        &ExecCall {
            request: &request(&["true"]),
            stdin: &[],
            deadline: std::time::Instant::now() + GENEROUS,
            output_limit: 1,
        },
        &mut |_, _| {},
    );
    assert!(matches!(result, Err(ExecError::Gone)), "{result:?}");
    let death = guest.cause_of_death();
    assert_eq!(death.process, GuestProcess::Launcher, "{death}");
    // If the launcher runs inside a process wrapper, the wrapper reports the signal as exit status
    // 128 + 9.
    assert!(
        death.signal == Some(9) || death.code == Some(128 + 9),
        "{death}"
    );
}

#[test]
fn killing_pid_1_ends_every_guest_process() {
    let mut guest = guest();
    let all = all_processes(&mut guest);
    kill(all[1]);
    in_time(|| all_gone(&all));
    let death = guest.cause_of_death();
    assert_eq!(
        (death.process, death.code, death.signal),
        (GuestProcess::First, None, Some(9)),
        "{death}"
    );
    assert_eq!(guest.cause_of_death(), death, "the same when asked again");
}

#[test]
fn dropping_the_guest_ends_every_guest_process() {
    let mut guest = guest();
    let all = all_processes(&mut guest);
    drop(guest);
    assert!(
        all_gone(&all),
        "without waiting: drop returns when they are gone"
    );
}

/// Acts as the supervisor that `killing_the_runner_ends_every_guest_process` kills.
#[test]
#[ignore = "a process that another test starts and kills"]
fn child_process_that_acts_as_the_killed_runner() {
    let mut guest = guest();
    let pids: Vec<_> = all_processes(&mut guest)
        .iter()
        .map(ToString::to_string)
        .collect();
    println!("pids {}", pids.join(" "));
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn killing_the_runner_ends_every_guest_process() {
    template();
    let mut runner = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "lifetime::child_process_that_acts_as_the_killed_runner",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(REUSE, &fixture().root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pids = BufReader::new(runner.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .find_map(|line| line.split("pids ").nth(1).map(str::to_owned))
        .unwrap();
    let pids: Vec<i32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| alive(*pid)));
    runner.kill().unwrap();
    runner.wait().unwrap();
    let took = in_time(|| all_gone(&pids));
    println!("after kill -9 of the runner: {took:?}");
}

/// Returns the device number in a line of `mountinfo`.
fn device(line: &str) -> &str {
    line.split(' ').nth(2).unwrap()
}

/// Compares only the mounts of this guest: other processes may mount file systems during the test.
#[test]
fn guest_mounts_are_not_visible_on_the_host() {
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    let mut guest = guest();
    run(&mut guest, &["true"]).ok();
    let inside = run(&mut guest, &["cat", "/proc/self/mountinfo"]).ok();
    assert!(
        inside.contains("overlay") && !inside.contains(".scratch"),
        "{inside}"
    );
    let own: BTreeSet<&str> = inside
        .lines()
        .map(device)
        .filter(|own| before.lines().all(|line| device(line) != *own))
        .collect();
    assert!(own.len() >= 3, "scratch, proc and overlays: {inside}");
    let now = mounts();
    let root = fixture().root.to_str().unwrap();
    let leaked: Vec<&str> = now
        .lines()
        .filter(|line| own.contains(device(line)) || line.contains(root) && !before.contains(line))
        .collect();
    assert_eq!(leaked, [""; 0]);
}
