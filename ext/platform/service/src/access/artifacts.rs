//! Artifact bundles that a client may read. A bundle belongs to the owner of the run that made it.

use super::Caller;
use crate::core::Core;
use crate::host::{Host, Page};
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use serde_json::Value;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// A bundle that its client may read for the operation of the request.
pub(crate) struct Artifact {
    caller: Caller,
    /// Run that made the bundle.
    run: String,
}

impl Caller {
    /// Returns a bundle by its whole id or the id of its run. Every other id, known or not, gets
    /// the same answer.
    pub(crate) async fn artifact(&self, id: &str) -> ApiResult<Artifact> {
        let (caller, id) = (self.clone(), id.to_owned());
        let found = self
            .core
            .blocking(Pool::Calls, move |core| caller.run_of_artifact(core, &id));
        Ok(Artifact {
            run: found.await??,
            caller: self.clone(),
        })
    }

    /// Returns the newest run of the client that made the bundle with this id. Blocks.
    pub(super) fn run_of_artifact(&self, core: &Core, id: &str) -> ApiResult<String> {
        for run in core.host.runs_of_artifact(id)? {
            if self.may(&core.store.owner_of_run(&run)?) {
                return Ok(run);
            }
        }
        Err(Problem::artifact_not_found())
    }

    /// Lists the bundles that the client may read: `artifact-list/v1`.
    pub(crate) async fn artifacts(&self, page: Page) -> ApiResult<Value> {
        let caller = self.clone();
        self.core
            .blocking(Pool::Calls, move |core| -> ApiResult<Value> {
                let selection = caller.selection(&core.store)?;
                Ok(core.host.artifacts(&selection, page)?)
            })
            .await?
    }
}

impl Artifact {
    async fn ask(
        &self,
        work: impl FnOnce(&dyn Host, &str) -> Result<Value, ErrorBody> + Send + 'static,
    ) -> ApiResult<Value> {
        let run = self.run.clone();
        let answer = self
            .caller
            .core
            .blocking(Pool::Calls, move |core| work(core.host.as_ref(), &run))
            .await?;
        answer.map_err(|error| match error.code {
            ErrorCode::ArtifactNotFound => Problem::artifact_not_found(),
            _ => error.into(),
        })
    }

    /// Returns the bundle: `artifact/v1`.
    pub(crate) async fn view(&self) -> ApiResult<Value> {
        self.ask(|host, run| host.artifact(run)).await
    }

    /// Verifies digests and signature of the bundle.
    pub(crate) async fn verify(&self) -> ApiResult<Value> {
        self.ask(|host, run| host.verify_artifact(run)).await
    }
}
