//! The bridge as the run holds it: prepared, serving on a thread of its own, stopped.

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

/// Connections without room that are told so at once; more are closed without a word.
const TURNED_AWAY: usize = 16;

/// A bridge that is ready and does not serve yet: the certificate of the run is known.
pub struct PreparedBridge {
    shared: Arc<Shared>,
    deadline: Instant,
}

/// A bridge that serves, on a thread of its own. Dropped, it stops.
pub struct Bridge {
    ledger: Arc<Ledger>,
    thread: ServerThread,
}

impl PreparedBridge {
    /// The certificate the guest must trust; only with `tls: terminate`.
    pub fn authority_pem(&self) -> Option<&str> {
        self.shared.authority.as_ref().map(Authority::pem)
    }

    /// Serves on two listening sockets: a unix one and a TCP one.
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
            // Connections that are dropped after this write their rows.
            let ledger = Arc::clone(&self.shared.ledger);
            let rooms = Rooms::new(self.shared);
            tokio::select! {
                () = accept_unix(&unix, &rooms) => {}
                () = accept_tcp(&tcp, &rooms) => {}
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
    /// Checks the configuration and makes the certificate authority when TLS is ended.
    pub fn prepare(config: BridgeConfig) -> Result<PreparedBridge, EgressError> {
        let authority = match config.rules.tls() {
            TlsMode::Terminate => Some(Authority::new()?),
            TlsMode::Tunnel => None,
        };
        let key = config.model.as_ref().and_then(|model| model.key.as_ref());
        let secrets = Secrets::new(config.secrets, key);
        let upstream = Upstream::new(config.network, &config.trust, config.limits)?;
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

    /// Sums until now.
    #[cfg(test)]
    pub fn counts(&self) -> super::log::EgressCounts {
        self.ledger.counts()
    }

    /// Breaks off what is under way and hands back the log.
    pub fn stop(mut self) -> EgressLog {
        self.thread.stop();
        self.ledger.take()
    }
}

/// Room for connections.
struct Rooms {
    shared: Arc<Shared>,
    served: Arc<Semaphore>,
    turned_away: Arc<Semaphore>,
}

impl Rooms {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            served: Arc::new(Semaphore::new(shared.budget.limits.connections)),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
            shared,
        }
    }

    fn admit(&self, io: Io) {
        let shared = Arc::clone(&self.shared);
        if let Ok(room) = Arc::clone(&self.served).try_acquire_owned() {
            tokio::spawn(async move {
                serve(shared, io).await;
                drop(room);
            });
        } else if let Ok(room) = Arc::clone(&self.turned_away).try_acquire_owned() {
            tokio::spawn(async move {
                turn_away(shared, io).await;
                drop(room);
            });
        }
    }
}

async fn accept_unix(listener: &UnixListener, rooms: &Rooms) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => rooms.admit(Box::new(stream)),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn accept_tcp(listener: &TcpListener, rooms: &Rooms) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                rooms.admit(Box::new(stream));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}
