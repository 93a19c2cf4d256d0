//! Lifecycle of an egress bridge: prepared, serving on its own thread, stopped.

use super::authority::Authority;
use super::budget::Budget;
use super::config::BridgeConfig;
use super::error::EgressError;
use super::log::{EgressLog, Ledger};
use super::model::Model;
use super::secrets::Secrets;
use super::session::{serve, turn_away};
use super::shared::Shared;
use super::stream::Io;
use super::upstream::Upstream;
use crate::server_thread::{ACCEPT_PAUSE, ServerThread, listener, runtime};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use wp_codebox_contracts::TlsMode;

/// Maximum number of guest connections above the connection limit that get an error response at the
/// same time. The bridge closes all others above the limit without a response.
const TURNED_AWAY: usize = 16;

/// A prepared bridge that does not serve yet; its certificate authority exists.
pub struct PreparedBridge {
    shared: Arc<Shared>,
    deadline: Instant,
}

/// A bridge that serves on its own thread. Dropping it stops the thread.
pub struct Bridge {
    ledger: Arc<Ledger>,
    thread: ServerThread,
}

impl PreparedBridge {
    /// Returns the certificate of the run's authority, which the guest must trust; `None` unless
    /// the policy says `tls: terminate`.
    pub fn authority_pem(&self) -> Option<&str> {
        self.shared.authority.as_ref().map(Authority::pem)
    }

    /// Starts to serve on two listening sockets, a unix socket and a TCP socket, on a new thread.
    pub fn serve(self, unix: OwnedFd, tcp: OwnedFd) -> Result<Bridge, EgressError> {
        let socket = |what| move |source| EgressError::Socket { what, source };
        let unix = std::os::unix::net::UnixListener::from(unix);
        unix.set_nonblocking(true).map_err(socket("unix"))?;
        let failed = |source| EgressError::Thread { source };
        let runtime = runtime().map_err(failed)?;
        let unix = {
            let _inside = runtime.enter();
            UnixListener::from_std(unix).map_err(socket("unix"))?
        };
        let tcp = listener(&runtime, tcp.into()).map_err(socket("tcp"))?;
        let ledger = Arc::clone(&self.shared.ledger);
        let thread = ServerThread::spawn("egress", runtime, move |stopped| async move {
            let ledger = Arc::clone(&self.shared.ledger);
            let permits = ConnectionPermits::new(self.shared);
            tokio::select! {
                () = accept_unix(&unix, &permits) => {}
                () = accept_tcp(&tcp, &permits) => {}
                _ = stopped => {}
                () = tokio::time::sleep_until(self.deadline.into()) => {}
            }
            ledger.close();
        });
        let thread = thread.map_err(failed)?;
        Ok(Bridge { ledger, thread })
    }
}

impl Bridge {
    /// Validates the configuration and, when the bridge terminates TLS, creates the certificate
    /// authority.
    pub fn prepare(config: BridgeConfig) -> Result<PreparedBridge, EgressError> {
        let authority = match config.rules.tls() {
            TlsMode::Terminate => Some(Authority::new()?),
            TlsMode::Tunnel => None,
        };
        let key = config.model.as_ref().and_then(|model| model.key.as_ref());
        let secrets = Secrets::new(config.secrets, key);
        let upstream = Upstream::new(config.network, &config.trust, config.limits, config.used)?;
        Ok(PreparedBridge {
            shared: Arc::new(Shared {
                rules: config.rules,
                model: config.model.map(Model::new),
                site: config.site,
                secrets,
                budget: Arc::new(Budget::new(config.limits)),
                ledger: Arc::new(Ledger::new(config.limits.log_rows)),
                upstream,
                authority,
            }),
            deadline: config.deadline,
        })
    }

    /// Returns the totals of the requests that have ended so far.
    #[cfg(test)]
    pub fn counts(&self) -> super::log::EgressCounts {
        self.ledger.counts()
    }

    /// Stops the bridge: aborts running requests and returns the log.
    pub fn stop(mut self) -> EgressLog {
        self.thread.stop();
        // The end of the thread drops the connections, which adds their rows. So the log is taken
        // only now.
        self.ledger.take()
    }
}

/// Limits how many guest connections are served at the same time.
struct ConnectionPermits {
    shared: Arc<Shared>,
    served: Arc<Semaphore>,
    turned_away: Arc<Semaphore>,
}

impl ConnectionPermits {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            served: Arc::new(Semaphore::new(shared.budget.limits.connections)),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
            shared,
        }
    }

    fn admit(&self, io: Io) {
        let shared = Arc::clone(&self.shared);
        if let Ok(permit) = Arc::clone(&self.served).try_acquire_owned() {
            tokio::spawn(async move {
                serve(shared, io).await;
                drop(permit);
            });
        } else if let Ok(permit) = Arc::clone(&self.turned_away).try_acquire_owned() {
            tokio::spawn(async move {
                turn_away(shared, io).await;
                drop(permit);
            });
        }
    }
}

async fn accept_unix(listener: &UnixListener, permits: &ConnectionPermits) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => permits.admit(Box::new(stream)),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn accept_tcp(listener: &TcpListener, permits: &ConnectionPermits) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                permits.admit(Box::new(stream));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}
