//! The server: its connections, its tasks, its start and its stop.

use crate::access::ServerState;
use crate::api;
use crate::auth::Peer;
use crate::config::{Bounds, ServiceConfig};
use crate::core::{Core, THREADS};
use crate::extension::Extension;
use crate::host::Host;
use crate::listener::{Kind, Listener};
use crate::otlp::Queue;
use crate::problem::Problem;
use crate::{deliver, lifecycle, openapi, otlp, run_watch, upkeep};
use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Pause after `accept` failed, for example because the process has no free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Smallest size of a connection's buffer that hyper accepts.
const LEAST_BUFFER: usize = 8192;

/// A server that is ready to run.
pub struct Service {
    core: Arc<Core>,
    /// Spans for the collector, if there is one.
    spans: Option<Queue>,
    /// Locked as long as the server exists: two servers would follow the same sandboxes.
    _lock: File,
}

impl Service {
    /// Opens the records of a server and ends the credit reservations that a crash left open.
    ///
    /// # Errors
    /// When another server uses the directory, or the records cannot be used.
    pub fn open(
        config: ServiceConfig,
        extensions: Vec<Arc<dyn Extension>>,
        host: Arc<dyn Host>,
    ) -> Result<Self, ErrorBody> {
        let lock = lock(&config).map_err(|source| {
            let message = format!(
                "the directory {:?} of the service cannot be locked: {source}; stop the other server that uses it, or check its owner",
                config.directory
            );
            ErrorBody::new(ErrorCode::ServiceUnavailable, message)
        })?;
        let (core, spans) = Core::open(config, extensions, host, openapi::text())?;
        Ok(Self {
            core: Arc::new(core),
            spans,
            _lock: lock,
        })
    }

    /// Runs the server until `stop` resolves. Then it takes no more connections, and requests get
    /// the time of [`ServiceConfig::grace`] to end. Sandboxes keep running.
    ///
    /// # Errors
    /// When the records cannot be read at the start.
    pub async fn serve(
        self,
        listeners: Vec<Listener>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ErrorBody> {
        let core = self.core;
        let failed = |problem: Problem| problem.body().clone();
        lifecycle::resume(&core).await.map_err(failed)?;
        run_watch::resume(&core).await.map_err(failed)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(upkeep::watch_hosts(Arc::clone(&core)));
        tasks.spawn(upkeep::prune(Arc::clone(&core)));
        tasks.spawn(run_watch::watch(Arc::clone(&core)));
        let delivering = Arc::clone(&core);
        tasks.spawn(async move {
            if let Err(error) = deliver::run(delivering).await {
                eprintln!("wp-codebox serve: {error}");
            }
        });
        let exporting = self.spans.map(|spans| {
            let (metrics, stopping) = (Arc::clone(&core.metrics), core.stopping.subscribe());
            tokio::spawn(async move {
                if let Err(error) = otlp::run(metrics, stopping, spans).await {
                    eprintln!("wp-codebox serve: {error}");
                }
            })
        });
        let router = api::router(ServerState::new(&core));
        let mut accepting = JoinSet::new();
        for Listener(kind) in listeners {
            accepting.spawn(accept(Arc::clone(&core), kind, router.clone()));
        }
        stop.await;
        core.stopping.send_replace(true);
        while accepting.join_next().await.is_some() {}
        if let Some(exporting) = exporting {
            let _ = exporting.await;
        }
        // The next server repeats a webhook delivery that is aborted here.
        tasks.abort_all();
        Ok(())
    }

    /// Runs the server on a runtime of its own until `stop` resolves.
    ///
    /// # Errors
    /// Those of [`Service::serve`], or when the runtime cannot start.
    pub fn run(
        self,
        listeners: Vec<Listener>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ErrorBody> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(THREADS)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(|source| {
                let message = format!(
                    "the server cannot start its threads: {source}; raise the limit of processes"
                );
                ErrorBody::new(ErrorCode::ServiceUnavailable, message)
            })?;
        let done = runtime.block_on(self.serve(listeners, stop));
        // Calls that wait for sandboxes would keep the process alive.
        runtime.shutdown_background();
        done
    }
}

/// Locks the directory of the service for this process. A child process that has not yet executed its
/// program holds copies of all descriptors, and after the server was killed such a copy would keep an
/// `flock`. The kernel does not pass a process lock (`F_SETLK`) to children. It ends when this process
/// closes any descriptor of the file, so only this function opens the file.
fn lock(config: &ServiceConfig) -> io::Result<File> {
    match fs::DirBuilder::new().mode(0o700).create(&config.directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(config.directory.join("service.lock"))?;
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
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
async fn accept(core: Arc<Core>, kind: Kind, router: Router) {
    let acceptor = match Acceptor::new(&kind) {
        Ok(acceptor) => acceptor,
        Err(error) => {
            eprintln!("wp-codebox serve: a listener cannot be used: {error}");
            return;
        }
    };
    let bounds = core.config.bounds;
    let permits = Arc::new(Semaphore::new(bounds.connections));
    let mut stopping = core.stopping.subscribe();
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await.ok()?;
            let connection = match &acceptor {
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
            };
            Some((permit, connection))
        };
        let accepted = tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => break,
            accepted = next => accepted,
        };
        let Some((permit, connection)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (core, router) = (Arc::clone(&core), router.clone());
        connections.spawn(async move {
            core.metrics.connections.up();
            let stopping = core.stopping.subscribe();
            connection.serve(router, &bounds, stopping).await;
            core.metrics.connections.down();
            drop(permit);
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
    async fn serve(self, router: Router, bounds: &Bounds, stopping: watch::Receiver<bool>) {
        match self {
            Self::Unix(stream, peer) => {
                let stream = bounded(stream, bounds);
                serve(stream, peer, router, bounds, stopping).await;
            }
            Self::Tls(stream, acceptor, peer) => {
                let stream = bounded(stream, bounds);
                if let Ok(Ok(stream)) = timeout(bounds.head_time, acceptor.accept(stream)).await {
                    serve(stream, peer, router, bounds, stopping).await;
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

async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    router: Router,
    bounds: &Bounds,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer);
        router.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.head_time)
        .max_buf_size(bounds.head.max(LEAST_BUFFER))
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
