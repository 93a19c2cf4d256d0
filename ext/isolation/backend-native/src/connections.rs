//! Connections to servers inside the guest, for the thread that owns the [`Guest`] and for other
//! threads that hold a [`Connector`].
//!
//! A request to pid 1 contains a ticket number. The reply arrives on the guest's channel with that
//! number, and the thread that reads the channel passes the reply to the thread that requested the
//! connection. So a thread gets its connection even while the owner of the guest waits for a
//! program. A reply with an unknown ticket is dropped, and its descriptors are closed.

use crate::channel::{Received, SEND_TIMEOUT};
use crate::guest::Guest;
use crate::tickets::{CONNECT_TIMEOUT, ConnectError, Tickets};
use rustix::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CodedError, ErrorBody};
use wp_codebox_runtime::Connector;

impl Guest {
    /// Connects to `port` on the guest's own 127.0.0.1; the returned socket is non-blocking.
    pub fn connect(&mut self, port: u16) -> Result<OwnedFd, ConnectError> {
        let (reply_sender, reply) = mpsc::sync_channel(1);
        let answer = Box::new(move |answer| {
            // Sending cannot block: the queue has one slot and each ticket is answered once.
            let _ = reply_sender.try_send(answer);
        });
        let until = Instant::now() + CONNECT_TIMEOUT;
        let tickets = self.launched.tickets.clone();
        tickets.ask(self.channel.sender(), SEND_TIMEOUT, port, answer);
        loop {
            match reply.try_recv() {
                Ok(answer) => return answer,
                Err(mpsc::TryRecvError::Disconnected) => return Err(ConnectError::Gone),
                Err(mpsc::TryRecvError::Empty) => {}
            }
            match self.channel.receive() {
                Received::Message(reply, fds) => self.launched.handle_reply(*reply, fds),
                Received::Malformed => {}
                Received::Closed => self.launched.all_ended(self.early_end()),
                Received::Empty => {
                    if !self.channel.wait(until) {
                        return Err(ConnectError::Silent { port });
                    }
                }
            }
            if Instant::now() >= until {
                return Err(ConnectError::Silent { port });
            }
        }
    }

    /// Returns a handle that requests connections from other threads. The replies are processed
    /// while the owner of this guest reads the channel: while it waits for a program or an exit, or
    /// calls [`Guest::listen`].
    pub fn connector(&self) -> Arc<dyn Connector> {
        Arc::new(DetachedConnector {
            sender: self.channel.sender().weak(),
            tickets: self.launched.tickets.clone(),
        })
    }
}

/// Requests connections from other threads. It has no access to the [`Guest`] and does not keep the
/// guest's channel open.
struct DetachedConnector {
    sender: crate::channel::WeakSender,
    tickets: Tickets,
}

impl Connector for DetachedConnector {
    fn ask(&self, port: u16, answer: wp_codebox_runtime::Connected) {
        let Some(sender) = self.sender.upgrade() else {
            return answer(Err(ConnectError::Gone.body()));
        };
        let answer = Box::new(|made: Result<OwnedFd, ConnectError>| {
            answer(made.map_err(ErrorBody::from));
        });
        // Do not wait for space in the socket buffer: the calling thread serves other connections
        // as well.
        self.tickets.ask(&sender, Duration::ZERO, port, answer);
    }
}
