//! Runs several supervisors, one for each run, at the same time, and can cancel all of them.
//!
//! Each run has a thread that starts a supervisor and reads its frames (messages of the run's
//! progress and result); only the last frame is stored.

use crate::signals::{on_end, unheard_signals};
use crate::supervisor::{self, Followed, unreachable};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wp_codebox_contracts::{ErrorBody, Frame, LifecycleEvent, RunId, RunRequest, RunResult};
use wp_codebox_control::{RunClient, SupervisorFrame, write_frame};

/// All running supervisors of this process.
#[derive(Debug, Default)]
pub struct Supervisors {
    stopped: AtomicBool,
    alive: Mutex<BTreeMap<RunId, UnixStream>>,
}

impl Supervisors {
    /// Creates an empty set. From here on Ctrl-C, SIGTERM and SIGHUP cancel the runs instead of
    /// ending this process, so that the captured work is saved.
    pub fn begin() -> Result<Arc<Self>, ErrorBody> {
        let supervisors = Arc::new(Self::default());
        let reached = Arc::clone(&supervisors);
        on_end(move || reached.stop()).map_err(|e| unheard_signals(&e))?;
        Ok(supervisors)
    }

    /// Returns whether a stop was requested.
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Cancels all running runs; a run that starts later is cancelled at once.
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for stream in self.alive().values() {
            // Ignore a failed send: then the supervisor has exited, and there is nothing to cancel.
            let _ = write_frame(stream, &Frame::Cancel);
        }
    }

    fn alive(&self) -> MutexGuard<'_, BTreeMap<RunId, UnixStream>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a request to its end and returns the result. Calls `accepted` when the supervisor has
    /// created the directory of the run.
    pub fn run(
        &self,
        request: &RunRequest,
        accepted: impl FnOnce(),
    ) -> Result<RunResult, ErrorBody> {
        self.run_seeing(request, accepted, |_| {})
    }

    /// Does the same as [`Self::run`], and calls `seen` with each event of the run.
    pub fn run_seeing(
        &self,
        request: &RunRequest,
        accepted: impl FnOnce(),
        seen: impl FnMut(&LifecycleEvent),
    ) -> Result<RunResult, ErrorBody> {
        let (client, child) = supervisor::open_next(request)?;
        let answer = self.converse(&client, request, accepted, seen);
        self.alive().remove(&request.run_id);
        // The supervisor sends the last frame after it has recorded the end of the run, so it exits
        // soon.
        supervisor::wait_for_exit(client, child);
        answer
    }

    fn converse(
        &self,
        client: &RunClient,
        request: &RunRequest,
        accepted: impl FnOnce(),
        mut seen: impl FnMut(&LifecycleEvent),
    ) -> Result<RunResult, ErrorBody> {
        let alive = client.sender().map_err(|e| unreachable(&e))?;
        // Insert before checking: a concurrent `stop` then either finds this entry, or the check
        // below sees that it was called.
        self.alive().insert(request.run_id.clone(), alive);
        if self.stopped() {
            let _ = client.send(&Frame::Cancel);
        }
        let mut accepted = Some(accepted);
        let followed = supervisor::follow(client, request, |frame| {
            if matches!(frame, SupervisorFrame::Accepted)
                && let Some(accepted) = accepted.take()
            {
                accepted();
            }
            if let SupervisorFrame::Event { event, .. } = frame {
                seen(event);
            }
            ControlFlow::<Infallible>::Continue(())
        });
        match followed? {
            Followed::Ended(result) => Ok(*result),
            Followed::Left(never) => match never {},
        }
    }
}
