//! One conversation with a runner: spawn, handshake, frames, end.
//!
//! States: started → (events)* → finished. A session that is dropped, closed at request
//! end or left by an exception before it finished closes its socket, which cancels an
//! attached run. A detached run survives all of these; its session is closed when it is
//! dropped and at request end, so that no runner talks to a caller that is gone. Nothing
//! here calls PHP except through `tick`.

use crate::guard::Failure;
use crate::ini::Settings;
use crate::interrupt::{TICK, tick};
use crate::runner::{Deadline, reach, unavailable};
use ext_php_rs::zend::BailoutGuard;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, Frame, PROTOCOL_VERSION, RunId, RunMode, RunRequest, RunResult,
};
use wp_codebox_control::{
    Channel, ChannelError, FrameError, Received, SupervisorFrame, monotonic_ns,
};

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End {
    /// `wp-codebox/run-result/v1` as the runner wrote it, and the parsed form.
    Result {
        /// For PHP: members this version does not know stay in.
        raw: Value,
        /// What the outcome table needs.
        parsed: Box<RunResult>,
    },
    /// The run came to no outcome.
    Error(Box<ErrorBody>),
}

/// What happened next.
#[derive(Debug)]
pub(crate) enum Step {
    /// A lifecycle event.
    Event(Value),
    /// The agent asks for a tool of its parent: `parent-tool-request/v1`.
    ToolRequest(Value),
    /// One tick passed.
    Nothing,
    /// The run is over.
    End(Rc<End>),
}

/// How long a caller waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// Until the end.
    Endless,
    /// Not beyond this moment. What arrives later stays for the next wait.
    Until(Instant),
    /// Not at all: only what the session has [gathered](Session::gather).
    None,
}

impl Patience {
    /// Whether the time is up, after an event or a tick without one.
    pub(crate) fn is_over(self) -> bool {
        match self {
            Self::Endless | Self::None => false,
            Self::Until(moment) => Instant::now() >= moment,
        }
    }

    fn tick(self) -> Duration {
        match self {
            Self::Endless => TICK,
            Self::Until(moment) => TICK.min(moment.saturating_duration_since(Instant::now())),
            Self::None => Duration::ZERO,
        }
    }
}

/// How far the conversation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody knows the run yet.
    Handshake,
    /// The runner accepted, so the run can be found.
    Accepted,
}

/// A run in progress or finished.
#[derive(Debug)]
pub(crate) struct Session {
    run_id: RunId,
    mode: Cell<RunMode>,
    phase: Cell<Phase>,
    channel: Channel,
    end: RefCell<Option<Rc<End>>>,
}

thread_local! {
    /// Sessions of this request, so that request end can cancel what was left open.
    static OPEN: RefCell<Vec<Weak<Session>>> = const { RefCell::new(Vec::new()) };
}

/// Closes every session of this request. Called in RSHUTDOWN.
pub(crate) fn close_all() {
    let open = OPEN
        .try_with(|open| open.try_borrow_mut().map(|mut o| std::mem::take(&mut *o)))
        .ok()
        .and_then(Result::ok)
        .unwrap_or_default();
    for session in open.iter().filter_map(Weak::upgrade) {
        session.close();
    }
}

impl Session {
    /// Reaches a runner and hands it the request. Answers when the runner accepted it.
    pub(crate) fn start(settings: &Settings, request: RunRequest) -> Result<Rc<Self>, Failure> {
        let asked_ns = monotonic_ns();
        let deadline = Deadline::of_handshake();
        let channel = reach(settings, &request.run_id, deadline)?;
        let session = Rc::new(Self {
            run_id: request.run_id.clone(),
            mode: Cell::new(request.mode),
            phase: Cell::new(Phase::Handshake),
            channel: channel.into_inner(),
            end: RefCell::new(None),
        });
        // Released even when a signal handler or the time limit bails out.
        let guarded = BailoutGuard::new(CloseOnDrop::new(&session));
        let frame = Frame::Start {
            protocol: PROTOCOL_VERSION,
            asked_ns: Some(asked_ns),
            request,
        };
        session.channel.send(&frame, || {
            deadline.check()?;
            tick()
        })?;
        session.accepted(deadline)?;

        session.phase.set(Phase::Accepted);
        guarded.disarm();
        OPEN.with_borrow_mut(|open| {
            open.retain(|s| s.strong_count() > 0);
            open.push(Rc::downgrade(&session));
        });
        Ok(session)
    }

    fn accepted(&self, deadline: Deadline) -> Result<(), Failure> {
        loop {
            match self.channel.receive(TICK)? {
                Received::Nothing => {
                    deadline.check()?;
                    tick()?;
                }
                Received::End => return Err(self.died().into()),
                Received::Line(line) => {
                    return match SupervisorFrame::read(&line, &self.run_id)? {
                        SupervisorFrame::Accepted => Ok(()),
                        SupervisorFrame::Error { error } => Err(error.into()),
                        SupervisorFrame::Event { .. }
                        | SupervisorFrame::ToolRequest { .. }
                        | SupervisorFrame::Result { .. } => Err(unexpected().into()),
                    };
                }
            }
        }
    }

    /// The run's id.
    pub(crate) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// How the run ended, when it has.
    pub(crate) fn end(&self) -> Option<Rc<End>> {
        self.end.borrow().clone()
    }

    /// Reads what the runner has said so far, without waiting, for [`Patience::None`].
    pub(crate) fn gather(&self) -> Result<(), ErrorBody> {
        self.channel.assert_ours()?;
        match self.end() {
            Some(_) => Ok(()),
            None => self.channel.fill().map_err(ErrorBody::from),
        }
    }

