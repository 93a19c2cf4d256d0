//! From fork to `Ready`: the order in which a guest loses sight of the host.
//!
//! Namespaced things are set up while capabilities over them exist; then limits,
//! capabilities, Landlock and seccomp take effect in this order, each needing what the
//! next one removes. The probes run last, under everything.

use crate::NOT_STARTED;
use crate::channel::Channel;
use crate::error::{At, Failure, Step};
use crate::{init, landlock, namespaces, privileges, probe, rootfs, seccomp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::Signal;
use wp_codebox_contracts::{GuestReply, LaunchPlan};

/// Runs as pid 1 of the guest until its end; returns the exit status.
pub(crate) fn run(
    plan: &LaunchPlan,
    channel: &Channel,
    lifetime: &OwnedFd,
    launcher: OwnedFd,
) -> u8 {
    match build(plan, channel, lifetime, launcher).and_then(|()| init::serve(channel, lifetime)) {
        Ok(()) => 0,
        Err(failure) => {
            let _ = channel.send(&failure.reply());
            NOT_STARTED
        }
    }
}

fn build(
    plan: &LaunchPlan,
    channel: &Channel,
    lifetime: &OwnedFd,
    launcher: OwnedFd,
) -> Result<(), Failure> {
    follow(launcher, lifetime)?;
    // Out of the launcher's session: no terminal of the host is this process's.
    rustix::process::setsid().at(Step::ParentDeath, "setsid")?;
    rustix::system::sethostname(plan.hostname.as_bytes()).at(Step::Hostname, "sethostname")?;
    namespaces::loopback_up()?;
    let host = probe::host_root()?;
    let built = rootfs::build(plan)?;
    for layer in built.layers {
        let message = GuestReply::Layer { index: layer.index };
        channel.send_with(&message, &[layer.upper.as_fd()])?;
    }
    // The runner accepts on them from outside; no copy stays in the guest.
    if let Some(listeners) = built.egress {
        let both = [listeners.unix.as_fd(), listeners.tcp.as_fd()];
        channel.send_with(&GuestReply::Egress, &both)?;
    }
    privileges::limit(&plan.limits)?;
    privileges::drop_capabilities()?;
    privileges::no_new_privs()?;
    privileges::not_dumpable()?;
    let landlock_abi = landlock::restrict(&plan.writable)?;
    seccomp::install()?;
    let report = probe::run(plan, &host, landlock_abi)?;
    channel.send(&GuestReply::Ready { report })
}

/// Dies with the launcher. The parent's number cannot be compared: it is 0 from in here.
fn follow(launcher: OwnedFd, lifetime: &OwnedFd) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .at(Step::ParentDeath, "prctl")?;
    let mut fds = [PollFd::new(&launcher, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let gone = !matches!(poll(&mut fds, Some(&now)), Ok(0));
    if gone || init::runner_is_gone(lifetime) {
        return Err(Failure::rule(Step::ParentDeath, "already gone"));
    }
    Ok(())
}
