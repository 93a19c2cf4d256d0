//! The supervisor's end of the SEQPACKET socket to a launcher: JSON messages, with file descriptors
//! attached (SCM_RIGHTS).
//!
//! Received packets are untrusted: their size is limited, a truncated or malformed one yields an
//! error value, and unexpected file descriptors are closed.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Waits until `fd` is readable; returns false when it is not readable after `timeout`.
pub(crate) fn poll_in(fd: BorrowedFd<'_>, timeout: Duration) -> bool {
    let until = Instant::now() + timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [rustix::event::PollFd::from_borrowed_fd(
            fd,
            rustix::event::PollFlags::IN,
        )];
        match rustix::event::poll(&mut fds, Some(&timespec(left))) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
use wp_codebox_contracts::{GuestReply, GuestRequest};

/// Size limit in bytes of one packet on a launcher's socket, in both directions.
pub(crate) const PACKET: usize = 256 * 1024;
/// Maximum number of file descriptors accepted with one received packet.
const ACCEPTED: usize = 4;
/// Maximum number of file descriptors sent with one packet. The request to start a launcher has the
/// most: the three descriptors that the launcher inherits, and one `cgroup.procs` file per cgroup
/// hierarchy.
const SENT: usize = 8;

/// Result of one attempt to receive a packet.
#[derive(Debug)]
pub(crate) enum Received<T> {
    /// A message and its file descriptors.
    Message(Box<T>, Vec<OwnedFd>),
    /// A malformed packet; its file descriptors are closed.
    Malformed,
    /// No packet has arrived yet, or the kernel lacks memory to deliver it now.
    Empty,
    /// The launcher's end of the socket is closed.
    Closed,
}

/// Reason why a message could not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// The message is larger than [`PACKET`] or has more descriptors than [`SENT`].
    TooLarge,
    /// The launcher's end is closed, or the launcher did not read until the timeout.
    Gone,
    /// The kernel's limit on this user's descriptors in flight (sent, not received yet) is used up,
    /// or kernel memory is. A later attempt may succeed.
    Busy,
}

/// Maximum time that sending a request waits for space in a full socket buffer.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between two attempts to send while the limit on descriptors in flight or kernel memory is
/// used up. The sender polls, because the kernel reports no event when they become available again.
const PAUSE: Duration = Duration::from_millis(20);

/// Sending half of the socket to a launcher. Each send is one whole packet, so several threads may
/// use it.
#[derive(Debug)]
pub(crate) struct Sender(Arc<OwnedFd>);

/// Sending half that does not keep the socket open.
#[derive(Debug)]
pub(crate) struct WeakSender(Weak<OwnedFd>);

impl WeakSender {
    /// Returns the sending half, or `None` when the channel was dropped.
    pub(crate) fn upgrade(&self) -> Option<Sender> {
        self.0.upgrade().map(Sender)
    }
}

/// The supervisor's end of the socket to a launcher.
#[derive(Debug)]
pub(crate) struct Channel {
    sender: Sender,
    buffer: Vec<u8>,
}

impl Sender {
    pub(crate) fn weak(&self) -> WeakSender {
        WeakSender(Arc::downgrade(&self.0))
    }

    /// Sends one request with file descriptors; waits at most `timeout` for space in the socket
    /// buffer.
    pub(crate) fn send(
        &self,
        request: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(), SendFailure> {
        let bytes = serde_json::to_vec(request).map_err(|_| SendFailure::TooLarge)?;
        if bytes.len() > PACKET {
            return Err(SendFailure::TooLarge);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SENT))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(SendFailure::TooLarge);
        }
        let until = Instant::now() + timeout;
        loop {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match sendmsg(&*self.0, &[IoSlice::new(&bytes)], &mut control, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if Instant::now() < until => {
                    let mut fds = [PollFd::new(&*self.0, PollFlags::OUT)];
                    let _ = poll(&mut fds, Some(&timespec(Duration::from_millis(50))));
                }
                Err(Errno::MSGSIZE) => return Err(SendFailure::TooLarge),
                // unix(7): ETOOMANYREFS when more descriptors of this uid are in flight than this
                // process may open. The guest did not cause it and keeps running.
                Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => {
                    if Instant::now() >= until {
                        return Err(SendFailure::Busy);
                    }
                    // The sleep ends early when the other end is closed: `poll` always reports
                    // POLLHUP.
                    let mut fds = [PollFd::new(&*self.0, PollFlags::empty())];
                    let _ = poll(&mut fds, Some(&timespec(PAUSE)));
                }
                Err(_) => return Err(SendFailure::Gone),
            }
        }
    }
}

