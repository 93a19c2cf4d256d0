//! One run, from a prepared request to a signed bundle.
//!
//! The order is fixed: agent in one guest → guest dead → capture → recovery bundle written → checks
//! in a fresh guest → guest dead → key loaded → bundle written. Untrusted code never runs while the
//! key is in memory, and nothing is captured while a process can still write.

mod announce;

use crate::bundle::finish::{self, Failure, RunEnd};
use crate::bundle::{recovery_bundle, verdict};
use crate::checks;
use crate::journal::queue::{HoldMode, RequestQueue};
use crate::journal::recorder::Recorder;
use crate::prepared::context::Clock;
use crate::prepared::job::Job;
use crate::prepared::ready::{Outside, ready};
use crate::prepared::spend;
use crate::request::end_check::{self, EarlierBundle};
use crate::request::placed::{self, PlacedRuns};
use crate::request::prepare::Prepared;
use crate::session::egress;
use crate::work::{self, hold};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_agent::Parent;
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, EventType, LifecycleEvent, MountRequest, Outcome, RunId,
    RunMode, RunRequest, RunResult,
};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::{
    Cancellation, Ending, Journal, NewRun, RecordedWork, RunDir, Scratch, SpendReservation,
    reap_dead,
};

/// A run that has its directory and its journal, so that queries by run id can find it.
#[derive(Debug)]
pub(crate) struct StartedRun {
    job: Job,
    run_dir: RunDir,
    journal: Journal,
    clock: Clock,
    spend: Option<SpendReservation>,
}

/// Creates the directory of a prepared run. Before that, writes the final records of runs that died
/// without one. Fails if too many runs of the site or of the requester are alive, or if the model
/// cost of this month has reached a cap. `asked` is the time of the caller's request.
pub(crate) fn begin(
    mut job: Job,
    redactor: &Redactor,
    asked: Instant,
) -> Result<StartedRun, ErrorBody> {
    let wall = Duration::from_millis(job.limits().wall_clock_ms);
    let clock = Clock {
        asked,
        deadline: Instant::now() + wall,
    };
    reap_dead(job.state(), &job.request().site)?;
    let spend = spend::reserve(&mut job)?;
    let request = job.request();
    let new = NewRun {
        run_id: request.run_id.clone(),
        mode: request.mode,
        facts: request
            .facts()
            .redacted(|facts| redactor.redact_value(facts)),
        work: recorded_work(request, redactor),
        share: request.share,
    };
    let limit = request.max_runs as usize;
    let run_dir = match RunDir::create(job.state(), &request.site, &new, limit) {
        Ok(run_dir) => run_dir,
        Err(error) => {
            spend::settle(spend, None);
            return Err(redactor.redact_error(error.body()));
        }
    };
    match Journal::create(run_dir.path()) {
        Ok(journal) => Ok(StartedRun {
            job,
            run_dir,
            journal,
            clock,
            spend,
        }),
        Err(error) => {
            spend::settle(spend, None);
            Err(failed(run_dir, error.body(), Scratch::Remove))
        }
    }
}

/// Returns what the run record stores for later commands that repeat the run or apply its changes.
/// Texts are redacted, because a command line can contain a secret of the run.
fn recorded_work(request: &RunRequest, redactor: &Redactor) -> RecordedWork {
    let directory = |mount: &MountRequest| (mount.target.clone(), mount.source.clone().into());
    let mut agent = serde_json::to_value(&request.agent).unwrap_or_default();
    // Environment variables are left out: the record only has to identify the agent.
    agent.as_object_mut().and_then(|agent| agent.remove("env"));
    let redacted = |check: &String| redactor.redact(check).into_owned();
    RecordedWork {
        directories: request.mounts.iter().map(directory).collect(),
        agent: serde_json::from_value(redactor.redact_value(agent)).unwrap_or_default(),
        checks: request.checks.iter().map(redacted).collect(),
        is_placed: request.placement.is_some(),
    }
}

impl StartedRun {
    pub(crate) fn run_id(&self) -> &RunId {
        &self.job.request().run_id
    }

    pub(crate) fn mode(&self) -> RunMode {
        self.job.request().mode
    }

    /// Creates the queue for requests of clients to the sandbox. If the run does not keep its
    /// sandbox open for clients, the queue is closed.
    pub(crate) fn queue(&self) -> std::io::Result<RequestQueue> {
        let request = self.job.request();
        let queue = RequestQueue::new(match request.hold {
            Some(_) => HoldMode::Guest,
            None => HoldMode::Nothing,
        })?;
        hold::States::new(&request.run_id, request.hold.as_ref()).show(&queue);
        Ok(queue)
    }

    pub(crate) fn run_dir(&self) -> &RunDir {
        &self.run_dir
    }

    /// Ends the run before it could execute, with a final record that contains the error.
    pub(crate) fn abandon(self, error: ErrorBody) -> ErrorBody {
        spend::settle(self.spend, None);
        failed(self.run_dir, error, Scratch::Remove)
    }
}

