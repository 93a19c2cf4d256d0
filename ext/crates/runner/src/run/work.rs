//! The two guests of a run: the one that works and the one that checks.

use super::agents;
use super::captured::{capture_all, write_layers};
use super::components;
use super::context::RunContext;
use super::egress;
use super::envelopes::tail_of;
use super::hold::{self, Change, States};
use super::queue::RequestQueue;
use super::recorder::Recorder;
use super::session::Session;
use super::{level, programs, workflow};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_artifacts::MountChanges;
use wp_codebox_backend_native::{GuestEgress, NativeSpec, PlannedMount};
use wp_codebox_contracts::{
    CheckReport, CheckStatus, ErrorBody, ErrorCode, GuestPhase, HostSource, IsolationReport,
    RunRequest, SandboxAudit, TaskInput,
};
use wp_codebox_runtime::{
    Backend, Call, Cancellation, ExecutionEnd, Runtime, RuntimeState, Step, Stop, Usage,
    check_program,
};

/// End of a check's output kept in its report, bytes.
const CHECK_TAIL: usize = 4 * 1024;

/// What the working guest did and left.
#[derive(Debug)]
pub(crate) struct Work {
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

/// How the agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentEnd {
    /// The run has no agent.
    None,
    /// One of its success codes.
    Success,
    /// Anything else, or it never ran.
    Failure,
}

/// What the checking guest did.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub reports: Vec<CheckReport>,
    pub stopped: Option<Stop>,
    /// What the guest's own probes saw; absent when there was none.
    pub isolation: Option<IsolationReport>,
    /// What was around the guest's launcher; empty when no guest was needed.
    pub outer: Vec<SandboxAudit>,
    pub usage: Usage,
}

pub(super) fn spec(
    context: &RunContext<'_>,
    phase: GuestPhase,
    lowers: impl Fn(usize) -> Vec<HostSource>,
    egress: GuestEgress,
) -> Result<NativeSpec, ErrorBody> {
    let mounts = context
        .mounts
        .iter()
        .zip(&context.guest_mounts)
        .enumerate()
        .map(|(index, (mount, guest))| {
            Ok(PlannedMount {
                index: u32::try_from(index)
                    .map_err(|_| ErrorBody::new(ErrorCode::MountInvalid, "too many mounts"))?,
                lowers: lowers(index),
                target: guest.target.clone(),
                access: guest.access,
                view: mount.view,
                git: mount.git.clone(),
            })
        })
        .collect::<Result<Vec<_>, ErrorBody>>()?;
    Ok(NativeSpec {
        mounts,
        content: Vec::new(),
        components: components::planned(&context.components),
        task_json: context
            .prepared
            .request
            .task
            .as_ref()
            .map(task_for_guest)
            .unwrap_or_default(),
        staged: context.staged.clone(),
        programs: match phase {
            GuestPhase::Work => context.prepared.programs.clone(),
            GuestPhase::Check => Vec::new(),
        },
        limits: context.prepared.limits,
        egress,
        level: context.level,
        tree: context
            .run_dir
            .scratch("guests")
            .map_err(|e| e.body())?
            .join(phase.name()),
    })
}

/// Starts a guest and believes nothing of it but its own report.
pub(super) fn guest(
    context: &RunContext<'_>,
    spec: &NativeSpec,
) -> Result<Box<dyn Runtime>, ErrorBody> {
    let runtime = context.backend.create(spec).map_err(|error| {
        level::explain(error, &context.prepared.request, &context.backend.sandbox)
    })?;
    level::check(&context.prepared.policy, runtime.isolation())?;
    Ok(runtime)
}

/// The task without host paths.
fn task_for_guest(task: &TaskInput) -> String {
    serde_json::to_string(&super::inputs::task_document(task)).unwrap_or_default()
}

