//! Lifecycle of a preview's forwarder: open, read counters, close.

use super::connector::GuestConnector;
use super::cookies::Cookies;
use super::counters::{Counts, RequestCounters};
use super::exchange::Shared;
use super::limits::ForwarderLimits;
use super::origin::{Hosts, Origin};
use super::stall_timeout::StallTimeout;
use super::token::{Logins, Token};
use crate::server_thread::{self, ACCEPT_PAUSE, ServerThread};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::kernel_error;

/// Configuration of a preview's forwarder.
pub struct ForwarderConfig {
    /// Listening socket to which visitors connect.
    pub listener: std::net::TcpListener,
    /// Public URL of the preview, in addition to the listener's own address.
    pub public: Option<Origin>,
    /// Access token that visitors must have; with `None`, anyone who can reach the address may view
    /// the site.
    pub token: Option<Token>,
    /// Time at which the forwarder closes by itself.
    pub until: Instant,
    /// Opens connections to the guest's web server.
    pub connector: Arc<dyn GuestConnector>,
    /// Limits of connections, sizes and times.
    pub limits: ForwarderLimits,
    /// The preview's one-time sign-in link, if one is offered.
    pub logins: Logins,
}

/// A forwarder that serves on its own thread. Dropping it closes the preview.
pub struct Forwarder {
    address: SocketAddr,
    counters: Arc<RequestCounters>,
    expired: Arc<AtomicBool>,
    until: watch::Sender<Instant>,
    thread: ServerThread,
}

impl Forwarder {
    /// Starts to serve visitors on a new thread.
    pub fn open(config: ForwarderConfig) -> Result<Self, ErrorBody> {
        let unable = |error: std::io::Error| {
            let message = format!("the preview cannot be opened: {error}");
            kernel_error(ErrorCode::PreviewUnavailable, message, &error)
        };
        let runtime = server_thread::runtime().map_err(unable)?;
        let listener = server_thread::listener(&runtime, config.listener).map_err(unable)?;
        let address = listener.local_addr().map_err(unable)?;
        let counters = Arc::new(RequestCounters::default());
        let shared = Arc::new(Shared {
            hosts: Hosts {
                public: config.public,
            },
            token: config.token,
            cookies: Cookies::new(address.port()),
            counters: Arc::clone(&counters),
            limits: config.limits,
            connector: config.connector,
            logins: config.logins,
            permits: Arc::new(Semaphore::new(config.limits.requests)),
        });
        let expired = Arc::new(AtomicBool::new(false));
        let (until, moved) = watch::channel(config.until);
        let expiry_flag = Arc::clone(&expired);
        let thread = ServerThread::spawn("preview", runtime, move |stopped| async move {
            tokio::select! {
                () = accept(listener, shared) => {}
                _ = stopped => {}
                () = lapse(moved) => expiry_flag.store(true, Ordering::Release),
            }
        });
        let thread = thread.map_err(unable)?;
        Ok(Self {
            address,
            counters,
            expired,
            until,
            thread,
        })
    }

    /// Returns the address on which the forwarder listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the totals of the requests so far.
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }

    /// Sets a new time at which the forwarder closes by itself.
    pub fn live_until(&self, until: Instant) {
        // The send fails when the forwarder has closed already.
        let _ = self.until.send(until);
    }

    /// Returns whether the forwarder has closed because its time was over.
    pub fn has_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    /// Closes the preview: aborts running requests, frees the port and returns the totals.
    pub fn close(&mut self) -> Counts {
        self.thread.stop();
        self.counts()
    }
}

/// Completes at the time at which the forwarder must close by itself. That time may change while
/// this function waits.
async fn lapse(mut until: watch::Receiver<Instant>) {
    loop {
        let now = *until.borrow_and_update();
        tokio::select! {
            () = tokio::time::sleep_until(now.into()) => return,
            moved = until.changed() => if moved.is_err() {
                return;
            },
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let permits = Arc::new(Semaphore::new(shared.limits.connections));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            shared.counters.turned_away();
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            serve(stream, shared).await;
            drop(permit);
        });
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let Ok(arrived) = stream.local_addr() else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let limits = shared.limits;
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { shared.answer(request, arrived).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.head_bytes)
        .serve_connection(
            TokioIo::new(StallTimeout::new(stream, limits.idle_timeout)),
            service,
        );
    // An error of one visitor's connection must not end the server.
    let _ = tokio::time::timeout(limits.connection_time, connection).await;
}
