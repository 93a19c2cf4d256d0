//! Level `reduced`: a guest without namespaces, for hosts that forbid them.
//!
//! Uses Landlock, seccomp and resource limits, with host files at their own paths. The launcher
//! first enters a Landlock domain of its own. From then on the launcher's `kill(-1)` signals
//! exactly its descendants, in one kernel operation that also reaches processes that fork
//! meanwhile, and no process of the guest can signal the launcher. The guest's first process enters
//! a nested domain, so with `kill(-1)` it can kill its own descendants if the launcher is killed.
//!
//! If another process kills the launcher and the guest's first process with SIGKILL at the same
//! moment, the programs keep running: without a pid namespace, the kernel does not end them with
//! the first process. The isolation report therefore rates the isolation of processes as best
//! effort.

use crate::channel::Channel;
use crate::error::{At, Failure, NOT_STARTED, Step};
use crate::landlock::{self, AllowedAccess, AllowedPath};
use crate::mounting::{is_directory, source};
use crate::seccomp::{self, CallList};
use crate::{init, parent, privileges, probe_reduced};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, test_kill_process, wait, waitpid};
use wp_codebox_contracts::{BindSource, GuestReply, LaunchMount, LaunchPlan, LaunchPurpose};

/// Builds the guest, waits for its end and kills its remaining processes.
pub(crate) fn launch(
    plan: &LaunchPlan,
    channel: &Channel,
    lifetime: &OwnedFd,
) -> Result<u8, Failure> {
    let places = open_allowed_paths(plan)?;
    let others = tasks_of_this_user();
    privileges::drop_any_capabilities()?;
    privileges::no_new_privs()?;
    privileges::not_dumpable()?;
    adopt_orphans()?;
    confine_signals()?;
    let own = rustix::process::getpid();
    let own_fd = pidfd_open(own, PidfdFlags::empty()).at(Step::Fork, "pidfd")?;
    // SAFETY: this process has a single thread, so the child may run any code.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()).at(Step::Fork, "first process"),
        0 => {
            let guest = Guest {
                plan,
                places: &places,
                others,
                launcher: own,
            };
            Ok(guest.run(channel, lifetime, &own_fd))
        }
        pid => {
            drop((own_fd, places));
            let answer = parent::wait_for_guest(pid, channel, lifetime, None, |guest| {
                channel.send_building(&GuestReply::Spawned { pid }, &[guest], lifetime)
            });
            end_everything();
            answer
        }
    }
}

/// Opens the host paths that the launch plan names. A path without a recorded inode must not belong
/// to this user: the guest runs as this user and could change mode and times of the file through a
/// descriptor.
fn open_allowed_paths(plan: &LaunchPlan) -> Result<Vec<AllowedPath>, Failure> {
    let mut places = Vec::new();
    for mount in &plan.mounts {
        let LaunchMount::Bind {
            source: BindSource::Host(host),
            target,
            writable,
        } = mount
        else {
            return Err(Failure::rule(
                Step::Plan,
                "a step that needs a mount, which level reduced does not have",
            ));
        };
        let about = if host.inode.is_some() {
            "the run's own tree"
        } else {
            target.as_str()
        };
        let fd = source(host).at(Step::Landlock, about)?;
        let stat = rustix::fs::fstat(&fd).at(Step::Landlock, about)?;
        let own = stat.st_uid == rustix::process::geteuid().as_raw();
        if own && host.inode.is_none() {
            return Err(Failure::rule(
                Step::Landlock,
                format!("{about}, which belongs to the guest's user"),
            ));
        }
        let directory = is_directory(fd.as_fd()).at(Step::Landlock, about)?;
        let kind = match (directory, writable) {
            (true, true) => AllowedAccess::Write,
            (true, false) => AllowedAccess::Read,
            (false, false) => AllowedAccess::File,
            (false, true) => return Err(Failure::rule(Step::Landlock, about)),
        };
        places.push(AllowedPath { fd, kind });
    }
    Ok(places)
}

/// Makes this process a child subreaper: orphaned processes of the guest become its children
/// instead of children of the host's init.
pub(crate) fn adopt_orphans() -> Result<(), Failure> {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes one number and touches no memory.
    let result = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    if result < 0 {
        return Err(std::io::Error::last_os_error()).at(Step::ParentDeath, "subreaper");
    }
    Ok(())
}

