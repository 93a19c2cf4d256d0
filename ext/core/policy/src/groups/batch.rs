//! State of a batch, several independent tasks in one call: every task has its own sandbox and
//! result row.

use super::fanout::{shared, unknown};
use super::merge::merge_task;
use super::plan::{given, rows};
use super::rows::{GroupStatus, Totals, group_exit_code, skipped_row};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, SessionState, sandbox_session, schema_id, task_document,
};

/// A batch (several independent tasks) in progress.
#[derive(Debug)]
pub struct Batch {
    tasks: Vec<Value>,
    /// Fields of the input that all tasks share: the input without the fields in `merge::GROUP`,
    /// such as `tasks`.
    shared: Map<String, Value>,
    session: String,
    stops: StopRule,
    totals: Totals,
    /// Parent directories of the bundles of all tasks that have ended.
    directories: BTreeSet<String>,
}

/// Whether a batch stops when a task does not complete, or has already stopped for that reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopRule {
    Never,
    OnFailure,
    Stopped,
}

impl Batch {
    /// Reads the tasks of a batch; each task is validated only when it starts. `session` is the
    /// session id of the batch.
    pub fn read(input: &Map<String, Value>, session: &str) -> Result<Self, ErrorBody> {
        let tasks = rows(
            input,
            "tasks",
            "goals or of objects with the fields of a task",
        )?;
        if tasks.is_empty() {
            return Err(ErrorBody::new(
                ErrorCode::TasksMissing,
                "No task was given; give tasks, a list of goals or of objects with the fields of run-agent-task.",
            ));
        }
        let stops = match given(input, "stop_on_failure") {
            None | Some(Value::Bool(false)) => StopRule::Never,
            Some(Value::Bool(true)) => StopRule::OnFailure,
            Some(_) => {
                let message = "stop_on_failure must be true or false.";
                return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
            }
        };
        Ok(Self {
            tasks: tasks.to_vec(),
            shared: shared(input),
            session: session.to_owned(),
            stops,
            totals: Totals::default(),
            directories: BTreeSet::new(),
        })
    }

    /// Returns the number of tasks in the batch.
    #[must_use]
    pub fn size(&self) -> usize {
        self.tasks.len()
    }

    /// Fails if the batch has no task at this index.
    pub fn task_exists(&self, at: usize) -> Result<(), ErrorBody> {
        self.tasks.get(at).map(|_| ()).ok_or_else(|| unknown(at))
    }

    /// Returns the input of the task at this index: the shared fields, overridden by the task's
    /// own.
    pub fn task(&self, at: usize) -> Result<Map<String, Value>, ErrorBody> {
        let task = self.tasks.get(at).ok_or_else(|| unknown(at))?;
        merge_task(&self.shared, task, &format!("{}:{at}", self.session))
    }

    /// Returns the members of a task's result row that are known before the task ends: index and
    /// goal.
    #[must_use]
    pub fn head(&self, at: usize) -> Map<String, Value> {
        let goal = self.tasks.get(at).map_or("", goal);
        Map::from_iter([
            ("index".to_owned(), at.into()),
            ("task".to_owned(), goal.into()),
        ])
    }

    /// Returns `task-input/v1` of the task at this index, as far as the input of the batch gives
    /// it.
    #[must_use]
    pub fn task_input(&self, at: usize) -> Value {
        task_document(&self.task(at).unwrap_or_default(), &Map::new())
    }

    /// Returns the result row of a task that does not start because the batch has stopped; `None`
    /// while the batch goes on.
    #[must_use]
    pub fn stopped(&self) -> Option<Map<String, Value>> {
        let why = "An earlier task did not succeed, and the batch stops on failure.";
        (self.stops == StopRule::Stopped).then(|| skipped_row("batch-stopped", why))
    }

    /// Records that a task has ended with this status and result row.
    pub fn settle(&mut self, status: GroupStatus, row: &Map<String, Value>) {
        let bundle = row.get("artifacts").and_then(|a| a["path"].as_str());
        if let Some((directory, _)) = bundle.and_then(|path| path.rsplit_once('/')) {
            self.directories.insert(directory.to_owned());
        }
        self.totals.count(status);
        if status != GroupStatus::Completed && self.stops == StopRule::OnFailure {
            self.stops = StopRule::Stopped;
        }
    }

