//! The guest's end of the SEQPACKET channel: JSON messages, descriptors beside them.

use crate::error::{At, Failure, Step};
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

/// Largest packet, bytes; the runner keeps to the same size.
const PACKET: usize = 256 * 1024;
/// Most descriptors beside one packet.
const DESCRIPTORS: usize = 4;

/// What arrived.
pub(crate) enum Incoming<T> {
    /// A request and its descriptors.
    Request(T, Vec<OwnedFd>),
    /// Something that is no request; its descriptors are closed.
    Malformed,
    /// The runner is gone.
    Closed,
}

/// One end of the channel.
pub(crate) struct Channel {
    socket: OwnedFd,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Sends a message, waiting for room.
    pub(crate) fn send(&self, reply: &impl Serialize) -> Result<(), Failure> {
        self.send_with(reply, &[])
    }

    /// Sends a message with descriptors.
    pub(crate) fn send_with(
        &self,
        reply: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(reply)
            .map_err(|_| Failure::rule(Step::Channel, "a message that is no JSON"))?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(Failure::rule(Step::Channel, "too many descriptors"));
        }
        rustix::io::retry_on_intr(|| {
            let parts = [IoSlice::new(&bytes)];
            sendmsg(&self.socket, &parts, &mut control, SendFlags::NOSIGNAL)
        })
        .map(drop)
        .at(Step::Channel, "sendmsg")
    }

    /// Receives one packet; called when the socket is readable.
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
        let Ok(message) = result else {
            return Incoming::Closed;
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
        let whole = message.bytes <= PACKET
            && !message
                .flags
                .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
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
