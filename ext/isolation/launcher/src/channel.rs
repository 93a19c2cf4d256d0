//! Socket (SEQPACKET) over which the launcher, the guest's pid 1 and the spawner exchange messages
//! with the supervisor: JSON, with file descriptors attached (SCM_RIGHTS).

use crate::error::{At, Failure, Step};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};
use wp_codebox_contracts::GuestReply;

/// Maximum size of a packet in bytes; the supervisor uses the same limit.
const PACKET: usize = 256 * 1024;
/// Maximum number of file descriptors attached to one packet, in either direction.
const DESCRIPTORS: usize = 8;
/// Maximum time for sending file descriptors while the kernel answers ETOOMANYREFS. All processes
/// of the uid share the limit on descriptors in flight (sent, not received yet).
const IN_FLIGHT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two attempts to send or receive.
const RETRY_PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// Returns whether an errno of `sendmsg` or `recvmsg` means a shortage that may end without any
/// action of this process: no kernel memory, no free descriptor, or too many descriptors in flight.
/// unix(7): ETOOMANYREFS when more descriptors are in flight (sent, not received yet) than
/// RLIMIT_NOFILE of the sender allows; all processes of the uid count together.
pub(crate) fn is_in_flight_limit(errno: i32) -> bool {
    matches!(
        errno,
        libc::ETOOMANYREFS | libc::ENOBUFS | libc::ENOMEM | libc::EMFILE | libc::ENFILE
    )
}

/// Calls `poll`. EINTR and ENOMEM count as a timeout, so no descriptor is reported ready. After
/// ENOMEM, it sleeps briefly before it returns, with a `poll` call for which the kernel allocates
/// nothing.
pub(crate) fn poll_retrying(
    fds: &mut [PollFd<'_>],
    timeout: Option<&Timespec>,
) -> Result<(), Errno> {
    match poll(fds, timeout) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(Errno::NOMEM) => {
            let _ = poll(&mut [], Some(&RETRY_PAUSE));
            Ok(())
        }
        Err(errno) => Err(errno),
    }
}

/// Result of one attempt to receive a packet.
pub(crate) enum Incoming<T> {
    /// A request and its file descriptors.
    Request(T, Vec<OwnedFd>),
    /// A packet that is not a valid request; its file descriptors are closed.
    Malformed,
    /// The kernel could not deliver the packet now, e.g. for lack of memory (see
    /// [`is_in_flight_limit`]). The packet stays in the socket.
    Nothing,
    /// The supervisor closed its end.
    Closed,
}

/// This process's end of the socket to the supervisor.
pub(crate) struct Channel {
    socket: OwnedFd,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Sends a message. Waits while the socket buffer is full or the kernel has no memory, because
    /// a short ENOMEM on the host must not end the guest. Fails when the supervisor's end is closed.
    pub(crate) fn send(&self, reply: &impl Serialize) -> Result<(), Failure> {
        loop {
            match self.send_with(reply, &[]) {
                Err(failure)
                    if is_in_flight_limit(failure.errno) && !self.is_closed_after_pause() => {}
                other => return other,
            }
        }
    }

