//! Unanswered requests to the guest's pid 1 for a connection, identified by ticket numbers.
//!
//! A reply with an unknown ticket is dropped, and its descriptors are closed.

use crate::channel::{SendFailure, Sender};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CodedError, GuestRequest};

/// Maximum wait for pid 1's answer. It is longer than the time after which pid 1 itself gives up
/// connecting.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of unanswered requests.
const MAX_PENDING: usize = 64;

/// Reason why no connection to a server in the guest was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, CodedError)]
#[code(PreviewUnavailable)]
pub enum ConnectError {
    /// The guest is dead.
    #[error("the sandbox has ended, so no connection to it can be made")]
    Gone,
    /// The guest could not connect to the port, for example because no server listens on it.
    #[error("port {port} of the sandbox cannot be reached: {}; check that a server in the sandbox listens on it", std::io::Error::from_raw_os_error(*.errno))]
    Refused {
        /// Requested port on the guest's 127.0.0.1.
        port: u16,
        /// Errno of the connect in the guest.
        errno: i32,
    },
    /// Pid 1 of the guest did not answer in time, or the request could not be sent to it now.
    #[error(
        "the sandbox did not take or answer a request to connect to its port {port} in time; try again"
    )]
    Silent {
        /// Requested port on the guest's 127.0.0.1.
        port: u16,
    },
    /// Too many requests are unanswered already.
    #[error("{MAX_PENDING} connections to the sandbox are pending already; try again later")]
    Busy,
}

type Answer = Box<dyn FnOnce(Result<OwnedFd, ConnectError>) + Send>;

/// A request to pid 1 that is not answered yet.
struct Ticket {
    port: u16,
    until: Instant,
    answer: Answer,
}

#[derive(Default)]
struct TicketTable {
    last: u64,
    waiting: BTreeMap<u64, Ticket>,
}

/// Table of unanswered requests, shared by all threads that connect to the guest.
#[derive(Clone, Default)]
pub(crate) struct Tickets(Arc<Mutex<TicketTable>>);

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets")
            .field("waiting", &self.table().waiting.len())
            .finish()
    }
}

