//! `wp-codebox-launch`: builds one guest, stays its parent, and serves as its pid 1.
//!
//! With the argument `spawner` it plays another role, see `spawner`. Else the program takes no
//! arguments, and never an environment. It inherits three descriptors
//! (`contracts::LauncherFd`): the plan, the channel and the lifetime pipe. It is single
//! threaded from start to end: user namespaces cannot be entered otherwise, and its
//! forks may run any code. It is the only program of this project that creates
//! namespaces, mounts, Landlock rules or seccomp filters.
//!
//! Exit status: 0 after an orderly end, 125 when the guest could not be built, 128 and
//! the signal when the guest was killed.

mod channel;
mod connect;
mod egress;
mod error;
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

use channel::Channel;
use error::{At, Failure, NOT_STARTED, Step};
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
            // When even this cannot be sent, the exit status says it.
            let _ = channel.send(&failure.reply());
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// Takes the three descriptors and closes every other one; empties the environment.
fn descriptors() -> Result<(OwnedFd, OwnedFd, OwnedFd), Failure> {
    let last = LauncherFd::Lifetime as libc::c_uint;
    // SAFETY: no descriptor above the last is used by anything yet, and no other thread
    // reads the environment.
    unsafe {
        if libc::close_range(last + 1, libc::c_uint::MAX, 0) < 0 {
            return Err(std::io::Error::last_os_error()).at(Step::Descriptors, "close_range");
        }
        libc::clearenv();
    }
    let take = |which: LauncherFd| {
        let number = which as i32;
        // SAFETY: `fcntl` fails with EBADF for a number that is not open; after it succeeded,
        // the descriptor is ours alone: it came from exec.
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
    // A guest under host uid 0 would ignore the process limit and own the host's files.
    if rustix::process::geteuid().is_root() || rustix::process::getuid().is_root() {
        return Err(Failure::rule(Step::Root, "host uid 0"));
    }
    let plan = plan::read(plan)?;
    rustix::process::umask(rustix::fs::Mode::empty());
    match plan.level {
        IsolationLevel::Full => full(&plan, channel, lifetime),
        IsolationLevel::Reduced => reduced::launch(&plan, channel, lifetime),
        // The check of the plan refuses it already.
        IsolationLevel::None => Err(Failure::rule(Step::Plan, "level")),
    }
}

fn full(plan: &LaunchPlan, channel: &Channel, lifetime: &OwnedFd) -> Result<u8, Failure> {
    namespaces::enter_user(plan.guest_id)?;
    if plan.identity == PlanIdentity::Own {
        // Entering a user namespace clears the signal that the spawner asked for.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .at(Step::ParentDeath, "prctl")?;
    }
    let mut shortfalls = Shortfalls::new(plan.purpose);
    shortfalls.tolerate(privileges::limit_watches())?;
    namespaces::enter_others(&mut shortfalls)?;
    let own = rustix::process::getpid();
    let own = rustix::process::pidfd_open(own, PidfdFlags::empty()).at(Step::Fork, "pidfd")?;
    // SAFETY: this process has a single thread, so the child may run any code.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()).at(Step::Fork, "pid 1"),
        0 => Ok(pid1::run(plan, channel, lifetime, own, shortfalls)),
        pid => {
            drop(own);
            parent::supervise(pid, channel, lifetime)
        }
    }
}
