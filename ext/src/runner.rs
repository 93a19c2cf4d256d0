//! How a request reaches a runner: one is spawned, or, where the host set
//! `wp_codebox.runner_socket`, a service starts one for each connection.
//!
//! The second way exists for hosts whose service manager ends everything that php-fpm
//! started together with php-fpm. Neither way falls back to the other: which user, limits
//! and control group a run gets is the host's choice.

use crate::guard::Failure;
use crate::ini::Settings;
use crate::interrupt::{TICK, tick};
use crate::socket;
use crate::spawn::{Child, Ended, Wiring, spawn};
use ext_php_rs::zend::BailoutGuard;
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunId};
use wp_codebox_control::{Channel, wait_for};

/// How long the runner may take to come up and to accept the request.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Opens a conversation with a runner of its own for this run.
pub(crate) fn reach(
    settings: &Settings,
    run_id: &RunId,
    deadline: Deadline,
) -> Result<BailoutGuard<Channel>, Failure> {
    if settings.runner_socket.is_empty() {
        spawned(&settings.runner, run_id, deadline)
    } else {
        let stream = socket::connect(settings)?;
        Ok(BailoutGuard::new(Channel::of_frames(stream)))
    }
}

/// Both ends are released even when a signal handler or the time limit bails out.
fn spawned(
    runner: &str,
    run_id: &RunId,
    deadline: Deadline,
) -> Result<BailoutGuard<Channel>, Failure> {
    let (channel, theirs) = Channel::pair()?;
    let channel = BailoutGuard::new(channel);
    let mut child = BailoutGuard::new(spawn(runner, &["spawn"], Wiring::Frames(theirs.as_fd()))?);
    drop(theirs);
    forked(&mut child, run_id, deadline)?;
    Ok(channel)
}

/// Waits for the process that forks the runner. It must exit with 0.
fn forked(child: &mut Child, run_id: &RunId, deadline: Deadline) -> Result<(), Failure> {
    loop {
        let what = match child.try_wait() {
            Some(Ended::Exit(0) | Ended::Reaped) => return Ok(()),
            Some(Ended::Exit(code)) => format!("exited with status {code} before it started"),
            Some(Ended::Killed(signal)) => {
                format!("was killed by signal {signal} before it started")
            }
            None => {
                deadline.check()?;
                match child.ended_fd() {
                    Some(fd) => wait_for(fd, PollFlags::IN, TICK),
                    None => std::thread::sleep(Duration::from_millis(2)),
                }
                tick()?;
                continue;
            }
        };
        return Err(unavailable(run_id, &what).into());
    }
}

/// The runner of a run is not there; `what` completes the sentence.
pub(crate) fn unavailable(run_id: &RunId, what: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunnerUnavailable,
        format!("the runner of {run_id} {what}; run `wp-codebox doctor`"),
    )
    .with("run_id", run_id.as_str())
}

/// Until when a runner must have accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// [`HANDSHAKE`] from now.
    pub(crate) fn of_handshake() -> Self {
        Self(Instant::now() + HANDSHAKE)
    }

    /// Fails when it has passed.
    pub(crate) fn check(self) -> Result<(), Failure> {
        if Instant::now() < self.0 {
            return Ok(());
        }
        Err(ErrorBody::new(
            ErrorCode::RunnerUnavailable,
            format!(
                "the runner did not answer within {} seconds; run `wp-codebox doctor`",
                HANDSHAKE.as_secs()
            ),
        )
        .into())
    }
}
