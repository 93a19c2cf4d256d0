//! A held sandbox: a guest kept open after the commands of its run. It serves requests from the
//! control socket until a client closes it, it is idle for too long, or its lifetime ends.
//!
//! One thread owns the guest and handles the requests of the [`RequestQueue`] in order. Programs of
//! clients run concurrently: the control thread copies their streams (see `control::exec`), and
//! this thread starts, ends and records them. The loop in this module enforces the lifetime; no
//! external process has to end the sandbox.

mod dispatch;
mod lease;
mod programs;
mod states;
mod streams;

pub(crate) use states::{Change, States};
pub(crate) use streams::resize;

use super::episode;
use crate::journal::queue::{QueuedRequest, RequestQueue};
use crate::session::{PreviewEnd, Session};
use dispatch::Beside;
use lease::{Lease, Use};
use programs::Programs;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestDeath, Hold, HoldEnd, LiveRequest};
use wp_codebox_runtime::{ExecutionEnd, RuntimeState, Stop};

/// Time limit for programs and their connections to finish when the sandbox ends.
const SHUTDOWN_TIME: Duration = Duration::from_secs(3);

/// Serves requests until the sandbox ends. The run succeeds if a client closed the sandbox, or its
/// lifetime or idle time ended.
pub(crate) fn serve(
    session: &mut Session<'_, '_>,
    hold: &Hold,
    queue: &RequestQueue,
    states: &mut States,
) -> Result<Option<Stop>, ErrorBody> {
    let mut held = HeldSandbox::open(session, hold, queue, states)?;
    // Opened before the sandbox is reported as ready: a client that waits for that state also
    // expects the preview.
    let unable = held.open_preview(session, hold)?;
    let end = match &unable {
        Some(_) => Ok((HoldEnd::Closed, None)),
        // No `?` here: the sandbox must be closed whatever fails from here on.
        None => held.ready(session).and_then(|()| held.run(session)),
    };
    let closed = held.close(session, &end);
    episode::close(session.recorder);
    let (end, death) = end?;
    closed?;
    Ok(unable.or_else(|| stop_of(end, death)))
}

/// Why the sandbox is no longer held, and, if that is because the guest ended, how the guest ended.
type End = (HoldEnd, Option<ExecutionEnd>);

fn stop_of(end: HoldEnd, death: Option<ExecutionEnd>) -> Option<Stop> {
    match (end, death) {
        (HoldEnd::Closed | HoldEnd::Expired | HoldEnd::Idle, _) => None,
        (HoldEnd::Cancelled, _) | (HoldEnd::GuestDied, Some(ExecutionEnd::Cancelled)) => {
            Some(Stop::Cancelled)
        }
        (HoldEnd::GuestDied, Some(ExecutionEnd::TimedOut)) => Some(Stop::Timeout),
        (HoldEnd::GuestDied, Some(ExecutionEnd::LimitReached { error })) => {
            Some(Stop::Failed(error))
        }
        (HoldEnd::GuestDied, death) => {
            let death = death_of(death.as_ref());
            Some(Stop::Failed(death.attach_to(ErrorBody::new(
                ErrorCode::RunFailed,
                format!("the sandbox was lost while it was open for clients: {death}"),
            ))))
        }
    }
}

fn death_of(end: Option<&ExecutionEnd>) -> GuestDeath {
    match end {
        Some(ExecutionEnd::GuestDied { death }) => death.clone(),
        Some(_) | None => GuestDeath::default(),
    }
}

/// A sandbox while it is kept open for clients.
struct HeldSandbox<'d> {
    queue: &'d RequestQueue,
    states: &'d mut States,
    lease: Lease,
    programs: Programs,
    /// Actor that asked to close the sandbox, and the reason that the actor gave.
    closing: Option<(String, String)>,
}

impl<'d> HeldSandbox<'d> {
    fn open(
        session: &mut Session<'_, '_>,
        hold: &Hold,
        queue: &'d RequestQueue,
        states: &'d mut States,
    ) -> Result<Self, ErrorBody> {
        let now = Instant::now();
        let lease = Lease::begin(hold, (now, SystemTime::now()));
        session.stay(Duration::from_millis(hold.max_ttl_ms));
        let mut held = Self {
            queue,
            states,
            lease,
            programs: Programs::default(),
            closing: None,
        };
        held.states.set("isolation", json!(session.isolation.level));
        let policy = &session.context.prepared.policy;
        held.states.set("network", json!(policy.network));
        held.states.set("idleMs", json!(hold.idle_ms));
        episode::begin(session)?;
        held.look(session);
        Ok(held)
    }

    fn ready(&mut self, session: &mut Session<'_, '_>) -> Result<(), ErrorBody> {
        session.recorder.opened();
        let change = Change::by_supervisor(RuntimeState::Ready, "the guest is ready");
        self.states.change(session.recorder, self.queue, change)
    }