    /// Waits for [`RETRY_PAUSE`], or until the supervisor's end is closed, and returns whether it is
    /// closed. `poll` reports POLLHUP even with an empty set of events.
    fn is_closed_after_pause(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::empty())];
        matches!(poll(&mut fds, Some(&RETRY_PAUSE)), Ok(ready) if ready > 0)
    }

    /// Sends a message with file descriptors.
    pub(crate) fn send_with(
        &self,
        reply: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Failure> {
        self.send_once(reply, descriptors, SendFlags::NOSIGNAL)
    }

    /// Sends a message only if the socket buffer has room now, so a supervisor that does not read
    /// cannot block this process.
    pub(crate) fn send_now(&self, reply: &impl Serialize) -> Result<(), Failure> {
        self.send_once(reply, &[], SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    fn send_once(
        &self,
        reply: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(reply).map_err(|_| {
            Failure::rule(Step::Channel, "a message that cannot be written as JSON")
        })?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(Failure::rule(
                Step::Channel,
                "a message with more than 8 descriptors",
            ));
        }
        rustix::io::retry_on_intr(|| {
            let parts = [IoSlice::new(&bytes)];
            sendmsg(&self.socket, &parts, &mut control, flags)
        })
        .map(drop)
        .at(Step::Channel, "sendmsg")
    }

    /// Sends a message with file descriptors while the guest is being built. Retries for at most
    /// [`IN_FLIGHT_TIMEOUT`] while too many descriptors are in flight, and gives up early when
    /// `lifetime` shows that the supervisor has ended.
    pub(crate) fn send_building(
        &self,
        reply: &GuestReply,
        descriptors: &[BorrowedFd<'_>],
        lifetime: &OwnedFd,
    ) -> Result<(), Failure> {
        let until = Instant::now() + IN_FLIGHT_TIMEOUT;
        loop {
            match self.send_with(reply, descriptors) {
                Err(failure) if is_in_flight_limit(failure.errno) && Instant::now() < until => {
                    let mut fds = [PollFd::new(lifetime, PollFlags::IN)];
                    if matches!(poll(&mut fds, Some(&RETRY_PAUSE)), Ok(ready) if ready > 0) {
                        return Err(failure);
                    }
                }
                other => return other,
            }
        }
    }

    /// Receives one packet. Blocks until one arrives, so a caller that must not block calls `poll`
    /// first.
    pub(crate) fn receive<T: DeserializeOwned>(&self, buffer: &mut Vec<u8>) -> Incoming<T> {
        buffer.resize(PACKET + 1, 0);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let result = loop {
            let mut parts = [IoSliceMut::new(buffer)];
            match recvmsg(
                &self.socket,
                &mut parts,
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            ) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        let message = match result {
            Ok(message) => message,
            Err(errno) if is_in_flight_limit(errno.raw_os_error()) => {
                // After this pause the caller polls again; the socket is still readable, so that
                // poll returns at once.
                let _ = poll(&mut [], Some(&RETRY_PAUSE));
                return Incoming::Nothing;
            }
            Err(_) => return Incoming::Closed,
        };
        let descriptors: Vec<OwnedFd> = control
            .drain()
            .filter_map(|part| match part {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        if message.bytes == 0 {
            return Incoming::Closed;
        }
        // A packet with truncated file descriptors still yields its request, so the handler can
        // answer with the request's id and an error.
        let whole = message.bytes <= PACKET && !message.flags.contains(ReturnFlags::TRUNC);
        match buffer.get(..message.bytes).map(serde_json::from_slice) {
            Some(Ok(request)) if whole => Incoming::Request(request, descriptors),
            _ => Incoming::Malformed,
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::{AsRawFd, FromRawFd};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::sync::mpsc;

    /// What happens to a system call that the filter of [`trap`] has blocked: the call fails with
    /// an errno, or the kernel executes the call.
    #[derive(Clone, Copy)]
    enum Kernel {
        Fails(i32),
        GoesOn,
    }

    /// ioctl numbers `_IOWR('!', 0, struct seccomp_notif)` and `_IOWR('!', 1, struct
    /// seccomp_notif_resp)`.
    const RECEIVE: u64 = 0xC050_2100;
    const ANSWER: u64 = 0xC018_2101;

    /// Installs a seccomp filter on this thread: system calls with these numbers block until
    /// [`answer`] lets them fail or run. Returns the filter's notification descriptor.
    fn trap(calls: [i64; 2]) -> OwnedFd {
        let rule = |code: u32, jt, jf, k| libc::sock_filter {
            code: u16::try_from(code).unwrap(),
            jt,
            jf,
            k,
        };
        let [first, second] = calls.map(|call| u32::try_from(call).unwrap());
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        let give = libc::BPF_RET | libc::BPF_K;
        let mut rules = [
            rule(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            rule(equal, 2, 0, first),
            rule(equal, 1, 0, second),
            rule(give, 0, 0, libc::SECCOMP_RET_ALLOW),
            rule(give, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        ];
        let program = libc::sock_fprog {
            len: 5,
            filter: rules.as_mut_ptr(),
        };
        // SAFETY: `program` and its rules live until the call returns, which gives a new
        // descriptor; the filter applies to this thread only.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            let fd = libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
                &raw const program,
            );
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            OwnedFd::from_raw_fd(i32::try_from(fd).unwrap())
        }
    }

    /// Waits until the thread with the filter is blocked in a system call, lets this call fail or
    /// run as `kernel` says, and returns its number.
    fn answer(trap: &OwnedFd, kernel: Kernel) -> i64 {
        // SAFETY: zeroed is valid for both structures, their sizes match those encoded in the ioctl
        // numbers, and they live until the calls return.
        unsafe {
            let mut call: libc::seccomp_notif = std::mem::zeroed();
            let got = libc::ioctl(trap.as_raw_fd(), RECEIVE, &raw mut call);
            assert_eq!(got, 0, "{}", std::io::Error::last_os_error());
            let mut reply: libc::seccomp_notif_resp = std::mem::zeroed();
            reply.id = call.id;
            match kernel {
                Kernel::Fails(errno) => reply.error = -errno,
                Kernel::GoesOn => reply.flags = 1,
            }
            let sent = libc::ioctl(trap.as_raw_fd(), ANSWER, &raw mut reply);
            assert_eq!(sent, 0, "{}", std::io::Error::last_os_error());
            i64::from(call.data.nr)
        }
    }

    /// Runs `work` in a new thread in which the system calls `calls` block. Meanwhile `kernel` uses
    /// [`answer`] to let each of them fail or run.
    fn with<T: Send + 'static>(
        calls: [i64; 2],
        work: impl FnOnce() -> T + Send + 'static,
        kernel: impl FnOnce(&OwnedFd),
    ) -> T {
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(trap(calls)).unwrap();
            work()
        });
        let trap = told.recv().unwrap();
        kernel(&trap);
        thread.join().unwrap()
    }

    fn pair() -> (Channel, OwnedFd) {
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        (Channel::new(ours), theirs)
    }

    const SENDING: [i64; 2] = [libc::SYS_sendmsg, libc::SYS_sendmsg];
    const POLLING: [i64; 2] = [libc::SYS_poll, libc::SYS_ppoll];

    #[test]
    fn send_retries_while_the_kernel_returns_enobufs_or_enomem() {
        let (ours, theirs) = pair();
        let sent = with(
            SENDING,
            move || ours.send(&GuestReply::Egress),
            |trap| {
                for errno in [libc::ENOBUFS, libc::ENOMEM, libc::ENOBUFS] {
                    answer(trap, Kernel::Fails(errno));
                }
                answer(trap, Kernel::GoesOn);
            },
        );
        assert_eq!(sent, Ok(()));
        let mut buffer = Vec::new();
        let arrived = Channel::new(theirs).receive::<GuestReply>(&mut buffer);
        assert!(matches!(arrived, Incoming::Request(GuestReply::Egress, _)));
    }

    #[test]
    fn send_fails_at_once_when_the_peer_is_closed_or_the_errno_is_eio() {
        let (ours, theirs) = pair();
        let sent = with(
            SENDING,
            move || ours.send(&GuestReply::Egress),
            |trap| {
                drop(theirs);
                answer(trap, Kernel::Fails(libc::ENOBUFS));
            },
        );
        assert_eq!(sent.map_err(|failure| failure.errno), Err(libc::ENOBUFS));
        let (ours, _theirs) = pair();
        let sent = with(
            SENDING,
            move || ours.send(&GuestReply::Egress),
            |trap| {
                answer(trap, Kernel::Fails(libc::EIO));
            },
        );
        assert_eq!(sent.map_err(|failure| failure.errno), Err(libc::EIO));
    }

    /// Without a pause after ENOBUFS, the caller would poll and receive in a busy loop, because the
    /// socket stays readable.
    #[test]
    fn receive_pauses_after_enobufs_and_then_returns_the_message() {
        let (ours, theirs) = pair();
        Channel::new(theirs).send(&GuestReply::Egress).unwrap();
        let mut calls = Vec::new();
        let arrived = with(
            [libc::SYS_recvmsg, libc::SYS_ppoll],
            move || {
                let mut buffer = Vec::new();
                let first = ours.receive::<GuestReply>(&mut buffer);
                assert!(matches!(first, Incoming::Nothing));
                ours.receive::<GuestReply>(&mut buffer)
            },
            |trap| {
                calls.push(answer(trap, Kernel::Fails(libc::ENOBUFS)));
                calls.push(answer(trap, Kernel::GoesOn));
                if calls.last() == Some(&libc::SYS_ppoll) {
                    calls.push(answer(trap, Kernel::GoesOn));
                }
            },
        );
        assert!(matches!(arrived, Incoming::Request(GuestReply::Egress, _)));
        assert_eq!(
            calls,
            [libc::SYS_recvmsg, libc::SYS_ppoll, libc::SYS_recvmsg]
        );
    }

    #[test]
    fn poll_treats_enomem_as_timeout_and_returns_other_errors() {
        let poll_of = |errno, goes_on: bool| {
            let (ours, theirs) = pair();
            drop(theirs);
            with(
                POLLING,
                move || {
                    let mut fds = [PollFd::new(&ours, PollFlags::IN)];
                    let polled = poll_retrying(&mut fds, None);
                    (polled, fds[0].revents().is_empty())
                },
                move |trap| {
                    answer(trap, Kernel::Fails(errno));
                    // After ENOMEM the code under test sleeps with a second `poll`, which must run.
                    if goes_on {
                        answer(trap, Kernel::GoesOn);
                    }
                },
            )
        };
        assert_eq!(poll_of(libc::ENOMEM, true), (Ok(()), true));
        assert_eq!(poll_of(libc::EINVAL, false), (Err(Errno::INVAL), true));
    }
}
