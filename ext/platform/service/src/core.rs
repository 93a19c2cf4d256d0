//! The state that all requests and tasks of a server share.

use crate::actor::{Actor, ActorClass};
use crate::auth::Throttle;
use crate::clock::now_ms;
use crate::config::ServiceConfig;
use crate::credits::Credits;
use crate::extension::{Extension, SandboxId};
use crate::host::Host;
use crate::metrics::Metrics;
use crate::otlp::{Queue, Span, Tracer};
use crate::pools::{Party, Pool, Pools};
use crate::problem::{ApiResult, Problem};
use crate::shares::Shares;
use crate::store::{SandboxRecord, Store};
use crate::webhook_target::WebhookTargets;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_routing::{Capabilities, HostRecord};

/// State of one server.
pub(crate) struct Core {
    pub store: Store,
    pub host: Arc<dyn Host>,
    pub config: ServiceConfig,
    pub credits: Credits,
    pub throttle: Throttle,
    pub metrics: Arc<Metrics>,
    pub tracer: Tracer,
    /// True from the moment at which the server begins to stop.
    pub stopping: watch::Sender<bool>,
    /// Destinations of webhooks besides public addresses.
    pub webhook_targets: Arc<WebhookTargets>,
    /// Wakes the task that delivers webhooks.
    pub deliver: Notify,
    /// Held while a route is chosen and its sandbox stored, so that two requests cannot both take
    /// the last place of a host.
    pub placement: tokio::sync::Mutex<()>,
    /// The OpenAPI document.
    pub description: &'static str,
    /// Uid of this process.
    pub own_uid: u32,
    /// Latency of the hosts in milliseconds, as the last health checks measured it.
    pub latencies: Mutex<HashMap<String, u32>>,
    extensions: BTreeMap<String, Arc<dyn Extension>>,
    pub pools: Pools,
    /// Permits of connections with an authenticated request, by actor.
    pub clients: Arc<Shares<Actor>>,
    /// Permits of programs that run for clients, by actor.
    pub execs: Arc<Shares<Actor>>,
    gates: Mutex<HashMap<SandboxId, Arc<tokio::sync::Mutex<()>>>>,
    /// Runs that a request of this process is starting.
    starting: Mutex<HashSet<SandboxId>>,
}

impl Core {
    pub(crate) fn open(
        mut config: ServiceConfig,
        extensions: Vec<Arc<dyn Extension>>,
        host: Arc<dyn Host>,
        description: &'static str,
    ) -> Result<(Self, Option<Queue>), ErrorBody> {
        let store = Store::open(&config.directory)?;
        let credits = Credits::new(config.prices.take(), config.ledger.take());
        credits.reconcile(&store)?;
        let mut named = BTreeMap::new();
        for extension in extensions {
            let capabilities = extension.capabilities();
            capabilities.validate()?;
            let id = capabilities.extension.to_string();
            if named.insert(id.clone(), extension).is_some() {
                let message =
                    format!("two extensions have the id {id}; give one of them another id");
                return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
            }
        }
        let known = store.hosts()?;
        for host in &config.hosts {
            host.validate()?;
            let mut host = host.clone();
            if let Some(before) = known.iter().find(|known| known.id == host.id) {
                host.state = before.state;
                host.latency_ms = before.latency_ms;
                if *before
                    == (HostRecord {
                        used: before.used,
                        ..host.clone()
                    })
                {
                    continue;
                }
            }
            store.put_host(&host, "host.registered", &service_actor())?;
        }
        let retention = i64::try_from(config.retention.as_millis()).unwrap_or(i64::MAX);
        store.prune_sandboxes(now_ms().saturating_sub(retention))?;
        store.prune_runs(now_ms().saturating_sub(retention))?;
        store.prune_events(config.events)?;
        let (tracer, spans) = Tracer::new(config.otlp.take());
        let core = Self {
            store,
            host,
            credits,
            throttle: Throttle::default(),
            metrics: Arc::default(),
            tracer,
            stopping: watch::Sender::new(false),
            webhook_targets: Arc::new(std::mem::take(&mut config.webhook_targets)),
            deliver: Notify::new(),
            placement: tokio::sync::Mutex::new(()),
            description,
            own_uid: rustix::process::geteuid().as_raw(),
            latencies: Mutex::default(),
            extensions: named,
            pools: Pools::default(),
            clients: Shares::new(
                config.bounds.connections,
                config.bounds.connections.div_ceil(2),
            ),
            execs: Shares::new(config.bounds.execs, config.bounds.execs.div_ceil(2)),
            gates: Mutex::default(),
            starting: Mutex::default(),
            config,
        };
        Ok((core, spans))
    }

    /// Ends a span, and counts it if it was dropped.
    pub(crate) fn end_span(&self, span: Span) {
        if !self.tracer.end(span) {
            self.metrics.spans_dropped.add();
        }
    }

