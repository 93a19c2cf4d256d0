//! The states of a held sandbox, each change an event with who brought it about and why.

use crate::run::queue::RequestQueue;
use crate::run::recorder::Recorder;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, EventType, Hold, RunId, schema_id};
use wp_codebox_runtime::{RuntimeState, now_rfc3339};

/// Who acts when nobody asked.
pub(super) const SUPERVISOR: &str = "supervisor";

/// Where a sandbox is in its life, and what everybody may know of it.
#[derive(Debug)]
pub(crate) struct States {
    state: RuntimeState,
    /// `sandbox/v1` so far.
    shown: Map<String, Value>,
    kept: Kept,
}

/// Whether there is anything to tell: a run without a hold has no states of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// One step.
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

    /// Moves on, says so in the journal and to whoever asks. Staying is no event.
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

    /// Says that its times changed while it stays what it is.
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

    /// What is known besides.
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
