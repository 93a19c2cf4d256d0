//! Records of sandboxes as handlers find and change them.

use crate::auth::{Principal, Scope};
use crate::core::Core;
use crate::problem::{ApiResult, Problem};
use crate::store::{ListRows, SandboxRecord};
use serde_json::Value;
use std::sync::Arc;
use wp_codebox_contracts::ErrorCode;

/// Returns a sandbox if the principal may do `scope` with it. Every other id, known or not, gets
/// the same answer.
pub(super) async fn visible(
    core: &Arc<Core>,
    principal: &Principal,
    scope: Scope,
    id: &str,
) -> ApiResult<SandboxRecord> {
    let key = id.to_owned();
    core.records(move |store| store.sandbox(&key))
        .await?
        .filter(|record| principal.may_use(scope, record))
        .ok_or_else(Problem::sandbox_not_found)
}

/// Returns a sandbox that accepts requests.
pub(super) async fn usable(
    core: &Arc<Core>,
    principal: &Principal,
    scope: Scope,
    id: &str,
) -> ApiResult<SandboxRecord> {
    let record = visible(core, principal, scope, id).await?;
    if record.state.is_usable() {
        return Ok(record);
    }
    let message = format!(
        "the sandbox is {}, so it takes no requests; wait until it is ready, or create another one",
        record.state.as_str()
    );
    Err(Problem::new(ErrorCode::SandboxNotHeld, message))
}

/// Lists the records that a principal may read.
pub(super) async fn rows(
    core: &Arc<Core>,
    principal: Principal,
    before: Option<i64>,
    limit: usize,
    wanted: impl Fn(&SandboxRecord) -> bool + Send + 'static,
) -> ApiResult<ListRows> {
    core.records(move |store| {
        let owner = match principal.scopes.allow_any(Scope::SandboxesAll) {
            true => None,
            false => Some(&principal.actor),
        };
        let may = |record: &SandboxRecord| {
            principal.may_use(Scope::SandboxesRead, record) && wanted(record)
        };
        store.list_sandboxes(owner, before, limit, may)
    })
    .await
}

/// Changes the record of a sandbox without a change of its state, and writes an event about it.
pub(super) async fn noted(
    core: &Arc<Core>,
    record: &SandboxRecord,
    kind: &'static str,
    principal: &Principal,
    data: Value,
    change: impl FnOnce(&mut SandboxRecord) + Send + 'static,
) -> ApiResult<SandboxRecord> {
    let (id, actor) = (record.id().to_owned(), principal.actor.clone());
    let record = core
        .records(move |store| store.note(&id, kind, &actor, data, change))
        .await?;
    core.deliver.notify_one();
    record.ok_or_else(Problem::sandbox_not_found)
}
