//! The forwarder as its owner holds it: opened, asked, closed.

use super::connector::GuestConnector;
use super::cookies::Cookies;
use super::exchange::Shared;
use super::limits::ForwarderLimits;
use super::origin::{Hosts, Origin};
use super::patience::Patience;
use super::tally::{Counts, Tally};
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

/// What a preview is.
pub struct ForwarderConfig {
    /// Where visitors connect.
    pub listener: std::net::TcpListener,
    /// The address that visitors use besides the listener's own.
    pub public: Option<Origin>,
    /// Needed from visitors; none: whoever reaches the address may look.
    pub token: Option<Token>,
    /// When it closes by itself.
    pub until: Instant,
    /// Who connects to the guest's web server.
    pub connector: Arc<dyn GuestConnector>,
    /// Bounds of connections, sizes and times.
    pub limits: ForwarderLimits,
    /// The link that signs a visitor in, where there is one.
    pub logins: Logins,
}

/// A forwarder that serves, on a thread of its own. Dropped, it closes.
pub struct Forwarder {
    address: SocketAddr,
    tally: Arc<Tally>,
    expired: Arc<AtomicBool>,
    until: watch::Sender<Instant>,
    thread: ServerThread,
}

impl Forwarder {
    /// Serves from now on.
    pub fn open(config: ForwarderConfig) -> Result<Self, ErrorBody> {
        let unable = |error: std::io::Error| {
            let message = format!("the preview cannot be opened: {error}");
            kernel_error(ErrorCode::PreviewUnavailable, message, &error)
        };
        let runtime = server_thread::runtime().map_err(unable)?;
        let listener = server_thread::listener(&runtime, config.listener).map_err(unable)?;
        let address = listener.local_addr().map_err(unable)?;
        let tally = Arc::new(Tally::default());
        let shared = Arc::new(Shared {
            hosts: Hosts {
                public: config.public,
            },
            token: config.token,
            cookies: Cookies::new(address.port()),
            tally: Arc::clone(&tally),
            limits: config.limits,
            connector: config.connector,
            logins: config.logins,
            rooms: Arc::new(Semaphore::new(config.limits.requests)),
        });
        let expired = Arc::new(AtomicBool::new(false));
        let (until, moved) = watch::channel(config.until);
        let over = Arc::clone(&expired);
        let thread = ServerThread::spawn("preview", runtime, move |stopped| async move {
            tokio::select! {
                () = accept(listener, shared) => {}
                _ = stopped => {}
                () = lapse(moved) => over.store(true, Ordering::Release),
            }
        });
        let thread = thread.map_err(unable)?;
        Ok(Self {
            address,
            tally,
            expired,
            until,
            thread,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sums until now.
    pub fn counts(&self) -> Counts {
        self.tally.counts()
    }

    /// It closes then, not when it was to.
    pub fn live_until(&self, until: Instant) {
        // Nobody hears it when it is closed.
        let _ = self.until.send(until);
    }

    /// Whether its time was up.
    pub fn has_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    /// Breaks off what is under way; the port is free afterwards.
    pub fn close(&mut self) -> Counts {
        self.thread.stop();
        self.counts()
    }
}

/// Until the time is up, which may be moved meanwhile.
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
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            shared.tally.turned_away();
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            serve(stream, shared).await;
            drop(place);
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
            TokioIo::new(Patience::new(stream, limits.idle_timeout)),
            service,
        );
    // What a visitor does wrong is the end of its connection and nothing else.
    let _ = tokio::time::timeout(limits.connection_time, connection).await;
}