    /// Takes the next frame; waits at most one tick for it.
    pub(crate) fn next(&self, patience: Patience) -> Result<Step, ErrorBody> {
        self.channel.assert_ours()?;
        if let Some(end) = self.end() {
            return Ok(Step::End(end));
        }
        let received = match patience {
            Patience::None => self.channel.receive_read(),
            Patience::Endless | Patience::Until(_) => self.channel.receive(patience.tick()),
        };
        let end = match received {
            Ok(Received::Nothing) => return Ok(Step::Nothing),
            Ok(Received::Line(line)) => match self.step(&line) {
                Ok(Step::End(end)) => end,
                Ok(step) => return Ok(step),
                Err(error) => failed(error.into()),
            },
            Ok(Received::End) => failed(self.died()),
            Err(error) => failed(error.into()),
        };
        self.end.replace(Some(Rc::clone(&end)));
        self.channel.close();
        Ok(Step::End(end))
    }

    fn step(&self, line: &[u8]) -> Result<Step, FrameError> {
        Ok(match SupervisorFrame::read(line, &self.run_id)? {
            SupervisorFrame::Event { document, .. } => Step::Event(document),
            SupervisorFrame::ToolRequest { request } => Step::ToolRequest(request),
            SupervisorFrame::Result { result, document } => Step::End(Rc::new(End::Result {
                raw: document,
                parsed: result,
            })),
            SupervisorFrame::Error { error } => Step::End(failed(error)),
            SupervisorFrame::Accepted => return Err(unexpected().into()),
        })
    }

    /// Answers a request for a tool. Does nothing after the end.
    pub(crate) fn answer_tool(&self, result: Value) -> Result<(), Failure> {
        self.channel.assert_ours()?;
        if self.end.borrow().is_some() {
            return Ok(());
        }
        self.channel.send(&Frame::ToolResult { result }, tick)
    }

    /// Asks the runner to stop and salvage. Does nothing after the end.
    pub(crate) fn cancel(&self) -> Result<(), Failure> {
        self.channel.assert_ours()?;
        if self.end.borrow().is_some() {
            return Ok(());
        }
        self.channel.send(&Frame::Cancel, || Ok(()))
    }

    /// From now on the run survives its caller; the conversation goes on. Does nothing
    /// after the end.
    pub(crate) fn detach(&self) -> Result<(), Failure> {
        self.channel.assert_ours()?;
        if self.end.borrow().is_some() || self.mode.get() == RunMode::Detached {
            return Ok(());
        }
        // Set only when the runner has all of it: until then the end of the caller cancels.
        self.channel.send(&Frame::Detach, tick)?;
        self.mode.set(RunMode::Detached);
        Ok(())
    }

    /// Leaves the conversation where an attached run ends with it; a detached run and its
    /// handle stay as they are.
    fn leave(&self) {
        match (self.mode.get(), self.phase.get()) {
            (RunMode::Detached, Phase::Accepted) => {}
            (RunMode::Attached | RunMode::Detached, _) => self.close(),
        }
    }

    /// Ends the conversation; an unfinished attached run is cancelled by it.
    pub(crate) fn close(&self) {
        if (self.mode.get(), self.phase.get()) == (RunMode::Detached, Phase::Handshake) {
            // It would go on, and nobody would know of it.
            let errno = rustix::io::Errno::AGAIN;
            let _ = self
                .channel
                .send(&Frame::Cancel, || Err(ChannelError::Socket { errno }));
        }
        if let Ok(mut end) = self.end.try_borrow_mut()
            && end.is_none()
        {
            *end = Some(failed(self.left()));
        }
        self.channel.close();
    }

    fn left(&self) -> ErrorBody {
        match self.mode.get() {
            RunMode::Attached => ErrorBody::new(
                ErrorCode::RunCancelled,
                format!(
                    "{} was cancelled because its caller stopped waiting; start it again",
                    self.run_id
                ),
            ),
            RunMode::Detached => ErrorBody::new(
                ErrorCode::InputInvalid,
                format!(
                    "this handle of {} was closed; ask Runs::get() for it",
                    self.run_id
                ),
            ),
        }
    }

    /// The runner hung up without a last word.
    fn died(&self) -> ErrorBody {
        match self.mode.get() {
            RunMode::Attached => unavailable(&self.run_id, "died before the run came to an end"),
            RunMode::Detached => ErrorBody::new(
                ErrorCode::RunnerUnavailable,
                format!(
                    "the runner of {} hung up before the run came to an end; Runs::get() says whether it goes on",
                    self.run_id
                ),
            )
            .with("run_id", self.run_id.as_str()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

/// Leaves the session when dropped, unless disarmed.
#[derive(Debug)]
pub(crate) struct CloseOnDrop {
    session: Rc<Session>,
    armed: Cell<bool>,
}

impl CloseOnDrop {
    /// Armed.
    pub(crate) fn new(session: &Rc<Session>) -> Self {
        Self {
            session: Rc::clone(session),
            armed: Cell::new(true),
        }
    }

    /// Leaves the session as it is.
    pub(crate) fn disarm(&self) {
        self.armed.set(false);
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if self.armed.get() {
            self.session.leave();
        }
    }
}

fn failed(error: ErrorBody) -> Rc<End> {
    Rc::new(End::Error(Box::new(error)))
}

fn unexpected() -> ChannelError {
    ChannelError::NotAFrame {
        reason: "it does not belong here",
    }
}
