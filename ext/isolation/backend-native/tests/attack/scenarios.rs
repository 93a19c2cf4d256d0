//! Attacks that involve more than one program.
//!
//! Each scenario returns two observations: inside the guest, and of its control outside.

use crate::fixture::{BusyClock, REUSE, alive, directory, fixture, tree};
use crate::git;
use crate::guest::AttackGuest;
use crate::guests::{AttackGuests, try_in};
use crate::outside::Outside;
use crate::races;
use crate::survivors;
use crate::table::{ControlLocation, GuestLimits, ProbeKind};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{ExecCall, KillCause};
use wp_codebox_contracts::IsolationLevel;

/// Two observations: inside the guest, and of the control outside.
pub type Observations = (String, String);

/// Argument with which this program acts as a cloud metadata server in its own network namespace.
pub const METADATA: &str = "--metadata";
const ADDRESS: &str = "169.254.169.254";

pub fn run(name: &str, guests: &mut AttackGuests<'_>, outside: &mut Outside) -> Observations {
    match name {
        "overlay-lower" => overlay_lower(guests),
        "mount-race-link" => races::swapped(races::Bait::Link, guests.level),
        "mount-race-directory" => races::swapped(races::Bait::Directory, guests.level),
        "survive-runner" => survivors::after(survivors::Killed::Runner, guests),
        "survive-launcher" => survivors::after(survivors::Killed::Launcher, guests),
        "survive-pid1" => survivors::after(survivors::Killed::Pid1, guests),
        "survive-end" => survivors::after(survivors::Killed::NoProcess, guests),
        "metadata" => metadata(guests, 0),
        "metadata-php" => metadata(guests, 2),
        "git-config" => git::config(),
        "output" => output(guests),
        "fork-bomb" => fork_bomb(guests, outside),
        other => panic!("no scenario named {other}"),
    }
}

const CHANGES: &str = "cd {RW} && echo changed > file.txt && echo new > new.txt && \
    rm -f control.txt && { chmod 777 . || true; } && mv file.txt moved.txt";

fn overlay_lower(guests: &mut AttackGuests<'_>) -> Observations {
    let source = guests.writable_source();
    fs::write(source.join("control.txt"), "x").unwrap();
    let before = tree(&source);
    let mut sandbox = guests.launch(GuestLimits::default());
    let script = crate::host_targets::fill(CHANGES, &guests.names(&sandbox));
    sandbox.must(&["/bin/sh", "-c", &script]);
    drop(sandbox);
    let inside = verdict(tree(&source) == before);
    // Control: the same commands on a directory of the same user, without a guest.
    let copy = directory("lower");
    fs::write(copy.join("file.txt"), "x").unwrap();
    let before = tree(&copy);
    let script = CHANGES.replace("{RW}", copy.to_str().unwrap());
    let status = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(status.success());
    (inside, verdict(tree(&copy) == before))
}

fn verdict(same: bool) -> String {
    if same {
        "source unchanged".to_owned()
    } else {
        "source changed".to_owned()
    }
}

/// Runs this program as metadata server in a new network namespace. Returns two of the four
/// observations that it prints: in the guest, and of the control. `column` is the index of the
/// first of the two: 0 for the attempt by socket, 2 for the attempt by PHP.
fn metadata(guests: &AttackGuests<'_>, column: usize) -> Observations {
    let own = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--user", "--map-current-user", "--keep-caps", "--net"])
        .arg(own)
        .args([METADATA, level_name(guests.level)])
        .env(REUSE, &fixture().root)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("seen "));
    let Some(line) = line else {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    };
    let fields: Vec<&str> = line.split('|').collect();
    (fields[column].to_owned(), fields[column + 1].to_owned())
}

/// Acts as metadata server in the current network namespace, tries to reach the server from there
/// and from a guest, and prints the four observations.
pub fn serve_metadata(level: IsolationLevel) {
    let probe = fixture().probe.clone();
    let outside = |program: &Path, args: &[&str]| {
        let output = Command::new(program).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(outside(&probe, &["address", ADDRESS]), "ok", "the stand-in");
    let listener = TcpListener::bind((ADDRESS, 80)).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let mut client = client;
            let _ = client.set_read_timeout(Some(Duration::from_secs(5)));
            let _ = client.read(&mut [0; 1024]);
            let _ = client.write_all(b"HTTP/1.0 200 OK\r\n\r\nmetadata-secret");
        }
    });
    let fetch = format!(
        "echo @file_get_contents('http://{ADDRESS}/latest/meta-data/', false, \
        stream_context_create(['http' => ['timeout' => 10]])) === 'metadata-secret' ? 'ok' : 'denied';"
    );
    let tcp = ["tcp", ADDRESS, "80"];
    let controls = [
        outside(&probe, &tcp),
        outside(Path::new("php"), &["-n", "-r", &fetch]),
    ];
    let spec = crate::fixture::Spec {
        staged: vec![survivors::staged_probe()],
        ..Default::default()
    };
    let mut guest = AttackGuest::launch(level, &spec);
    let names = [("PROBE", guest.path(survivors::PROBE))].into();
    let patience = Duration::from_secs(30);
    let native = tcp.map(str::to_owned);
    let (native, _) = try_in(&mut guest, ProbeKind::Native, &native, &names, patience);
    let (php, _) = try_in(&mut guest, ProbeKind::Php, &[fetch], &names, patience);
    println!("seen {native}|{}|{php}|{}", controls[0], controls[1]);
}

