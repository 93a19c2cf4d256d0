//! Runs in supervisors of their own, several at once, and one hand that stops all of them.
//!
//! A caller here is a thread: it starts a supervisor, reads its frames and keeps nothing but the
//! last.

use crate::signals::{on_end, unheard_signals};
use crate::supervisor::{self, Followed, unreachable};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wp_codebox_contracts::{ErrorBody, Frame, RunId, RunRequest, RunResult};
use wp_codebox_control::{RunClient, SupervisorFrame, write_frame};

/// Every run of this process that is alive.
#[derive(Debug, Default)]
pub(super) struct Supervisors {
    stopped: AtomicBool,
    alive: Mutex<BTreeMap<RunId, UnixStream>>,
}

impl Supervisors {
    /// None yet. From here on Ctrl-C, SIGTERM and SIGHUP end the runs, not this process: the
    /// user gets what was salvaged.
    pub(super) fn begin() -> Result<Arc<Self>, ErrorBody> {
        let supervisors = Arc::new(Self::default());
        let reached = Arc::clone(&supervisors);
        on_end(move || reached.stop()).map_err(|e| unheard_signals(&e))?;
        Ok(supervisors)
    }

    /// Whether everything is to end.
    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Ends everything: runs that are alive are cancelled, and none that starts later goes on.
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for stream in self.alive().values() {
            // One that is gone needs no cancelling.
            let _ = write_frame(stream, &Frame::Cancel);
        }
    }

    fn alive(&self) -> MutexGuard<'_, BTreeMap<RunId, UnixStream>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a request to its last frame. `accepted` hears once the run has its directory.
    pub(super) fn run(
        &self,
        request: &RunRequest,
        accepted: impl FnOnce(),
    ) -> Result<RunResult, ErrorBody> {
        let (client, mut child) = supervisor::open_next(request)?;
        let answer = self.converse(&client, request, accepted);
        self.alive().remove(&request.run_id);
        // Its last frame comes after everything was settled: it is about to be gone.
        let _ = child.wait();
        answer
    }

    fn converse(
        &self,
        client: &RunClient,
        request: &RunRequest,
        accepted: impl FnOnce(),
    ) -> Result<RunResult, ErrorBody> {
        let alive = client.sender().map_err(|e| unreachable(&e))?;
        // Either the stop saw it among those alive, or it is seen here.
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
            ControlFlow::<Infallible>::Continue(())
        });
        match followed? {
            Followed::Ended(result) => Ok(*result),
            Followed::Left(never) => match never {},
        }
    }
}
