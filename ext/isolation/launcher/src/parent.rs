//! The launcher process after it has forked the guest's pid 1: waits for pid 1, kills it when the
//! supervisor ends, and counts objects of the guest for the supervisor.
//!
//! At level `full` the launcher keeps one capability over the guest's user namespace,
//! CAP_SYS_PTRACE, to count descriptors that programs hide. It executes no program and is not
//! visible in the guest. The parent-death signal ends the guest when the launcher ends.

use crate::channel::{Channel, poll_retrying};
use crate::error::{At, Failure, NOT_STARTED, Step};
use crate::guest_objects::ObjectCounter;
use crate::privileges;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid,
};
use rustix::thread::CapabilitySet;
use wp_codebox_contracts::GuestReply;

/// Sends the supervisor a pidfd of the guest's pid 1 and waits until pid 1 ends; returns the exit
/// status for the launcher.
pub(crate) fn supervise(
    pid: i32,
    channel: &Channel,
    lifetime: &OwnedFd,
    objects: ObjectCounter,
) -> Result<u8, Failure> {
    wait_for_guest(pid, channel, lifetime, Some(objects), |guest| {
        privileges::drop_capabilities_except(CapabilitySet::SYS_PTRACE)?;
        privileges::no_new_privs()?;
        privileges::not_dumpable()?;
        channel.send_building(&GuestReply::Spawned { pid }, &[guest], lifetime)
    })
}

/// Runs `begin` with a pidfd of the guest's first process, then waits until that process ends. Kills
/// the process when `begin` fails or the supervisor ends. Reports to the supervisor how the process ended,
/// and returns the exit status of this program. Answers the supervisor's packets on the lifetime socket
/// with a count of `objects`, unless the last count was too short ago.
pub(crate) fn wait_for_guest(
    pid: i32,
    channel: &Channel,
    lifetime: &OwnedFd,
    mut objects: Option<ObjectCounter>,
    begin: impl FnOnce(BorrowedFd<'_>) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    let child = Pid::from_raw(pid).ok_or_else(|| Failure::rule(Step::Fork, "pid"))?;
    let guest = pidfd_open(child, PidfdFlags::empty()).at(Step::Fork, "pidfd of pid 1")?;
    let ready = begin(guest.as_fd());
    if ready.is_err() {
        let _ = pidfd_send_signal(&guest, Signal::KILL);
    }
    loop {
        let mut fds = [
            PollFd::new(&guest, PollFlags::IN),
            PollFd::new(lifetime, PollFlags::IN),
        ];
        if poll_retrying(&mut fds, None).is_err() {
            let _ = pidfd_send_signal(&guest, Signal::KILL);
            break;
        }
        let [ended, runner] = fds.map(|fd| fd.revents());
        if !ended.is_empty() {
            break;
        }
        if runner.is_empty() {
            continue;
        }
        let mut most = [0; 8];
        let asked = recv(lifetime, &mut most, RecvFlags::DONTWAIT);
        match (&mut objects, asked) {
            (Some(objects), Ok((1.., _))) => {
                if let Some(count) = objects.count(u64::from_le_bytes(most)) {
                    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                    let _ = send(lifetime, &count.to_bytes(), flags);
                }
            }
            (_, Err(Errno::AGAIN | Errno::INTR)) => {}
            (_, Ok(_) | Err(_)) => {
                let _ = pidfd_send_signal(&guest, Signal::KILL);
                break;
            }
        }
    }
    let status = loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    ready?;
    let Ok(Some((_, status))) = status else {
        return Ok(NOT_STARTED);
    };
    let (code, signal) = (status.exit_status(), status.terminating_signal());
    // The exit status of the launcher does not suffice: a process wrapper may replace it, and a
    // process may itself exit with 128 plus a signal number.
    let _ = channel.send_now(&GuestReply::Over { code, signal });
    Ok(code
        .or_else(|| signal.map(|signal| 128 + signal))
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(NOT_STARTED))
}
