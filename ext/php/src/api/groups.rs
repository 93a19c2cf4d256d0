//! `WPCodebox\Native\Batch` and `WPCodebox\Native\Fanout`: scheduling rules for several tasks.
//!
//! The objects start no process: they hold the plan and the results of its tasks, and PHP starts
//! the runs. No method calls PHP, so no `RefCell` borrow is active during PHP code.

use crate::arguments::{Answer, Array, Text};
use crate::guard::{Failure, guard};
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::{php_class, php_impl};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use wp_codebox_contracts::{ChangedFile, ErrorBody, ErrorCode, session_id};
use wp_codebox_policy as rules;

/// The PHP class for a batch: tasks that do not depend on each other.
#[php_class]
#[php(name = "WPCodebox\\Native\\Batch", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Batch {
    batch: RefCell<Option<rules::Batch>>,
}

#[php_impl]
impl Batch {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self {
            batch: RefCell::new(None),
        }
    }

    /// Validates the batch input and returns the batch.
    pub(crate) fn read(input: Array<'_>, session: Text<'_>) -> PhpResult<Self> {
        guard(|| {
            let input = input.object("input")?;
            let session = session_of(&input, &session)?;
            let batch = rules::Batch::read(&input, &session)?;
            Ok(Self {
                batch: RefCell::new(Some(batch)),
            })
        })
    }

    /// Returns the number of tasks.
    pub(crate) fn size(&self) -> PhpResult<i64> {
        guard(|| self.with(|batch| Ok(i64::try_from(batch.size()).unwrap_or(i64::MAX))))
    }

    /// Returns the task at an index, as the input of a single run.
    pub(crate) fn task(&self, index: i64) -> PhpResult<Answer> {
        guard(|| self.with(|batch| Ok(object(batch.task(position(index))?))))
    }

    /// Returns null, unless the batch stops on failure and a task has failed. Then returns one
    /// result row, which the caller uses for each task that has not started.
    pub(crate) fn stopped(&self) -> PhpResult<Option<Answer>> {
        guard(|| self.with(|batch| Ok(batch.stopped().map(object))))
    }

    /// Records how a task ended and returns the first members of its result row; the caller appends
    /// the others.
    pub(crate) fn settle(&self, index: i64, end: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let end = end.object("end")?;
            self.with(|batch| {
                let at = position(index);
                batch.task_exists(at)?;
                let status = rules::row_status(&end);
                batch.settle(status, &end);
                let mut row = with_status(batch.head(at), status);
                // For a task with a run, the caller adds `task_input` from `AgentTask::row`.
                if !end.contains_key("run") {
                    row.insert("task_input".to_owned(), batch.task_input(at));
                }
                Ok(object(row))
            })
        })
    }

    /// Returns the combined result of all tasks that have ended.
    pub(crate) fn answer(&self) -> PhpResult<Answer> {
        guard(|| self.with(|batch| Ok(object(batch.answer(1).0))))
    }
}

impl Batch {
    fn with<T>(
        &self,
        act: impl FnOnce(&mut rules::Batch) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.batch.borrow_mut().as_mut() {
            Some(batch) => act(batch),
            None => Err(not_created("Batch").into()),
        }
    }
}

/// The PHP class for a fan-out: workers (tasks with ids), each of which may start only after
/// certain other workers have ended.
#[php_class]
#[php(name = "WPCodebox\\Native\\Fanout", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Fanout {
    state: RefCell<Option<State>>,
}

#[derive(Debug)]
struct State {
    fanout: rules::Fanout,
    /// Files that each worker has changed so far; the key is the worker's position in the plan.
    /// `settle` moves the files of an ended worker to `fanout`.
    touched: BTreeMap<usize, rules::TouchedFiles>,
}

