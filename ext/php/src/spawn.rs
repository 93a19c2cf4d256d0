//! Starts the supervisor with `posix_spawn`.
//!
//! The child gets an empty environment, `/` as working directory, its own session and default
//! signal handling. It gets the descriptor of its [`Wiring`], `/dev/null` for each standard stream
//! that the wiring does not set, and no other descriptor: a child of a web server would otherwise
//! inherit the server's listening socket and the client's connection. No Rust code runs between
//! fork and exec.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open,
    waitid,
};
use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr;
use wp_codebox_contracts::CodedError;

/// The descriptor through which a child exchanges data with this process. Each standard stream that
/// is not this descriptor is `/dev/null`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wiring<'fd> {
    /// The socket for frames to the supervisor, as descriptor 3.
    Frames(BorrowedFd<'fd>),
    /// A pipe as standard output.
    Stdout(BorrowedFd<'fd>),
}

/// Reason why a program could not be started.
#[derive(Debug, thiserror::Error, CodedError)]
pub(crate) enum SpawnError {
    /// `posix_spawn` failed.
    #[error(
        "the runner could not be started ({reason}); install it or set wp_codebox.runner in php.ini"
    )]
    #[code(RunnerUnavailable)]
    Start { reason: String },
    /// An argument contains a NUL byte.
    #[error(
        "an argument of the runner contains a NUL byte; check the wp_codebox settings in php.ini"
    )]
    #[code(ConfigInvalid)]
    Argument,
    /// A descriptor could not be duplicated.
    #[error(
        "PHP could not duplicate a file descriptor for the runner: {errno}; check its limit on open files"
    )]
    #[code(RunnerUnavailable)]
    Descriptor { errno: Errno },
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The child exited with this status.
    Exit(i32),
    /// This signal killed the child.
    Killed(i32),
    /// Another waiter reaped the child: PHP code ignores SIGCHLD or waits for any child.
    Reaped,
}

/// A child that has not been reaped. Dropping it kills the child and its session, and reaps it.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    /// Absent if the child had ended before the pidfd could be opened.
    pidfd: Option<OwnedFd>,
    waited: bool,
}

impl Child {
    /// Returns a pidfd that becomes readable when the child ends.
    pub(crate) fn ended_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Reaps the child if it has ended; does not block.
    pub(crate) fn try_wait(&mut self) -> Option<Ended> {
        let ended = self.wait_with(WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        self.waited |= ended.is_some();
        ended
    }

    fn wait_with(&self, options: WaitIdOptions) -> Option<Ended> {
        loop {
            match waitid(WaitId::Pid(self.pid), options) {
                Ok(None) => return None,
                Ok(Some(status)) => {
                    return Some(match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => Ended::Exit(code),
                        (None, Some(signal)) => Ended::Killed(signal),
                        (None, None) => Ended::Reaped,
                    });
                }
                Err(Errno::INTR) => {}
                Err(_) => return Some(Ended::Reaped),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.waited {
            return;
        }
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.wait_with(look) == Some(Ended::Reaped) {
            // Another waiter reaped the child: its pid may already belong to another process.
            return;
        }
        // Kill the process group before reaping: once the leader is reaped, its id may be reused.
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = self.wait_with(WaitIdOptions::EXITED);
    }
}

/// Starts `program` with `arguments` (without the program's own name).
pub(crate) fn spawn(
    program: &str,
    arguments: &[&str],
    wiring: Wiring<'_>,
) -> Result<Child, SpawnError> {
    let path = CString::new(program).map_err(|_| SpawnError::Argument)?;
    let owned: Vec<CString> = arguments
        .iter()
        .map(|argument| CString::new(*argument))
        .collect::<Result<_, _>>()
        .map_err(|_| SpawnError::Argument)?;
    let mut argv: Vec<*mut c_char> = Vec::with_capacity(owned.len() + 2);
    argv.push(path.as_ptr().cast_mut());
    argv.extend(owned.iter().map(|argument| argument.as_ptr().cast_mut()));
    argv.push(ptr::null_mut());
    let environment: [*mut c_char; 1] = [ptr::null_mut()];

    // Move the descriptor above those that the file actions assign. In a process with closed
    // standard streams its number could be 0 to 2, and the action that opens /dev/null there would
    // replace it before it is duplicated.
    let (given, target) = match wiring {
        Wiring::Frames(fd) => (fd, 3),
        Wiring::Stdout(fd) => (fd, 1),
    };
    let high = rustix::io::fcntl_dupfd_cloexec(given, 10)
        .map_err(|errno| SpawnError::Descriptor { errno })?;
    let actions = Actions::new(high.as_raw_fd(), target)?;
    let attributes = Attributes::new()?;

    let mut pid: libc::pid_t = 0;
    // SAFETY: every pointer is valid for the call; path, argv and the environment are
    // NUL-terminated; posix_spawn does not keep any of them.
    let failed = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            path.as_ptr(),
            actions.0.as_ptr(),
            attributes.0.as_ptr(),
            argv.as_ptr(),
            environment.as_ptr(),
        )
    };
    match (failed, Pid::from_raw(pid)) {
        (0, Some(pid)) => Ok(Child {
            pid,
            pidfd: pidfd_open(pid, PidfdFlags::empty()).ok(),
            waited: false,
        }),
        (code, _) => Err(SpawnError::Start {
            reason: Errno::from_raw_os_error(code).to_string(),
        }),
    }
}

