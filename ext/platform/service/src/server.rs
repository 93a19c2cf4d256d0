//! The server: its tasks, its start and its stop.

use crate::access::ServerState;
use crate::api;
use crate::config::ServiceConfig;
use crate::connection::accept;
use crate::core::Core;
use crate::extension::Extension;
use crate::host::Host;
use crate::listener::Listener;
use crate::otlp::Queue;
use crate::pools::THREADS;
use crate::problem::Problem;
use crate::{deliver, lifecycle, openapi, otlp, run_watch, upkeep};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::sync::Arc;
use tokio::task::JoinSet;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

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
