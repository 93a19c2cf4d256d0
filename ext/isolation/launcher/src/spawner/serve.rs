//! Serves the supervisor's requests to a spawner: starts launchers and reports their exits.

use super::ids::become_user;
use super::store::ViewDirectory;
use super::user_namespace::GUEST;
use crate::channel::{Channel, Incoming, is_in_flight_limit, poll_retrying};
use crate::error::{At, Failure, Step};
use crate::init::{child_signals, micros};
use crate::mounting::{QUIET, set_idmap};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, pidfd_send_signal, waitpid,
};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::mem::MaybeUninit;
use wp_codebox_contracts::{LauncherFd, SpawnerReply, SpawnerRequest};

/// Maximum number of launchers alive at once; more than a run needs for the guest in which it
/// works, that guest's replacement, a browser guest and the guests of checks.
const LAUNCHERS: usize = 16;

/// Descriptors that the request handlers need.
pub(super) struct SpawnerContext {
    /// Descriptor of the launcher program.
    pub(super) program: OwnedFd,
    /// User namespace for idmapped mounts, in which the guest's files belong to the owner of the
    /// state directory.
    pub(super) exposed: OwnedFd,
    /// Directory in which a user's spawner mounts further host directories; `None` for a spawner
    /// started by root.
    pub(super) place: Option<ViewDirectory>,
}

/// Serves the supervisor's requests until the supervisor ends, then kills the launchers.
pub(super) fn serve(
    channel: &Channel,
    lifetime: &OwnedFd,
    context: &SpawnerContext,
) -> Result<(), Failure> {
    let signals = child_signals()?;
    let mut launchers = BTreeMap::new();
    let mut buffer = Vec::new();
    loop {
        let mut fds = [
            PollFd::new(channel, PollFlags::IN),
            PollFd::new(lifetime, PollFlags::IN),
            PollFd::new(&signals, PollFlags::IN),
        ];
        poll_retrying(&mut fds, None).at(Step::Channel, "poll")?;
        let [request, runner, child] = fds.map(|fd| fd.revents());
        if !runner.is_empty() {
            break;
        }
        if !child.is_empty() {
            let mut sink = [0_u8; 1024];
            while rustix::io::read(&signals, &mut sink).is_ok_and(|count| count > 0) {}
            reap(channel, &mut launchers)?;
        }
        if !request.is_empty() {
            match channel.receive(&mut buffer) {
                Incoming::Closed => break,
                // The descriptors of a malformed packet are closed; the supervisor never sends such
                // packets.
                Incoming::Malformed | Incoming::Nothing => {}
                Incoming::Request(request, descriptors) => {
                    handle_request(channel, &mut launchers, context, request, descriptors)?;
                }
            }
        }
    }
    for launcher in launchers.values() {
        let _ = pidfd_send_signal(launcher, Signal::KILL);
    }
    Ok(())
}

fn handle_request(
    channel: &Channel,
    launchers: &mut BTreeMap<i32, OwnedFd>,
    context: &SpawnerContext,
    request: SpawnerRequest,
    mut descriptors: Vec<OwnedFd>,
) -> Result<(), Failure> {
    match request {
        SpawnerRequest::Launch { wrapper } => {
            let groups = descriptors.split_off(descriptors.len().min(3));
            let launched = match <[OwnedFd; 3]>::try_from(descriptors) {
                Ok(_) if launchers.len() >= LAUNCHERS => Err(Errno::AGAIN),
                Ok(given) => launch(&context.program, &wrapper, &given, &groups),
                Err(_) => Err(Errno::BADF),
            };
            match launched {
                Ok((pid, pidfd)) => {
                    let reply = SpawnerReply::Launched { pid };
                    match channel.send_with(&reply, &[pidfd.as_fd()]) {
                        Ok(()) => {
                            launchers.insert(pid, pidfd);
                            Ok(())
                        }
                        // Other processes of this uid used up the limit of descriptors in flight:
                        // fail this guest only. Its launcher is not in the map, so no exit is
                        // reported for it.
                        Err(failure) if is_in_flight_limit(failure.errno) => {
                            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                            let errno = failure.errno;
                            channel.send(&SpawnerReply::NotLaunched { errno })
                        }
                        Err(failure) => Err(failure),
                    }
                }
                Err(errno) => channel.send(&SpawnerReply::NotLaunched {
                    errno: errno.raw_os_error(),
                }),
            }
        }
        SpawnerRequest::Kill { pid } => {
            if let Some(launcher) = launchers.get(&pid) {
                let _ = pidfd_send_signal(launcher, Signal::KILL);
            }
            Ok(())
        }
        SpawnerRequest::Show { name, path } => {
            // A spawner started by root makes all its mounts before it drops root, and none later.
            let shown = context.place.as_ref().ok_or(Errno::PERM);
            let errno = shown.and_then(|place| place.show(&name, &path));
            let errno = errno.map_or_else(Errno::raw_os_error, |()| 0);
            channel.send(&SpawnerReply::Shown { errno })
        }
        SpawnerRequest::Expose => {
            let [mount] = match <[OwnedFd; 1]>::try_from(descriptors) {
                Ok(one) => one,
                Err(_) => {
                    let errno = libc::EBADF;
                    return channel.send(&SpawnerReply::Exposed { errno });
                }
            };
            // For an idmapped mount the kernel requires CAP_SYS_ADMIN over the file system's user
            // namespace. So of all descriptors that the supervisor may send, only the scratch tmpfs of
            // a launcher of this spawner is accepted.
            let done = set_idmap(mount.as_fd(), QUIET, context.exposed.as_fd());
            let errno = done.map_or_else(Errno::raw_os_error, |()| 0);
            channel.send(&SpawnerReply::Exposed { errno })
        }
        SpawnerRequest::Source { .. } => Err(Failure::rule(
            Step::Channel,
            "a host directory's descriptor, which came after the start",
        )),
    }
}

