//! Asking the supervisor of a run to end it.

use super::socket::address;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CancelAnswer, CancelWish, ErrorBody, ErrorCode, RunCancellation, RunStatus, schema_id,
};
use wp_codebox_runtime::{FoundRun, RegistryError, StateDir, status};

/// How long a supervisor may take to answer: longer than its own patience with others.
const PATIENCE: Duration = Duration::from_secs(10);
/// One attempt: also longer than that, since silent clients may be before us.
const ATTEMPT: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Characters of each text of a wish.
const WISH: usize = 250;

/// Cancels, unless the run ended, by itself or with its supervisor. Doing it again changes nothing.
pub(crate) fn cancel(
    state: &StateDir,
    run: &FoundRun,
    wish: &CancelWish,
) -> Result<RunCancellation, ErrorBody> {
    let frame = frame(wish);
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
    let mut asked = false;
    loop {
        // Settles it when its supervisor is dead.
        if now()? == RunStatus::Ended {
            // A wish may be heard although its answer came too late.
            let answer = if asked {
                CancelAnswer::Requested
            } else {
                CancelAnswer::AlreadyEnded
            };
            return answered(answer, RunStatus::Ended);
        }
        match ask(run, &frame, &mut asked) {
            Ok(answer) if answer.run_id == run.run_id => {
                return answered(CancelAnswer::Requested, now()?);
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

/// A cancel frame that says who and why. The texts are short, as frames here are.
fn frame(wish: &CancelWish) -> Vec<u8> {
    let short = |text: &Option<String>| {
        let text = text.as_ref()?;
        Some(text.chars().take(WISH).collect::<String>())
    };
    let (actor, reason) = (short(&wish.actor), short(&wish.reason));
    let mut frame = serde_json::json!({"type": "cancel"});
    for (name, text) in [("actor", actor), ("reason", reason)] {
        if let Some(text) = text {
            frame[name] = text.into();
        }
    }
    format!("{frame}\n").into_bytes()
}

/// `asked` is set once the wish is on its way.
fn ask(run: &FoundRun, frame: &[u8], asked: &mut bool) -> io::Result<RunCancellation> {
    let (_directory, path) = address(&run.path)?;
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ATTEMPT))?;
    stream.set_write_timeout(Some(ATTEMPT))?;
    stream.write_all(frame)?;
    *asked = true;
    let mut line = String::new();
    BufReader::new(stream.take(64 * 1024)).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::from)
}