    /// Opens the preview that the run request asks for. If that fails, returns the reason to stop
    /// the run; the sandbox is then not held for clients.
    fn open_preview(
        &mut self,
        session: &mut Session<'_, '_>,
        hold: &Hold,
    ) -> Result<Option<Stop>, ErrorBody> {
        let bell = self.queue.wake().try_clone_to_owned();
        session.ring_for_visitors(bell.map_err(|e| {
            let message = format!(
                "the sandbox cannot be told about requests of visitors to its preview: {e}"
            );
            ErrorBody::new(ErrorCode::Internal, message)
        })?);
        let Some(preview) = &hold.preview else {
            return Ok(None);
        };
        let stop = session.open_requested_preview(preview, self.lease.expires)?;
        if stop.is_some() {
            let why = "its preview cannot be opened".to_owned();
            self.closing = Some((states::SUPERVISOR.to_owned(), why));
        }
        self.look(session);
        Ok(stop)
    }

    /// Updates the members of the status document that can change.
    fn look(&mut self, session: &Session<'_, '_>) {
        let idle = match self.used() {
            Use::Nobody => json!(self.lease.used_at()),
            Use::Somebody => Value::Null,
        };
        for (name, value) in [
            ("expiresAt", json!(self.lease.expires_at())),
            ("maxExpiresAt", json!(self.lease.max_expires_at())),
            ("idleSince", idle),
            ("executions", self.programs.listed(session.recorder)),
            ("preview", session.preview_shown()),
        ] {
            self.states.set(name, value);
        }
        self.states.show(self.queue);
    }

    fn used(&self) -> Use {
        if self.programs.is_empty() {
            Use::Nobody
        } else {
            Use::Somebody
        }
    }

    fn run(&mut self, session: &mut Session<'_, '_>) -> Result<End, ErrorBody> {
        loop {
            if let Some(end) = self.over(session) {
                // A request to extend the lifetime still counts if it was queued while this thread
                // was busy.
                if end.0 == HoldEnd::Expired
                    && let Some(queued) = self.queue.take_extension()
                {
                    self.serve_one(session, queued)?;
                    continue;
                }
                return Ok(end);
            }
            let now = Instant::now();
            self.programs.stop_late(session.guest.runtime.as_mut(), now);
            let next = self.lease.next(self.used());
            let until = self.programs.next_stop().map_or(next, |at| at.min(next));
            if let Some(end) = session.guest.runtime.ended(self.queue.wake(), until) {
                self.programs.ended(end);
                self.lease.touch(Instant::now());
                self.look(session);
            }
            // Checked before each request, because the lifetime may end between two of them.
            while self.over(session).is_none() {
                let Some(queued) = self.queue.take() else {
                    break;
                };
                self.serve_one(session, queued)?;
            }
            if session.serve_visitors()? {
                self.lease.touch(Instant::now());
            }
        }
    }

    fn over(&mut self, session: &mut Session<'_, '_>) -> Option<End> {
        if session.context.cancellation.reason().is_some() {
            return Some((HoldEnd::Cancelled, None));
        }
        if let Some(death) = session.guest.runtime.death() {
            return Some((HoldEnd::GuestDied, Some(death)));
        }
        if self.closing.is_some() {
            return Some((HoldEnd::Closed, None));
        }
        let end = self.lease.over(Instant::now(), self.used())?;
        Some((end, None))
    }

    fn serve_one(
        &mut self,
        session: &mut Session<'_, '_>,
        queued: QueuedRequest,
    ) -> Result<(), ErrorBody> {
        match queued {
            QueuedRequest::Output {
                id, stream, bytes, ..
            } => return session.recorder.output_beside(&id, stream, &bytes),
            QueuedRequest::Drained { id } => self.programs.drained(session.recorder, &id)?,
            QueuedRequest::Signal { id, signal } => {
                let runtime = session.guest.runtime.as_mut();
                self.programs.signal(runtime, &id, signal);
            }
            QueuedRequest::Stop { id } => self.programs.stop(session.guest.runtime.as_mut(), &id),
            QueuedRequest::Launch {
                actor,
                exec,
                answer,
            } => {
                // The client may have disconnected while it waited.
                if !answer.is_closed() {
                    self.used_by(session, &actor)?;
                    let started = self.programs.launch(session, &actor, &exec);
                    let id = started.as_ref().ok().map(|started| started.id.clone());
                    if let (Err(_), Some(id)) = (answer.send(started), id) {
                        self.programs.stop(session.guest.runtime.as_mut(), &id);
                    }
                }
            }
            QueuedRequest::Call {
                actor,
                request,
                answer,
            } => {
                if !answer.is_closed() {
                    let answered = self.call(session, &actor, &request);
                    let redactor = session.context.redactor;
                    let _ = answer.send(match answered {
                        Ok(value) => Ok(redactor.redact_value(value)),
                        Err(error) => Err(redactor.redact_error(error)),
                    });
                }
            }
        }
        self.lease.touch(Instant::now());
        self.look(session);
        Ok(())
    }

