//! Runs one step of a recipe: its command, the repetitions of the command within limits, and the
//! result.

use super::evidence::{Evidence, Failure, Kind, PROBE, Ran};
use crate::session::{AgentStep, Commanded, Session};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CommandCall, CommandStatus, ErrorBody, ErrorCode, WorkflowStep};
use wp_codebox_policy::{Handler, descriptor};
use wp_codebox_recipe::{Continuation, Executed, Loop, Next};
use wp_codebox_runtime::{ExecutionEnd, Stop, now_rfc3339};

/// How a step ended.
#[derive(Debug)]
pub(super) enum Done {
    /// The step succeeded.
    Well,
    /// The step failed; the guest lives. If the step may not fail, this ends the run.
    Failed(Stop),
    /// The run must end, e.g. because the guest is dead or the time limit of the run passed.
    Over(Stop),
}

/// One execution of the step's command.
struct Attempt {
    /// The command that ran; `None` when it could not be started.
    commanded: Option<Commanded>,
    end: End,
}

enum End {
    Well,
    Failed(Kind, String),
    /// The agent of the step stopped before its work was done; the guest lives.
    Short(Stop, String),
    Over(Stop, String),
}

/// Runs a step, with its repetitions, to its end. An error means that the run cannot continue, e.g.
/// because an event could not be recorded.
pub(super) fn run(
    session: &mut Session<'_, '_>,
    step: &WorkflowStep,
    evidence: &mut Evidence,
) -> Result<Done, ErrorBody> {
    let (began, started_at) = (Instant::now(), now_rfc3339());
    let until = step
        .timeout_ms
        .and_then(|ms| began.checked_add(Duration::from_millis(ms)));
    let continuation = continuation(step)?;
    let mut looping = continuation.as_ref().map(Loop::new);
    let mut args = step.call.args.clone();
    let attempt = loop {
        let first = session.recorder.evidence.executions.len();
        let mut attempt = execute(session, step, &args, until)?;
        if let Some(commanded) = &attempt.commanded {
            evidence.ran(&Ran {
                step,
                args: &args,
                commanded,
                executions: &session.recorder.evidence.executions[first..],
            });
        }
        let Some(looping) = &mut looping else {
            break attempt;
        };
        match looping.after(&args, executed(&attempt)) {
            Next::Completed => break attempt,
            Next::Again(next) => args = next,
            Next::Failed(failure) => {
                if let End::Well = attempt.end {
                    let what = format!("could not continue: {failure} [{}]", failure.code());
                    attempt.end = End::Failed(Kind::Error, what);
                }
                break attempt;
            }
        }
    };
    let loop_evidence = looping.as_ref().map(Loop::evidence);
    if let Some(document) = &loop_evidence {
        evidence.continued(document);
    }
    let (kind, what, short, over) = match attempt.end {
        End::Well => {
            evidence.settled(step, None, attempt.commanded.as_ref());
            return Ok(Done::Well);
        }
        End::Failed(kind, what) => (kind, what, None, None),
        End::Short(stop, what) => (Kind::Error, what, Some(stop), None),
        End::Over(stop, what) => (Kind::Error, what, None, Some(stop)),
    };
    let error = failed(step, &what);
    evidence.failed(Failure {
        step,
        kind,
        error: &error,
        started_at,
        duration: began.elapsed(),
        continuation: loop_evidence,
    });
    evidence.settled(step, Some(&error), attempt.commanded.as_ref());
    Ok(match over {
        Some(stop) => Done::Over(stop),
        None => Done::Failed(short.unwrap_or(Stop::Failed(error))),
    })
}

fn continuation(step: &WorkflowStep) -> Result<Option<Continuation>, ErrorBody> {
    let Some(value) = &step.continuation else {
        return Ok(None);
    };
    serde_json::from_value(value.clone())
        .map(Some)
        .map_err(|e| {
            let message = format!("the continuation of a step cannot be read: {e}");
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })
}

