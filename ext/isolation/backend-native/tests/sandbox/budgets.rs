//! Kernel limits that count per user instead of per process. A guest can use up only a part of each
//! limit, and other processes of the same user that use up a limit cannot end the guest.

use crate::concurrent_programs::launch_piped;
use crate::fixture::*;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wp_codebox_backend_native::{
    ConnectError, ExecCall, ExecEnd, ExecError, Guest, LaunchEnd, raise_open_files,
};
use wp_codebox_contracts::{CodedError, ErrorCode, FIXED_LIMITS};

/// Program that fills the user's limit on descriptors in flight: after the first line on its
/// standard input it sends the given number of descriptors over socket pairs without receiving
/// them, and holds them until end of file.
const HOARDER: &str = r"
import os, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
null, held, sent, most = os.open('/dev/null', os.O_RDONLY), [], 0, int(sys.argv[1])
sys.stdin.readline()
while sent < most:
    if not held or full:
        held.append(socket.socketpair())
        held[-1][0].setblocking(False)
        full = False
    try:
        while sent < most:
            socket.send_fds(held[-1][0], [b'x'], [null] * 250)
            sent += 250
    except BlockingIOError:
        full = True
print(sent, flush=True)
sys.stdin.read()
";

/// Number of descriptors in flight that exceeds 4096, the limit of guests in earlier versions.
const MANY: u64 = 5000;

/// Limit on open files with which a supervisor cannot send descriptors while [`MANY`] are in flight.
const FEW: u64 = 3000;

struct Hoarder(Child);

/// Returns a lock that a test holds while it runs the hoarder program: the kernel counts
/// descriptors in flight per user, so two of these programs would disturb each other.
fn only_hoarder() -> MutexGuard<'static, ()> {
    static ONLY: Mutex<()> = Mutex::new(());
    ONLY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hoarder {
    fn start(most: u64) -> Self {
        let child = Command::new("/usr/bin/python3")
            .args(["-c", HOARDER, &most.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Makes the program send its descriptors; returns how many are in flight.
    fn hoard(&mut self) -> u64 {
        let input = self.0.stdin.as_mut().unwrap();
        input.write_all(b"go\n").unwrap();
        let mut result = String::new();
        let mut output = BufReader::new(self.0.stdout.take().unwrap());
        output.read_line(&mut result).unwrap();
        result.trim().parse().unwrap()
    }
}

impl Drop for Hoarder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(guest: &mut Guest) -> crate::concurrent_programs::Piped {
    let server = "$s = stream_socket_server('tcp://127.0.0.1:8123'); echo \"up\\n\"; \
        while ($c = stream_socket_accept($s, 60)) { fclose($c); }";
    let mut program = launch_piped(guest, &["php", "-r", server]);
    assert_eq!(program.line(), "up");
    program
}

/// A descriptor is in flight while it was sent through a Unix socket and not yet received. The
/// kernel limits their number per user.
#[test]
fn descriptors_in_flight_of_other_processes_do_not_block_programs_or_connections() {
    assert!(
        raise_open_files() > 2 * MANY,
        "this host allows too few open files"
    );
    let mut guest = guest();
    let _server = server(&mut guest);
    let _only = only_hoarder();
    guest.connect(8123).unwrap();
    let mut hoarder = Hoarder::start(MANY);
    assert_eq!(hoarder.hoard(), MANY);
    guest.connect(8123).unwrap();
    assert_eq!(run(&mut guest, &["true"]).code(), 0);
    assert_eq!(sh(&mut self::guest(), "echo new").ok(), "new\n");
}

/// Lowers the limit on open files of this process permanently to `most`.
fn few_open_files(most: u64) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let few = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::Nofile, few).unwrap();
}

/// Acts as a supervisor that cannot send descriptors, because another process of its user has too many in
/// flight.
#[test]
#[ignore = "a process that another test starts"]
fn child_process_that_acts_as_a_runner_with_few_open_files() {
    // The hoarder program alone has more descriptors in flight than this supervisor's limit on open
    // files allows, so sending fails whatever other tests of the same user do.
    let mut hoarder = Hoarder::start(MANY);
    few_open_files(FEW);
    let mut guest = guest();
    let _server = server(&mut guest);
    guest.connect(8123).unwrap();
    assert_eq!(hoarder.hoard(), MANY);
    let busy = request(&["true"]);
    let call = ExecCall {
        request: &busy,
        stdin: &[],
        deadline: std::time::Instant::now() + GENEROUS,
        output_limit: 10,
    };
    let error = guest.exec(&call, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, ExecError::Busy), "{error}");
    assert_eq!(error.code(), ErrorCode::Busy);
    match guest.connect(8123) {
        Err(ConnectError::Refused { errno, .. }) => assert_eq!(errno, libc::ETOOMANYREFS),
        other => panic!("{other:?}"),
    }
    let error = launch(&Spec::default().plan())
        .map(drop)
        .unwrap_err()
        .body();
    assert_eq!(error.code, ErrorCode::Busy, "{error:?}");
    assert!(error.hints[0].contains("try again"), "{error:?}");
    drop(hoarder);
    assert_eq!(run(&mut guest, &["true"]).code(), 0, "the guest lives");
    guest.connect(8123).unwrap();
    launch(&Spec::default().plan()).unwrap();
    println!("survived");
}

