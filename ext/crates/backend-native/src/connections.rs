//! Connections to servers in the guest, for its owner and for whoever holds a [`Connector`].
//!
//! Pid 1 is asked with a ticket. Its answer comes on the guest's channel, whoever happens to read
//! that: a visitor gets a connection also while the owner waits for a program. An answer to a
//! ticket that nobody holds is dropped with its descriptors.

use crate::channel::{ROOM, Received};
use crate::guest::Guest;
use crate::tickets::{CONNECTING, ConnectError, Tickets};
use rustix::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use wp_codebox_runtime::Connector;

impl Guest {
    /// A connection to a port on the guest's own 127.0.0.1; its descriptor does not block.
    pub fn connect(&mut self, port: u16) -> Result<OwnedFd, ConnectError> {
        let (tell, told) = mpsc::sync_channel(1);
        let answer = Box::new(move |answer| {
            // Nobody else answers, and nobody is told twice.
            let _ = tell.try_send(answer);
        });
        let until = Instant::now() + CONNECTING;
        let tickets = self.launched.tickets.clone();
        tickets.ask(self.channel.sender(), ROOM, port, answer);
        loop {
            match told.try_recv() {
                Ok(answer) => return answer,
                Err(mpsc::TryRecvError::Disconnected) => return Err(ConnectError::Gone),
                Err(mpsc::TryRecvError::Empty) => {}
            }
            match self.channel.receive() {
                Received::Message(reply, fds) => self.launched.hear(*reply, fds),
                Received::Garbage => {}
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

    /// What asks for connections from other threads. Their answers come while this guest's
    /// owner listens: it waits for a program, for an end, or calls [`Guest::listen`].
    pub fn connector(&self) -> Arc<dyn Connector> {
        Arc::new(Beside {
            sender: self.channel.sender().weak(),
            tickets: self.launched.tickets.clone(),
        })
    }
}

/// Asks without the guest. It keeps nothing of it alive.
struct Beside {
    sender: crate::channel::WeakSender,
    tickets: Tickets,
}

impl Connector for Beside {
    fn ask(&self, port: u16, answer: wp_codebox_runtime::Connected) {
        let Some(sender) = self.sender.upgrade() else {
            return answer(Err(ConnectError::Gone.body()));
        };
        let answer = Box::new(|made: Result<OwnedFd, ConnectError>| {
            answer(made.map_err(|error| error.body()));
        });
        // Whoever asks serves others as well.
        self.tickets.ask(&sender, Duration::ZERO, port, answer);
    }
}
