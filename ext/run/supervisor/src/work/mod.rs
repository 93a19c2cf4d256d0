//! Runs the work of a run (commands, recipe, agent) in one guest, and captures its changes.

mod episode;
pub(crate) mod hold;
mod observe;
mod workflow;

use crate::captured::{capture_all, write_layers};
use crate::journal::queue::RequestQueue;
use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use crate::request::programs::agent_step;
use crate::session::Session;
use crate::session::agents;
use crate::session::ending::{AgentEnd, ProgramsEnd, stop_of};
use hold::{Change, States};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wp_codebox_artifacts::MountChanges;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, HostSource, IsolationReport, RunRequest, SandboxAudit,
};
use wp_codebox_runtime::{RuntimeState, Stop, Usage};

/// Results of the guest in which the work ran.
#[derive(Debug)]
pub(crate) struct Work {
    /// Why the work stopped early; absent if every step ran and succeeded.
    pub stopped: Option<Stop>,
    /// How the agent ended.
    pub agent: AgentEnd,
    /// Changes by mount index; `None` for mounts that are not captured.
    pub changes: Vec<Option<MountChanges>>,
    /// In a follow-up run, what it changed in addition to the earlier bundle's change, by mount
    /// index; empty for any other run.
    pub since: BTreeMap<usize, MountChanges>,
    /// Changes as overlay layers in the run's scratch directory, by mount index. The check guest
    /// mounts them, and they preserve the work if no bundle can be written.
    pub layers: Result<Vec<Option<HostSource>>, ErrorBody>,
    /// Indexes of the mounts whose source changed on the host during the run.
    pub moved: Vec<usize>,
    /// Isolation that probe programs observed in the guest.
    pub isolation: IsolationReport,
    /// Audit record of the process wrapper (bubblewrap or gVisor, if used) around the guest's
    /// launcher.
    pub outer: SandboxAudit,
    pub usage: Usage,
}

/// Runs the commands, steps and agent of a run in one guest, holds the guest for clients if the
/// request asks for that, then captures its changes. An error means that nothing ran, so there is
/// nothing to capture.
pub(crate) fn run(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    queue: &Arc<RequestQueue>,
) -> Result<Work, ErrorBody> {
    let request = &context.prepared.request;
    let mut states = States::new(&request.run_id, request.hold.as_ref());
    let begins = Change::by_supervisor(RuntimeState::Provisioning, "the run asked for it");
    states.change(recorder, queue, begins)?;
    recorder.aside = Some(Arc::clone(queue));
    let mut session = Session::begin(context, recorder)?;
    let outcome =
        programs(&mut session).and_then(|end| held(&mut session, (queue, &mut states), end));
    queue.close(&ErrorBody::new(
        ErrorCode::SandboxNotHeld,
        "the sandbox has ended, because its commands have ended or failed",
    ));
    let ends = Change::by_supervisor(RuntimeState::Destroying, "its guest is being ended");
    let told = states.change(session.recorder, queue, ends);
    let (ended, closed) = session.end();
    let gone = Change::by_supervisor(RuntimeState::Destroyed, "its guest has ended");
    let told = told
        .and(closed)
        .and_then(|()| states.change(recorder, queue, gone));
    let (stopped, agent) = match outcome.and_then(|end| told.map(|()| end)) {
        Ok(end) => end,
        // Programs that ran before the error may have left changes and evidence, so the run goes on
        // to capture them instead of returning the error.
        Err(error) if recorder.worked() => (Some(Stop::Failed(error)), unfinished(request)),
        Err(error) => return Err(error),
    };
    let stopped = if context.cancellation.reason().is_some() {
        Some(Stop::Cancelled)
    } else {
        stopped
    };
    let moved = context
        .mounts
        .iter()
        .enumerate()
        .filter(|(_, m)| m.source_changed())
        .map(|(i, _)| i)
        .collect();
    if request.agent.is_some() {
        let notice = agents::content(context, &ended.left);
        recorder.evidence.notices.extend(notice);
    }
    let (stopped, changes) = match capture_all(context, &ended.left) {
        Ok(changes) => (stopped, changes),
        Err(error) => {
            recorder.evidence.notices.push(error.to_string());
            let nothing = context.mounts.iter().map(|_| None).collect();
            (Some(Stop::Uncaptured(error)), nothing)
        }
    };
    let stopped = match (
        stopped,
        workflow::check_changes(context, recorder, &changes),
    ) {
        (None, Some(error)) => Some(Stop::Failed(error)),
        (stopped, _) => stopped,
    };
    let layers = write_layers(context.run_dir, &changes);
    let since = since(context, recorder, &changes);
    Ok(Work {
        stopped,
        agent,
        changes,
        since,
        layers,
        moved,
        isolation: ended.isolation,
        outer: ended.outer,
        usage: ended.usage,
    })
}

/// Returns what a follow-up run changed in addition to the earlier bundle's change. If it changed
/// nothing, adds a notice: the bundle is not empty then, because it contains the earlier change.
fn since(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    changes: &[Option<MountChanges>],
) -> BTreeMap<usize, MountChanges> {
    let (Some(laid), Some(earlier)) = (&context.earlier, &context.prepared.earlier) else {
        return BTreeMap::new();
    };
    let since = laid.since(changes);
    if since.is_empty() && changes.iter().any(Option::is_some) {
        recorder.evidence.notices.push(format!(
            "nothing changed since the earlier bundle of {}",
            earlier.run_id()
        ));
    }
    since
}

/// Returns the agent's end for a run whose work stopped without a result of the agent, e.g. before
/// the agent could run.
fn unfinished(request: &RunRequest) -> AgentEnd {
    match request.agent {
        Some(_) => AgentEnd::Failure,
        None => AgentEnd::None,
    }
}

fn programs(session: &mut Session<'_, '_>) -> Result<ProgramsEnd, ErrorBody> {
    let context = session.context;
    let request = &context.prepared.request;
    let idle = unfinished(request);
    if let Some(stop) = agents::prepare(&mut session.guest_context())? {
        return Ok((Some(stop), idle));
    }
    for call in &request.commands {
        let done = session.command(call, Duration::MAX)?;
        let stop = match (stop_of(&done.call, &done.step, &[0])?, done.result.error) {
            (None, None) => continue,
            // The error in the command's result is more specific than the exit status of its
            // program.
            (None | Some(Stop::Failed(_)), Some(error)) => Stop::Failed(error),
            (Some(stop), _) => stop,
        };
        return Ok((Some(stop), idle));
    }
    if let Some(workflow) = &request.workflow {
        let stopped = workflow::run(session, workflow)?;
        if stopped.is_some() || agent_step(request).is_some() {
            return Ok((stopped, session.agent.unwrap_or(idle)));
        }
    }
    match &request.agent {
        Some(agent) => agents::run(agent, session.guest_context()),
        None => Ok((None, AgentEnd::None)),
    }
}

/// Holds the guest, i.e. keeps it open for clients, if the request asks for that and the work did
/// not stop early.
fn held(
    session: &mut Session<'_, '_>,
    (queue, states): (&RequestQueue, &mut States),
    end: ProgramsEnd,
) -> Result<ProgramsEnd, ErrorBody> {
    let hold = match (&session.context.prepared.request.hold, &end) {
        (Some(hold), (None, _)) => hold,
        (None, _) | (Some(_), (Some(_), _)) => return Ok(end),
    };
    let stopped = hold::serve(session, hold, queue, states)?;
    Ok((stopped, end.1))
}
