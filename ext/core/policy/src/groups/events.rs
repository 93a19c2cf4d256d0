//! Events of a fan-out, `agent-fanout-event/v1`: one for each start and end of a worker, of the
//! aggregation and of the whole fan-out.

use super::rows::GroupStatus;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::schema_id;

/// Events of a fan-out in progress. A worker's events are recorded when it has ended.
#[derive(Debug, Default)]
pub(super) struct FanoutEvents(Vec<Event>);

#[derive(Debug, Clone)]
struct Event {
    /// RFC 3339 in UTC with milliseconds, so that the order of texts is the order of times.
    time: String,
    name: &'static str,
    members: Map<String, Value>,
}

impl FanoutEvents {
    /// Records the end of a worker from its result row, and its start if it started. `ended_at` is
    /// the time to record for a row without `timings`.
    pub(super) fn worker(
        &mut self,
        id: &str,
        status: GroupStatus,
        row: &Map<String, Value>,
        ended_at: &str,
    ) {
        let time = |name: &str| row.get("timings").and_then(|t| t[name].as_str());
        let mut members = Map::from_iter([("worker_id".to_owned(), id.into())]);
        if let Some(time) = time("started_at") {
            self.push(time, "worker.started", members.clone());
        }
        members.insert("status".to_owned(), status.as_str().into());
        for name in ["run_id", "artifact_id", "summary"] {
            if let Some(value) = row.get(name) {
                members.insert(name.to_owned(), value.clone());
            }
        }
        let name = match status {
            GroupStatus::Completed => "worker.completed",
            GroupStatus::Skipped => "worker.skipped",
            GroupStatus::Failed | GroupStatus::Cancelled | GroupStatus::TimedOut => "worker.failed",
        };
        self.push(time("ended_at").unwrap_or(ended_at), name, members);
    }

    fn push(&mut self, time: &str, name: &'static str, members: Map<String, Value>) {
        let time = time.to_owned();
        self.0.push(Event {
            time,
            name,
            members,
        });
    }

    /// Returns all events of the fan-out in order of time. `status` is the aggregated status,
    /// `timings` has start and end of the fan-out; without them no time is known, and there are no
    /// events.
    pub(super) fn all(
        &self,
        session: &str,
        status: &str,
        outcome: FanoutOutcome,
        timings: &Map<String, Value>,
    ) -> Vec<Value> {
        let time = |name: &str| timings.get(name).and_then(Value::as_str);
        let (Some(began), Some(ended)) = (time("started_at"), time("ended_at")) else {
            return Vec::new();
        };
        let mut rows = FanoutEvents::default();
        rows.push(began, "fanout.started", Map::new());
        let mut workers = self.0.clone();
        workers.sort_by(|a, b| a.time.cmp(&b.time));
        rows.0.extend(workers);
        let said = Map::from_iter([("status".to_owned(), status.into())]);
        rows.push(ended, "aggregation.started", Map::new());
        rows.push(ended, "aggregation.completed", said.clone());
        rows.push(ended, outcome.event(), said);
        let shown = rows.0.into_iter().map(|event| {
            let mut row = json!({"schema": schema_id::AGENT_FANOUT_EVENT, "time": event.time,
                "event": event.name, "fanout_id": session});
            if let Value::Object(row) = &mut row {
                row.extend(event.members);
            }
            row
        });
        shown.collect()
    }
}

/// Whether a fan-out succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FanoutOutcome {
    /// The aggregated status is a success, and no worker was cancelled.
    Completed,
    /// In all other cases.
    Failed,
}

impl FanoutOutcome {
    const fn event(self) -> &'static str {
        match self {
            FanoutOutcome::Completed => "fanout.completed",
            FanoutOutcome::Failed => "fanout.failed",
        }
    }
}
