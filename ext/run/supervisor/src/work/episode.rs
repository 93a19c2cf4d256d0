//! Episodes: the trace of actions in a held sandbox (one kept open for clients after the run's
//! commands), written while the sandbox runs.
//!
//! Every held sandbox has one episode. Each command that a client requests over the control socket
//! is a step, whether the client sends a `step` or a `command` request; a command that could not be
//! executed is not a step. Replacing the guest starts a new trace. A part of the trace (a step,
//! observation or snapshot) that would make it invalid is not added, and the client gets an error.
//! If the client's command has already run, the client gets the command's result instead of that
//! error, and a notice in the bundle states the gap.

use super::observe;
use crate::journal::recorder::Recorder;
use crate::request::request_document::{spec, task_document};
use crate::session::{Commanded, Session};
use serde_json::{Value, json};
use std::time::Duration;
use wp_codebox_artifacts::{
    EpisodeBuilder, EpisodeError, EpisodeFiles, EpisodePart, EpisodeStart, ObservationInput,
    SnapshotInput, StepInput, StepObservation,
};
use wp_codebox_contracts::{
    ActionRequest, CodedError, CommandCall, EpisodeExecution, ErrorBody, ErrorCode, LiveRequest,
    ObservationSpec, ObservationType, SandboxSnapshot, SnapshotSemantics,
};
use wp_codebox_runtime::{HeldFacts, HeldMount, now_rfc3339};

fn refused(error: EpisodeError) -> ErrorBody {
    ErrorBody::new(error.code(), error.to_string())
}

/// Starts the trace of a guest. If the guest replaced another one, the new trace replaces the old
/// one.
pub(crate) fn begin(session: &mut Session<'_, '_>) -> Result<(), ErrorBody> {
    let now = now_rfc3339();
    let seen = |kind, data| ObservationInput {
        kind,
        data,
        observed_at: now.clone(),
        artifact_refs: Vec::new(),
    };
    let start = EpisodeStart {
        runtime: session.context.runtime_info("created"),
        created_at: now.clone(),
        observations: vec![
            seen(ObservationType::RuntimeInfo, observe::runtime_info(session)),
            seen(ObservationType::Mounts, observe::mounts(session)),
        ],
    };
    let redactor = session.recorder.redactor();
    let builder = session
        .recorder
        .episode
        .get_or_insert_with(|| EpisodeBuilder::new(redactor));
    let reset = builder.reset(start).map_err(refused)?.clone();
    let part = EpisodePart::Reset {
        created_at: now,
        reset,
    };
    // If the facts or the first part cannot be stored, the run continues, but no bundle can be
    // built if this process dies.
    let kept = store_facts(session).and_then(|()| store_part(session, &part));
    record_store_error(session.recorder, kept);
    Ok(())
}

/// Stores the facts about the guest from which the bundle is built if this process dies.
fn store_facts(session: &Session<'_, '_>) -> Result<(), ErrorBody> {
    let context = session.context;
    let request = &context.prepared.request;
    let facts = HeldFacts {
        runtime: session.context.runtime_info("created"),
        provenance: request.provenance.clone(),
        task: request.task.as_ref().map(task_document),
        policy: json!(context.prepared.policy),
        spec: spec(context.prepared),
        mounts: context
            .mounts
            .iter()
            .map(|mount| HeldMount {
                target: mount.mount.target.clone(),
                access: mount.mount.request.mode,
                view: mount.view,
                git: mount.git_view(),
                exclude: mount.rules().names(),
                metadata: mount.mount.request.metadata.clone(),
            })
            .collect(),
        isolation: session.isolation.clone(),
        observations: session.recorder.evidence.observations.clone(),
    };
    let clean = session.recorder.cleaned(json!(facts));
    context.run_dir.write_held(&clean).map_err(ErrorBody::from)
}

/// Stores a part of the episode next to the journal, for the case that this process dies.
fn store_part(session: &Session<'_, '_>, part: &EpisodePart) -> Result<(), ErrorBody> {
    let run_dir = session.context.run_dir;
    run_dir.append_episode(part).map_err(ErrorBody::from)
}

