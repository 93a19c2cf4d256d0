//! State of a fan-out: its plan, the results of its workers, and the aggregation.
//!
//! The caller of this module asks which workers may start and records each result. The caller also
//! adds the rows, times and the host's WordPress version to the final document.

use super::aggregate::{TouchedFiles, WorkerResult, aggregate_fanout};
use super::events::{FanoutEvents, FanoutOutcome};
use super::merge::{GROUP, merge_task};
use super::plan::{FanoutPlan, FanoutWorker, Settled, given, object};
use super::rows::{GroupStatus, Totals, group_exit_code, skipped_row};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, SessionState, sandbox_session, schema_id, task_document,
};

/// A fan-out (several tasks with dependencies) in progress.
#[derive(Debug)]
pub struct Fanout {
    plan: FanoutPlan,
    /// Fields of the input that all workers share: the input without the fields in [`GROUP`], such
    /// as `workers`.
    shared: Map<String, Value>,
    session: String,
    settled: BTreeMap<String, Settled>,
    ends: BTreeMap<String, WorkerResult>,
    events: FanoutEvents,
}

impl Fanout {
    /// Reads the plan of a fan-out; `most` is the host's maximum concurrency, `session` the
    /// session id of the fan-out.
    pub fn read(input: &Map<String, Value>, most: u64, session: &str) -> Result<Self, ErrorBody> {
        Ok(Self {
            plan: FanoutPlan::read(input, most)?,
            shared: shared(input),
            session: session.to_owned(),
            settled: BTreeMap::new(),
            ends: BTreeMap::new(),
            events: FanoutEvents::default(),
        })
    }

    /// Returns the maximum number of workers that run at the same time.
    #[must_use]
    pub fn concurrency(&self) -> u64 {
        self.plan.concurrency
    }

    /// Returns the number of workers in the plan.
    #[must_use]
    pub fn size(&self) -> usize {
        self.plan.workers.len()
    }

    /// Returns the id of the worker at this index, or an empty text if there is none.
    #[must_use]
    pub fn id(&self, at: usize) -> &str {
        self.plan.workers.get(at).map_or("", |worker| &worker.id)
    }

