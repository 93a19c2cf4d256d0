//! Connects to a supervisor: spawns one, or connects to a service that starts one per connection if the
//! host set `wp_codebox.runner_socket`.
//!
//! The service exists for hosts whose service manager, when it stops php-fpm, also ends every
//! process that php-fpm started. If the configured way fails, the extension does not try the other
//! one: the way decides which user, limits and cgroup a run gets, so only the host may choose it.

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

/// Deadline for the supervisor to start and to accept the request.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Starts a supervisor for this run and opens the frame socket to it.
pub(crate) fn connect_runner(
    settings: &Settings,
    run_id: &RunId,
    deadline: Deadline,
) -> Result<BailoutGuard<Channel>, Failure> {
    if settings.runner_socket.is_empty() {
        spawned(
            &settings.runner,
            &["detach"],
            &|what| unavailable(run_id, what),
            deadline,
        )
    } else {
        let stream = socket::connect(settings)?;
        Ok(BailoutGuard::new(Channel::of_frames(stream)))
    }
}

/// Spawns a process of the supervisor that outlives this one, and opens the frame socket to it.
/// `arguments` start with `detach`. `unavailable` makes an error from the end of a sentence about
/// the process, such as `was killed`. Both socket ends are released even when a signal handler or
/// the time limit bails out.
pub(crate) fn spawned(
    runner: &str,
    arguments: &[&str],
    unavailable: &dyn Fn(&str) -> ErrorBody,
    deadline: Deadline,
) -> Result<BailoutGuard<Channel>, Failure> {
    let (channel, theirs) = Channel::pair()?;
    let channel = BailoutGuard::new(channel);
    let mut child = BailoutGuard::new(spawn(runner, arguments, Wiring::Frames(theirs.as_fd()))?);
    drop(theirs);
    forked(&mut child, unavailable, deadline)?;
    Ok(channel)
}

/// Waits for the intermediate process, which forks the supervisor and must then exit with 0.
fn forked(
    child: &mut Child,
    unavailable: &dyn Fn(&str) -> ErrorBody,
    deadline: Deadline,
) -> Result<(), Failure> {
    loop {
        let what = match child.try_wait() {
            Some(Ended::Exit(0) | Ended::Reaped) => return Ok(()),
            Some(Ended::Exit(code)) => {
                format!("did not start: the process that starts it exited with status {code}")
            }
            Some(Ended::Killed(signal)) => {
                format!("did not start: the process that starts it was killed by signal {signal}")
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
        return Err(unavailable(&what).into());
    }
}

/// Returns the error for a supervisor that cannot be reached; `what` completes the sentence "the supervisor
/// of RUN …".
pub(crate) fn unavailable(run_id: &RunId, what: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunnerUnavailable,
        format!("the runner (wp-codebox) of {run_id} {what}; run `wp-codebox doctor`"),
    )
    .with("run_id", run_id.as_str())
}

/// Time by which a supervisor must have accepted the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline [`HANDSHAKE`] from now.
    pub(crate) fn of_handshake() -> Self {
        Self(Instant::now() + HANDSHAKE)
    }

    /// Fails when the deadline has passed.
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
