//! What belongs to no client: hosts, extensions, and the server itself. The scope of the operation
//! is the whole check.

use super::share::measured_hosts;
use super::{Caller, ServerState};
use crate::auth::Origin;
use crate::auth::Peer;
use crate::core::CoreFor;
use crate::extension::Extension;
use crate::pools::{Party, Pool};
use crate::problem::{ApiResult, Problem};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde_json::Value;
use std::convert::Infallible;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_routing::{Capabilities, HostRecord};

impl Caller {
    pub(crate) fn capabilities(&self) -> Vec<Capabilities> {
        self.core.capabilities()
    }

    pub(crate) fn has_extension(&self, id: &str) -> bool {
        self.core.extension(id).is_ok()
    }

    /// Returns the registered hosts with their measured latencies.
    pub(crate) async fn hosts(&self) -> ApiResult<Vec<HostRecord>> {
        self.core.blocking(Pool::Records, measured_hosts).await?
    }

    /// Stores a host and writes the event `kind`.
    pub(crate) async fn put_host(&self, host: HostRecord, kind: &'static str) -> ApiResult<()> {
        let actor = self.principal.actor.clone();
        self.core
            .records(move |store| store.put_host(&host, kind, &actor))
            .await?;
        self.core.deliver.notify_one();
        Ok(())
    }

    pub(crate) async fn remove_host(&self, host: HostRecord) -> ApiResult<()> {
        let actor = self.principal.actor.clone();
        self.core
            .records(move |store| store.remove_host(&host, &actor))
            .await?;
        self.core.deliver.notify_one();
        Ok(())
    }

    /// Returns the price of a sandbox that lives this long, and what the extension estimates.
    pub(crate) async fn quote(
        &self,
        extension: &str,
        duration_ms: u64,
        gpus: u32,
        estimate: impl FnOnce(&dyn Extension) -> Result<Value, ErrorBody> + Send + 'static,
    ) -> ApiResult<(Value, Value)> {
        let found = self.core.extension(extension)?;
        let id = extension.to_owned();
        self.core
            .blocking(Pool::Calls, move |core| -> ApiResult<_> {
                let quote = core.credits.quote(&id, duration_ms, gpus)?;
                Ok((quote, estimate(found.as_ref())?))
            })
            .await?
    }

    /// Returns the counters of the server as text.
    pub(crate) async fn metrics(&self) -> ApiResult<String> {
        self.core
            .blocking(Pool::Records, |core| -> ApiResult<String> {
                let store = &core.store;
                let states = store.count_states()?;
                let (queued, last) = (store.count_deliveries()?, store.last_event()?);
                Ok(core.metrics.text(&states, queued, last))
            })
            .await?
    }
}

/// What everybody who can connect may know of the server.
pub(crate) struct PublicState(CoreFor);

impl FromRequestParts<ServerState> for PublicState {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &ServerState,
    ) -> Result<Self, Infallible> {
        let party = match parts.extensions.get::<Peer>() {
            Some(peer) => Party::Peer(Origin::from(peer)),
            None => Party::Service,
        };
        Ok(Self(CoreFor::new(&state.0, party)))
    }
}

impl PublicState {
    /// The OpenAPI document.
    pub(crate) fn description(&self) -> &'static str {
        self.0.description
    }

    /// Checks that the server takes requests for sandboxes. The reason why not is only in the log.
    pub(crate) async fn check_ready(&self) -> ApiResult<()> {
        let not_ready = || {
            Problem::new(
                ErrorCode::ServiceUnavailable,
                "this service takes no requests for sandboxes now; its log says why",
            )
        };
        if self.0.is_stopping() {
            return Err(not_ready());
        }
        self.0.records(|store| store.last_event()).await?;
        let host = self.0.blocking(Pool::Calls, |core| core.host.ready());
        host.await?.map_err(|error| {
            eprintln!("wp-codebox serve: not ready: {error}");
            not_ready()
        })
    }
}