    /// Returns the index of the worker with this id in the plan.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<usize> {
        self.plan.workers.iter().position(|worker| worker.id == id)
    }

    /// Returns the task input of the worker at this index: the shared fields, overridden by the
    /// worker's own. `timeout_seconds` of the worker becomes the wall clock limit of its task.
    pub fn task(&self, at: usize) -> Result<Map<String, Value>, ErrorBody> {
        let Some(worker) = self.plan.workers.get(at) else {
            return Err(unknown(at));
        };
        let session = format!("{}:{}", self.session, worker.id);
        let own = Value::Object(worker.task.clone());
        let mut input = merge_task(&self.shared, &own, &session)
            .map_err(|error| invalid_task(&worker.id, &error))?;
        if worker.timeout_seconds == 0 {
            return Ok(input);
        }
        let limits = match given(&input, "limits") {
            None => Some(Map::new()),
            Some(limits) => object(limits),
        };
        // Malformed limits are left unchanged; `read_task` refuses them later.
        if let Some(mut limits) = limits {
            // A longer time becomes the largest integer that PHP can represent.
            let time = worker.timeout_seconds.saturating_mul(1000);
            let time = time.min(i64::MAX.unsigned_abs());
            limits.insert("wall_clock_ms".to_owned(), time.into());
            input.insert("limits".to_owned(), Value::Object(limits));
        }
        Ok(input)
    }

    /// Returns `task-input/v1` of the worker at this index, as far as the plan gives it.
    #[must_use]
    pub fn task_input(&self, at: usize) -> Value {
        task_document(&self.task(at).unwrap_or_default(), &Map::new())
    }

    /// Returns the members of a worker's result row that are known before the worker ends: id,
    /// index, goal, agent, `required` and dependencies.
    #[must_use]
    pub fn head(&self, at: usize) -> Map<String, Value> {
        let Some(worker) = self.plan.workers.get(at) else {
            return Map::new();
        };
        let mut head = Map::from_iter([
            ("worker_id".to_owned(), worker.id.as_str().into()),
            ("index".to_owned(), at.into()),
            ("goal".to_owned(), worker.goal.as_str().into()),
        ]);
        if let Some(agent) = self.agent(worker) {
            head.insert("agent".to_owned(), agent.into());
        }
        head.insert("required".to_owned(), worker.required.into());
        head.insert("depends_on".to_owned(), json!(worker.depends_on));
        head
    }

    /// Returns the name of the agent that the plan gives a worker.
    fn agent<'a>(&'a self, worker: &'a FanoutWorker) -> Option<&'a str> {
        let agent = given(&worker.task, "agent").or_else(|| given(&self.shared, "agent"));
        agent.and_then(Value::as_str)
    }

    /// Returns the plan as the document `agent-fanout-plan/v1`.
    #[must_use]
    pub fn plan(&self) -> Value {
        let rows = self.plan.workers.iter().map(|worker| {
            let mut row = json!({"id": worker.id, "goal": worker.goal,
                "artifact_namespace": worker.id, "required": worker.required,
                "depends_on": worker.depends_on});
            if let Some(agent) = self.agent(worker) {
                row["agent"] = agent.into();
            }
            if worker.timeout_seconds > 0 {
                row["timeout_seconds"] = worker.timeout_seconds.into();
            }
            row
        });
        let mut plan = json!({
            "schema": schema_id::AGENT_FANOUT_PLAN,
            "fanout_id": self.session,
            "session_id": self.session,
            "concurrency": self.plan.concurrency,
            "workers": rows.collect::<Vec<_>>(),
        });
        if let Some(given) = given(&self.shared, "orchestrator") {
            plan["orchestrator"] = given.clone();
        }
        plan
    }

    /// Returns the indexes of the workers that may start, in the order of the plan. `begun`
    /// contains the ids of the workers that have started.
    #[must_use]
    pub fn ready(&self, begun: &BTreeSet<String>) -> Vec<usize> {
        self.plan.ready(&self.settled, begun)
    }

    /// Returns the indexes of workers that can never start, each with its result row.
    #[must_use]
    pub fn blocked(&self) -> Vec<(usize, Map<String, Value>)> {
        let rows = self.plan.blocked(&self.settled).into_iter();
        rows.map(|(at, lost)| {
            let names = lost.join(", ");
            let why = format!("The worker depends on {names}, which was not completed.");
            let mut row = skipped_row("dependency-skipped", &why);
            row.insert("dependencies".to_owned(), json!(lost));
            (at, row)
        })
        .collect()
    }

    /// Records that a worker has ended with this result row, and sets `artifacts.namespace` in the
    /// row to the worker's id. `touched` (the files that the worker changed) counts only if the
    /// worker completed. `ended_at` is the time to record for a row without `timings`.
    pub fn settle(
        &mut self,
        at: usize,
        row: &mut Map<String, Value>,
        touched: TouchedFiles,
        ended_at: &str,
    ) {
        let Some(worker) = self.plan.workers.get(at) else {
            return;
        };
        if let Some(Value::Object(artifacts)) = row.get_mut("artifacts") {
            artifacts.insert("namespace".to_owned(), worker.id.as_str().into());
        }
        let end = WorkerResult::of_row(row, touched);
        self.events.worker(&worker.id, end.status, row, ended_at);
        let settled = match end.status {
            GroupStatus::Completed => Settled::Completed,
            GroupStatus::Failed
            | GroupStatus::Skipped
            | GroupStatus::Cancelled
            | GroupStatus::TimedOut => Settled::Lost,
        };
        self.settled.insert(worker.id.clone(), settled);
        self.ends.insert(worker.id.clone(), end);
    }

    /// Returns the result document `agent-fanout-result/v1` and the process exit status. `timings`
    /// has start, end and duration of the fan-out. The caller adds the members `wp` and `runs`.
    #[must_use]
    pub fn answer(&self, timings: &Map<String, Value>) -> (Map<String, Value>, u8) {
        let aggregate = aggregate_fanout(&self.plan, &self.ends, &self.session);
        let mut totals = Totals::default();
        self.ends.values().for_each(|end| totals.count(end.status));
        let good = aggregate["status"] == "succeeded"
            && totals.of(GroupStatus::Completed) > 0
            && totals.of(GroupStatus::Cancelled) == 0;
        let exit = group_exit_code(good, &totals);
        let (state, outcome) = if good {
            (SessionState::Completed, FanoutOutcome::Completed)
        } else {
            (SessionState::Failed, FanoutOutcome::Failed)
        };
        let status = aggregate["status"].as_str().unwrap_or_default();
        let events = self.events.all(&self.session, status, outcome, timings);
        let mut session = sandbox_session(&self.shared, state, &self.session);
        session.insert("children".to_owned(), json!(self.children()));
        let mut answer = Map::from_iter([
            ("success".to_owned(), good.into()),
            ("schema".to_owned(), schema_id::AGENT_FANOUT_RESULT.into()),
            ("fanout_id".to_owned(), self.session.as_str().into()),
            ("status".to_owned(), status.into()),
            ("exit_code".to_owned(), exit.into()),
            (
                "execution".to_owned(),
                "bounded-concurrent-isolated-sandboxes".into(),
            ),
            ("session".to_owned(), Value::Object(session)),
            ("concurrency".to_owned(), self.plan.concurrency.into()),
        ]);
        answer.extend(totals.members());
        if !timings.is_empty() {
            answer.insert("timings".to_owned(), Value::Object(timings.clone()));
        }
        answer.insert("plan".to_owned(), self.plan());
        answer.insert("events".to_owned(), events.into());
        let results = aggregate["workerResultRefs"].clone();
        answer.insert("workerResultRefs".to_owned(), results);
        answer.insert("aggregate".to_owned(), aggregate);
        answer.insert("failures".to_owned(), json!(self.failures()));
        if let Some(given) = given(&self.shared, "orchestrator") {
            answer.insert("orchestrator".to_owned(), given.clone());
        }
        (answer, exit)
    }

    /// Returns one session row per ended worker: id, session id, status and bundle.
    fn children(&self) -> Vec<Value> {
        let rows = self.plan.workers.iter().filter_map(|worker| {
            let end = self.ends.get(&worker.id)?;
            let mut child = json!({"worker_id": worker.id,
                "session_id": format!("{}:{}", self.session, worker.id), "status": end.status});
            if let Some((_, path)) = &end.bundle {
                child["artifacts"] = json!({"path": path, "namespace": worker.id});
            }
            Some(child)
        });
        rows.collect()
    }

    /// Returns one failure row per worker that ended without completing its task.
    fn failures(&self) -> Vec<Value> {
        let rows = self.plan.workers.iter().filter_map(|worker| {
            let end = self.ends.get(&worker.id)?;
            if end.status == GroupStatus::Completed {
                return None;
            }
            let said = |key: &str| end.error.as_ref().and_then(|e| e[key].as_str());
            let code = said("code").or(end.outcome.as_deref());
            let message = said("message").or(end.summary.as_deref());
            Some(json!({"worker_id": worker.id, "status": end.status,
                "code": code.unwrap_or(end.status.as_str()), "message": message.unwrap_or_default()}))
        });
        rows.collect()
    }
}

