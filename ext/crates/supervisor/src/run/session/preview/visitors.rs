//! Connections that visitors wait for, between the forwarder's thread and the guest's.
//!
//! While the guest's server is up the guest is asked at once, whatever its owner waits for: what a
//! command writes while a page is read is as on any site. Without a server, or when the guest
//! refuses, a visitor waits for the owner, who starts one; so does one who comes while the state of
//! the guest is kept, for which its server is ended first.

use super::SITE_PORT;
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wp_codebox_proxy::preview::{ConnectReply, GuestConnector};
use wp_codebox_runtime::Connector;

/// Most that wait; the forwarder asks for no more than its own rooms.
const MOST: usize = 64;

/// The way to the guest's server.
type Way = Option<Arc<dyn Connector>>;

/// Those who wait, in order of arrival.
#[derive(Clone, Default)]
pub(super) struct Visitors(Arc<Inner>);

#[derive(Default)]
struct Inner {
    waiting: Mutex<VecDeque<ConnectReply>>,
    way: Mutex<Way>,
    bell: Mutex<Option<OwnedFd>>,
    came: AtomicBool,
}

impl fmt::Debug for Visitors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Visitors")
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Visitors {
    /// The event counter that wakes the thread that owns the guest.
    pub(super) fn ring_with(&self, bell: OwnedFd) {
        *held(&self.0.bell) = Some(bell);
    }

    /// The guest's server is up and is reached this way.
    pub(super) fn open(&self, way: Arc<dyn Connector>) {
        *held(&self.0.way) = Some(way);
    }

    /// It is not: whoever comes waits for the guest's owner.
    pub(super) fn shut(&self) {
        *held(&self.0.way) = None;
    }

    /// The next one who still waits.
    pub(super) fn next(&self) -> Option<ConnectReply> {
        let mut waiting = held(&self.0.waiting);
        while let Some(reply) = waiting.pop_front() {
            if !reply.is_closed() {
                return Some(reply);
            }
        }
        None
    }

    /// Whether somebody came since this was asked last.
    pub(super) fn came(&self) -> bool {
        self.0.came.swap(false, Ordering::Relaxed)
    }
}

impl Inner {
    fn wait(&self, reply: ConnectReply) {
        {
            let mut waiting = held(&self.waiting);
            waiting.retain(|reply| !reply.is_closed());
            if waiting.len() >= MOST {
                return;
            }
            waiting.push_back(reply);
        }
        self.ring();
    }

    fn ring(&self) {
        if let Some(bell) = held(&self.bell).as_ref() {
            // A counter that is full wakes as well.
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
        }
    }
}

impl GuestConnector for Visitors {
    fn connect(&self, reply: ConnectReply) {
        self.0.came.store(true, Ordering::Relaxed);
        let way = held(&self.0.way).clone();
        let Some(way) = way else {
            return self.0.wait(reply);
        };
        // Whoever owns the guest knows that it is used.
        self.0.ring();
        let inner = Arc::clone(&self.0);
        way.ask(
            SITE_PORT,
            Box::new(move |made| match made {
                Ok(connection) => {
                    // A visitor who went away wants none.
                    let _ = reply.send(Ok(connection));
                }
                Err(_) => inner.wait(reply),
            }),
        );
    }
}
