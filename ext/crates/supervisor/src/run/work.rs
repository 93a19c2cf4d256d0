//! The work of a run: everything its working guest does, and what it leaves.

use super::agents;
use super::captured::{capture_all, write_layers};
use super::context::RunContext;
use super::ending::{AgentEnd, ProgramsEnd, stop_of};
use super::hold::{self, Change, States};
use super::queue::RequestQueue;
use super::recorder::Recorder;
use super::session::Session;
use super::workflow;
use std::sync::Arc;
use std::time::Duration;
use wp_codebox_artifacts::MountChanges;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, HostSource, IsolationReport, RunRequest, SandboxAudit,
};
use wp_codebox_runtime::{RuntimeState, Stop, Usage};

/// What the working guest did and left.
#[derive(Debug)]
pub(super) struct Work {
    /// Why it stopped early; absent when everything ran and exited well.
    pub stopped: Option<Stop>,
    /// Whether the agent ran.
    pub agent: AgentEnd,
    /// Changes by mount index; none for mounts that are not captured.
    pub changes: Vec<Option<MountChanges>>,
    /// The changes as overlay layers in the run's scratch, by mount index: what the checks'
    /// guest mounts, and what is left of the work when no bundle can be written.
    pub layers: Result<Vec<Option<HostSource>>, ErrorBody>,
    /// Mounts whose source changed while the run used it.
    pub moved: Vec<usize>,
    /// What the guest's own probes saw.
    pub isolation: IsolationReport,
    /// What was around the guest's launcher.
    pub outer: SandboxAudit,
    pub usage: Usage,
}

/// Runs commands, steps and agent in one guest, keeps it for as long as it is to be held, then
/// captures what it left. An error means that nothing ran: there is nothing to capture.
pub(super) fn run(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    queue: &Arc<RequestQueue>,
) -> Result<Work, ErrorBody> {
    let request = &context.prepared.request;
    let mut states = States::new(&request.run_id, request.hold.as_ref());
    let begins = Change::by_supervisor(RuntimeState::Provisioning, "it was asked for");
    states.change(recorder, queue, begins)?;
    recorder.aside = Some(Arc::clone(queue));
    let mut session = Session::begin(context, recorder)?;
    let outcome =
        programs(&mut session).and_then(|end| held(&mut session, (queue, &mut states), end));
    queue.close(&ErrorBody::new(
        ErrorCode::SandboxNotHeld,
        "the sandbox has ended: its work is done or failed",
    ));
    let ends = Change::by_supervisor(RuntimeState::Destroying, "its guest is ended");
    let told = states.change(session.recorder, queue, ends);
    let (ended, closed) = session.end();
    let gone = Change::by_supervisor(RuntimeState::Destroyed, "its guest is gone");
    let told = told
        .and(closed)
        .and_then(|()| states.change(recorder, queue, gone));
    let (stopped, agent) = match outcome.and_then(|end| told.map(|()| end)) {
        Ok(end) => end,
        // Whatever broke: what ran before left work and evidence.
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
        workflow::judge_changes(context, recorder, &changes),
    ) {
        (None, Some(error)) => Some(Stop::Failed(error)),
        (stopped, _) => stopped,
    };
    let layers = write_layers(context.run_dir, &changes);
    Ok(Work {
        stopped,
        agent,
        changes,
        layers,
        moved,
        isolation: ended.isolation,
        outer: ended.outer,
        usage: ended.usage,
    })
}

/// How the agent ended when the work stopped before it could.
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
    let loaded = agents::load_components(&mut session.guest_context())?;
    if let Some(stop) = loaded {
        return Ok((Some(stop), idle));
    }
    for call in &request.commands {
        let done = session.command(call, Duration::MAX)?;
        let stop = match (stop_of(&done.call, &done.step, &[0])?, done.result.error) {
            (None, None) => continue,
            // What the command itself says is more than the exit status of its program.
            (None | Some(Stop::Failed(_)), Some(error)) => Stop::Failed(error),
            (Some(stop), _) => stop,
        };
        return Ok((Some(stop), idle));
    }
    if let Some(workflow) = &request.workflow
        && let Some(stop) = workflow::run(session, workflow)?
    {
        return Ok((Some(stop), idle));
    }
    match &request.agent {
        Some(agent) => agents::run(agent, session.guest_context()),
        None => Ok((None, AgentEnd::None)),
    }
}

/// Keeps the guest for whoever comes, when it is to be held and did not end already.
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