/// Converts an error in the input of a worker's task to an error that names the worker.
pub fn invalid_task(id: &str, error: &ErrorBody) -> ErrorBody {
    let message = format!("Worker \"{id}\": {}", error.message);
    ErrorBody::new(ErrorCode::FanoutWorkerInvalid, message)
}

/// Returns the fields of the input that all tasks share: all fields except those in [`GROUP`].
pub(super) fn shared(input: &Map<String, Value>) -> Map<String, Value> {
    let members = input.iter();
    members
        .filter(|(name, _)| !GROUP.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

pub(super) fn unknown(at: usize) -> ErrorBody {
    let message =
        format!("this batch or fan-out has no task with the index {at}; indexes begin at 0");
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fanout(input: Value) -> Fanout {
        Fanout::read(input.as_object().unwrap(), 8, "s").unwrap()
    }

    fn row(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn worker_timeout_replaces_only_the_wall_clock_limit_and_keeps_malformed_limits_unchanged() {
        let input = |shared: Value, own: Value| {
            fanout(json!({"limits": shared, "workers": [
                {"id": "a", "goal": "g", "timeout_seconds": 5, "limits": own}]}))
            .task(0)
            .unwrap()["limits"]
                .clone()
        };
        let shared = json!({"processes": 9, "wall_clock_ms": 1});
        let without = fanout(json!({"limits": shared, "workers": [
            {"id": "a", "goal": "g", "timeout_seconds": 5}, {"id": "b", "goal": "g"}]}));
        assert_eq!(
            without.task(0).unwrap()["limits"],
            json!({"processes": 9, "wall_clock_ms": 5000})
        );
        assert_eq!(without.task(1).unwrap()["limits"], shared);
        assert_eq!(
            input(json!(null), json!({"processes": 4})),
            json!({"processes": 4, "wall_clock_ms": 5000})
        );
        assert_eq!(input(json!({}), json!([])), json!({"wall_clock_ms": 5000}));
        assert_eq!(input(json!({}), json!("x")), json!("x"));
        let huge =
            fanout(json!({"workers": [{"id": "a", "goal": "g", "timeout_seconds": u64::MAX}]}));
        assert_eq!(
            huge.task(0).unwrap()["limits"],
            json!({"wall_clock_ms": i64::MAX})
        );
    }

    #[test]
    fn fanout_result_has_the_events_failures_and_counts_of_failed_and_skipped_workers() {
        let mut group = fanout(
            json!({"concurrency": 2, "plugin": "p", "session_id": "mine",
            "orchestrator": {"id": "o"}, "workers": [{"id": "a", "goal": "g"},
            {"id": "b", "goal": "h", "dependsOn": ["a"], "required": false}]}),
        );
        assert_eq!(
            Value::Object(group.task(0).unwrap()),
            json!({"plugin": "p", "session_id": "mine", "orchestrator": {"id": "o"},
                "goal": "g", "sandbox_session_id": "s:a"})
        );
        assert_eq!(group.task(9).unwrap_err().code, ErrorCode::InputInvalid);
        assert_eq!(group.ready(&BTreeSet::new()), [0]);
        assert!(group.blocked().is_empty());
        let mut end = row(
            json!({"status": "failed", "run": {"outcome": "failed"}, "summary": "no",
            "run_id": "r", "artifact_id": "i", "artifacts": {"path": "/b"}}),
        );
        end.insert(
            "timings".to_owned(),
            json!({"started_at": "1", "ended_at": "2"}),
        );
        group.settle(0, &mut end, TouchedFiles::new(), "");
        assert_eq!(end["artifacts"]["namespace"], "a");
        let (at, mut skipped) = group.blocked().remove(0);
        assert_eq!((at, &skipped["dependencies"]), (1, &json!(["a"])));
        group.settle(at, &mut skipped, TouchedFiles::new(), "3");
        assert!(group.blocked().is_empty() && group.ready(&BTreeSet::new()).is_empty());
        assert!(
            group.answer(&Map::new()).0["events"]
                .as_array()
                .unwrap()
                .is_empty()
        );
        let timings = row(json!({"started_at": "0", "ended_at": "4", "duration_ms": 4}));
        let (answer, exit) = group.answer(&timings);
        let events = answer["events"].as_array().unwrap().iter();
        let events: Vec<String> = events
            .map(|event| {
                let worker = event["worker_id"].as_str().unwrap_or("-");
                format!(
                    "{} {worker} {}",
                    event["time"].as_str().unwrap(),
                    event["event"]
                )
            })
            .collect();
        assert_eq!(
            events,
            [
                "0 - \"fanout.started\"",
                "1 a \"worker.started\"",
                "2 a \"worker.failed\"",
                "3 b \"worker.skipped\"",
                "4 - \"aggregation.started\"",
                "4 - \"aggregation.completed\"",
                "4 - \"fanout.failed\""
            ]
        );
        assert_eq!(
            (
                &answer["fanout_id"],
                &answer["status"],
                &answer["plan"]["workers"][1]["id"]
            ),
            (&json!("s"), &json!("failed"), &json!("b"))
        );
        assert_eq!(
            answer["workerResultRefs"],
            answer["aggregate"]["workerResultRefs"]
        );
        assert_eq!(answer["aggregate"]["plan"]["id"], "s");
        assert_eq!(
            (
                exit,
                &answer["total"],
                &answer["failed"],
                &answer["skipped"]
            ),
            (1, &json!(2), &json!(1), &json!(1))
        );
        assert_eq!(answer["failures"][0]["message"], "no");
        assert_eq!(answer["failures"][1]["code"], "dependency-skipped");
        assert_eq!(answer["session"]["children"][0]["session_id"], "s:a");
        assert_eq!(answer["session"]["agent_session_id"], "mine");
        assert_eq!(answer["orchestrator"], json!({"id": "o"}));
        assert_eq!(answer["aggregate"]["status"], "failed");
    }

    /// [`GROUP`] contains `goal`, and exactly those fields of the input schemas of batches and
    /// fan-outs that a task does not have.
    #[test]
    fn group_table_contains_goal_and_exactly_the_batch_and_fanout_fields_that_a_task_lacks() {
        let schema = |name: &str| -> Value {
            serde_json::from_str(wp_codebox_schemas::text(name).unwrap()).unwrap()
        };
        let names = |schema: &Value| -> BTreeSet<String> {
            let fields = schema["properties"].as_object().unwrap();
            fields.keys().cloned().collect()
        };
        let task = names(&schema("run-agent-task-input"));
        let mut own = BTreeSet::from(["goal".to_owned()]);
        for (group, rows) in [("batch", "tasks"), ("fanout", "workers")] {
            let schema = schema(&format!("run-agent-task-{group}-input"));
            own.extend(names(&schema).difference(&task).cloned());
            assert_eq!(
                schema["properties"][rows]["maxItems"],
                json!(super::super::plan::MAX_GROUP_SIZE)
            );
        }
        assert_eq!(own, GROUP.iter().map(|name| (*name).to_owned()).collect());
    }
}