/// Converts an execution to the input of [`Loop::after`], which decides whether the command is
/// repeated.
fn executed(attempt: &Attempt) -> Executed<'_> {
    let Some(commanded) = &attempt.commanded else {
        return Executed::Error;
    };
    let exit_code = match (&attempt.end, commanded.step.exit_code()) {
        (End::Well, Some(code)) => code,
        // The program exited with 0, but the step failed, so the loop sees a failure.
        (End::Failed(..), Some(0)) => 1,
        (End::Failed(..), Some(code)) => code,
        (End::Short(..) | End::Over(..), _) | (_, None) => return Executed::Error,
    };
    match &commanded.result.json {
        Some(result) => Executed::Answered { exit_code, result },
        None => Executed::Ended { exit_code },
    }
}

fn execute(
    session: &mut Session<'_, '_>,
    step: &WorkflowStep,
    args: &[String],
    until: Option<Instant>,
) -> Result<Attempt, ErrorBody> {
    let timeout = until.map_or(Duration::MAX, |at| {
        at.saturating_duration_since(Instant::now())
    });
    if timeout.is_zero() {
        return Ok(Attempt {
            commanded: None,
            end: timed_out(step),
        });
    }
    let call = CommandCall {
        command: step.call.command.clone(),
        args: args.to_vec(),
    };
    let ran = match runs_agent(step) {
        true => session.agent_step(&call, timeout).map(|ran| {
            let end = agent_ended(step, &ran);
            (ran.commanded, end)
        }),
        false => session.command(&call, timeout).map(|commanded| {
            let end = ended(step, &commanded);
            (commanded, end)
        }),
    };
    match ran {
        Ok((commanded, end)) => Ok(Attempt {
            end,
            commanded: Some(commanded),
        }),
        Err(error) if error.code == ErrorCode::ServiceFailed => Ok(Attempt {
            commanded: None,
            end: End::Over(
                Stop::Failed(error.clone()),
                format!("could not be run: {}", error.message),
            ),
        }),
        // The guest is broken or the run cannot record events, so the run cannot continue.
        Err(error) if matches!(error.code, ErrorCode::RunFailed | ErrorCode::Internal) => {
            Err(error)
        }
        Err(error) => Ok(Attempt {
            commanded: None,
            end: End::Failed(
                Kind::Error,
                format!("could not be run: {} [{}]", error.message, error.code),
            ),
        }),
    }
}

/// Returns whether the step runs the agent of the run.
pub(super) fn runs_agent(step: &WorkflowStep) -> bool {
    descriptor(&step.call.command).is_some_and(|found| found.handler == Handler::Agent)
}

/// Returns how a step ended that ran the agent.
fn agent_ended(step: &WorkflowStep, ran: &AgentStep) -> End {
    let result = &ran.commanded.step.result;
    let reason = |error: &ErrorBody| format!("did not succeed: {} [{}]", error.message, error.code);
    // The end of the guest and the time limit of the step take precedence.
    let is_over = result.stopped || !matches!(result.end, ExecutionEnd::Exited { .. });
    match ran.stop.as_ref().filter(|_| !is_over) {
        None => ended(step, &ran.commanded),
        Some(stop @ (Stop::Blocked(error) | Stop::Partial(error))) => {
            End::Short(stop.clone(), reason(error))
        }
        Some(Stop::Failed(error) | Stop::Uncaptured(error)) => {
            End::Failed(Kind::Error, reason(error))
        }
        Some(Stop::Timeout) => End::Over(
            Stop::Timeout,
            "was stopped, because the time limit of the run passed".to_owned(),
        ),
        Some(Stop::Cancelled) => End::Over(
            Stop::Cancelled,
            "was stopped, because the run was cancelled".to_owned(),
        ),
    }
}

fn timed_out(step: &WorkflowStep) -> End {
    let most = step.timeout_ms.unwrap_or_default();
    End::Failed(
        Kind::Timeout,
        format!("took longer than its limit of {most} ms"),
    )
}

