//! Queue of visitors that wait for a connection, between the forwarder's thread and the guest's
//! owner thread.
//!
//! While the guest's server runs, the forwarder connects at once, even while the owner thread waits
//! for a command: concurrent reads and writes are normal for a website. Without a server, or if the
//! guest refuses the connection, the visitor waits for the owner thread, which starts a server.
//! Visitors also wait during a snapshot, for which the server is stopped.

use super::SITE_PORT;
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wp_codebox_proxy::preview::{ConnectReply, GuestConnector};
use wp_codebox_runtime::Connector;

/// Maximum number of waiting visitors; the forwarder, which accepts their connections, has the same
/// limit.
const MOST: usize = 64;

/// Opens connections to the guest's web server; `None` while no server runs.
type Way = Option<Arc<dyn Connector>>;

/// Visitors that wait for a connection to the guest, in order of arrival.
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
    /// Sets the event counter (eventfd) that wakes the thread that owns the guest.
    pub(super) fn ring_with(&self, bell: OwnedFd) {
        *held(&self.0.bell) = Some(bell);
    }

    /// Lets new visitors connect to the running web server at once, through `way`.
    pub(super) fn open(&self, way: Arc<dyn Connector>) {
        *held(&self.0.way) = Some(way);
    }

    /// Makes new visitors wait for the thread that owns the guest, because the web server stops.
    pub(super) fn shut(&self) {
        *held(&self.0.way) = None;
    }

    /// Removes and returns the first visitor who is still connected.
    pub(super) fn next(&self) -> Option<ConnectReply> {
        let mut waiting = held(&self.0.waiting);
        while let Some(reply) = waiting.pop_front() {
            if !reply.is_closed() {
                return Some(reply);
            }
        }
        None
    }

    /// Returns whether a visitor arrived since the last call.
    pub(super) fn take_arrivals(&self) -> bool {
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
            // Writing fails with EAGAIN if the event counter is full; a full counter wakes the
            // thread as well.
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
        // Wakes the thread that owns the guest although the visitor does not wait for this thread,
        // so that the thread restarts the sandbox's idle time.
        self.0.ring();
        let inner = Arc::clone(&self.0);
        way.ask(
            SITE_PORT,
            Box::new(move |made| match made {
                Ok(connection) => {
                    // Sending fails if the visitor has disconnected.
                    let _ = reply.send(Ok(connection));
                }
                Err(_) => inner.wait(reply),
            }),
        );
    }
}