/// Runs commands, steps and agent in one guest, keeps it for as long as it is to be held, then
/// captures what it left. An error means that nothing ran: there is nothing to capture.
pub(crate) fn run(
    context: &RunContext<'_>,
    cancellation: &Arc<Cancellation>,
    recorder: &mut Recorder<'_>,
    queue: &Arc<RequestQueue>,
) -> Result<Work, ErrorBody> {
    let request = &context.prepared.request;
    let mut states = States::new(&request.run_id, request.hold.as_ref());
    let begins = Change::by_supervisor(RuntimeState::Provisioning, "it was asked for");
    states.change(recorder, queue, begins)?;
    recorder.aside = Some(Arc::clone(queue));
    let mut session = Session::begin(context, cancellation, recorder)?;
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
    let stopped = if cancellation.reason().is_some() {
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
            recorder.notices.push(error.to_string());
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
    let layers = write_layers(context, &changes);
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

/// Why the work stopped early, and how the agent ended.
pub(crate) type ProgramsEnd = (Option<Stop>, AgentEnd);

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
    let bench = session.bench();
    let loaded = agents::load_components(context, bench.recorder, bench.runtime, GuestPhase::Work)?;
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
        Some(agent) => agents::run(agent, session.bench()),
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

/// Why a step ends the run. A program that is not there is the caller's mistake, not an outcome.
pub(super) fn stop_of(
    call: &Call,
    step: &Step,
    success: &[i32],
) -> Result<Option<Stop>, ErrorBody> {
    let program = call.argv.first().map_or("", String::as_str);
    let error = |what: String| {
        let code = if step.result.disk_full {
            ErrorCode::DiskLimit
        } else {
            ErrorCode::RunFailed
        };
        let disk = if step.result.disk_full {
            "; the guest's disk was full: raise the disk limit"
        } else {
            ""
        };
        ErrorBody::new(code, format!("{program} {what}{disk}"))
    };
    let failed = |what| {
        let hint = wp_codebox_policy::shell_hint(&call.argv);
        let error = hint.into_iter().fold(error(what), ErrorBody::hint);
        Ok(Some(Stop::Failed(error)))
    };
    match &step.result.end {
        ExecutionEnd::Exited { code } if success.contains(code) => Ok(None),
        ExecutionEnd::Exited { code } => failed(format!("exited with {code}")),
        ExecutionEnd::Signalled { signal } => failed(format!("was ended by signal {signal}")),
        ExecutionEnd::NotStarted { error } if error.code == ErrorCode::AgentProgramMissing => {
            let error = ErrorBody::new(
                error.code,
                format!("{program:?} does not exist in the guest, or is not executable there"),
            );
            let hint = wp_codebox_policy::shell_hint(&call.argv).unwrap_or_else(|| {
                "programs of the host's /usr are there; stage a file of your own or mount its directory".to_owned()
            });
            Err(error.hint(hint))
        }
        ExecutionEnd::NotStarted { error } => Err(error.clone()),
        ExecutionEnd::TimedOut => Ok(Some(Stop::Timeout)),
        ExecutionEnd::Cancelled => Ok(Some(Stop::Cancelled)),
        ExecutionEnd::LimitReached { error } => Ok(Some(Stop::Failed(error.clone()))),
        ExecutionEnd::GuestDied { death } => Ok(Some(Stop::Failed(
            death.told_in(error(format!("was lost: {death}"))),
        ))),
    }
}

/// Runs the checks in a fresh guest: the agent's own could have prepared their answers.
pub(crate) fn check(
    context: &RunContext<'_>,
    cancellation: &Arc<Cancellation>,
    recorder: &mut Recorder<'_>,
    work: &Work,
) -> Result<Checked, ErrorBody> {
    let lines = &context.prepared.request.checks;
    let pointless =
        matches!(work.stopped, Some(Stop::Timeout | Stop::Cancelled)) || !work.moved.is_empty();
    if lines.is_empty() || pointless {
        return Ok(Checked::default());
    }
    let (mut runtime, egress) = match checking_guest(context, work) {
        Ok(guest) => guest,
        // The work is done: a guest that cannot start makes the checks fail, not the run.
        Err(error) => return Ok(Checked::unable(lines, &error)),
    };
    let mut checked = Checked {
        isolation: Some(runtime.isolation().clone()),
        outer: vec![runtime.outer_sandbox().clone()],
        ..Checked::default()
    };
    let ended =
        match agents::load_components(context, recorder, runtime.as_mut(), GuestPhase::Check) {
            Ok(None) => run_checks(context, recorder, runtime.as_mut(), &mut checked),
            Ok(Some(stop)) => {
                checked.stopped = Some(stop);
                Ok(())
            }
            // The change may be what broke it, so it is the checks that fail.
            Err(error) => {
                checked.reports = Checked::unable(lines, &error).reports;
                Ok(())
            }
        };
    checked.usage = runtime.destroy().usage;
    egress.close(GuestPhase::Check, recorder)?;
    ended?;
    if cancellation.reason().is_some() {
        checked.stopped = Some(Stop::Cancelled);
    }
    Ok(checked)
}

impl Checked {
    /// No check could run, and why.
    fn unable(lines: &[String], error: &ErrorBody) -> Self {
        let reports = lines
            .iter()
            .map(|line| CheckReport {
                command: line.clone(),
                exit_code: None,
                status: CheckStatus::Error,
                output_tail: tail_of(&error.message, CHECK_TAIL),
                duration_ms: 0,
            })
            .collect();
        Self {
            reports,
            ..Self::default()
        }
    }
}

type CheckingGuest = (Box<dyn Runtime>, egress::Open);

fn checking_guest(context: &RunContext<'_>, work: &Work) -> Result<CheckingGuest, ErrorBody> {
    let layers = work.layers.as_ref().map_err(ErrorBody::clone)?;
    let lowers = |index: usize| {
        layers[index]
            .iter()
            .cloned()
            .chain(context.mounts[index].lowers.iter().cloned())
            .collect()
    };
    let egress = egress::prepare(context, GuestPhase::Check)?;
    let spec = spec(context, GuestPhase::Check, lowers, egress.guest())?;
    let mut runtime = guest(context, &spec)?;
    let egress = egress.open(runtime.as_mut())?;
    Ok((runtime, egress))
}

fn run_checks(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    runtime: &mut dyn Runtime,
    checked: &mut Checked,
) -> Result<(), ErrorBody> {
    let deadline = match &context.prepared.request.hold {
        None => context.clock.deadline,
        // The time that the sandbox was held is not the checks'.
        Some(_) => Instant::now() + Duration::from_millis(context.prepared.limits.wall_clock_ms),
    };
    for line in &context.prepared.request.checks {
        let started = Instant::now();
        let call = programs::with_check_secrets(context, check_program(line, &context.cwd)?);
        let step = recorder.run(runtime, &call, deadline)?;
        let (status, note) = match &step.result.end {
            ExecutionEnd::Exited { code: 0 } => (CheckStatus::Passed, String::new()),
            ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. } => {
                (CheckStatus::Failed, String::new())
            }
            ExecutionEnd::NotStarted { error } | ExecutionEnd::LimitReached { error } => {
                (CheckStatus::Error, error.message.clone())
            }
            ExecutionEnd::TimedOut => (CheckStatus::Error, "the run's deadline passed".to_owned()),
            ExecutionEnd::Cancelled => (CheckStatus::Error, "the run was cancelled".to_owned()),
            ExecutionEnd::GuestDied { death } => (CheckStatus::Error, death.to_string()),
        };
        let output = format!("{}{}{note}", step.stdout, step.stderr);
        checked.reports.push(CheckReport {
            command: line.clone(),
            exit_code: step.exit_code(),
            status,
            output_tail: tail_of(&output, CHECK_TAIL),
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        checked.stopped = match step.result.end {
            ExecutionEnd::TimedOut => Some(Stop::Timeout),
            ExecutionEnd::Cancelled => Some(Stop::Cancelled),
            _ => None,
        };
        if checked.stopped.is_some()
            || matches!(
                step.result.end,
                ExecutionEnd::GuestDied { .. } | ExecutionEnd::LimitReached { .. }
            )
        {
            break;
        }
    }
    Ok(())
}