/// Returns a level as an argument of this program.
pub fn level_name(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::Full => "full",
        IsolationLevel::Reduced => "reduced",
        IsolationLevel::None => "none",
    }
}

fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse::<u64>().unwrap() * 1024
}

/// Writes 64 MiB of output with a limit of one MiB; the supervisor's memory must not grow with it.
fn output(guests: &AttackGuests<'_>) -> Observations {
    const LIMIT: u64 = 1024 * 1024;
    const FLOOD: u64 = 64 * LIMIT;
    let mut sandbox = guests.launch(GuestLimits::default());
    let request = sandbox.request(&[&sandbox.path(survivors::PROBE), "output", "64"]);
    let before = peak_memory();
    let mut kept = 0;
    let call = ExecCall {
        request: &request,
        stdin: &[],
        deadline: Instant::now() + Duration::from_secs(40),
        output_limit: LIMIT,
    };
    let execution = sandbox
        .guest
        .exec(&call, &mut |_, bytes| kept += bytes.len() as u64)
        .unwrap();
    let grown = peak_memory() - before;
    let cut = kept == LIMIT && execution.output_truncated && execution.output_bytes == FLOOD;
    let inside = if cut && grown < 16 * LIMIT {
        "cut".to_owned()
    } else {
        format!("kept {kept} of {}, grew by {grown}", execution.output_bytes)
    };
    let mut child = Command::new(&fixture().probe)
        .args(["output", "64"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut whole = 0_u64;
    let mut reader = BufReader::with_capacity(65_536, child.stdout.take().unwrap());
    while let Ok(block) = reader.fill_buf() {
        let size = block.len();
        if size == 0 {
            break;
        }
        whole += size as u64;
        reader.consume(size);
    }
    child.wait().unwrap();
    let control = if whole == FLOOD { "whole" } else { "short" };
    (inside, control.to_owned())
}

fn fork_bomb(guests: &AttackGuests<'_>, outside: &mut Outside) -> Observations {
    let limits = GuestLimits {
        processes: Some(40),
        ..GuestLimits::default()
    };
    let mut sandbox = guests.launch(limits);
    let bomb = sandbox.request(&[
        "bash",
        "-c",
        "trap '' TERM HUP; f() { f | f & }; f 2>/dev/null; sleep 30",
    ]);
    let call = ExecCall {
        request: &bomb,
        stdin: &[],
        // Never reached: the polling thread below kills the guest earlier.
        deadline: Instant::now() + Duration::from_secs(20),
        output_limit: 1000,
    };
    let killer = sandbox.guest.killer();
    let over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let pid = sandbox.guest.pid();
        // Set when the guest has ended, so that the polling thread stops.
        let over = &over;
        let look = scope.spawn(move || {
            let mut seen = Vec::new();
            while seen.len() < 10 && !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                let now = survivors::below(pid);
                if now.len() > seen.len() {
                    seen = now;
                }
            }
            // Let the bomb reach the process limit.
            std::thread::sleep(Duration::from_millis(500));
            killer.kill(KillCause::Cancelled);
            seen
        });
        let _ = sandbox.guest.exec(&call, &mut |_, _| {});
        over.store(true, Ordering::Relaxed);
        look.join().unwrap()
    });
    sandbox.guest.kill(KillCause::Finished);
    let mut start = BusyClock::start();
    let left = || seen.iter().filter(|pid| alive(**pid)).count();
    // The wait is shorter than the time for which bash retries a failed fork, so no surviving
    // process ends by itself meanwhile.
    start.until(Duration::from_secs(5), || left() == 0);
    let inside = if left() == 0 && (2..=100).contains(&seen.len()) {
        "all gone".to_owned()
    } else {
        format!(
            "{} of {} left after {:?}",
            left(),
            seen.len(),
            start.elapsed()
        )
    };
    let run = ["forks", "200"].map(str::to_owned);
    let control = outside.observe("fork-bomb", ControlLocation::User, ProbeKind::Native, &run);
    (inside, control)
}