    /// Returns the result document `agent-task-batch/v1` and the process exit status. The caller
    /// adds the members `wp` and `runs`. `concurrency` is the maximum number of concurrent tasks.
    #[must_use]
    pub fn answer(&self, concurrency: u64) -> (Map<String, Value>, u8) {
        let good = self.totals.of(GroupStatus::Completed) == self.totals.total();
        let exit = group_exit_code(good, &self.totals);
        let execution = if concurrency > 1 {
            "bounded-concurrent-isolated-sandboxes"
        } else {
            "sequential-isolated-sandboxes"
        };
        let goals: Vec<&str> = self.tasks.iter().map(goal).collect();
        let inputs = (0..self.tasks.len()).map(|at| self.task_input(at));
        let session = sandbox_session(&self.shared, SessionState::Completed, &self.session);
        let mut answer = Map::from_iter([
            ("success".to_owned(), good.into()),
            ("schema".to_owned(), schema_id::AGENT_TASK_BATCH.into()),
            ("exit_code".to_owned(), exit.into()),
            ("execution".to_owned(), execution.into()),
            ("session".to_owned(), Value::Object(session)),
            ("tasks".to_owned(), json!(goals)),
            ("task_inputs".to_owned(), inputs.collect()),
        ]);
        let mut directories = self.directories.iter();
        if let (Some(directory), None) = (directories.next(), directories.next()) {
            answer.insert("artifacts".to_owned(), directory.as_str().into());
            answer.insert("paths".to_owned(), json!({"artifacts": directory}));
        }
        answer.extend(self.totals.members());
        (answer, exit)
    }
}

/// Returns the goal of a task; empty if the task has none.
fn goal(task: &Value) -> &str {
    let goal = task.get("goal").unwrap_or(task);
    goal.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: Value) -> Result<Batch, ErrorBody> {
        Batch::read(input.as_object().unwrap(), "s")
    }

    #[test]
    fn batch_is_refused_if_tasks_are_missing_or_malformed_or_stop_on_failure_is_malformed() {
        for (input, code) in [
            (json!({}), ErrorCode::TasksMissing),
            (json!({"tasks": []}), ErrorCode::TasksMissing),
            (json!({"tasks": null}), ErrorCode::TasksMissing),
            (json!({"tasks": "mend it"}), ErrorCode::InputInvalid),
            (json!({"tasks": {"a": "b"}}), ErrorCode::InputInvalid),
            (json!({"tasks": vec!["g"; 201]}), ErrorCode::InputInvalid),
            (
                json!({"tasks": ["g"], "stop_on_failure": 1}),
                ErrorCode::InputInvalid,
            ),
        ] {
            assert_eq!(read(input.clone()).unwrap_err().code, code, "{input}");
        }
        assert_eq!(read(json!({"tasks": vec!["g"; 200]})).unwrap().size(), 200);
    }

    #[test]
    fn invalid_task_of_a_batch_is_an_error_of_that_task_only_and_the_batch_continues() {
        let mut batch =
            read(json!({"plugin": "p", "tasks": ["mend", 7, [], {"goal": 7}]})).unwrap();
        assert_eq!(
            Value::Object(batch.task(0).unwrap()),
            json!({"plugin": "p", "goal": "mend", "sandbox_session_id": "s:0"})
        );
        assert_eq!(batch.task(1).unwrap_err().code, ErrorCode::InputInvalid);
        assert_eq!(
            Value::Object(batch.task(2).unwrap()),
            json!({"plugin": "p", "sandbox_session_id": "s:2"})
        );
        let heads: Vec<Value> = (0..4).map(|at| batch.head(at)["task"].clone()).collect();
        assert_eq!(json!(heads), json!(["mend", "", "", ""]));
        for status in [GroupStatus::Completed, GroupStatus::Failed] {
            batch.settle(status, &Map::new());
            assert!(batch.stopped().is_none());
        }
        let (answer, exit) = batch.answer(1);
        assert_eq!((exit, &answer["total"]), (3, &json!(2)));
        assert_eq!(answer["execution"], "sequential-isolated-sandboxes");
        assert_eq!(answer["session"]["status"], "completed");
        let inputs = answer["task_inputs"].as_array().unwrap();
        assert_eq!(
            (inputs.len(), &inputs[0]["goal"], &inputs[1]["goal"]),
            (4, &json!("mend"), &json!(""))
        );
        assert_eq!(inputs[3]["context"], json!({}));
    }

    #[test]
    fn batch_with_stop_on_failure_stops_after_a_failed_task() {
        let mut batch = read(json!({"stop_on_failure": true, "tasks": ["a", "b", "c"]})).unwrap();
        batch.settle(GroupStatus::Completed, &Map::new());
        assert!(batch.stopped().is_none());
        batch.settle(GroupStatus::TimedOut, &Map::new());
        assert_eq!(batch.stopped().unwrap()["error"]["code"], "batch-stopped");
    }

    #[test]
    fn batch_result_has_a_bundle_directory_only_if_all_bundles_share_one() {
        let mut batch = read(json!({"tasks": ["a", "b", "c"]})).unwrap();
        let row = |path: &str| Map::from_iter([("artifacts".to_owned(), json!({"path": path}))]);
        assert!(!batch.answer(1).0.contains_key("artifacts"));
        batch.settle(GroupStatus::Completed, &row("/s/artifacts/run_1"));
        batch.settle(GroupStatus::Failed, &row("/s/artifacts/run_2"));
        assert_eq!(batch.answer(1).0["artifacts"], "/s/artifacts");
        assert_eq!(
            batch.answer(1).0["paths"],
            json!({"artifacts": "/s/artifacts"})
        );
        batch.settle(GroupStatus::Completed, &row("/other/run_3"));
        assert!(!batch.answer(1).0.contains_key("artifacts"));
    }
}
