//! Connections from the supervisor to a server in the guest, opened by pid 1.
//!
//! A socket belongs to the network namespace in which it was created. Pid 1 creates and connects a
//! socket in the guest and sends it to the supervisor, so the supervisor never enters the namespace.
//! Connects are non-blocking: pid 1 polls pending ones together with its other descriptors and
//! drops them after [`CONNECT_TIMEOUT`].

use crate::channel::{Channel, is_in_flight_limit};
use crate::error::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};
use wp_codebox_contracts::GuestReply;

/// Maximum number of connects that pid 1 has in progress at the same time.
const PENDING: usize = 32;
/// Maximum duration of one connect. It is needed because a server with a full accept queue does not
/// answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A connect that is still in progress. `ticket` is the number by which the supervisor recognises the
/// result of its request.
struct Pending {
    ticket: u64,
    socket: OwnedFd,
    until: Instant,
}

/// All connects that pid 1 has in progress.
#[derive(Default)]
pub(crate) struct Connections {
    pending: Vec<Pending>,
}

impl Connections {
    /// Starts a connect to `port` on the guest's 127.0.0.1. The supervisor gets the result in a message
    /// with the number `ticket`, at once or from [`Self::settle`].
    pub(crate) fn begin(
        &mut self,
        channel: &Channel,
        ticket: u64,
        port: u16,
    ) -> Result<(), Failure> {
        if self.pending.len() >= PENDING {
            return report_result(channel, ticket, Err(Errno::AGAIN));
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match socket_with(AddressFamily::INET, SocketType::STREAM, flags, None) {
            Ok(socket) => socket,
            Err(errno) => return report_result(channel, ticket, Err(errno)),
        };
        match connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
            Ok(()) => report_result(channel, ticket, Ok(&socket)),
            Err(Errno::INPROGRESS | Errno::INTR) => {
                self.pending.push(Pending {
                    ticket,
                    socket,
                    until: Instant::now() + CONNECT_TIMEOUT,
                });
                Ok(())
            }
            Err(errno) => report_result(channel, ticket, Err(errno)),
        }
    }

    /// Returns the sockets for which `poll` must wait until they are connected.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.pending
            .iter()
            .map(|one| PollFd::new(&one.socket, PollFlags::OUT))
    }

    /// Returns the earliest deadline of the connects in progress; `None` when there are none.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pending.iter().map(|one| one.until).min()
    }

    /// Sends the supervisor the results of connects that finished or timed out.
    pub(crate) fn settle(&mut self, channel: &Channel) -> Result<(), Failure> {
        let mut left = Vec::new();
        for one in self.pending.drain(..) {
            if done(&one.socket) {
                match sockopt::socket_error(&one.socket) {
                    Ok(Ok(())) => report_result(channel, one.ticket, Ok(&one.socket))?,
                    Ok(Err(errno)) | Err(errno) => report_result(channel, one.ticket, Err(errno))?,
                }
            } else if Instant::now() >= one.until {
                report_result(channel, one.ticket, Err(Errno::TIMEDOUT))?;
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

fn report_result(
    channel: &Channel,
    ticket: u64,
    end: Result<&OwnedFd, Errno>,
) -> Result<(), Failure> {
    let errno = match end {
        Ok(socket) => {
            let sent = channel.send_with(&GuestReply::Connected { ticket }, &[socket.as_fd()]);
            match sent {
                // Other processes of this uid have used up the limit on descriptors in flight: fail
                // this connection, not the guest.
                Err(failure) if is_in_flight_limit(failure.errno) => failure.errno,
                other => return other,
            }
        }
        Err(errno) => errno.raw_os_error(),
    };
    channel.send(&GuestReply::ConnectFailed { ticket, errno })
}