/// Decides from the end of the step's program whether the step succeeded, failed, or ends the run.
fn ended(step: &WorkflowStep, commanded: &Commanded) -> End {
    let error = |what: String| End::Failed(Kind::Error, what);
    let result = &commanded.step.result;
    let disk = if result.disk_full {
        "; the guest's disk was full: raise the disk limit"
    } else {
        ""
    };
    if let Some(error) = &commanded.result.error
        && error.code == ErrorCode::ServiceFailed
    {
        let what = format!("did not succeed: {}", error.message);
        return End::Over(Stop::Failed(error.clone()), what);
    }
    if result.stopped {
        return timed_out(step);
    }
    match &result.end {
        ExecutionEnd::Exited { code: 0 } => answered(step, commanded),
        // An error that the program itself reports takes precedence over its exit status.
        ExecutionEnd::Exited { .. } if reported_error(commanded).is_some() => {
            answered(step, commanded)
        }
        ExecutionEnd::Exited { code } => error(format!("exited with {code}{disk}")),
        ExecutionEnd::Signalled { signal } => error(format!("was ended by signal {signal}{disk}")),
        ExecutionEnd::NotStarted { error: why } => {
            error(format!("could not be started: {}", why.message))
        }
        ExecutionEnd::TimedOut => End::Over(
            Stop::Timeout,
            "was killed, because the time limit of the run passed".to_owned(),
        ),
        ExecutionEnd::Cancelled => End::Over(
            Stop::Cancelled,
            "was killed, because the run was cancelled".to_owned(),
        ),
        ExecutionEnd::LimitReached { error } => {
            End::Over(Stop::Failed(error.clone()), error.message.clone())
        }
        ExecutionEnd::GuestDied { death } => {
            let what = format!("did not finish, because the sandbox was lost: {death}");
            End::Over(Stop::Failed(death.attach_to(failed(step, &what))), what)
        }
    }
}

/// Returns the error that a command's program reported itself, if any.
fn reported_error(commanded: &Commanded) -> Option<&ErrorBody> {
    let error = commanded.result.error.as_ref()?;
    let told = matches!(
        error.code,
        ErrorCode::CommandFailed | ErrorCode::InputInvalid | ErrorCode::CommandUnsupported
    );
    told.then_some(error)
}

/// Decides whether a command succeeded whose program exited with 0 or reported an error itself: it
/// must report no error and print what its step expects.
fn answered(step: &WorkflowStep, commanded: &Commanded) -> End {
    let result = &commanded.result;
    match (&result.status, &result.json) {
        (CommandStatus::Error, _) => {
            let why = result.error.as_ref().map_or("", |e| e.message.as_str());
            End::Failed(Kind::Error, format!("reported a failure: {why}"))
        }
        (CommandStatus::Ok, None) if step.expect_json => {
            End::Failed(Kind::Error, "printed no JSON".to_owned())
        }
        (CommandStatus::Ok, _) => End::Well,
    }
}

/// Returns the error of a run that fails because of this step. `what` is the predicate of the
/// message, e.g. `exited with 1`; the step is its subject.
pub(super) fn failed(step: &WorkflowStep, what: &str) -> ErrorBody {
    let (reason, subject) = if step.phase == PROBE {
        let name = step.name.as_deref().unwrap_or("without a name");
        ("recipe-probe-failed", format!("probe {name}"))
    } else {
        let subject = match &step.name {
            Some(name) => format!("{} {name}", step.phase),
            None => format!("step {}[{}]", step.phase, step.index),
        };
        ("verify-step-failed", subject)
    };
    ErrorBody::new(
        ErrorCode::StepFailed,
        format!("{subject} ({}) {what}", step.call.command),
    )
    .hint("read the output of the step in \"executions\" of the result; set \"allowFailure\" for a step that may fail")
    .with("reason", reason)
    .with("phase", step.phase.as_str())
    .with("index", step.index)
}
