//! Programs that run concurrently in a guest: pipes, terminals, signals, connections.

use crate::fixture::*;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{ConnectError, ExecEnd, ExecError, Guest, KillCause, LaunchEnd};
use wp_codebox_contracts::{CodedError, ErrorCode, ExecTerminal, ExecutionId};

const LONG: Duration = Duration::from_secs(60);

/// A program whose streams are pipes: its id, its input, and stdout and stderr in one pipe.
pub(super) struct Piped {
    pub(super) id: ExecutionId,
    pub(super) input: Option<File>,
    pub(super) output: File,
}

pub(super) fn launch_piped(guest: &mut Guest, argv: &[&str]) -> Piped {
    let request = request(argv);
    let (theirs_in, ours_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let (ours_out, theirs_out) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let second = theirs_out.try_clone().unwrap();
    guest
        .launch_program(&request, [theirs_in, theirs_out, second])
        .unwrap();
    Piped {
        id: request.id,
        input: Some(ours_in.into()),
        output: ours_out.into(),
    }
}

impl Piped {
    pub(super) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.output.read(&mut byte).unwrap() == 1 && byte != [b'\n'] {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }
}

/// A program in a terminal.
pub(super) struct TerminalProgram {
    id: ExecutionId,
    master: OwnedFd,
    seen: String,
}

/// Opens a pseudo-terminal; returns its master and its slave.
pub(super) fn terminal() -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    size(&master, 80, 24);
    let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
    rustix::fs::fcntl_setfl(&master, OFlags::NONBLOCK).unwrap();
    (master, slave)
}

fn launch_in_terminal(guest: &mut Guest, argv: &[&str]) -> TerminalProgram {
    let (master, slave) = terminal();
    let mut request = request(argv);
    request.terminal = ExecTerminal::Controlling;
    request.env.insert("TERM".to_owned(), "dumb".to_owned());
    let stdio = [
        slave.try_clone().unwrap(),
        slave.try_clone().unwrap(),
        slave,
    ];
    guest.launch_program(&request, stdio).unwrap();
    TerminalProgram::at(request.id, master)
}

fn size(master: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(master, size).unwrap();
}

impl TerminalProgram {
    pub(super) fn at(id: ExecutionId, master: OwnedFd) -> Self {
        let seen = String::new();
        Self { id, master, seen }
    }

    fn type_in(&self, text: &str) {
        assert_eq!(
            rustix::io::write(&self.master, text.as_bytes()).unwrap(),
            text.len()
        );
    }

    /// Waits until the program `name` is in the foreground. Input or signals sent earlier would
    /// reach the shell, which ignores most of them.
    #[track_caller]
    fn in_front(&self, name: &str) {
        let front = || {
            let group = rustix::termios::tcgetpgrp(&self.master).ok()?;
            let path = format!("/proc/{}/comm", group.as_raw_nonzero());
            Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
        };
        let end = Instant::now() + LONG;
        while front().as_deref() != Some(name) {
            assert!(Instant::now() < end, "{:?} and not {name}", front());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Reads the terminal's output until `text` appears; discards everything before it.
    #[track_caller]
    pub(super) fn until(&mut self, text: &str) {
        let end = Instant::now() + LONG;
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            assert!(
                Instant::now() < end,
                "no {text:?} within {LONG:?}: {:?}",
                self.seen
            );
            let mut buffer = [0; 4096];
            match rustix::io::read(&self.master, &mut buffer) {
                Ok(count) => self
                    .seen
                    .push_str(&String::from_utf8_lossy(&buffer[..count])),
                Err(rustix::io::Errno::AGAIN) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => panic!("{error}: {:?}, wanted {text:?}", self.seen),
            }
        }
    }
}

/// Returns a pipe whose read end never becomes readable, for calls that wait for a wake-up.
fn quiet() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap()
}

#[track_caller]
pub(super) fn end(guest: &mut Guest) -> (ExecutionId, ExecEnd) {
    let (wake, _held) = quiet();
    match guest.next_end(wake.as_fd(), Instant::now() + LONG) {
        Some((id, LaunchEnd::Ended(end))) => (id, end),
        other => panic!("{other:?}"),
    }
}