/// Enters a Landlock domain that confines signals, and checks that a child that was forked before
/// cannot be signalled any more. Without the check, `kill(-1)` could reach the supervisor and every
/// other process of this user.
fn confine_signals() -> Result<(), Failure> {
    let (wait, hold) = pipe_with(PipeFlags::CLOEXEC).at(Step::Fork, "pipe")?;
    // SAFETY: this process has a single thread; the child only reads and exits.
    let raw = unsafe { libc::fork() };
    if raw == 0 {
        drop(hold);
        // The read returns when the parent closes its write end, also if the parent is killed.
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(&wait, &mut [0_u8; 1]));
        // SAFETY: ends the child without running anything of the parent's state.
        unsafe { libc::_exit(0) }
    }
    let Some(outsider) = Pid::from_raw(raw).filter(|_| raw > 0) else {
        return Err(std::io::Error::last_os_error()).at(Step::Fork, "signal test process");
    };
    let before = test_kill_process(outsider);
    let confined = landlock::confine_signals();
    let after = test_kill_process(outsider);
    drop(hold);
    let _ = rustix::io::retry_on_intr(|| waitpid(Some(outsider), WaitOptions::empty()));
    confined?;
    if before.is_ok() && after == Err(Errno::PERM) {
        Ok(())
    } else {
        Err(Failure::rule(
            Step::Landlock,
            "the signal scope, which does not confine signals",
        ))
    }
}

/// Kills every other process in this process's Landlock domain and the domains below it, and waits
/// until they are gone. This process must be in a Landlock domain of its own that confines signals;
/// otherwise `kill(-1)` reaches processes outside the guest.
fn end_everything() {
    loop {
        // SAFETY: takes two numbers; the Landlock domain limits which processes the signal reaches.
        unsafe { libc::kill(-1, libc::SIGKILL) };
        // Wait for any child (-1): `waitpid` with 0 would wait for this process group only.
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            // ECHILD: no child is left. Orphans become children of this process, so no process of
            // the guest is left.
            Err(_) => return,
        }
    }
}

/// State of the guest's first process, which serves requests like pid 1 of a guest at level `full`.
struct Guest<'a> {
    plan: &'a LaunchPlan,
    places: &'a [AllowedPath],
    others: u64,
    launcher: Pid,
}

impl Guest<'_> {
    /// Serves requests until the guest ends; returns the exit status for this process.
    fn run(&self, channel: &Channel, lifetime: &OwnedFd, launcher: &OwnedFd) -> u8 {
        let ends = [lifetime.as_fd(), launcher.as_fd()];
        let answer = match self.build(channel) {
            Ok(()) => {
                let served = match self.plan.purpose {
                    LaunchPurpose::Serve => init::serve(channel, ends),
                    LaunchPurpose::Probe => {
                        init::wait_for_runner_end(ends);
                        Ok(())
                    }
                };
                end_everything();
                served
            }
            // This process may not be in a Landlock domain of its own yet. Then `kill(-1)` would
            // reach the launcher, so only the launcher kills what is left.
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(()) => 0,
            Err(failure) => {
                let _ = channel.send(&failure.reply());
                NOT_STARTED
            }
        }
    }

    fn build(&self, channel: &Channel) -> Result<(), Failure> {
        rustix::process::setsid().at(Step::ParentDeath, "setsid")?;
        adopt_orphans()?;
        privileges::limit(&self.plan.limits, self.others)?;
        let control = probe_reduced::control(self.launcher)?;
        let landlock_abi = landlock::restrict_to(self.places)?;
        seccomp::install(CallList::Reduced)?;
        let report = probe_reduced::run(self.plan, &control, landlock_abi)?;
        channel.send(&GuestReply::Ready { report })
    }
}

/// Returns how many threads of this user exist now. RLIMIT_NPROC counts them together with the
/// guest's threads, so they are added to the limit.
fn tasks_of_this_user() -> u64 {
    let own = rustix::process::getuid().as_raw().to_string();
    let mut count = 0_u64;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let numeric = entry
            .file_name()
            .to_string_lossy()
            .bytes()
            .all(|b| b.is_ascii_digit());
        let status = numeric.then(|| std::fs::read_to_string(entry.path().join("status")));
        let Some(Ok(status)) = status else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()
        };
        if field("Uid:") == Some(own.as_str()) {
            let threads = field("Threads:").and_then(|n| n.parse::<u64>().ok());
            count = count.saturating_add(threads.unwrap_or(1));
        }
    }
    count
}
