//! A conversation with a supervisor: start, handshake, frames, end.
//!
//! States: started → (events)* → finished. An unfinished session that is dropped, closed at request
//! end or left by an exception closes its socket, which cancels an attached run. A detached run
//! survives all of these; its session is closed on drop and at request end, so that no supervisor sends
//! to a missing caller. This module calls PHP only through `tick`.

use crate::guard::Failure;
use crate::ini::Settings;
use crate::interrupt::{TICK, tick};
use crate::runner::{Deadline, connect_runner, unavailable};
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
    /// The run ended with a result, `wp-codebox/run-result/v1`.
    Result {
        /// The result document as received, including members that this version does not know.
        raw: Value,
        /// The parsed result, from which status and exit status are derived.
        parsed: Box<RunResult>,
    },
    /// The run failed without a result.
    Error(Box<ErrorBody>),
}

/// Result of waiting for the next frame.
#[derive(Debug)]
pub(crate) enum Step {
    /// A lifecycle event.
    Event(Value),
    /// The agent asks its parent, the PHP program, to run a tool: `parent-tool-request/v1`.
    ToolRequest(Value),
    /// One tick passed without a frame.
    Nothing,
    /// The run has ended.
    End(Rc<End>),
}

/// How long a caller waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitLimit {
    /// Until the run ends.
    Endless,
    /// Until this time; the next wait returns the frames that arrive later.
    Until(Instant),
    /// Not at all: only frames that [`Session::gather`] has already read are returned.
    None,
}

impl WaitLimit {
    /// Returns whether a caller must stop waiting; asked after each event and each tick.
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

/// Whether the supervisor has accepted the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The supervisor has not accepted the request: the run may have no directory yet.
    Handshake,
    /// The supervisor has accepted the request: the run has a directory, and other processes find it.
    Accepted,
}

/// The exchange with the supervisor of one running or finished run, over the frame socket.
#[derive(Debug)]
pub(crate) struct Session {
    run_id: RunId,
    mode: Cell<RunMode>,
    phase: Cell<Phase>,
    channel: Channel,
    end: RefCell<Option<Rc<End>>>,
}

thread_local! {
    /// Sessions that this PHP request has opened and that are closed at its end.
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
    /// Connects to a supervisor, sends the request and returns when the supervisor has accepted it.
    pub(crate) fn start(settings: &Settings, request: RunRequest) -> Result<Rc<Self>, Failure> {
        let asked_ns = monotonic_ns();
        let deadline = Deadline::of_handshake();
        let channel = connect_runner(settings, &request.run_id, deadline)?;
        let session = Rc::new(Self {
            run_id: request.run_id.clone(),
            mode: Cell::new(request.mode),
            phase: Cell::new(Phase::Handshake),
            channel: channel.into_inner(),
            end: RefCell::new(None),
        });
        // The guard closes the session even when a signal handler or the time limit bails out.
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

    /// Returns the run's id.
    pub(crate) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Returns how the run ended, or `None` while it runs.
    pub(crate) fn end(&self) -> Option<Rc<End>> {
        self.end.borrow().clone()
    }

    /// Reads the frames that have already arrived, without waiting, so that [`WaitLimit::None`] can
    /// return them.
    pub(crate) fn gather(&self) -> Result<(), ErrorBody> {
        self.channel.assert_ours()?;
        match self.end() {
            Some(_) => Ok(()),
            None => self.channel.fill().map_err(ErrorBody::from),
        }
    }

    /// Returns the next frame; waits at most one tick.
    pub(crate) fn next(&self, wait_limit: WaitLimit) -> Result<Step, ErrorBody> {
        self.channel.assert_ours()?;
        if let Some(end) = self.end() {
            return Ok(Step::End(end));
        }
        let received = match wait_limit {
            WaitLimit::None => self.channel.receive_read(),
            WaitLimit::Endless | WaitLimit::Until(_) => self.channel.receive(wait_limit.tick()),
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

    /// Sends the result of a tool request. Does nothing after the end.
    pub(crate) fn answer_tool(&self, result: Value) -> Result<(), Failure> {
        self.channel.assert_ours()?;
        if self.end.borrow().is_some() {
            return Ok(());
        }
        self.channel.send(&Frame::ToolResult { result }, tick)
    }

    /// Asks the supervisor to stop and to write a recovery bundle. Does nothing after the end.
    pub(crate) fn cancel(&self) -> Result<(), Failure> {
        self.channel.assert_ours()?;
        if self.end.borrow().is_some() {
            return Ok(());
        }
        self.channel.send(&Frame::Cancel, || Ok(()))
    }

    /// Detaches the run, which then continues when its caller ends. The session still receives
    /// frames. Does nothing after the end.
    pub(crate) fn detach(&self) -> Result<(), Failure> {
        self.channel.assert_ours()?;
        if self.end.borrow().is_some() || self.mode.get() == RunMode::Detached {
            return Ok(());
        }
        // Set the mode only after the whole frame was sent: until then the run is attached and ends
        // with its caller.
        self.channel.send(&Frame::Detach, tick)?;
        self.mode.set(RunMode::Detached);
        Ok(())
    }

    /// Closes the frame socket, which cancels the run. Does nothing if the run is detached and the
    /// supervisor has accepted it.
    fn close_if_attached(&self) {
        match (self.mode.get(), self.phase.get()) {
            (RunMode::Detached, Phase::Accepted) => {}
            (RunMode::Attached | RunMode::Detached, _) => self.close(),
        }
    }

    /// Closes the frame socket, which cancels an unfinished attached run.
    pub(crate) fn close(&self) {
        if (self.mode.get(), self.phase.get()) == (RunMode::Detached, Phase::Handshake) {
            // Without this frame, the run could continue although no caller knows of it.
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
                    "this Run object of {} was closed; Runs::get() returns the run",
                    self.run_id
                ),
            ),
        }
    }

    /// Returns the error for a supervisor that closed the socket without sending how the run ended.
    fn died(&self) -> ErrorBody {
        match self.mode.get() {
            RunMode::Attached => unavailable(&self.run_id, "died before the run ended"),
            RunMode::Detached => ErrorBody::new(
                ErrorCode::RunnerUnavailable,
                format!(
                    "the runner of {} closed the connection before the run ended; Runs::get() shows whether the run continues",
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

/// Guard that calls `close_if_attached` on drop, unless disarmed.
#[derive(Debug)]
pub(crate) struct CloseOnDrop {
    session: Rc<Session>,
    armed: Cell<bool>,
}

impl CloseOnDrop {
    /// Creates an armed guard.
    pub(crate) fn new(session: &Rc<Session>) -> Self {
        Self {
            session: Rc::clone(session),
            armed: Cell::new(true),
        }
    }

    /// Disarms the guard: the drop has no effect.
    pub(crate) fn disarm(&self) {
        self.armed.set(false);
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if self.armed.get() {
            self.session.close_if_attached();
        }
    }
}

fn failed(error: ErrorBody) -> Rc<End> {
    Rc::new(End::Error(Box::new(error)))
}

fn unexpected() -> ChannelError {
    ChannelError::NotAFrame {
        reason: "a frame of this type is not expected at this time",
    }
}
