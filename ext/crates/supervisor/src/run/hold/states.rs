//! States of a held sandbox. Each transition is recorded as an event with its actor and its reason.

use crate::run::queue::RequestQueue;
use crate::run::recorder::Recorder;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, EventType, Hold, RunId, schema_id};
use wp_codebox_runtime::{RuntimeState, now_rfc3339};

/// Actor of transitions that no client requested.
pub(super) const SUPERVISOR: &str = "supervisor";

/// Current state of a sandbox and its public facts.
#[derive(Debug)]
pub(crate) struct States {
    state: RuntimeState,
    /// Current `sandbox/v1` document.
    shown: Map<String, Value>,
    kept: Kept,
}

/// Whether the run holds its sandbox for clients. A run that does not has no sandbox states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// One state transition.
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

    /// Changes the state, records an event and updates the status document. If the state is already
    /// the current one, no event is recorded.
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

    /// Records new deadlines; the state stays the same.
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

    /// Sets an additional member of the status document.
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
