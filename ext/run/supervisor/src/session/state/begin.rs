//! Selects the snapshot that a session starts from, and checks that the session can start from it.

use super::base::Base;
use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use serde_json::{Value, json};
use std::sync::Arc;
use wp_codebox_contracts::{ErrorBody, ErrorCode, EventType, IsolationLevel, SandboxSnapshot};
use wp_codebox_runtime::{SnapshotStore, Stop};

/// Opens the snapshot that the request names, if any.
pub(crate) fn asked(context: &RunContext<'_>) -> Result<Option<Arc<Base>>, ErrorBody> {
    let prepared = context.prepared;
    let hold = prepared.request.hold.as_ref();
    let Some(reference) = hold.and_then(|hold| hold.snapshot.as_deref()) else {
        return Ok(None);
    };
    require_layers(context.level)?;
    let shelf = SnapshotStore::of_site(&prepared.state, &prepared.request.site)?;
    let id = shelf.by_id(reference)?;
    Base::open(context, &shelf, &id).map(|base| Some(Arc::new(base)))
}

/// Fails if `stop`, the result of preparing a new guest for its work, is a reason to stop:
/// that guest cannot be used.
pub(crate) fn ready(stop: Option<Stop>) -> Result<(), ErrorBody> {
    match stop {
        None => Ok(()),
        Some(
            Stop::Failed(error)
            | Stop::Partial(error)
            | Stop::Blocked(error)
            | Stop::Uncaptured(error),
        ) => Err(error),
        Some(Stop::Timeout | Stop::Cancelled) => Err(ErrorBody::new(
            ErrorCode::SandboxStartFailed,
            "the run ended before the new guest was ready",
        )),
    }
}

/// Fails at an isolation level at which guests have no overlay layers: a snapshot consists of such
/// layers.
pub(super) fn require_layers(level: IsolationLevel) -> Result<(), ErrorBody> {
    match level {
        IsolationLevel::Full => Ok(()),
        IsolationLevel::Reduced | IsolationLevel::None => Err(ErrorBody::new(
            ErrorCode::CommandUnsupported,
            "snapshots need isolation level full: at level reduced a guest has no overlay layers to store",
        )),
    }
}

/// Records in the journal that the session started from a snapshot.
pub(crate) fn began(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    snapshot: &SandboxSnapshot,
) -> Result<(), ErrorBody> {
    let hold = context.prepared.request.hold.as_ref();
    let identity = hold.and_then(|hold| hold.identity.as_ref());
    let actor = identity.map_or("run", |identity| identity.actor.as_str());
    let data = event(snapshot, actor);
    recorder.event(EventType::SnapshotRestored, None, data)
}

pub(super) fn event(snapshot: &SandboxSnapshot, actor: &str) -> Value {
    json!({
        "id": snapshot.id, "name": snapshot.name, "actor": actor,
        "digest": snapshot.digest, "bytes": snapshot.total_bytes,
    })
}