fn no_end(guest: &mut Guest) {
    let (wake, _held) = quiet();
    let soon = Instant::now() + Duration::from_millis(50);
    assert!(guest.next_end(wake.as_fd(), soon).is_none());
}

#[test]
fn launched_programs_run_while_the_caller_waits_for_another_program() {
    let mut guest = guest();
    let mut one = launch_piped(&mut guest, &["cat"]);
    let mut two = launch_piped(&mut guest, &["sh", "-c", "read a; echo got $a; exit 4"]);
    for (number, program) in [(1, &mut one), (2, &mut two)] {
        writeln!(program.input.as_mut().unwrap(), "hello {number}").unwrap();
    }
    assert_eq!(
        (one.line().as_str(), two.line().as_str()),
        ("hello 1", "got hello 2")
    );
    // Program `two` ends while `sh` is awaited; its exit must not be lost.
    assert_eq!(sh(&mut guest, "sleep 0.2; echo done").ok(), "done\n");
    assert_eq!(end(&mut guest), (two.id.clone(), ExecEnd::Exited(4)));
    no_end(&mut guest);
    one.input = None;
    assert_eq!(end(&mut guest), (one.id, ExecEnd::Exited(0)));
}

#[test]
fn launched_program_gets_three_descriptors_and_leaks_none() {
    let mut guest = guest();
    for _ in 0..3 {
        let mut program = launch_piped(&mut guest, &["ls", "/proc/self/fd"]);
        // The fourth descriptor is that of the directory that `ls` itself reads.
        let lines: Vec<String> = (0..4).map(|_| program.line()).collect();
        assert_eq!(lines, ["0", "1", "2", "3"]);
        end(&mut guest);
        // No other process holds the write end: pid 1 closed its copies.
        assert_eq!(program.output.read(&mut [0; 16]).unwrap(), 0);
    }
    let mut console = launch_in_terminal(&mut guest, &["ls", "/proc/self/fd"]);
    console.until("0  1  2  3");
    end(&mut guest);
    // The rest of the output comes first.
    let gone = loop {
        if let Err(error) = rustix::io::read(&console.master, &mut [0; 64]) {
            break error;
        }
    };
    // EIO: no process has the slave open. EAGAIN is possible: a child that another test forked
    // holds a copy of the slave until it calls `execve`.
    assert!(
        matches!(gone, rustix::io::Errno::IO | rustix::io::Errno::AGAIN),
        "{gone:?}"
    );
    let (mut left, mut again) = (0, 0);
    for round in 0..100 {
        launch_piped(&mut guest, &["true"]);
        end(&mut guest);
        let count = std::fs::read_dir("/proc/self/fd").unwrap().count();
        if round == 0 {
            left = count;
        }
        again = count;
    }
    // The bound is 80 and not 0, because concurrent tests of this process also open descriptors.
    assert!(again < left + 80, "{left} descriptors became {again}");
}

/// Shell command that prints the number of `sleep` processes of the tests below. A zombie has an
/// empty cmdline and is not counted.
const SLEEPING: &str = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo; done | grep -c '^sleep 7[12]'";

/// Waits until exactly `count` of the `sleep` processes that [`SLEEPING`] counts exist. A killed
/// process dies only when it is scheduled, possibly after its parent.
#[track_caller]
fn sleepers(guest: &mut Guest, count: usize) {
    in_time(|| sh(guest, SLEEPING).out == format!("{count}\n"));
}

#[test]
fn stop_kills_a_program_and_its_children_and_a_signal_reaches_its_process_group() {
    let mut guest = guest();
    let mut victim = launch_piped(&mut guest, &["sh", "-c", "sleep 71 & echo up; wait"]);
    let mut other = launch_piped(&mut guest, &["sh", "-c", "sleep 72 & echo up; wait"]);
    assert_eq!(
        (victim.line().as_str(), other.line().as_str()),
        ("up", "up")
    );
    // The shell may print `up` before its background process has executed `sleep`.
    sleepers(&mut guest, 2);
    guest.stop_program(&victim.id).unwrap();
    assert_eq!(
        end(&mut guest),
        (victim.id, ExecEnd::Signaled(libc::SIGKILL))
    );
    sleepers(&mut guest, 1);
    guest.signal_program(&other.id, libc::SIGTERM).unwrap();
    assert_eq!(
        end(&mut guest),
        (other.id.clone(), ExecEnd::Signaled(libc::SIGTERM))
    );
    sleepers(&mut guest, 0);
    // Signals to an ended and to an unknown program are ignored.
    guest.signal_program(&other.id, libc::SIGKILL).unwrap();
    guest
        .stop_program(&ExecutionId::new("never").unwrap())
        .unwrap();
    assert_eq!(sh(&mut guest, "echo alive").ok(), "alive\n");
}