#[php_impl]
impl Fanout {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self {
            state: RefCell::new(None),
        }
    }

    /// Validates the plan and returns the fan-out. `most` limits the number of concurrent workers.
    pub(crate) fn read(input: Array<'_>, most: i64, session: Text<'_>) -> PhpResult<Self> {
        guard(|| {
            let input = input.object("input")?;
            let session = session_of(&input, &session)?;
            // A negative value becomes 0, which `rules::Fanout::read` treats as 1.
            let most = u64::try_from(most).unwrap_or_default();
            let state = State {
                fanout: rules::Fanout::read(&input, most, &session)?,
                touched: BTreeMap::new(),
            };
            Ok(Self {
                state: RefCell::new(Some(state)),
            })
        })
    }

    /// Returns how many workers may run concurrently.
    pub(crate) fn concurrency(&self) -> PhpResult<i64> {
        guard(|| {
            self.with(|state| Ok(i64::try_from(state.fanout.concurrency()).unwrap_or(i64::MAX)))
        })
    }

    /// Returns the ids of all workers, in the order of the plan.
    pub(crate) fn ids(&self) -> PhpResult<Answer> {
        guard(|| self.with(|state| Ok(state.ids(0..state.fanout.size()))))
    }

    /// Returns the task of a worker, as the input of a single run.
    pub(crate) fn task(&self, id: Text<'_>) -> PhpResult<Answer> {
        guard(|| self.at(&id, |state, at| Ok(object(state.fanout.task(at)?))))
    }

    /// Returns the ids of the workers that may start now. `begun` names those that have started.
    pub(crate) fn ready(&self, begun: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let begun: BTreeSet<String> = begun.texts("begun")?.into_iter().collect();
            self.with(|state| Ok(state.ids(state.fanout.ready(&begun))))
        })
    }

    /// Returns a result row, by worker id, for each worker that can never start because a worker
    /// that it depends on did not succeed.
    pub(crate) fn blocked(&self) -> PhpResult<Answer> {
        guard(|| {
            self.with(|state| {
                let rows = state.fanout.blocked().into_iter();
                let rows = rows.map(|(at, row)| (state.fanout.id(at).to_owned(), row.into()));
                Ok(object(rows.collect()))
            })
        })
    }

    /// Records files that a worker changed, to find conflicts between workers. `sources` gives the
    /// host directory of each mount target.
    pub(crate) fn changed(
        &self,
        id: Text<'_>,
        sources: Array<'_>,
        files: Array<'_>,
    ) -> PhpResult<()> {
        guard(|| {
            let sources = real_sources(sources.object("sources")?)?;
            let files: Vec<ChangedFile> = serde_json::from_value(files.value("files")?)
                .map_err(|e| invalid(format!("\"files\" must be a list of changed files: {e}")))?;
            self.at(&id, |state, at| {
                let touched = rules::touched_files(&files, |target| sources.get(target).cloned());
                state.touched.entry(at).or_default().extend(touched);
                Ok(())
            })
        })
    }

    /// Records how a worker ended and returns the first members of its result row; the caller
    /// appends the others.
    pub(crate) fn settle(&self, id: Text<'_>, end: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let mut end = end.object("end")?;
            let ended_at = end.shift_remove("ended_at");
            let ended_at = ended_at.as_ref().and_then(Value::as_str);
            self.at(&id, |state, at| {
                let touched = state.touched.remove(&at).unwrap_or_default();
                let ended_at = ended_at.unwrap_or_default();
                state.fanout.settle(at, &mut end, touched, ended_at);
                let mut row = with_status(state.fanout.head(at), rules::row_status(&end));
                if !end.contains_key("run") {
                    row.insert("task_input".to_owned(), state.fanout.task_input(at));
                }
                if let Some(artifacts) = end.shift_remove("artifacts") {
                    row.insert("artifacts".to_owned(), artifacts);
                }
                Ok(object(row))
            })
        })
    }

    /// Returns the combined result of all workers.
    #[php(defaults(timings = Array::default_list(&[])))]
    pub(crate) fn answer(&self, timings: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let timings = timings.object("timings")?;
            self.with(|state| Ok(object(state.fanout.answer(&timings).0)))
        })
    }
}

impl Fanout {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> Result<T, Failure>) -> Result<T, Failure> {
        match self.state.borrow_mut().as_mut() {
            Some(state) => act(state),
            None => Err(not_created("Fanout").into()),
        }
    }

    fn at<T>(
        &self,
        id: &Text<'_>,
        act: impl FnOnce(&mut State, usize) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let id = id.utf8("id")?;
        self.with(|state| match state.fanout.position(id) {
            Some(at) => act(state, at),
            None => Err(invalid(
                "the plan of the fan-out has no worker with this id; Fanout::ids() lists them"
                    .to_owned(),
            )
            .into()),
        })
    }
}

impl State {
    fn ids(&self, positions: impl IntoIterator<Item = usize>) -> Answer {
        let ids = positions.into_iter().map(|at| self.fanout.id(at));
        Answer(ids.map(Value::from).collect())
    }
}

/// Returns the session id of the input, or `new` if the input has none.
fn session_of(input: &Map<String, Value>, new: &Text<'_>) -> Result<String, Failure> {
    let new = new.utf8("session")?;
    Ok(session_id(input, || Ok(new.to_owned()))?)
}

/// Returns the host directory of each mount target with its symbolic links resolved, because two
/// workers may use different paths of one directory.
fn real_sources(sources: Map<String, Value>) -> Result<BTreeMap<String, String>, ErrorBody> {
    let rows = sources.into_iter().map(|(target, source)| {
        let Value::String(source) = source else {
            return Err(invalid(format!("sources.{target} must be a string")));
        };
        let real = std::fs::canonicalize(&source).ok();
        let real = real.map(PathBuf::into_os_string);
        let real = real.and_then(|path| path.into_string().ok());
        Ok((target, real.unwrap_or(source)))
    });
    rows.collect()
}

fn with_status(mut head: Map<String, Value>, status: rules::GroupStatus) -> Map<String, Value> {
    let good = status == rules::GroupStatus::Completed;
    head.insert("success".to_owned(), good.into());
    head.insert("status".to_owned(), json!(status));
    head
}

fn object(map: Map<String, Value>) -> Answer {
    Answer(Value::Object(map))
}

/// Converts an index from PHP; a negative one becomes `usize::MAX`, which matches no task.
fn position(index: i64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

fn invalid(message: String) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

fn not_created(class: &str) -> ErrorBody {
    invalid(format!(
        "this object was not created by {class}::read(); create it with that method"
    ))
}
