//! One conversation with a runner: spawn, handshake, frames, end.
//!
//! States: started → (events)* → finished. A session that is dropped, closed at request
//! end or left by an exception before it finished closes its socket, which cancels the
//! run. Nothing here calls PHP except through `tick`.

use crate::channel::{Channel, ChannelError, Received, TICK, wait_for};
use crate::guard::Failure;
use crate::interrupt::tick;
use crate::spawn::{Child, Ended, SpawnError, Wiring, spawn};
use ext_php_rs::zend::BailoutGuard;
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use serde::Deserialize as _;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, Frame, PROTOCOL_VERSION, RunId, RunRequest, RunResult,
};

/// How long the runner may take to fork and to accept the request.
const HANDSHAKE: Duration = Duration::from_secs(30);

impl From<SpawnError> for Failure {
    fn from(error: SpawnError) -> Self {
        ErrorBody::from(error).into()
    }
}

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
    /// One tick passed.
    Nothing,
    /// The run is over.
    End(Rc<End>),
}

/// A run in progress or finished.
#[derive(Debug)]
pub(crate) struct Session {
    run_id: RunId,
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
    /// Starts the runner and hands it the request. Answers when the runner accepted it.
    pub(crate) fn start(runner: &str, request: RunRequest) -> Result<Rc<Self>, Failure> {
        let (channel, theirs) = Channel::pair()?;
        let session = Rc::new(Self {
            run_id: request.run_id.clone(),
            channel,
            end: RefCell::new(None),
        });
        // Both are released even when a signal handler or the time limit bails out.
        let guarded = BailoutGuard::new(CloseOnDrop::new(&session));
        let mut child =
            BailoutGuard::new(spawn(runner, &["spawn"], Wiring::Frames(theirs.as_fd()))?);
        drop(theirs);
        let deadline = Instant::now() + HANDSHAKE;
        let frame = Frame::Start {
            protocol: PROTOCOL_VERSION,
            request,
        };
        session.forked(&mut child, deadline)?;
        drop(child);
        session.channel.send(&frame, || {
            before(deadline)?;
            tick()
        })?;
        session.accepted(deadline)?;

        guarded.disarm();
        OPEN.with_borrow_mut(|open| {
            open.retain(|s| s.strong_count() > 0);
            open.push(Rc::downgrade(&session));
        });
        Ok(session)
    }

    /// Waits for the process that forks the runner. It must exit with 0.
    fn forked(&self, child: &mut Child, deadline: Instant) -> Result<(), Failure> {
        loop {
            match child.try_wait() {
                Some(Ended::Exit(0) | Ended::Reaped) => return Ok(()),
                Some(Ended::Exit(code)) => {
                    return Err(self
                        .unavailable(&format!("exited with status {code} before it started"))
                        .into());
                }
                Some(Ended::Killed(signal)) => {
                    return Err(self
                        .unavailable(&format!("was killed by signal {signal} before it started"))
                        .into());
                }
                None => {
                    before(deadline)?;
                    match child.ended_fd() {
                        Some(fd) => wait_for(fd, PollFlags::IN, TICK),
                        None => std::thread::sleep(Duration::from_millis(2)),
                    }
                    tick()?;
                }
            }
        }
    }

    fn accepted(&self, deadline: Instant) -> Result<(), Failure> {
        loop {
            match self.channel.receive()? {
                Received::Nothing => {
                    before(deadline)?;
                    tick()?;
                }
                Received::End => return Err(self.died().into()),
                Received::Line(value) => {
                    if value["type"] == "accepted" && value["protocol"] != PROTOCOL_VERSION {
                        return Err(stale(&value["protocol"]).into());
                    }
                    return match parse(&value)? {
                        Frame::Accepted { run_id, .. } if run_id == self.run_id => Ok(()),
                        Frame::Error { error } => Err(error.into()),
                        Frame::Accepted { .. }
                        | Frame::Start { .. }
                        | Frame::Cancel
                        | Frame::Detach
                        | Frame::Event { .. }
                        | Frame::Result { .. } => Err(unexpected().into()),
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

    /// Takes the next frame; waits at most one tick for it.
    pub(crate) fn next(&self) -> Result<Step, ErrorBody> {
        self.channel.assert_ours()?;
        if let Some(end) = self.end() {
            return Ok(Step::End(end));
        }
        let end = match self.channel.receive() {
            Ok(Received::Nothing) => return Ok(Step::Nothing),
            Ok(Received::Line(value)) => match self.step(value) {
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

    fn step(&self, mut value: Value) -> Result<Step, ChannelError> {
        let frame = parse(&value)?;
        match frame {
            Frame::Event { .. } => Ok(Step::Event(value["event"].take())),
            Frame::Result { result } if result.run_id == self.run_id => {
                Ok(Step::End(Rc::new(End::Result {
                    raw: value["result"].take(),
                    parsed: Box::new(result),
                })))
            }
            Frame::Error { error } => Ok(Step::End(failed(error))),
            Frame::Result { .. }
            | Frame::Start { .. }
            | Frame::Cancel
            | Frame::Detach
            | Frame::Accepted { .. } => Err(unexpected()),
        }
    }

    /// Asks the runner to stop and salvage. Does nothing after the end.
    pub(crate) fn cancel(&self) -> Result<(), Failure> {
        self.channel.assert_ours()?;
        if self.end.borrow().is_some() {
            return Ok(());
        }
        self.channel.send(&Frame::Cancel, || Ok(()))
    }

    /// Leaves the conversation; an unfinished run is cancelled by it.
    pub(crate) fn close(&self) {
        if let Ok(mut end) = self.end.try_borrow_mut()
            && end.is_none()
        {
            *end = Some(failed(ErrorBody::new(
                ErrorCode::RunCancelled,
                format!(
                    "{} was cancelled because its caller stopped waiting; start it again",
                    self.run_id
                ),
            )));
        }
        self.channel.close();
    }

    fn died(&self) -> ErrorBody {
        self.unavailable("died before the run came to an end")
    }

    fn unavailable(&self, what: &str) -> ErrorBody {
        ErrorBody::new(
            ErrorCode::RunnerUnavailable,
            format!(
                "the runner of {} {what}; run `wp-codebox doctor`",
                self.run_id
            ),
        )
        .with("run_id", self.run_id.as_str())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

/// Closes the session when dropped, unless disarmed.
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
            self.session.close();
        }
    }
}

fn failed(error: ErrorBody) -> Rc<End> {
    Rc::new(End::Error(Box::new(error)))
}

fn parse(value: &Value) -> Result<Frame, ChannelError> {
    Frame::deserialize(value).map_err(|_| ChannelError::NotAFrame {
        reason: "its members do not fit its type",
    })
}

fn unexpected() -> ChannelError {
    ChannelError::NotAFrame {
        reason: "it does not belong here",
    }
}

fn stale(theirs: &Value) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::ExtensionStale,
        format!(
            "the runner speaks protocol {theirs}, the extension {PROTOCOL_VERSION}; install both from the same release"
        ),
    )
}

fn before(deadline: Instant) -> Result<(), Failure> {
    if Instant::now() < deadline {
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