#[test]
fn program_stopped_by_the_runner_ends_with_sigkill_and_not_its_own_exit_status() {
    let mut guest = guest();
    let waits = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 71 & done; echo up; wait $!; exit 0";
    for _ in 0..40 {
        let mut victim = launch_piped(&mut guest, &["sh", "-c", waits]);
        assert_eq!(victim.line(), "up");
        guest.stop_program(&victim.id).unwrap();
        assert_eq!(
            end(&mut guest),
            (victim.id, ExecEnd::Signaled(libc::SIGKILL))
        );
    }
    sleepers(&mut guest, 0);
}

#[test]
fn launch_fails_for_a_missing_program_an_id_in_use_or_more_programs_than_the_maximum() {
    let mut guest = guest();
    let missing = launch_piped(&mut guest, &["no-such-program"]);
    let (wake, _held) = quiet();
    match guest.next_end(wake.as_fd(), Instant::now() + LONG) {
        Some((id, LaunchEnd::NotStarted(error))) => {
            assert_eq!(
                (id, error.code()),
                (missing.id, ErrorCode::AgentProgramMissing)
            );
        }
        other => panic!("{other:?}"),
    }
    let running = launch_piped(&mut guest, &["cat"]);
    let mut twin = request(&["true"]);
    twin.id = running.id.clone();
    let none = || std::array::from_fn(|_| File::open("/dev/null").unwrap().into());
    let refused = guest.launch_program(&twin, none());
    assert!(matches!(
        refused,
        Err(ExecError::NotStarted {
            errno: libc::EEXIST,
            ..
        })
    ));
    no_end(&mut guest);
    for _ in 1..wp_codebox_backend_native::MAX_LAUNCHED {
        launch_piped(&mut guest, &["sleep", "70"]);
    }
    let refused = guest.launch_program(&request(&["true"]), none());
    assert_eq!(refused.unwrap_err().code(), ErrorCode::SandboxInUse);
    guest.stop_program(&running.id).unwrap();
    end(&mut guest);
    launch_piped(&mut guest, &["true"]);
    assert_eq!(end(&mut guest).1, ExecEnd::Exited(0));
}

#[test]
fn wait_for_a_program_returns_when_the_wake_descriptor_is_readable_or_the_guest_dies() {
    let mut guest = guest();
    let mut ids: Vec<_> = (0..3)
        .map(|_| launch_piped(&mut guest, &["sleep", "70"]).id)
        .collect();
    let (wake, waker) = quiet();
    let waking = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        File::from(waker).write_all(b"!").unwrap();
    });
    let before = Instant::now();
    assert!(guest.next_end(wake.as_fd(), before + 2 * LONG).is_none());
    assert!(before.elapsed() < LONG, "it was not woken");
    waking.join().unwrap();
    assert!(guest.death().is_none());
    guest.killer().kill(KillCause::Cancelled);
    let mut ended: Vec<_> = (0..3).map(|_| end(&mut guest)).collect();
    ended.sort_by(|a, b| a.0.cmp(&b.0));
    ids.sort();
    assert_eq!(
        ended,
        ids.into_iter()
            .map(|id| (id, ExecEnd::Cancelled))
            .collect::<Vec<_>>()
    );
    assert_eq!(guest.death(), Some(ExecEnd::Cancelled));
    assert!(
        guest
            .launch_program(
                &request(&["true"]),
                std::array::from_fn(|_| { File::open("/dev/null").unwrap().into() })
            )
            .is_err()
    );
    no_end(&mut guest);
}