#[test]
fn exhausted_limit_on_descriptors_in_flight_gives_an_error_and_does_not_end_the_guest() {
    template();
    assert!(
        raise_open_files() > 2 * MANY,
        "this host allows too few open files"
    );
    let _only = only_hoarder();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "budgets::child_process_that_acts_as_a_runner_with_few_open_files",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(REUSE, &fixture().root)
        .output()
        .unwrap();
    let result = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && result.contains("survived"),
        "{result}{failed}"
    );
}

#[test]
fn guest_cannot_exceed_the_fixed_limits_on_open_files_inotify_instances_and_timers() {
    let mut guest = guest();
    let files = FIXED_LIMITS.open_files;
    let limits = sh(&mut guest, "ulimit -Sn; ulimit -Hn").ok();
    assert_eq!(limits, format!("{files}\n{files}\n"));
    let count = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def until_refused(make, most):
    for count in range(most):
        if make() < 0:
            return count, ctypes.get_errno()
    return most, 0
timer = ctypes.c_void_p()
print(*until_refused(lambda: libc.inotify_init1(0), 500),
      *until_refused(lambda: libc.timer_create(1, None, ctypes.byref(timer)), 5000))";
    let result = run(&mut guest, &["/usr/bin/python3", "-c", count]).ok();
    let numbers: Vec<u64> = result
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    let [instances, errno, timers, full] = numbers[..] else {
        panic!("{result}");
    };
    assert_eq!(instances, FIXED_LIMITS.inotify_instances);
    assert_eq!(errno, libc::EMFILE as u64);
    assert!(
        timers > 900 && timers <= FIXED_LIMITS.queued_signals,
        "{result}"
    );
    assert_eq!(full, libc::EAGAIN as u64);
}

/// Script that sends SIGSTOP to each process that pid 1 has forked, before the process calls
/// `execve`. It guesses the pids, because /proc does not list a process that is not dumpable. It
/// continues each stopped process that has executed a program in the meantime. With the argument
/// `again` it repeatedly stops the processes that have not executed a program yet. From time to
/// time it starts a thread, whose id shows the newest pid.
const STOPPER: &str = r"
import contextlib, itertools, os, signal, sys, threading
again, stopped = sys.argv[1] == 'again', []
last = os.getpid()
print('up', flush=True)
for round in itertools.count(1):
    if round % 500 == 0:
        newest = threading.Thread(target=int)
        newest.start()
        newest.join()
        last = max(last, newest.native_id)
    for pid in list(stopped):
        if os.path.exists(f'/proc/{pid}'):
            stopped.remove(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    for pid in again * stopped + list(range(last + 1, last + 40)):
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            continue
        if pid > last:
            print('stopped', flush=True)
            stopped.append(pid)
            last = pid
";

/// Returns how many programs the [`STOPPER`] script has stopped since the last call; does not
/// block.
fn stopped(stopper: &mut crate::concurrent_programs::Piped) -> usize {
    rustix::fs::fcntl_setfl(&stopper.output, rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut result = vec![0; 65_536];
    let count = rustix::io::read(&stopper.output, result.as_mut_slice()).unwrap_or(0);
    String::from_utf8_lossy(&result[..count])
        .matches("stopped")
        .count()
}

/// Maximum number of programs started until the script has stopped one between fork and `execve`.
const STARTS: usize = 5_000;

#[test]
fn pid_1_continues_a_program_that_another_guest_process_stopped_before_execve() {
    let mut guest = guest();
    let mut stopper = launch_piped(&mut guest, &["/usr/bin/python3", "-c", STOPPER, "once"]);
    assert_eq!(stopper.line(), "up");
    let mut met = 0;
    for _ in 0..STARTS {
        let again = request(&["true"]);
        let call = ExecCall {
            request: &again,
            stdin: &[],
            deadline: std::time::Instant::now() + GENEROUS,
            output_limit: 10,
        };
        let execution = guest.exec(&call, &mut |_, _| {}).unwrap();
        assert_eq!(execution.end, ExecEnd::Exited(0));
        met += stopped(&mut stopper);
        if met >= 3 {
            return;
        }
    }
    panic!("control: {met} of {STARTS} programs were stopped");
}

#[test]
fn program_stopped_before_execve_does_not_block_other_requests() {
    let (wake, _open) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let mut guest = guest();
    let mut stopper = launch_piped(&mut guest, &["/usr/bin/python3", "-c", STOPPER, "again"]);
    assert_eq!(stopper.line(), "up");
    let mut end = None;
    for _ in 0..STARTS {
        let program = launch_piped(&mut guest, &["true"]);
        // Pid 1 must answer this request although a program is stopped.
        match guest.connect(8124) {
            Err(ConnectError::Refused { errno, .. }) => assert_eq!(errno, libc::ECONNREFUSED),
            other => panic!("{other:?}"),
        }
        let until = std::time::Instant::now() + 2 * GENEROUS;
        let (id, ended) = guest.next_end(wake.as_fd(), until).unwrap();
        assert_eq!(id, program.id);
        if stopped(&mut stopper) > 0 {
            end = Some(ended);
            break;
        }
    }
    // Two results are correct: pid 1 killed the program at the deadline for `execve`, or the
    // program reached `execve` between two SIGSTOPs and ended normally.
    match end {
        Some(LaunchEnd::NotStarted(ExecError::NotStarted { step, errno, .. })) => {
            assert_eq!((step.as_str(), errno), ("start", libc::ETIMEDOUT));
        }
        Some(LaunchEnd::Ended(ExecEnd::Exited(0))) => {}
        other => panic!("{other:?}"),
    }
    guest.stop_program(&stopper.id).unwrap();
    assert_eq!(run(&mut guest, &["true"]).code(), 0, "the guest lives");
}
