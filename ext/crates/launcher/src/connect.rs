//! Connections from outside to a server in the guest, made by pid 1.
//!
//! A socket belongs to the network namespace in which it was made: one that is made here and
//! handed to the runner is a way in without the runner ever entering the namespace. Pid 1
//! waits for nothing: a connection that does not come about at once is looked at again beside
//! everything else, and given up after a while.

use crate::channel::{Channel, is_shortage};
use crate::error::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};
use wp_codebox_contracts::GuestReply;

/// Connections that may be on their way at once.
const PENDING: usize = 32;
/// How long one may be on its way: a server whose queue is full answers nothing.
const PATIENCE: Duration = Duration::from_secs(3);

/// One that is on its way.
struct Pending {
    ticket: u64,
    socket: OwnedFd,
    until: Instant,
}

/// All that are on their way.
#[derive(Default)]
pub(crate) struct Connections {
    pending: Vec<Pending>,
}

impl Connections {
    /// Begins one; its end is told as soon as it is known.
    pub(crate) fn begin(
        &mut self,
        channel: &Channel,
        ticket: u64,
        port: u16,
    ) -> Result<(), Failure> {
        if self.pending.len() >= PENDING {
            return tell(channel, ticket, Err(Errno::AGAIN));
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match socket_with(AddressFamily::INET, SocketType::STREAM, flags, None) {
            Ok(socket) => socket,
            Err(errno) => return tell(channel, ticket, Err(errno)),
        };
        match connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
            Ok(()) => tell(channel, ticket, Ok(&socket)),
            Err(Errno::INPROGRESS | Errno::INTR) => {
                self.pending.push(Pending {
                    ticket,
                    socket,
                    until: Instant::now() + PATIENCE,
                });
                Ok(())
            }
            Err(errno) => tell(channel, ticket, Err(errno)),
        }
    }

    /// What to wait for.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.pending
            .iter()
            .map(|one| PollFd::new(&one.socket, PollFlags::OUT))
    }

    /// When the first of them is given up.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pending.iter().map(|one| one.until).min()
    }

    /// Tells of those that came to an end.
    pub(crate) fn settle(&mut self, channel: &Channel) -> Result<(), Failure> {
        let mut left = Vec::new();
        for one in self.pending.drain(..) {
            if done(&one.socket) {
                match sockopt::socket_error(&one.socket) {
                    Ok(Ok(())) => tell(channel, one.ticket, Ok(&one.socket))?,
                    Ok(Err(errno)) | Err(errno) => tell(channel, one.ticket, Err(errno))?,
                }
            } else if Instant::now() >= one.until {
                tell(channel, one.ticket, Err(Errno::TIMEDOUT))?;
            } else {
                left.push(one);
            }
        }
        self.pending = left;
        Ok(())
    }
}

fn done(socket: &OwnedFd) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(socket, PollFlags::OUT)];
    matches!(poll(&mut fds, Some(&now)), Ok(ready) if ready > 0)
}

fn tell(channel: &Channel, ticket: u64, end: Result<&OwnedFd, Errno>) -> Result<(), Failure> {
    let errno = match end {
        Ok(socket) => {
            let sent = channel.send_with(&GuestReply::Connected { ticket }, &[socket.as_fd()]);
            match sent {
                // Other processes of this uid used the budget up: this connection fails, not the guest.
                Err(failure) if is_shortage(failure.errno) => failure.errno,
                other => return other,
            }
        }
        Err(errno) => errno.raw_os_error(),
    };
    channel.send(&GuestReply::ConnectFailed { ticket, errno })
}