impl Tickets {
    fn table(&self) -> MutexGuard<'_, TicketTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, ticket: u64) -> Option<Ticket> {
        self.table().waiting.remove(&ticket)
    }

    /// Fails the requests whose time limit has passed. Then adds the new request to the table and
    /// returns its ticket number. If too many others are still unanswered, fails the new request
    /// and returns `None`.
    fn issue(&self, port: u16, answer: Answer) -> Option<u64> {
        let now = Instant::now();
        let mut table = self.table();
        let numbers = table.waiting.iter().filter(|(_, t)| t.until <= now);
        let numbers: Vec<u64> = numbers.map(|(number, _)| *number).collect();
        let late = numbers
            .iter()
            .filter_map(|number| table.waiting.remove(number));
        let late: Vec<Ticket> = late.collect();
        let (issued, refused) = if table.waiting.len() < MAX_PENDING {
            table.last += 1;
            let number = table.last;
            let until = now + CONNECT_TIMEOUT;
            let ticket = Ticket {
                port,
                until,
                answer,
            };
            table.waiting.insert(number, ticket);
            (Some(number), None)
        } else {
            (None, Some(answer))
        };
        drop(table);
        // Called without holding the lock, because a callback may send a new request.
        for ticket in late {
            let port = ticket.port;
            (ticket.answer)(Err(ConnectError::Silent { port }));
        }
        if let Some(answer) = refused {
            answer(Err(ConnectError::Busy));
        }
        issued
    }

    /// Sends a request for a connection to pid 1; waits at most `timeout` for space in the socket
    /// buffer.
    pub(crate) fn ask(&self, sender: &Sender, timeout: Duration, port: u16, answer: Answer) {
        let Some(ticket) = self.issue(port, answer) else {
            return;
        };
        let request = GuestRequest::Connect { ticket, port };
        match sender.send(&request, &[], timeout) {
            Ok(()) => {}
            Err(failure) => {
                if let Some(ticket) = self.take(ticket) {
                    (ticket.answer)(Err(match failure {
                        SendFailure::TooLarge | SendFailure::Gone => ConnectError::Gone,
                        SendFailure::Busy => ConnectError::Silent { port },
                    }));
                }
            }
        }
    }

    /// Completes the request `ticket` with the connection that pid 1 sent.
    pub(crate) fn connected(&self, ticket: u64, descriptors: Vec<OwnedFd>) {
        let Some(Ticket { port, answer, .. }) = self.take(ticket) else {
            return;
        };
        answer(match <[OwnedFd; 1]>::try_from(descriptors) {
            Ok([fd]) => Ok(fd),
            Err(_) => Err(ConnectError::Silent { port }),
        });
    }

    /// Fails the request `ticket` with the errno that pid 1 sent.
    pub(crate) fn failed(&self, ticket: u64, errno: i32) {
        if let Some(Ticket { port, answer, .. }) = self.take(ticket) {
            answer(Err(ConnectError::Refused { port, errno }));
        }
    }

    /// Fails all unanswered requests, because the guest is dead.
    pub(crate) fn fail_all(&self) {
        let waiting = std::mem::take(&mut self.table().waiting);
        for ticket in waiting.into_values() {
            (ticket.answer)(Err(ConnectError::Gone));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use rustix::net::{Shutdown, shutdown};
    use std::os::fd::AsFd;
    use std::sync::mpsc;

    fn asked(tickets: &Tickets, channel: &Channel) -> mpsc::Receiver<Result<(), ConnectError>> {
        let (reply_sender, reply) = mpsc::channel();
        let answer = Box::new(move |made: Result<OwnedFd, _>| {
            reply_sender.send(made.map(drop)).unwrap();
        });
        tickets.ask(channel.sender(), Duration::ZERO, 8080, answer);
        reply
    }

    #[test]
    fn guest_connection_is_delivered_once_to_the_request_with_its_ticket() {
        let (channel, theirs) = Channel::pair().unwrap();
        let tickets = Tickets::default();
        let (one, other) = (asked(&tickets, &channel), asked(&tickets, &channel));
        let fd = || theirs.as_fd().try_clone_to_owned().unwrap();
        tickets.connected(7, vec![fd()]);
        assert!(one.try_recv().is_err() && other.try_recv().is_err());
        tickets.connected(2, vec![fd()]);
        assert_eq!(other.try_recv().unwrap(), Ok(()));
        tickets.connected(2, vec![fd()]);
        tickets.connected(1, vec![fd(), fd()]);
        let silent = Err(ConnectError::Silent { port: 8080 });
        assert_eq!(one.try_recv().unwrap(), silent);
        let late = asked(&tickets, &channel);
        tickets.failed(3, libc::ECONNREFUSED);
        assert!(matches!(
            late.try_recv().unwrap(),
            Err(ConnectError::Refused { .. })
        ));
    }

    #[test]
    fn connection_into_a_guest_fails_if_the_guest_dies_or_too_many_connections_are_pending() {
        let (channel, theirs) = Channel::pair().unwrap();
        let tickets = Tickets::default();
        let waiting: Vec<_> = (0..MAX_PENDING)
            .map(|_| asked(&tickets, &channel))
            .collect();
        let over = asked(&tickets, &channel);
        assert_eq!(over.try_recv().unwrap(), Err(ConnectError::Busy));
        tickets.fail_all();
        for one in waiting {
            assert_eq!(one.try_recv().unwrap(), Err(ConnectError::Gone));
        }
        // Closing is not enough: a program that another test starts holds a copy until its exec.
        shutdown(&theirs, Shutdown::Both).unwrap();
        let gone = asked(&tickets, &channel);
        assert_eq!(gone.try_recv().unwrap(), Err(ConnectError::Gone));
    }
}