/// Starts the launcher, or the process wrapper around it, as the guest's kernel user without
/// capabilities.
fn launch(
    program: &OwnedFd,
    wrapper: &[String],
    given: &[OwnedFd; 3],
    groups: &[OwnedFd],
) -> Result<(i32, OwnedFd), Errno> {
    let strings = |list: &[String]| {
        let made: Result<Vec<_>, _> = list.iter().map(|one| CString::new(one.as_str())).collect();
        made.map_err(|_| Errno::INVAL)
    };
    let arguments = match wrapper {
        [] => vec![c"wp-codebox-launch".to_owned()],
        wrapper => strings(wrapper)?,
    };
    // SAFETY: this process has a single thread, so the child may run any code.
    match unsafe { libc::fork() } {
        -1 => Err(crate::mounting::last_errno()),
        0 => {
            // The child joins the cgroups itself (pid 0), because in cgroup v1 a user may move only
            // its own processes. A failure is ignored here; the isolation report states it.
            for group in groups {
                let _ = rustix::io::write(group, b"0");
            }
            let _ = start(program, wrapper.is_empty(), &arguments, given);
            // SAFETY: ends the child without running anything of the parent's state.
            unsafe { libc::_exit(127) }
        }
        raw => {
            let pid = Pid::from_raw(raw).ok_or(Errno::CHILD)?;
            let pidfd = pidfd_or_end(pid, || pidfd_open(pid, PidfdFlags::empty()))?;
            Ok((raw, pidfd))
        }
    }
}

/// Opens the pidfd of a new child; kills and reaps the child if that fails, such as with EMFILE: the
/// supervisor would never learn of this launcher. The child has not been reaped before, so its pid cannot
/// have been reused.
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

/// Executes the launcher in the child; returns only when that fails.
fn start(
    program: &OwnedFd,
    direct: bool,
    arguments: &[CString],
    given: &[OwnedFd; 3],
) -> Result<(), Errno> {
    become_user(GUEST)?;
    // The change of ids clears the parent-death signal, so it is set after that change. The
    // launcher sets it again in its own namespace.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let numbers = [LauncherFd::Plan, LauncherFd::Channel, LauncherFd::Lifetime];
    let above = LauncherFd::Lifetime as i32 + 1;
    // Move the descriptors to high numbers first: otherwise `dup2` of one could close another that
    // has the target number.
    let mut lifted = Vec::new();
    for fd in given {
        lifted.push(rustix::io::fcntl_dupfd_cloexec(fd, above)?);
    }
    let program = rustix::io::fcntl_dupfd_cloexec(program, above)?;
    let mut argv: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    argv.push(std::ptr::null());
    let environment = [std::ptr::null::<libc::c_char>()];
    // SAFETY: the target numbers are not used by anything that this child still needs; the signal
    // set is initialised before use; both lists end with a null pointer and outlive the calls.
    unsafe {
        for (fd, number) in lifted.iter().zip(numbers) {
            if libc::dup2(fd.as_raw_fd(), number as i32) < 0 {
                return Err(crate::mounting::last_errno());
            }
        }
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        // Create a process group, as the supervisor does for its direct children.
        libc::setpgid(0, 0);
        if direct {
            libc::syscall(
                libc::SYS_execveat,
                program.as_raw_fd(),
                c"".as_ptr(),
                argv.as_ptr(),
                environment.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
        } else if let Some(path) = arguments.first() {
            libc::execve(path.as_ptr(), argv.as_ptr(), environment.as_ptr());
        }
    }
    Err(crate::mounting::last_errno())
}

/// Reaps every ended child and tells the supervisor which launchers have ended.
fn reap(channel: &Channel, launchers: &mut BTreeMap<i32, OwnedFd>) -> Result<(), Failure> {
    loop {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are valid for writing for the length of the call.
        let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
        if pid <= 0 {
            return Ok(());
        }
        if launchers.remove(&pid).is_none() {
            continue;
        }
        // SAFETY: zeroed is a valid value, and wait4 filled it.
        let usage = unsafe { usage.assume_init() };
        let exited = libc::WIFEXITED(status);
        channel.send(&SpawnerReply::Ended {
            pid,
            code: exited.then(|| libc::WEXITSTATUS(status)),
            signal: (!exited).then(|| libc::WTERMSIG(status)),
            user_us: micros(usage.ru_utime),
            system_us: micros(usage.ru_stime),
        })?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn launcher_whose_pidfd_cannot_be_opened_is_killed_and_reaped() {
        let start = || Pid::from_child(&Command::new("sleep").arg("600").spawn().unwrap());
        let lost = start();
        let opened = pidfd_or_end(lost, || Err(Errno::MFILE));
        assert_eq!(opened.unwrap_err(), Errno::MFILE);
        let waited = waitpid(Some(lost), WaitOptions::NOHANG);
        assert_eq!(waited.unwrap_err(), Errno::CHILD);
        // Control: a launcher with a pidfd goes on.
        let kept = start();
        pidfd_or_end(kept, || pidfd_open(kept, PidfdFlags::empty())).unwrap();
        assert!(waitpid(Some(kept), WaitOptions::NOHANG).unwrap().is_none());
        kill_process(kept, Signal::KILL).unwrap();
        waitpid(Some(kept), WaitOptions::empty()).unwrap();
    }
}
