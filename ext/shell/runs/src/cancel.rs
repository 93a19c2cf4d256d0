//! Cancels a run through its supervisor.

use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CancelDetails, CancelEffect, CodedError, ErrorBody, ErrorCode, RunCancellation, RunStatus,
    schema_id,
};
use wp_codebox_control::CancelRequest;
use wp_codebox_runtime::{FoundRun, RegistryError, StateDir, status};

/// Time limit for all attempts together: longer than clients that connected earlier and send
/// nothing can keep the supervisor busy.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of one attempt: longer than the time after which the supervisor drops a silent
/// client. The supervisor may have to drop one such client before it serves this process.
const ATTEMPT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Cancels a run. Has no effect if the run has ended or was cancelled before.
pub fn cancel_run(
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
    let deadline = Instant::now() + TOTAL_TIMEOUT;
    loop {
        // Reading the status also writes the final record of a run whose supervisor died.
        if now()? == RunStatus::Ended {
            // The supervisor may have received the request although its reply came too late.
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
            // Try again until the deadline: the supervisor may not listen yet, or may be exiting.
            Ok(_) | Err(_) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
            Ok(_) => return Err(silent(run, "the reply came from another run's supervisor")),
            Err(error) => return Err(silent(run, &error.to_string())),
        }
    }
}

fn silent(run: &FoundRun, why: &str) -> ErrorBody {
    let message = format!(
        "the supervisor of {} is running but does not answer the cancel request: {why}",
        run.run_id
    );
    ErrorBody::new(ErrorCode::RunnerUnavailable, message)
        .hint("try again, or end the supervisor process of this run, which has the file lease in the run's directory locked (see lslocks)")
}