    pub(crate) fn extension(&self, id: &str) -> ApiResult<Arc<dyn Extension>> {
        self.extensions.get(id).cloned().ok_or_else(|| {
            Problem::new(
                ErrorCode::ServiceUnavailable,
                format!("this server has no extension {id}, which created the sandbox; start the server with this extension"),
            )
        })
    }

    /// Returns what every extension offers, sorted by id.
    pub(crate) fn capabilities(&self) -> Vec<Capabilities> {
        self.extensions
            .values()
            .map(|extension| extension.capabilities().clone())
            .collect()
    }

    /// Returns the lock of a sandbox that orders its provisioning and its teardown.
    pub(crate) fn gate(&self, id: &SandboxId) -> Arc<tokio::sync::Mutex<()>> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if gates.len() > 1024 {
            gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        Arc::clone(gates.entry(id.clone()).or_default())
    }

    /// Returns a host record with its measured latency.
    pub(crate) fn measured(&self, host: HostRecord) -> HostRecord {
        let latencies = self
            .latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let latency_ms = latencies.get(host.id.as_str()).copied().or(host.latency_ms);
        HostRecord { latency_ms, ..host }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Locks the list of runs that requests of this process are starting. Held while living runs are
    /// counted and a new one is stored, so that two requests cannot both take the last one.
    pub(crate) fn starting(&self) -> MutexGuard<'_, HashSet<SandboxId>> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Actor of changes that the service makes on its own.
pub(crate) fn service_actor() -> Actor {
    Actor {
        class: ActorClass::Automation,
        name: "service".to_owned(),
    }
}

/// The core, for work that is done for one party.
#[derive(Clone)]
pub(crate) struct CoreFor {
    core: Arc<Core>,
    party: Party,
}

impl CoreFor {
    pub(crate) fn new(core: &Arc<Core>, party: Party) -> Self {
        Self {
            core: Arc::clone(core),
            party,
        }
    }

    /// Runs blocking work on a thread of a pool. Waits while the party or all have as many as they
    /// may have.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        pool: Pool,
        work: impl FnOnce(&Core) -> T + Send + 'static,
    ) -> ApiResult<T> {
        let threads = match pool {
            Pool::Records => &self.core.pools.records,
            Pool::Calls => &self.core.pools.calls,
            Pool::Waits => &self.core.pools.waits,
        };
        let permit = threads.acquire(&self.party).await;
        let core = Arc::clone(&self.core);
        let done = tokio::task::spawn_blocking(move || {
            let result = work(&core);
            drop(permit);
            result
        });
        done.await.map_err(|error| {
            if error.is_panic() {
                Problem::new(
                    ErrorCode::Internal,
                    "a call failed because of a defect of the service; the service's log has the detail",
                )
            } else {
                Problem::new(
                    ErrorCode::ServiceUnavailable,
                    "the service is stopping; repeat the request later",
                )
            }
        })
    }

    /// Runs work on the records.
    pub(crate) async fn records<T: Send + 'static, E>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, E> + Send + 'static,
    ) -> ApiResult<T>
    where
        E: Send + 'static,
        Problem: From<E>,
    {
        Ok(self
            .blocking(Pool::Records, |core| work(&core.store))
            .await??)
    }

    /// Calls the extension of a sandbox.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        pool: Pool,
        record: &SandboxRecord,
        work: impl FnOnce(&dyn Extension, &SandboxId) -> Result<T, ErrorBody> + Send + 'static,
    ) -> ApiResult<T> {
        let extension = self.core.extension(&record.extension)?;
        let id = record.provision.sandbox.clone();
        Ok(self
            .blocking(pool, move |_| work(extension.as_ref(), &id))
            .await??)
    }
}

impl Deref for CoreFor {
    type Target = Arc<Core>;

    fn deref(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Core {
    /// Runs blocking work of the service itself.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        pool: Pool,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> ApiResult<T> {
        CoreFor::new(self, Party::Service)
            .blocking(pool, work)
            .await
    }

    /// Runs work on the records for the service itself.
    pub(crate) async fn records<T: Send + 'static, E>(
        self: &Arc<Self>,
        work: impl FnOnce(&Store) -> Result<T, E> + Send + 'static,
    ) -> ApiResult<T>
    where
        E: Send + 'static,
        Problem: From<E>,
    {
        CoreFor::new(self, Party::Service).records(work).await
    }

    /// Calls the extension of a sandbox for its owner.
    pub(crate) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        pool: Pool,
        record: &SandboxRecord,
        work: impl FnOnce(&dyn Extension, &SandboxId) -> Result<T, ErrorBody> + Send + 'static,
    ) -> ApiResult<T> {
        let owner = Party::Actor(record.owner().clone());
        CoreFor::new(self, owner).call(pool, record, work).await
    }
}
