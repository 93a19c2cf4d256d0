//! Asking the supervisor of a run to end it.

use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CancelDetails, CancelEffect, ErrorBody, ErrorCode, RunCancellation, RunStatus, schema_id,
};
use wp_codebox_control::CancelRequest;
use wp_codebox_runtime::{FoundRun, RegistryError, StateDir, status};

/// How long a supervisor may take to answer: longer than its own patience with others.
const PATIENCE: Duration = Duration::from_secs(10);
/// One attempt: also longer than that, since silent clients may be before us.
const ATTEMPT: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Cancels, unless the run ended, by itself or with its supervisor. Doing it again changes nothing.
pub(crate) fn cancel(
    state: &StateDir,
    run: &FoundRun,
    wish: &CancelDetails,
) -> Result<RunCancellation, ErrorBody> {
    let mut request = CancelRequest::new(wish);
    let answered = |answer, status| {
        Ok(RunCancellation {
            schema: schema_id::RUN_CANCELLATION.to_owned(),
            run_id: run.run_id.clone(),
            answer,
            status,
        })
    };
    let now = || status(state, run).map_err(|e: RegistryError| e.body());
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Settles it when its supervisor is dead.
        if now()? == RunStatus::Ended {
            // A wish may be heard although its answer came too late.
            let answer = if request.was_sent() {
                CancelEffect::Requested
            } else {
                CancelEffect::AlreadyEnded
            };
            return answered(answer, RunStatus::Ended);
        }
        match request.ask(&run.path, ATTEMPT) {
            Ok(answer) if answer.run_id == run.run_id => {
                return answered(CancelEffect::Requested, now()?);
            }
            // It is not listening yet, or is just leaving.
            Ok(_) | Err(_) if Instant::now() < deadline => std::thread::sleep(LOOK_AGAIN),
            Ok(_) => return Err(silent(run, "another run answers")),
            Err(error) => return Err(silent(run, &error.to_string())),
        }
    }
}

fn silent(run: &FoundRun, why: &str) -> ErrorBody {
    let message = format!(
        "the supervisor of {} lives but does not answer ({why})",
        run.run_id
    );
    ErrorBody::new(ErrorCode::RunnerUnavailable, message)
        .hint("try again, or end the process that holds the run's lease")
}
