//! Carries out those requests of clients that get a single reply. The requests go to a held sandbox
//! (one kept open for clients).

use crate::session::Session;
use crate::session::mail;
use crate::work::episode;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, LiveRequest};
use wp_codebox_policy::{Handler, descriptor};

/// Whether a request may run while programs run in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    Yes,
    /// The request stores the state that programs change, or replaces the guest that they run in.
    No,
}

/// Returns whether a request may run while programs of clients run in the sandbox.
pub(super) fn beside(request: &LiveRequest) -> Beside {
    match request {
        LiveRequest::Restore { .. } | LiveRequest::Reset {} | LiveRequest::Snapshot(_) => {
            Beside::No
        }
        LiveRequest::Command { call, .. } => beside_command(&call.command),
        LiveRequest::Step { action, .. } => beside_command(&action.command),
        LiveRequest::Exec(_)
        | LiveRequest::Observe { .. }
        | LiveRequest::Trace {}
        | LiveRequest::SyncIn(_)
        | LiveRequest::SyncOut(_)
        | LiveRequest::Snapshots {}
        | LiveRequest::Mail { .. }
        | LiveRequest::Preview(_)
        | LiveRequest::Events(_)
        | LiveRequest::Status {}
        | LiveRequest::ExtendTtl { .. }
        | LiveRequest::Close { .. } => Beside::Yes,
    }
}

fn beside_command(command: &str) -> Beside {
    match descriptor(command) {
        Some(found) if found.handler == Handler::Checkpoint => Beside::No,
        Some(_) | None => Beside::Yes,
    }
}

/// Carries out a request within `left`, the remaining lifetime of the sandbox.
pub(super) fn dispatch(
    session: &mut Session<'_, '_>,
    request: &LiveRequest,
    left: Duration,
) -> Result<Value, ErrorBody> {
    match request {
        LiveRequest::Command { call, timeout_ms } => {
            let timeout = timeout_ms.map_or(left, |ms| Duration::from_millis(ms).min(left));
            let done = episode::command(session, call, timeout)?;
            Ok(json!(done.result))
        }
        LiveRequest::Observe { spec } => episode::look(session, spec, left),
        LiveRequest::Step {
            action,
            observation,
        } => episode::step(session, action, observation.as_ref(), left),
        LiveRequest::Trace {} => episode::trace(session),
        LiveRequest::SyncIn(request) => session.sync_in(request, &actor(session), left),
        LiveRequest::SyncOut(request) => session.sync_out(request, &actor(session), left),
        LiveRequest::Snapshot(_)
        | LiveRequest::Restore { .. }
        | LiveRequest::Reset {}
        | LiveRequest::Snapshots {} => session.state_request(request, &[]),
        LiveRequest::Mail { number } => {
            let context = session.context;
            mail::look(&context.mailbox, context.redactor, *number)
        }
        LiveRequest::Preview(request) => session.preview(request, Instant::now() + left),
        // The control thread or the loop that enforces the lifetime handles these requests.
        LiveRequest::Exec(_)
        | LiveRequest::Events(_)
        | LiveRequest::Status {}
        | LiveRequest::ExtendTtl { .. }
        | LiveRequest::Close { .. } => Err(ErrorBody::new(
            ErrorCode::Internal,
            "the control thread or the lifetime loop must answer this request",
        )),
    }
}

/// Returns the actor of the current request: the name that the client gave for the requester.
fn actor(session: &Session<'_, '_>) -> String {
    session.recorder.actor.clone().unwrap_or_default()
}
