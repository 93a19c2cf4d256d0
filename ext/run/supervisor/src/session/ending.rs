//! Decides whether the end of a program ends the run.

use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::{Call, ExecutionEnd, Step, Stop};

/// How the agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentEnd {
    /// The run has no agent.
    None,
    /// The agent succeeded; an agent program does so by an exit code that means success.
    Success,
    /// The agent failed or never ran.
    Failure,
    /// The agent failed, but the recipe step that ran it is allowed to fail.
    Tolerated,
}

/// Reason why the work stopped early, if any, and how the agent ended.
pub(crate) type ProgramsEnd = (Option<Stop>, AgentEnd);

/// Returns the reason to stop the run that follows from the end of a program; `None` if the run
/// continues. A program that does not exist is an error of the request, not an outcome of the run.
pub(crate) fn stop_of(
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
        // With a full disk the message itself says what to do.
        let error = match step.result.disk_full {
            true => error,
            false => error.hint(format!("read the output of {program} for the cause")),
        };
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
                "the guest has the programs of the host's /usr; for others, stage a file or mount its directory".to_owned()
            });
            Err(error.hint(hint))
        }
        ExecutionEnd::NotStarted { error } => Err(error.clone()),
        ExecutionEnd::TimedOut => Ok(Some(Stop::Timeout)),
        ExecutionEnd::Cancelled => Ok(Some(Stop::Cancelled)),
        ExecutionEnd::LimitReached { error } => Ok(Some(Stop::Failed(error.clone()))),
        ExecutionEnd::GuestDied { death } => Ok(Some(Stop::Failed(death.attach_to(error(
            format!("did not finish, because the sandbox was lost: {death}"),
        ))))),
    }
}
