//! Runs that a client may use, and new ones.

use super::Caller;
use crate::auth::Scope;
use crate::clock::now_ms;
use crate::core::Core;
use crate::extension::SandboxId;
use crate::host::{Host, Page, Requester, RunOrder, RunSelection};
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use crate::profile::ProfileDocument;
use crate::run_watch::{check_all, settle_start};
use crate::store::{RunRecord, RunState, Store, StoreResult};
use serde_json::Value;
use std::collections::HashSet;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// A run to start.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub id: SandboxId,
    /// Task document, the input of the ability `run-agent-task`.
    pub task: Value,
    /// Profile that bounds the run.
    pub profile: Option<ProfileDocument>,
    pub account: Option<String>,
}

/// A run that its client may use for the operation of the request.
pub(crate) struct Run {
    caller: Caller,
    id: String,
}

impl Caller {
    /// Returns a run by its whole id. Every other id, known or not, gets the same answer.
    pub(crate) async fn run(&self, id: &str) -> ApiResult<Run> {
        if SandboxId::parse(id).is_err() {
            return Err(Problem::run_not_found());
        }
        let key = id.to_owned();
        let owner = self.core.records(move |store| store.owner_of_run(&key));
        if !self.may(&owner.await?) {
            return Err(Problem::run_not_found());
        }
        Ok(Run {
            caller: self.clone(),
            id: id.to_owned(),
        })
    }

    /// Lists the runs that the client may use: `run-list/v1`.
    pub(crate) async fn runs(&self, page: Page) -> ApiResult<Value> {
        let caller = self.clone();
        self.core
            .blocking(Pool::Calls, move |core| -> ApiResult<Value> {
                let selection = caller.selection(&core.store)?;
                Ok(core.host.runs(&selection, page)?)
            })
            .await?
    }

    /// Returns the runs that the client may use. Blocks.
    pub(super) fn selection(&self, store: &Store) -> StoreResult<RunSelection> {
        if self.may(&super::Owner::unknown()) {
            return Ok(RunSelection::All);
        }
        let sees_others = self
            .scope
            .is_some_and(|scope| self.principal.scopes.allow_any(scope.for_others()));
        let actor = (!sees_others).then_some(&self.principal.actor);
        let mut ids = HashSet::new();
        store.run_owners(actor, |id, owner| {
            if self.may(owner) {
                ids.insert(id);
            }
        })?;
        Ok(RunSelection::Only(ids))
    }

    /// Checks the task, reserves the credits, stores the record and starts the run. Returns
    /// `run-handle/v1`.
    pub(crate) async fn start_run(&self, new: NewRun) -> ApiResult<Value> {
        self.check_profile(new.profile.as_ref().map(|profile| profile.id.as_str()))?;
        let caller = self.clone();
        // One piece of work: a client that disconnects does not interrupt it between the steps.
        self.core
            .blocking(Pool::Waits, move |core| caller.start(core, new))
            .await?
    }

    fn start(&self, core: &Core, new: NewRun) -> ApiResult<Value> {
        let profile = new.profile.as_ref().map(|profile| profile.id.clone());
        let mut planned = core.host.plan_run(RunOrder {
            run: new.id.clone(),
            task: new.task,
            profile: new.profile,
            actor: self.principal.actor.clone(),
            requester: match self.principal.is_administrator() {
                true => Requester::Administrator,
                false => Requester::Token,
            },
        })?;
        if let Some(named) = planned.follow_up() {
            let reader = self.with(Scope::ArtifactsRead);
            let earlier = reader.run_of_artifact(core, named)?;
            planned.set_follow_up(&earlier);
        }
        let quote = core
            .credits
            .quote(core.host.run_extension(), planned.duration_ms(), 0)?;
        let mut record = RunRecord {
            id: new.id,
            state: RunState::Starting,
            actor: self.principal.actor.clone(),
            profile,
            account: new.account,
            created_ms: now_ms(),
            quote,
            started: false,
            usage: None,
        };
        let _starting = match self.register(core, &record) {
            // The records may count runs that have ended since the service last checked them.
            Err(problem) if problem.code() == ErrorCode::Busy => {
                check_all(core)?;
                self.register(core, &record)?
            }
            registered => registered?,
        };
        match planned.start() {
            Ok(handle) => {
                (record.state, record.started) = (RunState::Running, true);
                core.store.update_run(&record)?;
                Ok(handle)
            }
            Err(error) => {
                settle_start(core, record)?;
                Err(error.into())
            }
        }
    }

    /// Reserves the credits of a run and stores its record, unless there are too many runs.
    fn register<'a>(&self, core: &'a Core, record: &RunRecord) -> ApiResult<StartingRun<'a>> {
        let mut starting = core.starting();
        self.check_runs(core)?;
        core.credits.reserve(record)?;
        if let Err(error) = core.store.insert_run(record) {
            // If this fails as well, the next start of the service releases the reservation.
            let _ = core
                .credits
                .release(record, "the record could not be written");
            return Err(error.into());
        }
        let id = record.id.clone();
        starting.insert(id.clone());
        Ok(StartingRun { core, id })
    }
}

/// A run that a request is starting, until this value is dropped.
struct StartingRun<'a> {
    core: &'a Core,
    id: SandboxId,
}

impl Drop for StartingRun<'_> {
    fn drop(&mut self) {
        self.core.starting().remove(&self.id);
    }
}

impl Run {
    async fn ask(
        &self,
        work: impl FnOnce(&dyn Host, &str) -> Result<Value, ErrorBody> + Send + 'static,
    ) -> ApiResult<Value> {
        let id = self.id.clone();
        let answer = self
            .caller
            .core
            .blocking(Pool::Calls, move |core| work(core.host.as_ref(), &id))
            .await?;
        answer.map_err(|error| match error.code {
            ErrorCode::RunNotFound => Problem::run_not_found(),
            _ => error.into(),
        })
    }

    /// Returns the run: `run/v1`.
    pub(crate) async fn view(&self) -> ApiResult<Value> {
        self.ask(|host, id| host.run(id)).await
    }

    /// Returns a page of the run's journal: `run-events/v1`.
    pub(crate) async fn events(&self, after: u64) -> ApiResult<Value> {
        self.ask(move |host, id| host.run_events(id, after)).await
    }

    /// Cancels the run: `run-cancellation/v1`. To cancel the run of a sandbox is to destroy the
    /// sandbox, so it needs that scope as well.
    pub(crate) async fn cancel(&self, reason: String) -> ApiResult<Value> {
        let id = self.id.clone();
        let core = &self.caller.core;
        if let Some(sandbox) = core.records(move |store| store.sandbox(&id)).await? {
            let destroyer = self.caller.with(Scope::SandboxesDestroy);
            destroyer.check_profile(Some(sandbox.profile_id()))?;
        }
        let actor = self.caller.principal.actor.clone();
        self.ask(move |host, id| host.cancel_run(id, &actor, &reason))
            .await
    }
}
