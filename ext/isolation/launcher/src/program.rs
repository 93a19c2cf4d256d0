//! Starts one program in the guest: fork, descriptors, directory, limits, `execve`.
//!
//! The child reports a failed step between fork and `execve` over a close-on-exec pipe; end of file
//! means that `execve` succeeded. Pid 1 never blocks on that pipe, because any process of the guest
//! has the child's uid and may stop the child with SIGSTOP before `execve`.

use crate::privileges;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ExecRequest, ExecTerminal, ExecutionId};

/// Time between two SIGCONT signals to a child that has not reached `execve` yet: a process of the
/// guest may have stopped the child.
const SIGCONT_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time from fork to `execve`; a child that exceeds it is killed.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Step in which the start of a program failed; the first byte of the child's report is the number
/// of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum StartStep {
    Input = 1,
    Fork = 2,
    Chdir = 3,
    Limits = 4,
    Lookup = 5,
    Execve = 6,
    Terminal = 7,
    /// The child did not reach `execve` before the deadline.
    Start = 8,
}

impl StartStep {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Fork => "fork",
            Self::Chdir => "chdir",
            Self::Limits => "limits",
            Self::Lookup => "lookup",
            Self::Execve => "execve",
            Self::Terminal => "terminal",
            Self::Start => "start",
        }
    }

    fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Input,
            3 => Self::Chdir,
            4 => Self::Limits,
            5 => Self::Lookup,
            6 => Self::Execve,
            7 => Self::Terminal,
            _ => Self::Fork,
        }
    }
}

/// Why a program did not start: failed step and errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotStarted {
    pub(crate) step: StartStep,
    pub(crate) errno: i32,
}

const fn failed(step: StartStep, errno: i32) -> NotStarted {
    NotStarted { step, errno }
}

/// A child for which pid 1 does not know yet whether it reached `execve`.
pub(crate) struct Starting {
    pub(crate) pid: i32,
    pub(crate) id: ExecutionId,
    /// Read end of the pipe on which the child reports a failure, non-blocking.
    pub(crate) report: OwnedFd,
    nudge: Instant,
    until: Instant,
}

/// What the report pipe shows about a started child.
pub(crate) enum Progress {
    /// The child has not reached `execve` and has reported no failure.
    Pending,
    /// The program runs, or the child was killed before `execve`; its exit will be reported.
    Running,
    /// The start failed, and the child exits.
    Failed(NotStarted),
}

impl Starting {
    /// Reads the child's report pipe without blocking.
    pub(crate) fn progress(&self) -> Progress {
        let mut message = [0_u8; 5];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.report, &mut message)) {
            Err(Errno::AGAIN) => Progress::Pending,
            Ok(5) => {
                let [step, errno @ ..] = message;
                Progress::Failed(failed(
                    StartStep::from_byte(step),
                    i32::from_ne_bytes(errno),
                ))
            }
            Ok(_) | Err(_) => Progress::Running,
        }
    }

    /// Sends the child SIGCONT, because a process of the guest may have stopped it; kills the child
    /// after its deadline.
    pub(crate) fn resume_or_kill(&mut self, now: Instant) -> Progress {
        if now >= self.until {
            // SAFETY: no memory is involved; the pid is still that of the child, which is not
            // reaped.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            return Progress::Failed(failed(StartStep::Start, libc::ETIMEDOUT));
        }
        if now >= self.nudge {
            // SAFETY: no memory is involved; the pid is still that of the child, which is not
            // reaped.
            unsafe { libc::kill(self.pid, libc::SIGCONT) };
            self.nudge = now + SIGCONT_INTERVAL;
        }
        Progress::Pending
    }

    /// Returns the time at which [`Starting::resume_or_kill`] has to be called next.
    pub(crate) fn due(&self) -> Instant {
        self.nudge.min(self.until)
    }
}

/// Forks the child that executes the program of `request`.
pub(crate) fn start(request: &ExecRequest, stdio: &[OwnedFd; 3]) -> Result<Starting, NotStarted> {
    let input = |_| failed(StartStep::Input, libc::EINVAL);
    let argv = request
        .argv
        .iter()
        .map(|argument| CString::new(argument.as_str()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(input)?;
    let names_fit = request
        .env
        .keys()
        .all(|name| !name.is_empty() && !name.contains('='));
    if argv.first().is_none_or(|program| program.is_empty()) || !names_fit {
        return Err(failed(StartStep::Input, libc::EINVAL));
    }
    let env = request
        .env
        .iter()
        .map(|(name, value)| CString::new(format!("{name}={value}")))
        .collect::<Result<Vec<_>, _>>()
        .map_err(input)?;
    let errno = |errno: Errno| failed(StartStep::Fork, errno.raw_os_error());
    let (report, reporter) = pipe_with(PipeFlags::CLOEXEC).map_err(errno)?;
    rustix::fs::fcntl_setfl(&report, rustix::fs::OFlags::NONBLOCK).map_err(errno)?;
    // SAFETY: this process has a single thread, so the child may do anything a process may.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(failed(
            StartStep::Fork,
            std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
        )),
        0 => {
            let NotStarted { step, errno } = become_program(request, stdio, &argv, &env);
            let mut message = [step as u8, 0, 0, 0, 0];
            message[1..].copy_from_slice(&errno.to_ne_bytes());
            let _ = rustix::io::write(&reporter, &message);
            // SAFETY: ends the child without running anything of the parent's state.
            unsafe { libc::_exit(127) }
        }
        // The parent closes its copy of the write end before it forks again, so no other child
        // inherits the write end.
        pid => {
            drop(reporter);
            let now = Instant::now();
            Ok(Starting {
                pid,
                id: request.id.clone(),
                report,
                nudge: now + SIGCONT_INTERVAL,
                until: now + START_TIMEOUT,
            })
        }
    }
}

