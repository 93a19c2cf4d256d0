//! Scheduler of a group (a batch or a fan-out of tasks): starts tasks that are ready, collects
//! results, and waits while the host has reached its maximum number of runs.
//!
//! Each running task has a thread; waiting tasks have none. A result stays in memory only until its
//! row is on disk, so memory grows with the number of concurrent runs and not with the group.

use super::envelope::{self, Echo};
use super::spool::Spool;
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunId, RunRequest, RunResult};
use wp_codebox_policy::{GroupStatus, cancelled_row, failed_row, row_status};
use wp_codebox_runs::Supervisors;
use wp_codebox_runtime::kernel_error;

/// Interval for checking, while no run ends, whether a task can start or a stop was requested.
const TICK: Duration = Duration::from_millis(100);
/// Retry interval while the host has reached its maximum number of runs.
const RETRY: Duration = Duration::from_millis(500);
/// Time limit for retries while no run of the group is running. While one runs, retries have no
/// limit, because its end makes room.
const RETRY_LIMIT: Duration = Duration::from_secs(120);

/// Converts the input of a task to a run request.
pub type BuildRequest<'a> = &'a dyn Fn(&Map<String, Value>) -> Result<RunRequest, ErrorBody>;

/// What all runs of a group share: functions of the caller, and facts about this host.
pub struct Host<'a> {
    /// Converts the input of a task to a run request.
    pub request: BuildRequest<'a>,
    /// Directory below which bundles are copied.
    pub artifacts: Option<&'a Path>,
    /// WordPress version of the guests.
    pub wordpress: String,
    /// Supervisors of the runs.
    pub supervisors: &'a Supervisors,
    /// Is called with the name of a task when its run has begun.
    pub began: &'a (dyn Fn(&str, &RunId) + Sync),
    /// Is called with the name of a task and its row when it has ended.
    pub ended: &'a dyn Fn(&str, &Map<String, Value>),
}

/// Members of the output of a group without its rows, the exit status, and the rows.
pub type Answered = (Map<String, Value>, u8, Spool);

/// Request and result of a run that ended with an outcome.
pub(super) struct Finished {
    pub request: RunRequest,
    pub result: RunResult,
}

/// A group of tasks: a batch, or a fan-out with dependencies between tasks.
pub(super) trait Group {
    /// Number of tasks, each of which gives one row of the output.
    fn size(&self) -> usize;
    /// Name of a task in human-readable messages.
    fn name(&self, at: usize) -> String;
    /// Members at the start of a task's row, such as its index or id. The members of the task's
    /// result follow them.
    fn head(&self, at: usize) -> Map<String, Value>;
    /// Input of a task, with the members that all tasks of the group share.
    fn input(&self, at: usize) -> Result<Map<String, Value>, ErrorBody>;
    /// Tasks that may start, in order; the caller ignores those that have started or ended.
    fn ready(&self) -> Vec<usize>;
    /// Tasks that can never start, each with its row.
    fn blocked(&self) -> Vec<(usize, Map<String, Value>)>;
    /// Handles the end of a task. `row` is the task's row of the output and may be extended;
    /// `finished` is present if the run of the task has an outcome.
    fn settled(
        &mut self,
        at: usize,
        row: &mut Map<String, Value>,
        finished: Option<&Finished>,
        status: GroupStatus,
    );
    /// True if the rows of the output get a member `timings` with start, end and duration.
    fn is_timed(&self) -> bool;
    /// Directory, relative to that of `--artifacts`, below which the bundle of a task is copied.
    fn directory(&self, at: usize) -> PathBuf;
}

struct Ended {
    at: usize,
    answer: Result<Box<Finished>, ErrorBody>,
}

struct Drive<'a, 'g> {
    host: &'a Host<'a>,
    group: &'g mut dyn Group,
    rows: Spool,
    began: Vec<Option<(Instant, String)>>,
    alive: usize,
    retry_at: Instant,
    full_since: Option<Instant>,
}

/// Runs the tasks of a group, at most a given number at the same time. Returns one row for each task.
pub(super) fn drive(
    host: &Host<'_>,
    group: &mut dyn Group,
    concurrency: usize,
) -> Result<Spool, ErrorBody> {
    let size = group.size();
    let mut drive = Drive {
        host,
        rows: Spool::new(size).map_err(|e| unwritable(&e))?,
        group,
        began: vec![None; size],
        alive: 0,
        retry_at: Instant::now(),
        full_since: None,
    };
    let (sender, ends) = channel::<Ended>();
    std::thread::scope(|scope| {
        while drive.rows.settled() < size {
            drive.settle_unstarted()?;
            drive.start(scope, &sender, concurrency)?;
            match ends.recv_timeout(TICK) {
                Ok(ended) => drive.ended(ended)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        Ok(drive.rows)
    })
}

/// Returns the error for rows that cannot be stored or written.
pub fn unwritable(e: &io::Error) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::Internal,
        format!("the results of the tasks cannot be stored: {e}"),
    )
    .hint("check the free space in the directory for temporary files (TMPDIR, else /tmp)")
}

