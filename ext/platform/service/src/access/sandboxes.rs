//! Sandboxes that a client may use.

use super::{Caller, Owner};
use crate::auth::Scope;
use crate::core::CoreFor;
use crate::extension::{ExecEnd, ExecOutput, ExecRequest, Extension, SandboxId, SandboxState};
use crate::lifecycle;
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use crate::store::{ListRows, SandboxRecord};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// A sandbox that its client may use for the operation of the request.
pub(crate) struct Sandbox {
    caller: Caller,
    record: SandboxRecord,
}

impl Caller {
    /// Returns a sandbox in any state. Every other id, known or not, gets the same answer.
    pub(crate) async fn sandbox(&self, id: &str) -> ApiResult<Sandbox> {
        let key = id.to_owned();
        let record = self.core.records(move |store| store.sandbox(&key)).await?;
        let record = record.filter(|record| self.may(&Owner::of(record)));
        Ok(self.handle(record.ok_or_else(Problem::sandbox_not_found)?))
    }

    /// Returns a sandbox that accepts requests.
    pub(crate) async fn usable_sandbox(&self, id: &str) -> ApiResult<Sandbox> {
        let sandbox = self.sandbox(id).await?;
        let state = sandbox.record.state;
        if state.is_usable() {
            return Ok(sandbox);
        }
        let message = format!(
            "the sandbox is {}, so it takes no requests; wait until it is ready, or create another one",
            state.as_str()
        );
        Err(Problem::new(ErrorCode::SandboxNotHeld, message))
    }

    /// Lists the records of sandboxes that the client may use, newest first.
    pub(crate) async fn sandboxes(
        &self,
        before: Option<i64>,
        wanted: impl Fn(&SandboxRecord) -> bool + Send + 'static,
    ) -> ApiResult<ListRows> {
        let (caller, limit) = (self.clone(), self.args.limit());
        self.core
            .records(move |store| {
                let owner = match caller.principal.scopes.allow_any(Scope::SandboxesAll) {
                    true => None,
                    false => Some(&caller.principal.actor),
                };
                let may = |record: &SandboxRecord| caller.may(&Owner::of(record)) && wanted(record);
                store.list_sandboxes(owner, before, limit, may)
            })
            .await
    }

    /// Returns the record of the sandbox that this token made with an idempotency key.
    pub(crate) async fn sandbox_of_key(&self, key: &str) -> ApiResult<Option<SandboxRecord>> {
        let (token, key) = (self.principal.token.clone(), key.to_owned());
        let find = self.core.records(move |store| {
            let id = store.sandbox_of_key(&token, &key)?;
            let record = id.map(|id| store.sandbox(&id)).transpose()?;
            Ok::<_, crate::store::StoreError>(record.flatten())
        });
        Ok(find.await?.filter(|record| self.may(&Owner::of(record))))
    }

    pub(super) fn handle(&self, record: SandboxRecord) -> Sandbox {
        Sandbox {
            caller: self.clone(),
            record,
        }
    }
}

impl Sandbox {
    pub(crate) const fn record(&self) -> &SandboxRecord {
        &self.record
    }

    fn core(&self) -> &CoreFor {
        &self.caller.core
    }

    /// Returns whether the sandbox's extension takes snapshots.
    pub(crate) fn has_snapshots(&self) -> ApiResult<bool> {
        let extension = self.core().extension(&self.record.extension)?;
        Ok(extension.capabilities().snapshot)
    }

    /// Calls the extension of the sandbox.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        pool: Pool,
        work: impl FnOnce(&dyn Extension, &SandboxId) -> Result<T, ErrorBody> + Send + 'static,
    ) -> ApiResult<T> {
        self.core().call(pool, &self.record, work).await
    }

    /// Changes the record without a change of its state, and writes an event about it.
    pub(crate) async fn noted(
        self,
        kind: &'static str,
        data: Value,
        change: impl FnOnce(&mut SandboxRecord) + Send + 'static,
    ) -> ApiResult<Self> {
        let id = self.record.id().to_owned();
        let actor = self.caller.principal.actor.clone();
        let noted = self
            .core()
            .records(move |store| store.note(&id, kind, &actor, data, change))
            .await?;
        self.core().deliver.notify_one();
        let record = noted.ok_or_else(Problem::sandbox_not_found)?;
        Ok(Self { record, ..self })
    }

    /// Returns the account that pays for the sandbox, if the client may charge it.
    pub(crate) fn payer(&self) -> ApiResult<Option<String>> {
        self.caller.check_payer(&self.record)?;
        Ok(self.record.account.clone())
    }

    /// Reserves credits for a longer lifetime, at the account that pays for the sandbox.
    pub(crate) async fn reserve_longer(&self, ttl_ms: u64) -> ApiResult<()> {
        self.caller.check_payer(&self.record)?;
        let record = self.record.clone();
        self.core()
            .blocking(Pool::Records, move |core| {
                core.credits.extend(&record, ttl_ms)
            })
            .await??;
        Ok(())
    }

    /// Runs a program on a thread of its own; `last` gets its end after all output.
    pub(crate) fn exec<O: ExecOutput + Send + 'static>(
        self,
        request: ExecRequest,
        mut output: O,
        last: impl FnOnce(O, Result<ExecEnd, ErrorBody>) + Send + 'static,
    ) -> ApiResult<()> {
        let core = Arc::clone(self.core());
        let actor = &self.caller.principal.actor;
        let permit = core.execs.try_acquire(actor).ok_or_else(|| {
            Problem::new(
                ErrorCode::ServiceUnavailable,
                "this service runs as many programs as it may, in all or for this actor; try again when one has ended",
            )
        })?;
        let extension = core.extension(&self.record.extension)?;
        drop(tokio::task::spawn_blocking(move || {
            core.metrics.execs.up();
            let sandbox = &self.record.provision.sandbox;
            let actor = &self.caller.principal.actor;
            let end = extension.exec(sandbox, &request, actor, &mut output);
            last(output, end);
            core.metrics.execs.down();
            drop(permit);
        }));
        Ok(())
    }

    /// Destroys the sandbox in a task of its own: a client that disconnects does not interrupt it.
    pub(crate) async fn destroyed(self, reason: String) -> ApiResult<Self> {
        let (core, record) = (Arc::clone(self.core()), self.record.clone());
        let actor = self.caller.principal.actor.clone();
        let task =
            tokio::spawn(async move { lifecycle::destroy(&core, &record, &actor, reason).await });
        let record = task.await.map_err(|_| {
            Problem::new(
                ErrorCode::Internal,
                "a defect of the service stopped the removal of the sandbox; repeat the request",
            )
        })??;
        Ok(Self { record, ..self })
    }

    /// Waits until the sandbox is usable or has ended, at most for `wait`.
    pub(crate) async fn settled(self, wait: Duration) -> ApiResult<Self> {
        let core = self.core().clone();
        let mut events = core.store.watch_events();
        let mut stopping = core.stopping.subscribe();
        let until = tokio::time::Instant::now() + wait;
        loop {
            events.mark_unchanged();
            let key = self.record.provision.sandbox.clone();
            let record = core
                .records(move |store| store.sandbox(key.as_str()))
                .await?
                .ok_or_else(Problem::sandbox_not_found)?;
            let pending = matches!(
                record.state,
                SandboxState::Requested | SandboxState::Provisioning
            );
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if !pending || left.is_zero() || core.is_stopping() {
                return Ok(Self { record, ..self });
            }
            let changed = async {
                tokio::select! {
                    _ = events.changed() => {}
                    _ = stopping.changed() => {}
                }
            };
            let _ = timeout(left, changed).await;
        }
    }
}