#[test]
fn program_in_a_terminal_sees_a_tty_and_every_change_of_its_size() {
    let mut guest = guest();
    let script = "trap 'echo size $(stty size)' WINCH; test -t 0 && test -t 1 && test -t 2 && echo a-tty; \
        stty size; echo open >/dev/tty; while :; do sleep 0.05; done";
    let mut console = launch_in_terminal(&mut guest, &["bash", "-c", script]);
    console.until("a-tty\r\n24 80\r\n");
    console.until("open");
    size(&console.master, 132, 43);
    console.until("size 43 132");
    // Control: for a program that is started without a terminal, standard input is not a terminal.
    assert_eq!(
        sh(
            &mut guest,
            "test -t 0 || echo no; cat /dev/tty 2>&1 || true"
        )
        .ok()
        .lines()
        .next(),
        Some("no")
    );
    // Closing the terminal sends SIGHUP to its session.
    drop(console.master);
    assert_eq!(
        end(&mut guest),
        (console.id, ExecEnd::Signaled(libc::SIGHUP))
    );
}

#[test]
fn keys_and_signals_reach_the_foreground_job_and_not_the_shell() {
    let mut guest = guest();
    let mut console = launch_in_terminal(&mut guest, &["bash", "--norc", "--noediting", "-i"]);
    console.type_in("PS1='$ '; echo ready-$((1+1))\n");
    console.until("ready-2");
    // Ctrl-C, typed as the byte 3, interrupts the program.
    console.type_in("echo begin-$((2+2)); sleep 60\n");
    console.until("begin-4");
    console.in_front("sleep");
    console.type_in("\x03");
    console.type_in("echo status-$?-\n");
    console.until("status-130-");
    // A SIGTERM that the supervisor sends ends the foreground program and not the shell.
    console.type_in("echo begin-$((3+3)); sleep 61\n");
    console.until("begin-6");
    console.in_front("sleep");
    guest.signal_program(&console.id, libc::SIGTERM).unwrap();
    console.until("Terminated");
    console.type_in("echo status-$?-\n");
    console.until("status-143-");
    // Job control: Ctrl-Z stops the program, `jobs` lists it, and the shell resumes and ends it.
    console.type_in("sleep 62\n");
    console.in_front("sleep");
    console.type_in("\x1a");
    console.until("Stopped");
    console.type_in("jobs; kill %1; exit 9\n");
    console.until("Stopped");
    // The shell refuses the first `exit` while the stopped job exists. If it has accepted the first
    // `exit` nevertheless, this second write fails.
    let _ = rustix::io::write(&console.master, b"exit 9\n");
    assert_eq!(end(&mut guest), (console.id, ExecEnd::Exited(9)));
}

#[test]
fn guest_can_neither_inject_terminal_input_nor_open_a_pty() {
    let mut guest = guest();
    let script = r#"<?php
        foreach ( array( '/dev/ptmx', '/dev/pts/ptmx', '/dev/pts/0', '/dev/tty1', '/dev/console' ) as $path ) {
            echo $path, ' ', @fopen( $path, 'r+' ) ? 'opened' : 'refused', "\n";
        }
        echo '/dev/tty ', @fopen( '/dev/tty', 'r+' ) ? 'opened' : 'refused', "\n";
        echo "fin\n";"#;
    let mut console = launch_in_terminal(
        &mut guest,
        &["php", "-r", script.trim_start_matches("<?php")],
    );
    for path in [
        "/dev/ptmx",
        "/dev/pts/ptmx",
        "/dev/pts/0",
        "/dev/tty1",
        "/dev/console",
    ] {
        console.until(&format!("{path} refused"));
    }
    console.until("/dev/tty opened");
    console.until("fin");
    end(&mut guest);
    // Control: TIOCGWINSZ (query the size) is allowed, TIOCSTI (insert input) is not.
    let python = "import fcntl,termios,struct\n\
        print('size', struct.unpack('hhhh', fcntl.ioctl(0, termios.TIOCGWINSZ, b'\\0'*8))[:2])\n\
        for name in ('TIOCSTI','TIOCSETD'):\n \
        try: fcntl.ioctl(0, getattr(termios,name), b'x\\0\\0\\0'); print(name,'worked')\n \
        except OSError as e: print(name,'refused',e.errno)\n\
        print('fin')";
    let mut console = launch_in_terminal(&mut guest, &["python3", "-c", python]);
    console.until("size (24, 80)");
    console.until("TIOCSTI refused 1");
    console.until("TIOCSETD refused 1");
    console.until("fin");
    end(&mut guest);
}