/// Writes the final record of a run that has an error and no outcome. If the record cannot be
/// written, the given error is returned all the same, and the next process that reads the run
/// writes the record.
fn failed(run_dir: RunDir, error: ErrorBody, scratch: Scratch) -> ErrorBody {
    let ending = Ending {
        outcome: match error.code {
            // The run was sent to a cluster and cancelled before a node of the cluster took it.
            ErrorCode::RunCancelled => Outcome::Cancelled,
            _ => Outcome::Failed,
        },
        summary: error.message.clone(),
        summary_detail: None,
        error: Some(error.clone()),
        bundle_id: None,
    };
    let _ = run_dir.settle(ending, scratch);
    error
}

/// Executes the run. An error means that there is no outcome: the sandbox could not start, or the
/// run's own evidence could not be written.
pub(crate) fn execute(
    started: StartedRun,
    redactor: &Redactor,
    cancellation: &Arc<Cancellation>,
    parent: &dyn Parent,
    queue: &Arc<RequestQueue>,
    placed: PlacedRuns<'_>,
    emit: &mut dyn FnMut(LifecycleEvent),
) -> Result<RunResult, ErrorBody> {
    let StartedRun {
        job,
        run_dir,
        journal,
        clock,
        spend,
    } = started;
    let mut recorder = Recorder::new(journal, redactor, job.limits().output_bytes, emit);
    let outside = Outside {
        cancellation,
        parent,
        redactor,
    };
    let is_placed = matches!(job, Job::Placed(_));
    let answer = match job {
        Job::Here(prepared) => stages(*prepared, outside, queue, &run_dir, &mut recorder, clock),
        Job::Placed(job) => {
            placed::run(&job, placed, cancellation, &run_dir, &mut recorder).map_err(Failure::from)
        }
    };
    match &answer {
        // A run that another host executed without a result may have cost its whole reservation.
        Err(_) if is_placed => drop(spend),
        Err(_) => spend::settle(spend, recorder.evidence.model_usage),
        Ok(result) => spend::settle(spend, result.cost.model),
    }
    match answer {
        Ok(result) => {
            let result = clean(result, redactor);
            run_dir.write_result(&result)?;
            let ending = Ending {
                outcome: result.outcome,
                summary: result.summary.clone(),
                summary_detail: result.summary_detail.clone(),
                error: result.error.clone(),
                bundle_id: result.artifacts.as_ref().map(|a| a.bundle_id.clone()),
            };
            run_dir.settle(ending, Scratch::Remove)?;
            Ok(result)
        }
        Err(Failure { error, scratch }) => {
            Err(failed(run_dir, redactor.redact_error(error), scratch))
        }
    }
}

/// Removes secrets from those texts of the result that no other module redacts.
fn clean(mut result: RunResult, redactor: &Redactor) -> RunResult {
    let text = |text: &mut String| *text = redactor.redact(text).into_owned();
    result.error = result.error.map(|error| redactor.redact_error(error));
    text(&mut result.summary);
    let detail = result.summary_detail.as_mut();
    detail
        .and_then(|d| d.args.reason.as_mut())
        .into_iter()
        .for_each(text);
    result.notices.iter_mut().for_each(text);
    let mounts = result.mounts.iter_mut();
    for entry in mounts.flat_map(|mount| &mut mount.left_out.entries) {
        text(&mut entry.path);
    }
    for check in &mut result.checks {
        text(&mut check.command);
        text(&mut check.output_tail);
        check.reason.as_mut().into_iter().for_each(text);
    }
    result
}

fn stages(
    mut prepared: Prepared,
    outside: Outside<'_>,
    queue: &Arc<RequestQueue>,
    run_dir: &RunDir,
    recorder: &mut Recorder<'_>,
    clock: Clock,
) -> Result<RunResult, Failure> {
    end_check::check(&prepared.state, &prepared.request, EarlierBundle::Refuse)?;
    run_dir.reserve().map_err(ErrorBody::from)?;
    let context = ready(&mut prepared, outside, run_dir, recorder, clock)?;
    announce::announce(&context, recorder)?;
    let work = work::run(&context, recorder, queue)?;
    // From here on there is work to preserve if the process dies or fails.
    recovery_bundle::write(&context, recorder, &work);
    let checks = checks::check(&context, recorder, &work)
        .and_then(|checks| {
            let data = json!({"reason": "run-ended"});
            recorder.event(EventType::Destroyed, None, data)?;
            Ok(checks)
        })
        .map_err(|error| finish::kept(run_dir, &work, error))?;
    let mut verdict = verdict::decide(&work, &checks, outside.cancellation.reason());
    egress::explain(
        verdict.error.as_mut(),
        &context.prepared.policy,
        &recorder.evidence,
    );
    finish::bundle(
        &context,
        recorder,
        RunEnd {
            work,
            checks,
            verdict,
        },
    )
}
