//! `wp-codebox-launch`: builds one guest, stays its parent, and serves as its pid 1.
//!
//! With the argument `spawner` the program runs as a spawner, see the module `spawner`. Otherwise
//! it takes no arguments; it never uses its environment. It inherits three file descriptors
//! (`contracts::LauncherFd`): the plan, the channel and the lifetime socket. It stays
//! single-threaded: a multi-threaded process cannot enter a user namespace, and a forked child of a
//! single-threaded process may run any code. No other program of this project creates namespaces,
//! mounts, Landlock rules or seccomp filters.
//!
//! Exit status: 0 after an orderly end, 125 when the guest could not be built, 128 plus the signal
//! number when the guest was killed.

mod channel;
mod connect;
mod egress;
mod error;
mod guest_objects;
mod host_view;
mod init;
mod landlock;
mod mounting;
mod namespaces;
mod parent;
mod pid1;
mod plan;
mod privileges;
mod probe;
mod probe_reduced;
mod program;
mod reduced;
mod rootfs;
mod seccomp;
mod shortfall;
mod spawner;
mod stop;
mod syscalls;
mod syscalls_browser;
mod syscalls_reduced;
mod syscalls_sockets;
mod syscalls_unsupported;

use channel::Channel;
use error::{At, Failure, NOT_STARTED, Step};
use guest_objects::ObjectCounter;
use rustix::fd::{FromRawFd, OwnedFd};
use rustix::process::{PidfdFlags, Signal};
use shortfall::Shortfalls;
use std::process::ExitCode;
use wp_codebox_contracts::{IsolationLevel, LaunchPlan, LauncherFd, PlanIdentity, SPAWNER_ROLE};

fn main() -> ExitCode {
    let Ok((plan, channel, lifetime)) = descriptors() else {
        return ExitCode::from(NOT_STARTED);
    };
    let channel = Channel::new(channel);
    if std::env::args_os()
        .nth(1)
        .is_some_and(|role| role == SPAWNER_ROLE)
    {
        return spawner::main(plan, &channel, &lifetime);
    }
    match launch(plan, &channel, &lifetime) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            // If the reply cannot be sent, the exit status alone reports the failure.
            let _ = channel.send(&failure.reply());
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// Takes the three inherited file descriptors, closes all others and empties the environment.
fn descriptors() -> Result<(OwnedFd, OwnedFd, OwnedFd), Failure> {
    let last = LauncherFd::Lifetime as libc::c_uint;
    // SAFETY: no descriptor above the last is used by anything yet, and no other thread
    // reads the environment.
    unsafe {
        privileges::close_range(last + 1, 0).at(Step::Descriptors, "close_range")?;
        libc::clearenv();
    }
    let take = |which: LauncherFd| {
        let number = which as i32;
        // SAFETY: `fcntl` fails with EBADF for a number that is not open; a descriptor that is open
        // was inherited through `execve`, so no other code owns it.
        unsafe {
            if libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) < 0 {
                return Err(std::io::Error::last_os_error()).at(Step::Descriptors, "inherited");
            }
            Ok(OwnedFd::from_raw_fd(number))
        }
    };
    Ok((
        take(LauncherFd::Plan)?,
        take(LauncherFd::Channel)?,
        take(LauncherFd::Lifetime)?,
    ))
}

fn launch(plan: OwnedFd, channel: &Channel, lifetime: &OwnedFd) -> Result<u8, Failure> {
    // A process with host uid 0 is exempt from RLIMIT_NPROC and owns the host's files.
    if rustix::process::geteuid().is_root() || rustix::process::getuid().is_root() {
        return Err(Failure::rule(Step::Root, "host uid 0"));
    }
    let plan = plan::read(plan)?;
    rustix::process::umask(rustix::fs::Mode::empty());
    match plan.level {
        IsolationLevel::Full => full(&plan, channel, lifetime),
        IsolationLevel::Reduced => reduced::launch(&plan, channel, lifetime),
        // `plan::read` already refuses this level.
        IsolationLevel::None => Err(Failure::rule(
            Step::Plan,
            "level none, at which no guest is built",
        )),
    }
}

fn full(plan: &LaunchPlan, channel: &Channel, lifetime: &OwnedFd) -> Result<u8, Failure> {
    namespaces::enter_user(plan.guest_id)?;
    if plan.identity == PlanIdentity::Own {
        // Entering a user namespace clears the parent-death signal that the spawner set.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .at(Step::ParentDeath, "prctl")?;
    }
    let mut shortfalls = Shortfalls::new(plan.purpose);
    shortfalls.tolerate(privileges::limit_watches())?;
    namespaces::enter_others(&mut shortfalls)?;
    let own = rustix::process::getpid();
    let own = rustix::process::pidfd_open(own, PidfdFlags::empty()).at(Step::Fork, "pidfd")?;
    let processes = guest_objects::open_processes()?;
    // SAFETY: this process has a single thread, so the child may run any code.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()).at(Step::Fork, "pid 1"),
        0 => {
            drop(processes);
            Ok(pid1::run(plan, channel, lifetime, own, shortfalls))
        }
        pid => {
            drop(own);
            let objects = ObjectCounter::new(processes, pid);
            parent::supervise(pid, channel, lifetime, objects)
        }
    }
}
