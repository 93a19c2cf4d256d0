//! Tickets of connections that pid 1 was asked for and has not answered.
//!
//! An answer to a ticket that nobody holds is dropped with its descriptors.

use crate::channel::{SendFailure, Sender};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestRequest};

/// Longest wait for a connection: longer than pid 1 itself takes for one.
pub(crate) const CONNECTING: Duration = Duration::from_secs(20);
/// Most that are waited for at once.
const WAITING: usize = 64;

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The guest is dead.
    #[error("the sandbox is gone")]
    Gone,
    /// Nothing listens there, or it is not answered.
    #[error("port {port} of the sandbox cannot be reached: {}", std::io::Error::from_raw_os_error(*.errno))]
    Refused {
        /// Which.
        port: u16,
        /// errno.
        errno: i32,
    },
    /// Pid 1 said nothing.
    #[error("the sandbox did not answer a request to connect to its port {port}")]
    Silent {
        /// Which.
        port: u16,
    },
    /// Too many are asked for already.
    #[error("{WAITING} connections to the sandbox are being made already")]
    Busy,
}

impl ConnectError {
    /// As it crosses a process border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        match self {
            Self::Gone | Self::Refused { .. } | Self::Silent { .. } | Self::Busy => {
                ErrorBody::new(ErrorCode::PreviewUnavailable, self.to_string())
            }
        }
    }
}

type Answer = Box<dyn FnOnce(Result<OwnedFd, ConnectError>) + Send>;

/// One that is waited for.
struct Ticket {
    port: u16,
    until: Instant,
    answer: Answer,
}

#[derive(Default)]
struct Book {
    last: u64,
    waiting: BTreeMap<u64, Ticket>,
}

/// Who waits for which connection.
#[derive(Clone, Default)]
pub(crate) struct Tickets(Arc<Mutex<Book>>);

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets")
            .field("waiting", &self.book().waiting.len())
            .finish()
    }
}

impl Tickets {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, ticket: u64) -> Option<Ticket> {
        self.book().waiting.remove(&ticket)
    }

    /// A ticket, unless there are too many. Whoever waited too long is told so first.
    fn draw(&self, port: u16, answer: Answer) -> Option<u64> {
        let now = Instant::now();
        let mut book = self.book();
        let numbers = book.waiting.iter().filter(|(_, t)| t.until <= now);
        let numbers: Vec<u64> = numbers.map(|(number, _)| *number).collect();
        let late = numbers
            .iter()
            .filter_map(|number| book.waiting.remove(number));
        let late: Vec<Ticket> = late.collect();
        let (drawn, refused) = if book.waiting.len() < WAITING {
            book.last += 1;
            let number = book.last;
            let until = now + CONNECTING;
            let ticket = Ticket {
                port,
                until,
                answer,
            };
            book.waiting.insert(number, ticket);
            (Some(number), None)
        } else {
            (None, Some(answer))
        };
        drop(book);
        // Never while the book is held: an answer may ask again.
        for ticket in late {
            let port = ticket.port;
            (ticket.answer)(Err(ConnectError::Silent { port }));
        }
        if let Some(answer) = refused {
            answer(Err(ConnectError::Busy));
        }
        drawn
    }

    /// Asks pid 1, which may take `patience` to take the request.
    pub(crate) fn ask(&self, sender: &Sender, patience: Duration, port: u16, answer: Answer) {
        let Some(ticket) = self.draw(port, answer) else {
            return;
        };
        let request = GuestRequest::Connect { ticket, port };
        match sender.send(&request, &[], patience) {
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

    /// Pid 1 made one.
    pub(crate) fn connected(&self, ticket: u64, descriptors: Vec<OwnedFd>) {
        let Some(Ticket { port, answer, .. }) = self.take(ticket) else {
            return;
        };
        answer(match <[OwnedFd; 1]>::try_from(descriptors) {
            Ok([fd]) => Ok(fd),
            Err(_) => Err(ConnectError::Silent { port }),
        });
    }

    /// Pid 1 could not.
    pub(crate) fn failed(&self, ticket: u64, errno: i32) {
        if let Some(Ticket { port, answer, .. }) = self.take(ticket) {
            answer(Err(ConnectError::Refused { port, errno }));
        }
    }

    /// The guest is dead.
    pub(crate) fn void(&self) {
        let waiting = std::mem::take(&mut self.book().waiting);
        for ticket in waiting.into_values() {
            (ticket.answer)(Err(ConnectError::Gone));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use std::os::fd::AsFd;
    use std::sync::mpsc;

    fn asked(tickets: &Tickets, channel: &Channel) -> mpsc::Receiver<Result<(), ConnectError>> {
        let (tell, told) = mpsc::channel();
        let answer = Box::new(move |made: Result<OwnedFd, _>| {
            tell.send(made.map(drop)).unwrap();
        });
        tickets.ask(channel.sender(), Duration::ZERO, 8080, answer);
        told
    }

    #[test]
    fn a_connection_goes_to_whoever_has_its_ticket_and_once() {
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
    fn whoever_waits_is_told_when_the_guest_dies_and_when_there_are_too_many() {
        let (channel, theirs) = Channel::pair().unwrap();
        let tickets = Tickets::default();
        let waiting: Vec<_> = (0..WAITING).map(|_| asked(&tickets, &channel)).collect();
        let over = asked(&tickets, &channel);
        assert_eq!(over.try_recv().unwrap(), Err(ConnectError::Busy));
        tickets.void();
        for one in waiting {
            assert_eq!(one.try_recv().unwrap(), Err(ConnectError::Gone));
        }
        drop(theirs);
        let gone = asked(&tickets, &channel);
        assert_eq!(gone.try_recv().unwrap(), Err(ConnectError::Gone));
    }
}
