//! One end of the SEQPACKET channel: JSON messages, descriptors beside them.
//!
//! What arrives is untrusted: packets have a fixed largest size, a truncated or
//! malformed one is an error value, and descriptors nobody asked for are closed.

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

/// Waits for readability; false after `timeout`.
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

/// Largest packet either side accepts, bytes.
pub(crate) const PACKET: usize = 256 * 1024;
/// Most descriptors beside one packet that is accepted.
const ACCEPTED: usize = 4;
/// Most beside one that is sent: those of a launcher, and a file of members per hierarchy of its
/// control groups.
const SENT: usize = 8;

/// What one receive came to.
#[derive(Debug)]
pub(crate) enum Received<T> {
    /// A message and its descriptors.
    Message(Box<T>, Vec<OwnedFd>),
    /// Something that is no message; its descriptors are closed.
    Garbage,
    /// Nothing there yet.
    Empty,
    /// The other side is gone.
    Closed,
}

/// Why nothing could be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// The message is larger than [`PACKET`].
    TooLarge,
    /// The other side is gone or does not read.
    Gone,
    /// Other processes of this user have used up what passing descriptors needs; a later attempt
    /// may succeed.
    Busy,
}

/// How long a request may wait for room.
pub(crate) const ROOM: Duration = Duration::from_secs(2);

/// Pause between two attempts while a budget of the user, or the kernel's memory, is used up:
/// there is no event for its having room again.
const PAUSE: Duration = Duration::from_millis(20);

/// What sends on a channel. Whole messages, so that several may.
#[derive(Debug)]
pub(crate) struct Sender(Arc<OwnedFd>);

/// The same for somebody who must not keep the channel open.
#[derive(Debug)]
pub(crate) struct WeakSender(Weak<OwnedFd>);

impl WeakSender {
    /// Nothing: the channel is closed.
    pub(crate) fn upgrade(&self) -> Option<Sender> {
        self.0.upgrade().map(Sender)
    }
}

/// The runner's end.
#[derive(Debug)]
pub(crate) struct Channel {
    sender: Sender,
    buffer: Vec<u8>,
}

impl Sender {
    pub(crate) fn weak(&self) -> WeakSender {
        WeakSender(Arc::downgrade(&self.0))
    }

    /// Sends one request with descriptors; waits at most `patience` for room.
    pub(crate) fn send(
        &self,
        request: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
        patience: Duration,
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
        let until = Instant::now() + patience;
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
                // process may open. The guest is not to blame and lives on.
                Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => {
                    if Instant::now() >= until {
                        return Err(SendFailure::Busy);
                    }
                    // Ends early when the other side is gone: POLLHUP needs no asking.
                    let mut fds = [PollFd::new(&*self.0, PollFlags::empty())];
                    let _ = poll(&mut fds, Some(&timespec(PAUSE)));
                }
                Err(_) => return Err(SendFailure::Gone),
            }
        }
    }
}

impl Channel {
    /// A pair: our end, and the launcher's as a plain descriptor.
    pub(crate) fn pair() -> Result<(Self, OwnedFd), Errno> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // The default send buffer is smaller than the largest packet; the kernel doubles this value.
        for end in [&ours, &theirs] {
            sockopt::set_socket_send_buffer_size(end, 2 * PACKET)?;
        }
        let channel = Self {
            sender: Sender(Arc::new(ours)),
            buffer: vec![0; PACKET + 1],
        };
        Ok((channel, theirs))
    }

    /// Sends one request with descriptors.
    pub(crate) fn send(
        &self,
        request: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SendFailure> {
        self.sender.send(request, descriptors, ROOM)
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Receives without waiting.
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
            // The packet stays there; the other side is not gone because this host is short of memory.
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
        // The control buffer is aligned, so one or two descriptors more than asked for may fit.
        let cut = ReturnFlags::TRUNC | ReturnFlags::CTRUNC;
        if message.bytes > PACKET || descriptors.len() > ACCEPTED || message.flags.intersects(cut) {
            return Received::Garbage;
        }
        match serde_json::from_slice(&self.buffer[..message.bytes]) {
            Ok(reply) => Received::Message(Box::new(reply), descriptors),
            Err(_) => Received::Garbage,
        }
    }

    /// Waits until something can be received or `until` has come; false when it has.
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

/// A duration as the kernel takes it.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::send;

    fn pair() -> (Channel, OwnedFd) {
        Channel::pair().unwrap()
    }

    #[test]
    fn garbage_is_told_from_messages_and_the_end() {
        let (mut ours, theirs) = pair();
        assert!(matches!(ours.receive::<GuestReply>(), Received::Empty));
        send(&theirs, b"{\"type\":\"no\"}", SendFlags::empty()).unwrap();
        assert!(matches!(ours.receive::<GuestReply>(), Received::Garbage));
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
        assert!(matches!(ours.receive::<GuestReply>(), Received::Closed));
    }

    #[test]
    fn a_packet_over_the_limit_is_garbage_one_at_the_limit_passes_the_socket() {
        let (mut ours, theirs) = pair();
        send(&theirs, &vec![b' '; PACKET + 10], SendFlags::empty()).unwrap();
        assert!(matches!(ours.receive::<GuestReply>(), Received::Garbage));
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
    fn more_descriptors_than_any_message_has_are_garbage() {
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
                other => assert!(count > 4 && matches!(other, Received::Garbage), "{count}"),
            }
        }
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error_not_a_signal() {
        let (ours, theirs) = pair();
        drop(theirs);
        let sent = ours.send(&GuestRequest::Shutdown, &[]);
        assert_eq!(sent, Err(SendFailure::Gone));
    }

    /// A seed that is garbage shows the fuzzer nothing of the replies.
    #[test]
    fn seeds_of_the_fuzzer_are_replies_of_every_kind() {
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
                // Its first byte is the number of descriptors.
                let reply: GuestReply = serde_json::from_slice(&packet[1..])
                    .unwrap_or_else(|error| panic!("{:?}: {error}", seed.file_name()));
                kinds.insert(serde_json::to_value(reply).unwrap()["type"].to_string());
            }
        }
        assert_eq!(kinds.len(), 13, "{kinds:?}");
    }
}
