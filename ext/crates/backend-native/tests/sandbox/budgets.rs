//! What the kernel counts for a user and not for a process: a guest stays below its share, and
//! other processes of the same user cannot end it.

use crate::beside::launch_piped;
use crate::world::*;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wp_codebox_backend_native::{
    ConnectError, ExecCall, ExecEnd, ExecError, Guest, LaunchEnd, raise_open_files,
};
use wp_codebox_contracts::{ErrorCode, FIXED_LIMITS};

/// Sends descriptors over socket pairs and never receives them, as many as it is told, from the
/// first line of its standard input to its end.
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

/// Descriptors in flight that the old limit of guests, 4096, did not allow its holder to exceed.
const MANY: u64 = 5000;

/// What a runner may open whose budget is used up by [`MANY`].
const FEW: u64 = 3000;

struct Hoarder(Child);

/// The kernel adds up what is in flight per user: one test at a time sends so many.
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

    /// Answers how many are in flight then.
    fn hoard(&mut self) -> u64 {
        let input = self.0.stdin.as_mut().unwrap();
        input.write_all(b"go\n").unwrap();
        let mut said = String::new();
        let mut output = BufReader::new(self.0.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        said.trim().parse().unwrap()
    }
}

impl Drop for Hoarder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(guest: &mut Guest) -> crate::beside::Piped {
    let server = "$s = stream_socket_server('tcp://127.0.0.1:8123'); echo \"up\\n\"; \
        while ($c = stream_socket_accept($s, 60)) { fclose($c); }";
    let mut program = launch_piped(guest, &["php", "-r", server]);
    assert_eq!(program.line(), "up");
    program
}

#[test]
fn more_descriptors_in_flight_than_a_guest_may_open_stop_neither_programs_nor_connections() {
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

/// Lowers the limit of this process for good.
fn few_open_files(most: u64) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let few = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::Nofile, few).unwrap();
}

/// With the variable set, a runner whose own budget is used up; without it, nothing is.
#[test]
fn a_runner_with_few_open_files() {
    // The hoarder alone holds more than the runner and its guest may: the budget is used up
    // whatever other tests of the same user receive meanwhile.
    let hoarder = std::env::var_os(REUSE).map(|_| {
        let hoarder = Hoarder::start(MANY);
        few_open_files(FEW);
        hoarder
    });
    let mut guest = guest();
    let _server = server(&mut guest);
    guest.connect(8123).unwrap();
    let Some(mut hoarder) = hoarder else { return };
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
fn a_used_up_budget_of_descriptors_in_flight_is_answered_and_ends_no_guest() {
    template();
    assert!(
        raise_open_files() > 2 * MANY,
        "this host allows too few open files"
    );
    let _only = only_hoarder();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "budgets::a_runner_with_few_open_files",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(REUSE, &world().root)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("survived"),
        "{said}{failed}"
    );
}

#[test]
fn a_guest_has_few_descriptors_watches_and_timers_and_enough_of_them() {
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
    let said = run(&mut guest, &["/usr/bin/python3", "-c", count]).ok();
    let numbers: Vec<u64> = said
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    let [instances, errno, timers, full] = numbers[..] else {
        panic!("{said}");
    };
    assert_eq!(instances, FIXED_LIMITS.inotify_instances);
    assert_eq!(errno, libc::EMFILE as u64);
    assert!(
        timers > 900 && timers <= FIXED_LIMITS.queued_signals,
        "{said}"
    );
    assert_eq!(full, libc::EAGAIN as u64);
}

/// Stops each process that pid 1 has forked and that runs no program yet: /proc does not show it,
/// because it is not dumpable before its `execve`. Those that run one meanwhile are continued.
/// With `again` it stops the others over and over. What it misses moves on without it: a thread of
/// its own shows how far.
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

/// How many programs a stopper says it stopped since the last call; waits for nothing.
fn stopped(stopper: &mut crate::beside::Piped) -> usize {
    rustix::fs::fcntl_setfl(&stopper.output, rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut said = vec![0; 65_536];
    let count = rustix::io::read(&stopper.output, said.as_mut_slice()).unwrap_or(0);
    String::from_utf8_lossy(&said[..count])
        .matches("stopped")
        .count()
}

/// Most programs started until one is met between fork and `execve`.
const STARTS: usize = 5_000;

#[test]
fn a_program_that_is_stopped_before_it_starts_is_continued() {
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
fn a_program_that_is_kept_from_starting_keeps_nothing_else_from_being_answered() {
    let (wake, _open) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let mut guest = guest();
    let mut stopper = launch_piped(&mut guest, &["/usr/bin/python3", "-c", STOPPER, "again"]);
    assert_eq!(stopper.line(), "up");
    let mut end = None;
    for _ in 0..STARTS {
        let program = launch_piped(&mut guest, &["true"]);
        // Pid 1 answers this whatever becomes of the program.
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
    // It is given up in the end, unless it got through between two signals.
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
