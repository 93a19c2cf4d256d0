//! The launcher proper after the fork: it waits, and it kills.
//!
//! It holds no capability any more. It ends the guest when the runner is gone, and the
//! kernel ends the guest when this process is gone.

use crate::channel::{Channel, poll_patiently};
use crate::error::{At, Failure, NOT_STARTED, Step};
use crate::privileges;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid,
};
use wp_codebox_contracts::GuestReply;

/// Tells the runner about pid 1 and waits for its end.
pub(crate) fn supervise(pid: i32, channel: &Channel, lifetime: &OwnedFd) -> Result<u8, Failure> {
    attend(pid, channel, lifetime, |guest| {
        privileges::drop_capabilities()?;
        privileges::no_new_privs()?;
        privileges::not_dumpable()?;
        channel.send_building(&GuestReply::Spawned { pid }, &[guest], lifetime)
    })
}

/// Does what is left to do beside the guest's first process, then waits for its end and
/// brings that about when the runner is gone. Tells the runner how it ended. Answers the exit
/// status of this program.
pub(crate) fn attend(
    pid: i32,
    channel: &Channel,
    lifetime: &OwnedFd,
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
        if poll_patiently(&mut fds, None).is_err() {
            let _ = pidfd_send_signal(&guest, Signal::KILL);
            break;
        }
        let [ended, runner] = fds.map(|fd| fd.revents());
        if !ended.is_empty() {
            break;
        }
        if !runner.is_empty() {
            let _ = pidfd_send_signal(&guest, Signal::KILL);
            break;
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
    // The exit status cannot say it: it may be a wrapper's, and 128 and a signal is a code, too.
    let _ = channel.send_now(&GuestReply::Over { code, signal });
    Ok(code
        .or_else(|| signal.map(|signal| 128 + signal))
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(NOT_STARTED))
}