    fn used_by(&mut self, session: &mut Session<'_, '_>, actor: &str) -> Result<(), ErrorBody> {
        let change = Change {
            to: RuntimeState::Active,
            actor,
            reason: "a client uses it",
        };
        self.states.change(session.recorder, self.queue, change)
    }

    fn call(
        &mut self,
        session: &mut Session<'_, '_>,
        actor: &str,
        request: &LiveRequest,
    ) -> Result<Value, ErrorBody> {
        match request {
            LiveRequest::Close { reason } => {
                let reason = if reason.is_empty() {
                    "it was closed"
                } else {
                    reason
                };
                self.closing = Some((actor.to_owned(), reason.to_owned()));
                Ok(self.states.document())
            }
            LiveRequest::ExtendTtl { ttl_ms } => {
                self.lease.extend(Instant::now(), *ttl_ms)?;
                session.preview_until(self.lease.expires);
                self.look(session);
                self.states
                    .times(session.recorder, actor, "its lifetime was changed")?;
                Ok(self.states.document())
            }
            other => {
                self.used_by(session, actor)?;
                if dispatch::beside(other) == Beside::No && !self.programs.is_empty() {
                    let names = self.programs.names(session.recorder);
                    let message = format!(
                        "programs are running in the sandbox: {names}; end them or wait until they have ended"
                    );
                    return Err(ErrorBody::new(ErrorCode::SandboxInUse, message)
                        .with("executions", self.programs.listed(session.recorder)));
                }
                let left = self.lease.expires.saturating_duration_since(Instant::now());
                session.recorder.actor = Some(actor.to_owned());
                let answer = dispatch::dispatch(session, other, left).and_then(|answer| {
                    episode::after(session, other, &answer)?;
                    Ok(answer)
                });
                session.recorder.actor = None;
                answer
            }
        }
    }

    /// Ends all programs of clients, records them, and answers the clients that wait.
    fn close(
        &mut self,
        session: &mut Session<'_, '_>,
        end: &Result<End, ErrorBody>,
    ) -> Result<(), ErrorBody> {
        let mut over = ErrorBody::new(ErrorCode::SandboxNotHeld, "");
        let lost;
        let (to, reason) = match end {
            Ok((HoldEnd::Closed, _)) => (RuntimeState::Destroying, "it was closed"),
            Ok((HoldEnd::Expired, _)) => (RuntimeState::Expired, "its lifetime is over"),
            Ok((HoldEnd::Idle, _)) => (RuntimeState::Expired, "it was idle for too long"),
            Ok((HoldEnd::Cancelled, _)) => (RuntimeState::Destroying, "its run was cancelled"),
            Ok((HoldEnd::GuestDied, Some(ExecutionEnd::LimitReached { error }))) => {
                (RuntimeState::Failed, error.message.as_str())
            }
            Ok((HoldEnd::GuestDied, death)) => {
                let death = death_of(death.as_ref());
                over = death.attach_to(over);
                lost = death.to_string();
                (RuntimeState::Failed, lost.as_str())
            }
            Err(_) => (RuntimeState::Failed, "its record cannot be written"),
        };
        over.message = format!("the sandbox has ended: {reason}");
        session.close_preview(match end {
            Ok((HoldEnd::Expired, _)) => PreviewEnd::Expired,
            Ok((HoldEnd::Closed | HoldEnd::Idle | HoldEnd::Cancelled | HoldEnd::GuestDied, _))
            | Err(_) => PreviewEnd::Closed,
        })?;
        self.programs.stop_all(session.guest.runtime.as_mut());
        let until = Instant::now() + SHUTDOWN_TIME;
        while !self.programs.is_empty() && Instant::now() < until {
            let runtime = session.guest.runtime.as_mut();
            if let Some(end) = runtime.ended(self.queue.wake(), until) {
                self.programs.ended(end);
            }
            while let Some(queued) = self.queue.take() {
                match queued {
                    QueuedRequest::Output { .. } | QueuedRequest::Drained { .. } => {
                        self.serve_one(session, queued)?
                    }
                    QueuedRequest::Call { answer, .. } => {
                        let _ = answer.send(Err(over.clone()));
                    }
                    QueuedRequest::Launch { answer, .. } => {
                        let _ = answer.send(Err(over.clone()));
                    }
                    QueuedRequest::Signal { .. } | QueuedRequest::Stop { .. } => {}
                }
            }
        }
        self.queue.close(&over);
        for id in self.programs.ids() {
            self.programs.drained(session.recorder, &id)?;
        }
        self.look(session);
        let (actor, reason) = match &self.closing {
            Some((actor, reason)) => (actor.as_str(), reason.as_str()),
            None => (states::SUPERVISOR, reason),
        };
        let change = Change { to, actor, reason };
        self.states.change(session.recorder, self.queue, change)
    }
}