fn checked(code: c_int) -> Result<(), SpawnError> {
    match code {
        0 => Ok(()),
        code => Err(SpawnError::Descriptor {
            errno: Errno::from_raw_os_error(code),
        }),
    }
}

struct Actions(MaybeUninit<libc::posix_spawn_file_actions_t>);

impl Actions {
    fn new(given: RawFd, target: RawFd) -> Result<Self, SpawnError> {
        const NULL: &CStr = c"/dev/null";
        let mut actions = MaybeUninit::uninit();
        // SAFETY: init makes the value valid for the calls that follow.
        checked(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        let mut actions = Self(actions);
        let raw = actions.0.as_mut_ptr();
        for (fd, flags) in [
            (0, libc::O_RDONLY),
            (1, libc::O_WRONLY),
            (2, libc::O_WRONLY),
        ] {
            // SAFETY: `raw` was initialised above, and the path is static.
            checked(unsafe {
                libc::posix_spawn_file_actions_addopen(raw, fd, NULL.as_ptr(), flags, 0)
            })?;
        }
        // SAFETY: `raw` was initialised above, and the path is static. In the child, dup2 creates
        // `target` without close-on-exec; every descriptor above 2 and above `target` is closed.
        unsafe {
            checked(libc::posix_spawn_file_actions_adddup2(raw, given, target))?;
            checked(libc::posix_spawn_file_actions_addclosefrom_np(
                raw,
                target.max(2) + 1,
            ))?;
            checked(libc::posix_spawn_file_actions_addchdir_np(
                raw,
                c"/".as_ptr(),
            ))?;
        }
        Ok(actions)
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: `new` initialised the value.
        unsafe { libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr()) };
    }
}

struct Attributes(MaybeUninit<libc::posix_spawnattr_t>);

impl Attributes {
    fn new() -> Result<Self, SpawnError> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: init makes the value valid for the calls that follow.
        checked(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        let mut attributes = Self(attributes);
        let raw = attributes.0.as_mut_ptr();
        let mut none = MaybeUninit::uninit();
        let mut all = MaybeUninit::uninit();
        let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        // SAFETY: the sets are initialised before they are read; `raw` is initialised.
        unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigfillset(all.as_mut_ptr());
            checked(libc::posix_spawnattr_setsigmask(raw, none.as_ptr()))?;
            checked(libc::posix_spawnattr_setsigdefault(raw, all.as_ptr()))?;
            checked(libc::posix_spawnattr_setflags(
                raw,
                flags as libc::c_short | libc::POSIX_SPAWN_SETSID,
            ))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: `new` initialised the value.
        unsafe { libc::posix_spawnattr_destroy(self.0.as_mut_ptr()) };
    }
}