#[test]
fn session_cannot_take_over_the_terminal_of_another_session() {
    let mut guest = guest();
    let mut console = launch_in_terminal(&mut guest, &["sh", "-c", "echo up; exec sleep 60"]);
    console.until("up");
    // A second program gets a terminal that is already the controlling terminal of the first
    // program's session.
    let slave = ioctl_tiocgptpeer(
        &console.master,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    )
    .unwrap();
    let mut second = request(&["true"]);
    second.terminal = ExecTerminal::Controlling;
    let stdio = [
        slave.try_clone().unwrap(),
        slave.try_clone().unwrap(),
        slave,
    ];
    guest.launch_program(&second, stdio).unwrap();
    let (wake, _held) = quiet();
    match guest.next_end(wake.as_fd(), Instant::now() + LONG) {
        Some((_, LaunchEnd::NotStarted(ExecError::NotStarted { step, errno, .. }))) => {
            assert_eq!((step.as_str(), errno), ("terminal", libc::EPERM));
        }
        other => panic!("{other:?}"),
    }
    // A descriptor that is not a terminal cannot become the controlling terminal.
    let mut third = request(&["true"]);
    third.terminal = ExecTerminal::Controlling;
    let files = std::array::from_fn(|_| File::open("/dev/null").unwrap().into());
    guest.launch_program(&third, files).unwrap();
    assert!(matches!(
        guest.next_end(wake.as_fd(), Instant::now() + LONG),
        Some((
            _,
            LaunchEnd::NotStarted(ExecError::NotStarted {
                errno: libc::ENOTTY,
                ..
            })
        ))
    ));
}

#[test]
fn connect_succeeds_for_a_server_in_the_guest_and_fails_for_a_closed_port() {
    let mut guest = guest();
    let server = "$s = stream_socket_server('tcp://127.0.0.1:8123'); echo \"up\\n\"; \
        while ($c = stream_socket_accept($s, 30)) { fwrite($c, 'said ' . fgets($c)); fclose($c); }";
    let mut program = launch_piped(&mut guest, &["php", "-r", server]);
    assert_eq!(program.line(), "up");
    for round in 0..5 {
        let stream = TcpStream::from(guest.connect(8123).unwrap());
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        writeln!(&stream, "hello {round}").unwrap();
        let mut text = String::new();
        (&stream).read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("said hello {round}\n"));
    }
    // The guest's port is not open on the host under the same number.
    assert!(TcpStream::connect("127.0.0.1:8123").is_err());
    match guest.connect(8124) {
        Err(ConnectError::Refused { port: 8124, errno }) => assert_eq!(errno, libc::ECONNREFUSED),
        other => panic!("{other:?}"),
    }
    guest.stop_program(&program.id).unwrap();
    end(&mut guest);
    assert!(guest.connect(8123).is_err());
}

#[test]
fn connect_to_a_full_accept_queue_times_out_and_programs_still_start() {
    let mut guest = guest();
    // A server that never accepts, with an accept queue for one connection.
    let server = "import socket,time; s=socket.socket(); s.bind(('127.0.0.1',8125)); s.listen(0); print('up',flush=True); time.sleep(600)";
    let mut program = launch_piped(&mut guest, &["python3", "-c", server]);
    assert_eq!(program.line(), "up");
    let mut held = Vec::new();
    let (refused, waited) = loop {
        assert!(held.len() < 8, "a queue without end");
        let before = Instant::now();
        match guest.connect(8125) {
            Ok(fd) => held.push(fd),
            Err(error) => break (error, before.elapsed()),
        }
    };
    assert!(
        matches!(
            refused,
            ConnectError::Refused {
                errno: libc::ETIMEDOUT,
                ..
            }
        ),
        "{refused}"
    );
    // The kernel of the guest alone would try for two minutes.
    assert!(waited < LONG, "{waited:?}");
    assert_eq!(sh(&mut guest, "echo alive").ok(), "alive\n");
}
