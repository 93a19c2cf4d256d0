//! Starts the launcher with the environment of its command, which is empty, and only the descriptors
//! that it needs.
//!
//! Uses `posix_spawn` with explicit duplications, because the supervisor has threads and no code may
//! run between fork and exec. Every other descriptor of the supervisor is close-on-exec, and the
//! launcher also closes unexpected descriptors itself.

use crate::channel::timespec;
use crate::process_sandbox::WrappedCommand;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::time::Instant;
use wp_codebox_contracts::LauncherFd;

/// Lowest number for duplicates of the descriptors that the child gets. In the child, each
/// duplicate is copied to its final number, which is lower, so no copy overwrites another
/// duplicate.
const SOURCE_FLOOR: i32 = 16;

/// A started child process that has not been waited for.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    pid: Pid,
    pidfd: OwnedFd,
    end: Option<ProcessEnd>,
}

/// How a process exited, and the CPU time of it and of its children that have been waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEnd {
    /// Exit code, if the process exited.
    pub(crate) code: Option<i32>,
    /// Signal number, if a signal killed it.
    pub(crate) signal: Option<i32>,
    /// User CPU time in microseconds.
    pub(crate) user_us: u64,
    /// System CPU time in microseconds.
    pub(crate) system_us: u64,
}

/// Writes the launch plan to the launcher's pipe and closes the pipe. The launcher starts work only
/// at end of file. So a setting applied to the launcher before, such as its cgroup, applies to all
/// its descendants.
pub(crate) fn send_plan(pipe: OwnedFd, bytes: &[u8], until: Instant) -> io::Result<()> {
    rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
    let mut left = bytes;
    while !left.is_empty() {
        match rustix::io::write(&pipe, left) {
            Ok(written) => left = &left[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let rest = until.saturating_duration_since(Instant::now());
                let mut fds = [PollFd::new(&pipe, PollFlags::OUT)];
                if poll(&mut fds, Some(&timespec(rest)))? == 0 {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            // EPIPE: the launcher has ended. Its exit status, read later, gives the cause.
            Err(Errno::PIPE) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn lift(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, SOURCE_FLOOR)?)
}

/// Starts the launcher with its three descriptors; standard streams are `/dev/null`.
pub(crate) fn spawn(
    command: &WrappedCommand,
    plan: BorrowedFd<'_>,
    channel: BorrowedFd<'_>,
    lifetime: BorrowedFd<'_>,
) -> io::Result<ChildProcess> {
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    let null = lift(rustix::fd::AsFd::as_fd(&null))?;
    let (plan, channel, lifetime) = (lift(plan)?, lift(channel)?, lift(lifetime)?);
    let moves = [
        (&null, 0),
        (&null, 1),
        (&null, 2),
        (&plan, LauncherFd::Plan as i32),
        (&channel, LauncherFd::Channel as i32),
        (&lifetime, LauncherFd::Lifetime as i32),
    ];
    let program = CString::new(command.program.as_str())?;
    let mut arguments = vec![program.clone()];
    for argument in &command.args {
        arguments.push(CString::new(argument.as_str())?);
    }
    let mut variables = Vec::new();
    for (name, value) in &command.env {
        variables.push(CString::new(format!("{name}={value}"))?);
    }
    let pid = posix_spawn(&program, &arguments, &variables, &moves)?;
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let pidfd = pidfd_or_end(pid, || pidfd_open(pid, PidfdFlags::empty()))?;
    Ok(ChildProcess {
        pid,
        pidfd,
        end: None,
    })
}

/// Opens the pidfd of a new child; kills and reaps the child if that fails, such as with EMFILE. The
/// child has not been reaped before, so its pid cannot have been reused.
fn pidfd_or_end(
    child: Pid,
    open: impl FnOnce() -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    open().inspect_err(|_| {
        if kill_process(child, Signal::KILL).is_ok() {
            let _ = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
        }
    })
}

fn posix_spawn(
    program: &CString,
    arguments: &[CString],
    variables: &[CString],
    moves: &[(&OwnedFd, i32)],
) -> io::Result<i32> {
    let check = |code: i32| match code {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    };
    let pointers = |texts: &[CString]| -> Vec<*mut libc::c_char> {
        let texts = texts.iter().map(|text| text.as_ptr().cast_mut());
        texts.chain([std::ptr::null_mut()]).collect()
    };
    let (argv, environment) = (pointers(arguments), pointers(variables));
    let mut actions = MaybeUninit::<libc::posix_spawn_file_actions_t>::uninit();
    let mut attributes = MaybeUninit::<libc::posix_spawnattr_t>::uninit();
    let mut pid = 0;
    // SAFETY: `actions` and `attributes` are initialised before use and destroyed once after
    // it; `program`, `argv` and `environment` are NUL-terminated and outlive the call; the
    // signal sets are initialised by sigemptyset and sigfillset.
    unsafe {
        check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
        let result = (|| {
            for (from, to) in moves {
                check(libc::posix_spawn_file_actions_adddup2(
                    actions.as_mut_ptr(),
                    from.as_raw_fd(),
                    *to,
                ))?;
            }
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            let result = (|| {
                let mut none = MaybeUninit::<libc::sigset_t>::uninit();
                let mut all = MaybeUninit::<libc::sigset_t>::uninit();
                libc::sigemptyset(none.as_mut_ptr());
                libc::sigfillset(all.as_mut_ptr());
                check(libc::posix_spawnattr_setsigmask(
                    attributes.as_mut_ptr(),
                    none.as_ptr(),
                ))?;
                check(libc::posix_spawnattr_setsigdefault(
                    attributes.as_mut_ptr(),
                    all.as_ptr(),
                ))?;
                let flags = libc::POSIX_SPAWN_SETSIGMASK
                    | libc::POSIX_SPAWN_SETSIGDEF
                    | libc::POSIX_SPAWN_SETPGROUP;
                // Put the child into a process group of its own: Ctrl-C in the terminal then
                // signals the supervisor only, and the supervisor ends the guest.
                check(libc::posix_spawnattr_setflags(
                    attributes.as_mut_ptr(),
                    libc::c_short::try_from(flags).unwrap_or_default(),
                ))?;
                check(libc::posix_spawn(
                    &raw mut pid,
                    program.as_ptr(),
                    actions.as_ptr(),
                    attributes.as_ptr(),
                    argv.as_ptr(),
                    environment.as_ptr(),
                ))
            })();
            libc::posix_spawnattr_destroy(attributes.as_mut_ptr());
            result
        })();
        libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
        result?;
    }
    Ok(pid)
}

impl ChildProcess {
    /// Returns the pid of the child.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Returns a pidfd that becomes readable when the child has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        rustix::fd::AsFd::as_fd(&self.pidfd)
    }

    /// Sends SIGKILL to the child.
    pub(crate) fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
    }

    /// Waits for the exit; later calls return the same result.
    pub(crate) fn wait(&mut self) -> io::Result<ProcessEnd> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        loop {
            // SAFETY: both pointers are valid for writing for the length of the call.
            let waited = unsafe {
                libc::wait4(
                    self.pid.as_raw_nonzero().get(),
                    &raw mut status,
                    0,
                    usage.as_mut_ptr(),
                )
            };
            if waited >= 0 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        // SAFETY: zeroed is a valid value, and wait4 succeeded and filled it.
        let usage = unsafe { usage.assume_init() };
        let exited = libc::WIFEXITED(status);
        let end = ProcessEnd {
            code: exited.then(|| libc::WEXITSTATUS(status)),
            signal: (!exited).then(|| libc::WTERMSIG(status)),
            user_us: micros(usage.ru_utime),
            system_us: micros(usage.ru_stime),
        };
        self.end = Some(end);
        Ok(end)
    }
}

fn micros(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_sandbox::{HostCommand, ProcessSandbox};
    use rustix::fd::AsFd;
    use std::process::Command;
    use wp_codebox_contracts::{OuterSandboxKind, SandboxAudit};

    #[test]
    #[expect(
        clippy::zombie_processes,
        reason = "the case waits for the child by its pid"
    )]
    fn child_whose_pidfd_cannot_be_opened_is_killed_and_reaped() {
        for (opens, reaped) in [(false, true), (true, false)] {
            let child = Command::new("sleep").arg("600").spawn().unwrap();
            let pid = Pid::from_child(&child);
            let opened = pidfd_or_end(pid, || match opens {
                true => pidfd_open(pid, PidfdFlags::empty()),
                false => Err(Errno::MFILE),
            });
            assert_eq!(opened.is_ok(), opens);
            let waited = waitpid(Some(pid), WaitOptions::NOHANG);
            assert_eq!(matches!(waited, Err(Errno::CHILD)), reaped, "{waited:?}");
            if !reaped {
                kill_process(pid, Signal::KILL).unwrap();
                waitpid(Some(pid), WaitOptions::empty()).unwrap();
            }
        }
    }

    /// Wrapper that starts a shell instead of the program. The shell exits with 7 if it got the
    /// program's path as an argument and the variable MARK.
    #[derive(Debug)]
    struct Shell;

    impl ProcessSandbox for Shell {
        fn kind(&self) -> OuterSandboxKind {
            OuterSandboxKind::None
        }

        fn wrap(&self, command: &HostCommand) -> WrappedCommand {
            let script = r#"[ "$1" = /bin/false ] && [ "$MARK" = set ] && exit 7"#;
            WrappedCommand {
                program: "/bin/sh".to_owned(),
                args: ["-c", script, "sh", &command.program]
                    .map(str::to_owned)
                    .to_vec(),
                env: command.env.clone(),
                cwd: None,
                audit: SandboxAudit::default(),
            }
        }
    }

    fn status(command: &WrappedCommand) -> Option<i32> {
        let null = std::fs::File::open("/dev/null").unwrap();
        let fd = null.as_fd();
        spawn(command, fd, fd, fd).unwrap().wait().unwrap().code
    }

    #[test]
    fn command_of_the_wrapper_is_spawned_with_its_arguments_and_environment() {
        let mut command = HostCommand {
            program: "/bin/false".to_owned(),
            ..HostCommand::default()
        };
        command.env.insert("MARK".to_owned(), "set".to_owned());
        assert_eq!(status(&Shell.wrap(&command)), Some(7));
        // Positive controls: without the variable, and the program itself without the wrapper.
        command.env.clear();
        assert_eq!(status(&Shell.wrap(&command)), Some(1));
        let bare = crate::process_sandbox::NoSandbox.wrap(&command);
        assert_eq!(status(&bare), Some(1));
    }
}
