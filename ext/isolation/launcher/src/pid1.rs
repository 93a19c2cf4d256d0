//! From fork to the `Ready` message: the order in which the guest is cut off from the host.
//!
//! Namespaces are configured first, while capabilities over them exist. Then resource limits,
//! capabilities, Landlock and seccomp take effect in this order, because each step needs what a
//! later one removes. The probes run last, under all restrictions. A self-test ends here with the
//! report of the probes.

use crate::channel::Channel;
use crate::error::{At, Failure, NOT_STARTED, Step};
use crate::seccomp::CallList;
use crate::shortfall::Shortfalls;
use crate::{init, landlock, namespaces, privileges, probe, rootfs, seccomp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::Signal;
use wp_codebox_contracts::{CallSet, GuestReply, LaunchPlan, LaunchPurpose};

/// Runs as pid 1 of the guest until the guest ends; returns the exit status for this process.
pub(crate) fn run(
    plan: &LaunchPlan,
    channel: &Channel,
    lifetime: &OwnedFd,
    launcher: OwnedFd,
    shortfalls: Shortfalls,
) -> u8 {
    let built = build(plan, channel, lifetime, &launcher, shortfalls);
    let ends = [lifetime.as_fd(), launcher.as_fd()];
    let ended = built.and_then(|()| match plan.purpose {
        LaunchPurpose::Serve => init::serve(channel, ends),
        LaunchPurpose::Probe => {
            init::wait_for_runner_end(ends);
            Ok(())
        }
    });
    match ended {
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
    launcher: &OwnedFd,
    mut shortfalls: Shortfalls,
) -> Result<(), Failure> {
    die_with_launcher(launcher, lifetime)?;
    // Leave the launcher's session, so that no host terminal is this process's controlling
    // terminal.
    rustix::process::setsid().at(Step::ParentDeath, "setsid")?;
    let named = rustix::system::sethostname(plan.hostname.as_bytes());
    shortfalls.tolerate(named.at(Step::Hostname, "sethostname"))?;
    shortfalls.tolerate(namespaces::loopback_up())?;
    // Fails in containers that show /proc/sys read-only; then the host's default limits apply.
    let _ = namespaces::bound_tcp_memory();
    let before = probe::look_before()?;
    let built = rootfs::build(plan)?;
    if let Some(scratch) = &built.scratch {
        channel.send_building(&GuestReply::Scratch, &[scratch.as_fd()], lifetime)?;
    }
    for layer in built.layers {
        let message = GuestReply::Layer {
            index: layer.index,
            directory: layer.name,
        };
        // If the supervisor has received a mount of the scratch tmpfs, it finds the overlay's upper
        // directory there by name. Otherwise it needs a descriptor of the upper directory.
        match built.scratch {
            None => channel.send_building(&message, &[layer.upper.as_fd()], lifetime)?,
            Some(_) => channel.send(&message)?,
        }
    }
    drop(built.scratch);
    // Only the supervisor accepts on these sockets; the guest keeps no copy of the descriptors.
    if let Some(listeners) = built.egress {
        let both = [listeners.unix.as_fd(), listeners.tcp.as_fd()];
        channel.send_building(&GuestReply::Egress, &both, lifetime)?;
    }
    if let Some(listener) = built.mail {
        channel.send_building(&GuestReply::Mail, &[listener.as_fd()], lifetime)?;
    }
    shortfalls.tolerate(privileges::limit(&plan.limits, 0))?;
    shortfalls.tolerate(privileges::drop_capabilities())?;
    shortfalls.tolerate(privileges::no_new_privs())?;
    shortfalls.tolerate(privileges::not_dumpable())?;
    let restricted = shortfalls.tolerate(landlock::restrict(&plan.writable))?;
    shortfalls.tolerate(seccomp::install(match plan.calls {
        CallSet::Programs => CallList::Full,
        CallSet::Browser => CallList::Browser,
    }))?;
    let report = probe::run(
        plan,
        &before,
        &built.bound,
        restricted.unwrap_or(0),
        &shortfalls,
    )?;
    channel.send(&GuestReply::Ready { report })
}

/// Sets the parent-death signal and checks that the launcher is still alive. `getppid` cannot be
/// compared: it returns 0 in the new pid namespace.
fn die_with_launcher(launcher: &OwnedFd, lifetime: &OwnedFd) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .at(Step::ParentDeath, "prctl")?;
    let mut fds = [PollFd::new(launcher, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let gone = !matches!(poll(&mut fds, Some(&now)), Ok(0));
    if gone || init::runner_is_gone(lifetime) {
        return Err(Failure::rule(
            Step::ParentDeath,
            "launcher or runner, which has ended",
        ));
    }
    Ok(())
}
