//! States of a held sandbox, e.g. ready. Each transition is recorded as an event with its reason
//! and its actor (the client or `supervisor`).

use crate::journal::queue::RequestQueue;
use crate::journal::recorder::Recorder;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, EventType, Hold, RunId, schema_id};
use wp_codebox_runtime::{RuntimeState, now_rfc3339};

/// Actor of state transitions that no client requested.
pub(super) const SUPERVISOR: &str = "supervisor";

/// State of a sandbox, and the status document for clients.
#[derive(Debug)]
pub(crate) struct States {
    state: RuntimeState,
    /// Status document, in the form `sandbox/v1`.
    shown: Map<String, Value>,
    kept: Kept,
}

/// Whether the run keeps its sandbox open for clients. If not, no states are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// One state transition of a sandbox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub to: RuntimeState,
    pub actor: &'a str,
    pub reason: &'a str,
}

impl<'a> Change<'a> {
    pub(crate) fn by_supervisor(to: RuntimeState, reason: &'a str) -> Self {
        Self {
            to,
            actor: SUPERVISOR,
            reason,
        }
    }
}

impl States {
    pub(crate) fn new(id: &RunId, hold: Option<&Hold>) -> Self {
        let mut shown = Map::new();
        let kept = match hold {
            None => Kept::No,
            Some(hold) => {
                shown.insert("schema".to_owned(), json!(schema_id::SANDBOX));
                shown.insert("id".to_owned(), json!(id));
                shown.insert("state".to_owned(), json!(RuntimeState::Requested));
                shown.insert("createdAt".to_owned(), json!(now_rfc3339()));
                if let Some(identity) = &hold.identity {
                    shown.insert("identity".to_owned(), json!(identity));
                }
                shown.insert("executions".to_owned(), json!([]));
                Kept::Yes
            }
        };
        Self {
            state: RuntimeState::Requested,
            shown,
            kept,
        }
    }

    /// Changes the state, records an event and updates the status document. Does nothing if the
    /// sandbox is already in this state or is not kept open for clients.
    pub(crate) fn change(
        &mut self,
        recorder: &mut Recorder<'_>,
        queue: &RequestQueue,
        change: Change<'_>,
    ) -> Result<(), ErrorBody> {
        let from = self.state;
        if self.kept == Kept::No || from == change.to {
            return Ok(());
        }
        self.state
            .advance(change.to)
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        self.shown.insert("state".to_owned(), json!(self.state));
        queue.show(Value::Object(self.shown.clone()));
        let mut data =
            json!({"from": from, "to": self.state, "actor": change.actor, "reason": change.reason});
        if let Some(at) = self.shown.get("expiresAt") {
            data["expiresAt"] = at.clone();
        }
        recorder.event(EventType::StateChanged, None, data)
    }

    /// Records an event with the new time at which the sandbox expires; its state stays the same.
    pub(super) fn times(
        &self,
        recorder: &mut Recorder<'_>,
        actor: &str,
        reason: &str,
    ) -> Result<(), ErrorBody> {
        let data = json!({"from": self.state, "to": self.state, "actor": actor,
            "reason": reason, "expiresAt": self.shown.get("expiresAt")});
        recorder.event(EventType::StateChanged, None, data)
    }

    /// Sets a member of the status document, e.g. the time at which the sandbox expires.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.shown.insert(name.to_owned(), value);
    }

    pub(crate) fn show(&self, queue: &RequestQueue) {
        queue.show(Value::Object(self.shown.clone()));
    }

    pub(super) fn document(&self) -> Value {
        Value::Object(self.shown.clone())
    }
}