impl Channel {
    /// Creates a socket pair: the supervisor's end, and the launcher's end as a plain descriptor.
    pub(crate) fn pair() -> Result<(Self, OwnedFd), Errno> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // A packet must fit into the send buffer, and the default buffer is smaller than the
        // largest packet. The kernel doubles the value set here, to have space for its bookkeeping.
        for end in [&ours, &theirs] {
            sockopt::set_socket_send_buffer_size(end, 2 * PACKET)?;
        }
        let channel = Self {
            sender: Sender(Arc::new(ours)),
            buffer: vec![0; PACKET + 1],
        };
        Ok((channel, theirs))
    }

    /// Sends one request with file descriptors.
    pub(crate) fn send(
        &self,
        request: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SendFailure> {
        self.sender.send(request, descriptors, SEND_TIMEOUT)
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Receives one packet without blocking.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> Received<T> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ACCEPTED))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let result = loop {
            let mut parts = [IoSliceMut::new(&mut self.buffer)];
            match recvmsg(&*self.sender.0, &mut parts, &mut control, flags) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        let message = match result {
            Ok(message) => message,
            Err(Errno::AGAIN) => return Received::Empty,
            // On ENOMEM or ENOBUFS the packet stays queued; the other end is still open.
            Err(Errno::NOBUFS | Errno::NOMEM) => {
                let _ = poll(&mut [], Some(&timespec(PAUSE)));
                return Received::Empty;
            }
            Err(_) => return Received::Closed,
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
            return Received::Closed;
        }
        // The control buffer is aligned, so one or two more descriptors than the limit may fit.
        let cut = ReturnFlags::TRUNC | ReturnFlags::CTRUNC;
        if message.bytes > PACKET || descriptors.len() > ACCEPTED || message.flags.intersects(cut) {
            return Received::Malformed;
        }
        match serde_json::from_slice(&self.buffer[..message.bytes]) {
            Ok(reply) => Received::Message(Box::new(reply), descriptors),
            Err(_) => Received::Malformed,
        }
    }

    /// Waits until a packet can be received; returns false when none has arrived by `until`.
    pub(crate) fn wait(&self, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&*self.sender.0, PollFlags::IN)];
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sender.0.as_fd()
    }
}

/// Converts a duration to the kernel's type.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{Shutdown, send, shutdown};

    fn pair() -> (Channel, OwnedFd) {
        Channel::pair().unwrap()
    }

    #[test]
    fn receive_distinguishes_a_message_a_malformed_packet_and_a_closed_socket() {
        let (mut ours, theirs) = pair();
        assert!(matches!(ours.receive::<GuestReply>(), Received::Empty));
        send(&theirs, b"{\"type\":\"no\"}", SendFlags::empty()).unwrap();
        assert!(matches!(ours.receive::<GuestReply>(), Received::Malformed));
        let good = serde_json::to_vec(&GuestReply::ConnectFailed {
            ticket: 7,
            errno: 1,
        })
        .unwrap();
        send(&theirs, &good, SendFlags::empty()).unwrap();
        let Received::Message(reply, fds) = ours.receive() else {
            panic!("no message");
        };
        assert_eq!(
            (*reply, fds.len()),
            (
                GuestReply::ConnectFailed {
                    ticket: 7,
                    errno: 1
                },
                0
            )
        );
        drop(theirs);
        // A program that another test starts holds a copy of `theirs` until its exec.
        assert!(ours.wait(Instant::now() + Duration::from_secs(60)));
        assert!(matches!(ours.receive::<GuestReply>(), Received::Closed));
    }

    #[test]
    fn packet_above_the_size_limit_is_malformed_and_one_at_the_limit_is_received() {
        let (mut ours, theirs) = pair();
        send(&theirs, &vec![b' '; PACKET + 10], SendFlags::empty()).unwrap();
        assert!(matches!(ours.receive::<GuestReply>(), Received::Malformed));
        let mut good = serde_json::to_vec(&GuestReply::ConnectFailed {
            ticket: 1,
            errno: 1,
        })
        .unwrap();
        good.resize(PACKET, b' ');
        send(&theirs, &good, SendFlags::empty()).unwrap();
        assert!(matches!(
            ours.receive::<GuestReply>(),
            Received::Message(..)
        ));
    }

    #[test]
    fn packet_with_too_many_descriptors_is_malformed() {
        let (mut ours, theirs) = pair();
        let layer = serde_json::to_vec(&GuestReply::ConnectFailed {
            ticket: 7,
            errno: 1,
        })
        .unwrap();
        for count in 0..=12 {
            let passed = vec![theirs.as_fd(); count];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(12))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(count == 0 || control.push(SendAncillaryMessage::ScmRights(&passed)));
            let parts = [IoSlice::new(&layer)];
            sendmsg(&theirs, &parts, &mut control, SendFlags::empty()).unwrap();
            match ours.receive::<GuestReply>() {
                Received::Message(_, fds) => assert!(count <= 4 && fds.len() == count, "{count}"),
                other => assert!(count > 4 && matches!(other, Received::Malformed), "{count}"),
            }
        }
    }

    #[test]
    fn send_to_a_closed_peer_returns_an_error_without_sigpipe() {
        let (ours, theirs) = pair();
        // Closing is not enough: a program that another test starts holds a copy until its exec.
        shutdown(&theirs, Shutdown::Both).unwrap();
        let sent = ours.send(&GuestRequest::Shutdown, &[]);
        assert_eq!(sent, Err(SendFailure::Gone));
    }

    /// A seed that is not valid JSON would keep the fuzzer from the code that handles each kind of
    /// reply.
    #[test]
    fn fuzzer_seeds_cover_every_kind_of_reply() {
        let root = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        let seeds = std::fs::read_dir(format!("{root}/../../../tests/fuzz/corpus/guest_reply"));
        let mut kinds = std::collections::BTreeSet::new();
        for seed in seeds
            .unwrap()
            .flatten()
            .filter(|seed| seed.file_name() != "noise")
        {
            for packet in std::fs::read(seed.path())
                .unwrap()
                .split(|byte| *byte == b'\n')
            {
                // The first byte of a seed is the number of descriptors.
                let reply: GuestReply = serde_json::from_slice(&packet[1..])
                    .unwrap_or_else(|error| panic!("{:?}: {error}", seed.file_name()));
                kinds.insert(serde_json::to_value(reply).unwrap()["type"].to_string());
            }
        }
        assert_eq!(kinds.len(), 13, "{kinds:?}");
    }
}