impl Drive<'_, '_> {
    fn settle_unstarted(&mut self) -> Result<(), ErrorBody> {
        if self.host.supervisors.stopped() {
            for at in 0..self.began.len() {
                if self.is_open(at) {
                    self.settle(at, cancelled_row(), None)?;
                }
            }
        }
        for (at, row) in self.group.blocked() {
            if self.is_open(at) {
                self.settle(at, row, None)?;
            }
        }
        Ok(())
    }

    fn is_open(&self, at: usize) -> bool {
        self.began.get(at).is_some_and(Option::is_none) && !self.rows.has(at)
    }

    fn start<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        sender: &Sender<Ended>,
        concurrency: usize,
    ) -> Result<(), ErrorBody>
    where
        Self: 'scope,
    {
        if self.host.supervisors.stopped() || Instant::now() < self.retry_at {
            return Ok(());
        }
        for at in self.group.ready() {
            if self.alive >= concurrency {
                return Ok(());
            }
            if !self.is_open(at) {
                continue;
            }
            let (request, began) = (self.host.request, self.host.began);
            let request = self.group.input(at).and_then(|input| request(&input));
            let request = match request {
                Ok(request) => request,
                Err(error) => {
                    self.settle(at, failed_row(&error), None)?;
                    continue;
                }
            };
            self.began[at] = Some((Instant::now(), wp_codebox_runtime::now_rfc3339()));
            self.alive += 1;
            let name = self.group.name(at);
            let sender = sender.clone();
            let supervisors = self.host.supervisors;
            std::thread::Builder::new()
                .name(format!("run-{at}"))
                .spawn_scoped(scope, move || {
                    let run_id = request.run_id.clone();
                    let accepted = || began(&name, &run_id);
                    let answer = supervisors.run(&request, accepted);
                    let answer = answer.map(|result| Box::new(Finished { request, result }));
                    // Sending fails only if the receiver was dropped because the scheduler failed.
                    let _ = sender.send(Ended { at, answer });
                })
                .map_err(|e| {
                    let message = format!("a thread for a run cannot be started: {e}");
                    kernel_error(ErrorCode::Internal, message, &e)
                })?;
        }
        Ok(())
    }

    fn ended(&mut self, ended: Ended) -> Result<(), ErrorBody> {
        self.alive -= 1;
        let at = ended.at;
        match ended.answer {
            Ok(finished) => {
                self.full_since = None;
                let input = self.group.input(at)?;
                let echo = Echo {
                    input: &input,
                    wordpress: &self.host.wordpress,
                    preview: &Map::new(),
                };
                let document = envelope::build(&finished.request, &finished.result, &echo)?;
                let mut row = envelope::row(&finished.result, &document);
                let directory = self.group.directory(at);
                if let Some(exported) = export(self.host, &finished.result, &directory) {
                    row.insert("exported".to_owned(), exported);
                }
                self.settle(at, row, Some(&finished))
            }
            Err(error) if error.code == ErrorCode::Busy && self.waits() => {
                self.began[at] = None;
                Ok(())
            }
            Err(error) => self.settle(at, failed_row(&error), None),
        }
    }

    /// Returns whether to try a task again that the host refused because it has reached its maximum
    /// number of runs: always while other runs of the group are alive, else for a limited time.
    fn waits(&mut self) -> bool {
        let now = Instant::now();
        self.retry_at = now + RETRY;
        if self.alive > 0 {
            self.full_since = None;
            return true;
        }
        now - *self.full_since.get_or_insert(now) < RETRY_LIMIT
    }

    fn settle(
        &mut self,
        at: usize,
        what: Map<String, Value>,
        finished: Option<&Finished>,
    ) -> Result<(), ErrorBody> {
        let mut row = self.group.head(at);
        row.extend(what);
        let status = row_status(&row);
        if let (true, Some((began, started))) = (self.group.is_timed(), &self.began[at]) {
            row.insert("timings".to_owned(), timings(*began, started));
        }
        self.group.settled(at, &mut row, finished, status);
        self.rows.put(at, &row).map_err(|e| unwritable(&e))?;
        (self.host.ended)(&self.group.name(at), &row);
        Ok(())
    }
}

pub(super) fn timings(began: Instant, started: &str) -> Value {
    let duration = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    json!({"started_at": started, "ended_at": wp_codebox_runtime::now_rfc3339(), "duration_ms": duration})
}

/// Copies the bundle of a run below `directory` of the directory of `--artifacts`, if that was
/// given; returns the target directory or the error.
pub fn export(host: &Host<'_>, result: &RunResult, directory: &Path) -> Option<Value> {
    let (root, bundle) = (host.artifacts?, result.artifacts.as_ref()?);
    let target = root.join(directory).join(result.run_id.as_str());
    let copied = std::fs::create_dir_all(&target)
        .and_then(|()| wp_codebox_supervisor::copy_bundle(bundle.path.as_ref(), &target));
    Some(match copied {
        Ok(()) => json!({"path": target}),
        Err(error) => {
            let message = format!("cannot copy the bundle to {}: {error}", target.display());
            let error = ErrorBody::new(ErrorCode::BundleWriteFailed, message);
            json!({"error": error.hint("choose an artifacts directory that this user may write (--artifacts)")})
        }
    })
}
