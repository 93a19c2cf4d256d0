//! Double-forked daemons that ignore every signal, and what ends them.

use crate::arena::Arena;
use crate::bed::Bed;
use crate::outside::said;
use crate::scenarios::level_name;
use crate::table::GuestLimits;
use crate::world::{Lived, REUSE, Spec, alive, world};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;
use wp_codebox_contracts::{IsolationLevel, StagedFile};

/// The argument with which this program is the runner that gets killed.
pub const RUNNER: &str = "--runner";
/// Where guests of these scenarios have the probe.
pub const PROBE: &str = "/run/codebox/staged/probe";

/// Who is ended with SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    Runner,
    Launcher,
    Pid1,
    /// The run just ends.
    Nobody,
}

pub fn staged_probe() -> StagedFile {
    StagedFile {
        source: world().probe.to_str().unwrap().to_owned(),
        target: PROBE.to_owned(),
    }
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit(')').next().unwrap();
    rest.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A process and everything below it.
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

/// Launcher, pid 1 and everything below, daemons among it.
fn with_daemons(bed: &mut Bed) -> Vec<i32> {
    let probe = bed.path(PROBE);
    for name in ["daemon-a", "daemon-b"] {
        assert_eq!(bed.must(&[&probe, "daemon", name]), "ok\n");
    }
    let mut all = vec![parent(bed.guest.pid())];
    all.extend(below(bed.guest.pid()));
    assert!(
        all.len() >= 4 && all.iter().all(|pid| alive(*pid)),
        "{all:?}"
    );
    all
}

/// The runner that gets killed: says who lives in its guest, then waits.
pub fn be_runner(level: IsolationLevel) {
    let spec = Spec {
        staged: vec![staged_probe()],
        ..Spec::default()
    };
    let mut bed = Bed::launch(level, &spec);
    let all = with_daemons(&mut bed);
    let text: Vec<String> = all.iter().map(ToString::to_string).collect();
    println!("pids {}", text.join(" "));
    std::thread::sleep(Duration::from_secs(60));
}

/// Kills one of them and looks at what is left after two seconds at most.
pub fn after(killed: Killed, arena: &Arena<'_>) -> (String, String) {
    let left = match killed {
        Killed::Runner => {
            let mut runner = Command::new(std::env::current_exe().unwrap())
                .args([RUNNER, level_name(arena.level)])
                .env(REUSE, &world().root)
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
        Killed::Launcher | Killed::Pid1 | Killed::Nobody => {
            let mut bed = arena.launch(GuestLimits::default());
            let pids = with_daemons(&mut bed);
            match killed {
                // Not waited for yet: a dead launcher stays as a zombie until the guest is dropped.
                Killed::Launcher => kill(pids[0]),
                Killed::Pid1 => kill(pids[1]),
                Killed::Runner | Killed::Nobody => drop(bed),
            }
            left_of(&pids)
        }
    };
    (left, control())
}

fn left_of(pids: &[i32]) -> String {
    let gone = || !pids.iter().any(|pid| alive(*pid));
    if Lived::start().until(Duration::from_secs(2), gone) {
        return "none left".to_owned();
    }
    let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
    // One may end just now.
    // SAFETY: sends signals to processes this suite started.
    left.iter().for_each(|pid| unsafe {
        libc::kill(**pid, libc::SIGKILL);
    });
    format!("{} left", left.len())
}

/// The same daemon outside of any guest: the death of who started it does nothing to it.
fn control() -> String {
    let name = format!("atk-{}", std::process::id() % 100_000);
    let probe = world().probe.display();
    let mut shell = Command::new("sh")
        .args(["-c", &format!("{probe} daemon {name}; sleep 30")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(said(&line, 0), "ok");
    let children = below(i32::try_from(shell.id()).unwrap());
    for pid in children.iter().skip(1) {
        // The program that made the daemon may just have ended by itself.
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