/// Replaces the child process with the program; returns only when that fails.
fn become_program(
    request: &ExecRequest,
    stdio: &[OwnedFd; 3],
    argv: &[CString],
    env: &[CString],
) -> NotStarted {
    let errno = |errno: Errno| errno.raw_os_error();
    if let Err(error) = rustix::process::setsid() {
        return failed(StartStep::Fork, errno(error));
    }
    // SAFETY: duplicates descriptors of this process onto 0, 1 and 2, marks the others
    // close-on-exec and resets the signal mask; the only memory used is the local signal set.
    unsafe {
        for (from, to) in stdio.iter().zip(0..) {
            // None of the three source descriptors has a number below 3: the numbers 0 to 2 have
            // been in use since pid 1 started.
            if libc::dup2(from.as_raw_fd(), to) < 0 {
                return failed(StartStep::Fork, libc::EBADF);
            }
        }
        if privileges::close_range(3, libc::CLOSE_RANGE_CLOEXEC).is_err() {
            return failed(StartStep::Fork, libc::EBADF);
        }
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        // The Rust runtime ignores SIGPIPE at start, and ignored signals stay ignored across
        // `execve`.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
    match request.terminal {
        ExecTerminal::None => {}
        // Without the stealing argument, TIOCSCTTY refuses a terminal that another session
        // controls.
        ExecTerminal::Controlling => {
            if let Err(error) = rustix::process::ioctl_tiocsctty(&stdio[0]) {
                return failed(StartStep::Terminal, errno(error));
            }
        }
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    if let Err(error) = rustix::process::chdir(request.cwd.as_str()) {
        return failed(StartStep::Chdir, errno(error));
    }
    if let Some(seconds) = request.limits.cpu_seconds {
        let both = rustix::process::Rlimit {
            current: Some(seconds),
            maximum: Some(seconds),
        };
        if let Err(error) = rustix::process::setrlimit(rustix::process::Resource::Cpu, both) {
            return failed(StartStep::Limits, errno(error));
        }
    }
    if let Err(error) = privileges::limit_descriptors() {
        return failed(StartStep::Limits, errno(error));
    }
    let program = match lookup(request) {
        Ok(program) => program,
        Err(error) => return failed(StartStep::Lookup, error),
    };
    let pointers = |strings: &[CString]| {
        let mut list: Vec<_> = strings.iter().map(|s| s.as_ptr()).collect();
        list.push(std::ptr::null());
        list
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both lists end with a null pointer and their strings outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    failed(StartStep::Execve, code)
}

/// Resolves a program name: a name with a slash is the path itself, otherwise the first executable
/// in `env.PATH`.
fn lookup(request: &ExecRequest) -> Result<CString, i32> {
    let name = request.argv.first().map(String::as_str).unwrap_or_default();
    if name.contains('/') {
        return executable(name).map(|()| CString::new(name).unwrap_or_default());
    }
    let path = request
        .env
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let mut seen = libc::ENOENT;
    for directory in path
        .split(':')
        .filter(|directory| directory.starts_with('/'))
    {
        let candidate = format!("{directory}/{name}");
        match executable(&candidate) {
            Ok(()) => return Ok(CString::new(candidate).unwrap_or_default()),
            // If no directory has an executable file of this name, EACCES is reported instead of
            // ENOENT, because a file of this name exists.
            Err(libc::EACCES) => seen = libc::EACCES,
            Err(_) => {}
        }
    }
    Err(seen)
}

fn executable(path: &str) -> Result<(), i32> {
    let path = std::path::Path::new(path);
    let code = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EINVAL);
    let meta = std::fs::metadata(path).map_err(code)?;
    if !meta.is_file() {
        return Err(libc::EACCES);
    }
    rustix::fs::access(path.as_os_str().as_bytes(), rustix::fs::Access::EXEC_OK)
        .map_err(|errno| errno.raw_os_error())
}
