//! Attack: daemons that forked twice and ignore every signal try to survive the end of their guest.

use crate::fixture::{BusyClock, REUSE, Spec, alive, fixture};
use crate::guest::AttackGuest;
use crate::guests::AttackGuests;
use crate::outside::result;
use crate::scenarios::level_name;
use crate::table::GuestLimits;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;
use wp_codebox_contracts::{IsolationLevel, StagedFile};

/// Argument with which this program acts as a supervisor, so that it can be killed.
pub const RUNNER: &str = "--runner";
/// Path of the test program `probe` in the guests of this file.
pub const PROBE: &str = "/run/codebox/staged/probe";

/// Which process is killed with SIGKILL to end the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    Runner,
    Launcher,
    Pid1,
    /// No process is killed; the run just ends.
    NoProcess,
}

pub fn staged_probe() -> StagedFile {
    StagedFile {
        source: fixture().probe.to_str().unwrap().to_owned(),
        target: PROBE.to_owned(),
    }
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit(')').next().unwrap();
    rest.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Returns the pids of a process and all its descendants.
pub fn below(pid: i32) -> Vec<i32> {
    let mut all = vec![pid];
    let mut next = 0;
    while next < all.len() {
        let path = format!("/proc/{0}/task/{0}/children", all[next]);
        let children = fs::read_to_string(path).unwrap_or_default();
        all.extend(
            children
                .split_whitespace()
                .map(|pid| pid.parse::<i32>().unwrap()),
        );
        next += 1;
    }
    all
}

fn kill(pid: i32) {
    // SAFETY: sends a signal to a process this suite started.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
}

/// Starts daemons in a guest; returns the pids of the launcher, pid 1 and all their descendants.
fn with_daemons(sandbox: &mut AttackGuest) -> Vec<i32> {
    let probe = sandbox.path(PROBE);
    for name in ["daemon-a", "daemon-b"] {
        assert_eq!(sandbox.must(&[&probe, "daemon", name]), "ok\n");
    }
    let mut all = vec![parent(sandbox.guest.pid())];
    all.extend(below(sandbox.guest.pid()));
    assert!(
        all.len() >= 4 && all.iter().all(|pid| alive(*pid)),
        "{all:?}"
    );
    all
}

/// Acts as the supervisor that is killed: prints the pids of its guest's processes, then waits.
pub fn be_runner(level: IsolationLevel) {
    let spec = Spec {
        staged: vec![staged_probe()],
        ..Spec::default()
    };
    let mut sandbox = AttackGuest::launch(level, &spec);
    let all = with_daemons(&mut sandbox);
    let text: Vec<String> = all.iter().map(ToString::to_string).collect();
    println!("pids {}", text.join(" "));
    std::thread::sleep(Duration::from_secs(60));
}

/// Kills the given process. Returns the processes of the guest that still exist after at most two
/// seconds, and the observation of the control.
pub fn after(killed: Killed, guests: &AttackGuests<'_>) -> (String, String) {
    let left = match killed {
        Killed::Runner => {
            let mut runner = Command::new(std::env::current_exe().unwrap())
                .args([RUNNER, level_name(guests.level)])
                .env(REUSE, &fixture().root)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let line = BufReader::new(runner.stdout.take().unwrap())
                .lines()
                .map(Result::unwrap)
                .find_map(|line| line.strip_prefix("pids ").map(str::to_owned))
                .unwrap();
            let pids: Vec<i32> = line.split(' ').map(|pid| pid.parse().unwrap()).collect();
            assert!(pids.iter().all(|pid| alive(*pid)));
            runner.kill().unwrap();
            runner.wait().unwrap();
            left_of(&pids)
        }
        Killed::Launcher | Killed::Pid1 | Killed::NoProcess => {
            let mut sandbox = guests.launch(GuestLimits::default());
            let pids = with_daemons(&mut sandbox);
            match killed {
                // The launcher stays a zombie until the guest is dropped, so its pid is not reused.
                Killed::Launcher => kill(pids[0]),
                Killed::Pid1 => kill(pids[1]),
                Killed::Runner | Killed::NoProcess => drop(sandbox),
            }
            left_of(&pids)
        }
    };
    (left, control())
}

fn left_of(pids: &[i32]) -> String {
    let gone = || !pids.iter().any(|pid| alive(*pid));
    if BusyClock::start().until(Duration::from_secs(2), gone) {
        return "none left".to_owned();
    }
    let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
    // A process may end at this moment; ESRCH is acceptable.
    // SAFETY: sends signals to processes this suite started.
    left.iter().for_each(|pid| unsafe {
        libc::kill(**pid, libc::SIGKILL);
    });
    format!("{} left", left.len())
}

/// Control: outside of a guest, the same daemon survives the death of the process that started it.
fn control() -> String {
    let name = format!("atk-{}", std::process::id() % 100_000);
    let probe = fixture().probe.display();
    let mut shell = Command::new("sh")
        .args(["-c", &format!("{probe} daemon {name}; sleep 30")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(result(&line, 0), "ok");
    let children = below(i32::try_from(shell.id()).unwrap());
    for pid in children.iter().skip(1) {
        // The program that created the daemon may have ended by itself already.
        // SAFETY: sends a signal to a process this suite started.
        unsafe { libc::kill(*pid, libc::SIGKILL) };
    }
    let _ = shell.kill();
    shell.wait().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let daemons: Vec<i32> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
        })
        .filter(|pid| alive(*pid))
        .collect();
    daemons.iter().for_each(|pid| kill(*pid));
    if daemons.is_empty() {
        "died".to_owned()
    } else {
        "survives".to_owned()
    }
}
