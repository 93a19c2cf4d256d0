//! Connections: from `accept` to the last request.
//!
//! A connection holds a permit of its peer (an address, or a uid on the unix socket) until a request
//! on it is authenticated, and then one of the actor. Each kind of permit has its own total, and
//! neither a peer nor an actor can hold all of them. A connection that gets no permit is closed at
//! once: the loop that accepts never waits for a client.

use crate::actor::Actor;
use crate::auth::{Origin, Peer};
use crate::config::Bounds;
use crate::core::Core;
use crate::listener::Kind;
use crate::problem::{ApiResult, Problem};
use crate::shares::{Share, Shares};
use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::fs;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use wp_codebox_contracts::ErrorCode;

/// Pause after `accept` failed, for example because the process has no free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Smallest size of a connection's buffer that hyper accepts.
const LEAST_BUFFER: usize = 8192;

/// Permit of a connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionPermit(Arc<Mutex<Held>>);

#[derive(Debug)]
enum Held {
    Unauthenticated(#[allow(dead_code, reason = "held until it is dropped")] Share<Origin>),
    Authenticated(#[allow(dead_code, reason = "held until it is dropped")] Share<Actor>),
}

impl ConnectionPermit {
    /// Charges the connection to an actor, who sent a request on it. It stays charged to the first.
    pub(crate) fn authenticated(
        &self,
        clients: &Arc<Shares<Actor>>,
        actor: &Actor,
    ) -> ApiResult<()> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Held::Unauthenticated(_) = &*held {
            let share = clients.try_acquire(actor).ok_or_else(|| {
                Problem::new(
                    ErrorCode::ServiceRateLimited,
                    "the connections of this service, or those that one actor may have, are in use; close one",
                )
            })?;
            *held = Held::Authenticated(share);
        }
        Ok(())
    }
}

/// A listener on the runtime.
enum Acceptor {
    Unix(UnixListener),
    Tls(TcpListener, TlsAcceptor),
}

impl Acceptor {
    fn new(kind: &Kind) -> io::Result<Self> {
        Ok(match kind {
            Kind::Unix { listener, .. } => {
                Self::Unix(UnixListener::from_std(listener.try_clone()?)?)
            }
            Kind::Tls { listener, config } => {
                let acceptor = TlsAcceptor::from(Arc::clone(config));
                Self::Tls(TcpListener::from_std(listener.try_clone()?)?, acceptor)
            }
        })
    }
}

/// Accepts connections until the server stops, then gives open ones the time `grace` to end.
pub(crate) async fn accept(core: Arc<Core>, kind: Kind, router: Router) {
    let acceptor = match Acceptor::new(&kind) {
        Ok(acceptor) => acceptor,
        Err(error) => {
            eprintln!("wp-codebox serve: a listener cannot be used: {error}");
            return;
        }
    };
    let bounds = core.config.bounds;
    let permits = Shares::new(bounds.connections, bounds.peer_connections);
    let mut stopping = core.stopping.subscribe();
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            Some(match &acceptor {
                Acceptor::Unix(listener) => {
                    let (stream, _) = listener.accept().await.ok()?;
                    let uid = stream.peer_cred().ok()?.uid();
                    Connection::Unix(stream, Peer::Unix { uid })
                }
                Acceptor::Tls(listener, acceptor) => {
                    let (stream, address) = listener.accept().await.ok()?;
                    let _ = stream.set_nodelay(true);
                    Connection::Tls(stream, acceptor.clone(), Peer::Tls { address })
                }
            })
        };
        let accepted = tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => break,
            accepted = next => accepted,
        };
        let Some(connection) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some(share) = permits.try_acquire(&Origin::from(connection.peer())) else {
            core.metrics.connections_refused.add();
            continue;
        };
        let permit = ConnectionPermit(Arc::new(Mutex::new(Held::Unauthenticated(share))));
        let (core, router) = (Arc::clone(&core), router.clone());
        connections.spawn(async move {
            core.metrics.connections.up();
            let stopping = core.stopping.subscribe();
            connection.serve(router, permit, &bounds, stopping).await;
            core.metrics.connections.down();
        });
        while connections.try_join_next().is_some() {}
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(core.config.grace, ended).await;
    connections.abort_all();
    if let Kind::Unix { path, .. } = &kind {
        let _ = fs::remove_file(path);
    }
}

/// An accepted connection.
enum Connection {
    Unix(tokio::net::UnixStream, Peer),
    Tls(tokio::net::TcpStream, TlsAcceptor, Peer),
}

impl Connection {
    const fn peer(&self) -> &Peer {
        match self {
            Self::Unix(_, peer) | Self::Tls(_, _, peer) => peer,
        }
    }

    async fn serve(
        self,
        router: Router,
        permit: ConnectionPermit,
        bounds: &Bounds,
        stopping: watch::Receiver<bool>,
    ) {
        let first_head = Instant::now() + bounds.first_head_time;
        let requests = Requests {
            peer: *self.peer(),
            permit,
            router,
            first_head,
        };
        match self {
            Self::Unix(stream, _) => {
                let stream = bounded(stream, bounds);
                requests.serve(stream, bounds, stopping).await;
            }
            Self::Tls(stream, acceptor, _) => {
                let stream = bounded(stream, bounds);
                if let Ok(Ok(stream)) = timeout_at(first_head, acceptor.accept(stream)).await {
                    requests.serve(stream, bounds, stopping).await;
                }
            }
        }
    }
}

/// Closes a connection whose client reads nothing for too long.
fn bounded<S: AsyncRead + AsyncWrite>(
    stream: S,
    bounds: &Bounds,
) -> std::pin::Pin<Box<TimeoutStream<S>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(bounds.write_idle));
    Box::pin(stream)
}

/// Answers the requests of a connection.
struct Requests {
    peer: Peer,
    permit: ConnectionPermit,
    router: Router,
    /// Time at which the head of the first request must be there.
    first_head: Instant,
}

impl Requests {
    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        stream: S,
        bounds: &Bounds,
        mut stopping: watch::Receiver<bool>,
    ) {
        let Self {
            peer,
            permit,
            router,
            first_head,
        } = self;
        let begun = Arc::new(Notify::new());
        let first = Arc::clone(&begun);
        let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
            first.notify_one();
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(permit.clone());
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(bounds.head_time)
            .max_buf_size(bounds.head.max(LEAST_BUFFER))
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let late = async {
            if timeout_at(first_head, begun.notified()).await.is_ok() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            _ = connection.as_mut() => return,
            () = late => return,
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}