/// Adds a notice if a part of the episode could not be stored, each notice only once. The episode
/// continues in memory.
fn record_store_error(recorder: &mut Recorder<'_>, kept: Result<(), ErrorBody>) {
    let Err(error) = kept else { return };
    let notice = format!(
        "the episode cannot be stored and would be lost if the supervisor died: {}",
        error.message
    );
    if !recorder.evidence.notices.contains(&notice) {
        recorder.evidence.notices.push(notice);
    }
}

fn builder<'b, 'r>(
    recorder: &'b mut Recorder<'r>,
) -> Result<&'b mut EpisodeBuilder<'r>, ErrorBody> {
    let none = || refused(EpisodeError::NotReset);
    recorder.episode.as_mut().ok_or_else(none)
}

/// Runs a command that a client requests as a step, makes the requested observation, and returns
/// the step in the form of the trace.
pub(crate) fn step(
    session: &mut Session<'_, '_>,
    action: &ActionRequest,
    observation: Option<&ObservationSpec>,
    left: Duration,
) -> Result<Value, ErrorBody> {
    if action
        .cwd
        .as_deref()
        .is_some_and(|cwd| cwd != session.context.cwd.as_str())
    {
        let message = format!(
            "commands run in {}; leave cwd out, or name the directory in the arguments of the command",
            session.context.cwd.as_str()
        );
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    let call = CommandCall {
        command: action.command.clone(),
        args: action.args.clone(),
    };
    let own = action.timeout_ms.map(Duration::from_millis);
    let executed = execute(session, &call, own.unwrap_or(left).min(left))?;
    let observation = match observation {
        None => StepObservation::None,
        Some(spec) => StepObservation::Seen(observe::observe(session, spec, left)?),
    };
    let input = StepInput {
        action: action.clone(),
        execution: executed.1,
        observation,
    };
    let step = builder(session.recorder)?.step(input).map_err(refused)?;
    let (answer, part) = (json!(step), EpisodePart::Step(step.clone()));
    let kept = store_part(session, &part);
    record_store_error(session.recorder, kept);
    Ok(answer)
}

/// Runs a plain command of a client and adds it to the trace as a step without an observation.
pub(crate) fn command(
    session: &mut Session<'_, '_>,
    call: &CommandCall,
    timeout: Duration,
) -> Result<Commanded, ErrorBody> {
    let (done, execution) = execute(session, call, timeout)?;
    let input = StepInput {
        action: ActionRequest {
            command: call.command.clone(),
            args: call.args.clone(),
            ..ActionRequest::default()
        },
        execution,
        observation: StepObservation::None,
    };
    match builder(session.recorder)?.step(input).cloned() {
        Ok(step) => {
            let kept = store_part(session, &EpisodePart::Step(step));
            record_store_error(session.recorder, kept);
        }
        Err(error) => {
            // The command has run: the client gets its result, and a notice in the bundle states
            // the gap in the trace.
            let why = refused(error).message;
            let notice =
                format!("a command that was run is missing from the trace of the episode: {why}");
            session.recorder.evidence.notices.push(notice);
        }
    }
    Ok(done)
}

fn execute(
    session: &mut Session<'_, '_>,
    call: &CommandCall,
    timeout: Duration,
) -> Result<(Commanded, EpisodeExecution), ErrorBody> {
    let (before, started_at) = (session.recorder.evidence.executions.len(), now_rfc3339());
    let done = session.command(call, timeout)?;
    let mut execution = match session.recorder.evidence.executions.get(before) {
        Some(record) => EpisodeExecution::from(record),
        // The supervisor executed the command itself, without a process in the guest.
        None => EpisodeExecution {
            id: format!("command-{}-{before}", call.command),
            command: call.command.clone(),
            args: call.args.clone(),
            exit_code: done.step.exit_code(),
            stdout: done.result.stdout.clone(),
            stderr: done.result.stderr.clone(),
            result: None,
            diagnostics: None,
            artifact_refs: Vec::new(),
            started_at,
            finished_at: now_rfc3339(),
        },
    };
    // Uses the command as the client requested it, which is also the command in the step's action.
    execution.command = call.command.clone();
    execution.args = call.args.clone();
    // A trace does not contain the members of a JSON document that a guest program printed; the
    // document is in `stdout` as text.
    execution.result = Some(json!({
        "schema": done.result.schema,
        "status": done.result.status,
        "error": done.result.error.as_ref().map(|error| json!({"code": error.code, "message": error.message})),
    }));
    Ok((done, execution))
}

/// Makes an observation that a client requests and adds it to the trace, between the steps.
pub(crate) fn look(
    session: &mut Session<'_, '_>,
    spec: &ObservationSpec,
    left: Duration,
) -> Result<Value, ErrorBody> {
    let seen = observe::observe(session, spec, left)?;
    let observation = builder(session.recorder)?.observe(seen).map_err(refused)?;
    let (answer, part) = (
        json!(observation),
        EpisodePart::Observation(observation.clone()),
    );
    let kept = store_part(session, &part);
    record_store_error(session.recorder, kept);
    Ok(answer)
}

/// Returns the trace so far.
pub(crate) fn trace(session: &mut Session<'_, '_>) -> Result<Value, ErrorBody> {
    let builder = builder(session.recorder)?;
    builder.trace().map(|trace| json!(trace)).map_err(refused)
}

/// Updates the trace after a client's request that replaced the guest or stored a snapshot.
pub(crate) fn after(
    session: &mut Session<'_, '_>,
    request: &LiveRequest,
    answer: &Value,
) -> Result<(), ErrorBody> {
    match request {
        LiveRequest::Reset {} | LiveRequest::Restore { .. } => begin(session),
        LiveRequest::Snapshot(_) => {
            let Ok(made) = serde_json::from_value::<SandboxSnapshot>(answer.clone()) else {
                return Ok(());
            };
            let input = SnapshotInput {
                id: made.id,
                created_at: made.created_at,
                // The snapshot's bytes are in the state directory, not in the bundle.
                semantics: SnapshotSemantics::ReplayableRuntimeState,
                metadata: serde_json::Map::from_iter([
                    ("name".to_owned(), made.name.into()),
                    ("stateSha256".to_owned(), json!(made.digest)),
                ]),
                artifact_refs: Vec::new(),
            };
            let builder = builder(session.recorder)?;
            let snapshot = builder.snapshot(input).map_err(refused)?.clone();
            let kept = store_part(session, &EpisodePart::Snapshot(snapshot));
            record_store_error(session.recorder, kept);
            Ok(())
        }
        LiveRequest::Exec(_)
        | LiveRequest::Command { .. }
        | LiveRequest::Observe { .. }
        | LiveRequest::Step { .. }
        | LiveRequest::Trace {}
        | LiveRequest::SyncIn(_)
        | LiveRequest::SyncOut(_)
        | LiveRequest::Snapshots {}
        | LiveRequest::Mail { .. }
        | LiveRequest::Preview(_)
        | LiveRequest::Events(_)
        | LiveRequest::Status {}
        | LiveRequest::ExtendTtl { .. }
        | LiveRequest::Close { .. } => Ok(()),
    }
}

/// Closes the episode when its sandbox is no longer held, and adds the trace to the evidence for
/// the bundle.
pub(crate) fn close(recorder: &mut Recorder<'_>) {
    let Some(builder) = recorder.episode.take() else {
        return;
    };
    match builder.close() {
        Ok(closed) => {
            recorder
                .evidence
                .observations
                .extend(closed.observations.iter().map(|seen| json!(seen)));
            recorder.evidence.episode_files = Some(EpisodeFiles {
                trace: closed.trace_file,
                records: closed.records_file,
            });
        }
        Err(error) => recorder
            .evidence
            .notices
            .push(format!("the bundle has no trace of the episode: {error}")),
    }
}
