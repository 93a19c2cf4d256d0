//! `agent-sandbox-batch`: every task has a sandbox and a row, none depends on another.

use super::drive::{Driven, Finished, Group, Host, drive};
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, schema_id};
use wp_codebox_policy::{GroupStatus, group_exit_code, group_session, merge_task, skipped_row};

struct Batch<'a> {
    input: &'a Map<String, Value>,
    tasks: &'a [Value],
    session: &'a str,
    stop_on_failure: bool,
    stopped: bool,
}

impl Group for Batch<'_> {
    fn size(&self) -> usize {
        self.tasks.len()
    }

    fn name(&self, at: usize) -> String {
        format!("task {at}")
    }

    fn head(&self, at: usize) -> Map<String, Value> {
        Map::from_iter([
            ("index".to_owned(), at.into()),
            ("task".to_owned(), goal(&self.tasks[at]).into()),
        ])
    }

    fn input(&self, at: usize) -> Result<Map<String, Value>, ErrorBody> {
        let session = format!("{}:{at}", self.session);
        merge_task(self.input, &self.tasks[at], &session)
    }

    fn ready(&self) -> Vec<usize> {
        (0..self.tasks.len()).collect()
    }

    fn blocked(&self) -> Vec<(usize, Map<String, Value>)> {
        if !self.stopped {
            return Vec::new();
        }
        let why = "A task before it was not good, and the batch stops then.";
        let rows = (0..self.tasks.len()).map(|at| (at, skipped_row("batch-stopped", why)));
        rows.collect()
    }

    fn settled(
        &mut self,
        _at: usize,
        _row: &mut Map<String, Value>,
        _finished: Option<&Finished>,
        status: GroupStatus,
    ) {
        self.stopped |= self.stop_on_failure && status != GroupStatus::Completed;
    }

    fn is_timed(&self) -> bool {
        false
    }
}

/// The goal of a task, as far as it has one.
fn goal(task: &Value) -> &str {
    let goal = task.get("goal").unwrap_or(task);
    goal.as_str().unwrap_or_default()
}

/// Runs the tasks; the answer's members without its rows, its exit status and its rows.
pub(super) fn run(
    host: &Host<'_>,
    input: &Map<String, Value>,
    concurrency: u16,
    session: &str,
) -> Result<(Map<String, Value>, u8, Driven), ErrorBody> {
    let invalid = |message: &str| ErrorBody::new(ErrorCode::InputInvalid, message);
    let tasks = match input.get("tasks") {
        None => &[][..],
        Some(Value::Array(tasks)) => tasks,
        Some(_) => return Err(invalid("tasks is no list; give a list, with one task too")),
    };
    if tasks.is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::TasksMissing,
            "no task was given; give tasks, a list of goals or of objects with the fields of a task",
        ));
    }
    let stop_on_failure = match input.get("stop_on_failure") {
        None => false,
        Some(Value::Bool(stop)) => *stop,
        Some(_) => return Err(invalid("stop_on_failure is true or false")),
    };
    let mut batch = Batch {
        input,
        tasks,
        session,
        stop_on_failure,
        stopped: false,
    };
    let driven = drive(host, &mut batch, usize::from(concurrency))?;
    let good = driven.totals.of(GroupStatus::Completed) == driven.totals.total();
    let exit = group_exit_code(good, &driven.totals);
    let mut members = Map::from_iter([
        ("success".to_owned(), good.into()),
        ("schema".to_owned(), schema_id::AGENT_TASK_BATCH.into()),
        ("exit_code".to_owned(), exit.into()),
        ("execution".to_owned(), execution(concurrency).into()),
        (
            "session".to_owned(),
            Value::Object(group_session(input, good, session)),
        ),
        ("wp".to_owned(), host.wordpress.as_str().into()),
        (
            "tasks".to_owned(),
            json!(tasks.iter().map(goal).collect::<Vec<_>>()),
        ),
    ]);
    members.extend(driven.totals.members());
    Ok((members, exit, driven))
}

const fn execution(concurrency: u16) -> &'static str {
    if concurrency > 1 {
        "bounded-concurrent-isolated-sandboxes"
    } else {
        "sequential-isolated-sandboxes"
    }
}
