//! `WPCodebox\Native\Run`: one run as a process handle.
//!
//! `wait` calls PHP, which may throw, exit, run into the time limit, suspend a fiber or
//! use the same object again. So: `&self` only, no borrow across a call, and the session
//! in a `BailoutGuard`, because a fatal error in the callback jumps over these frames.
#![allow(non_snake_case)] // Parameter names are those of named arguments in PHP.

use crate::arguments::{Answer, Array, Text};
use crate::guard::{Failure, guard};
use crate::ini::Settings;
use crate::interrupt::tick;
use crate::request::{self, Stage};
use crate::session::{CloseOnDrop, End, Session, Step};
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::types::ZendCallable;
use ext_php_rs::zend::{BailoutGuard, ExecutorGlobals};
use ext_php_rs::{php_class, php_impl};
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// One run: a process handle, not a job.
#[php_class]
#[php(name = "WPCodebox\\Native\\Run", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Run {
    session: Option<Rc<Session>>,
    waiting: Cell<bool>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.close();
        }
    }
}

#[php_impl]
impl Run {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self {
            session: None,
            waiting: Cell::new(false),
        }
    }

    /// Validates, starts the runner, answers a handle.
    pub(crate) fn start(request: Array<'_>) -> PhpResult<Self> {
        guard(|| {
            let settings = Settings::checked()?;
            let request = request::build(request.object("request")?, &settings, Stage::Start)?;
            let session = Session::start(&settings.runner, request)?;
            Ok(Self {
                session: Some(session),
                waiting: Cell::new(false),
            })
        })
    }

    /// Judges a request and starts nothing.
    pub(crate) fn validate(request: Array<'_>) -> PhpResult<()> {
        guard(|| {
            let settings = Settings::checked()?;
            request::build(request.object("request")?, &settings, Stage::Preview)?;
            Ok(())
        })
    }

    /// Splits a command line.
    pub(crate) fn split_command(line: Text<'_>) -> PhpResult<Answer> {
        guard(|| Ok(Answer(json!(request::split_command(line.utf8("line")?)?))))
    }

    /// The run's id.
    pub(crate) fn id(&self) -> PhpResult<String> {
        guard(|| Ok(self.session()?.run_id().to_string()))
    }

    /// Waits for the end.
    pub(crate) fn wait(&self, onEvent: Option<ZendCallable<'_>>) -> PhpResult<Answer> {
        guard(|| {
            let session = Rc::clone(self.session()?);
            if self.waiting.replace(true) {
                return Err(busy().into());
            }
            let reset = Reset(&self.waiting);
            let guarded = BailoutGuard::new(CloseOnDrop::new(&session));
            let end = follow(&session, onEvent.as_ref());
            // Left without an end, by an exception or a bailout: the guard cancels the run.
            if end.is_ok() {
                guarded.disarm();
            }
            drop(reset);
            let end = end?;
            answer(&end)
        })
    }

    /// Asks the runner to stop and salvage.
    pub(crate) fn cancel(&self) -> PhpResult<()> {
        guard(|| self.session()?.cancel())
    }
}

impl Run {
    fn session(&self) -> Result<&Rc<Session>, ErrorBody> {
        self.session.as_ref().ok_or_else(|| {
            ErrorBody::new(
                ErrorCode::InputInvalid,
                "this object was not made by Run::start(); call that",
            )
        })
    }
}

/// Ends the time in which a second `wait` is refused.
struct Reset<'a>(&'a Cell<bool>);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

fn follow(session: &Session, on_event: Option<&ZendCallable<'_>>) -> Result<Rc<End>, Failure> {
    let mut on_event = on_event;
    loop {
        match session.next()? {
            Step::End(end) => return Ok(end),
            Step::Nothing => {}
            Step::Event(event) => {
                if let Some(callable) = on_event
                    && !call(callable, event)?
                {
                    on_event = None;
                    session.cancel()?;
                }
            }
        }
        tick()?;
    }
}

/// Calls back; answers whether the run shall go on.
fn call(callable: &ZendCallable<'_>, event: Value) -> Result<bool, Failure> {
    match callable.try_call(vec![&Answer(event)]) {
        Ok(answer) => Ok(!answer.is_false()),
        Err(_) if ExecutorGlobals::has_exception() => Err(Failure::Pending),
        Err(_) => Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "onEvent cannot be called; pass a function that accepts one array",
        )
        .into()),
    }
}

fn answer(end: &End) -> Result<Answer, Failure> {
    match end {
        End::Error(error) => Err((**error).clone().into()),
        End::Result { raw, parsed } => {
            let mut answer = raw.clone();
            answer["session_status"] = json!(parsed.outcome.session_status());
            answer["success"] = json!(parsed.outcome.is_success());
            answer["exit_status"] = json!(parsed.outcome.exit_status());
            Ok(Answer(answer))
        }
    }
}

fn busy() -> ErrorBody {
    ErrorBody::new(
        ErrorCode::InputInvalid,
        "wait() is already running on this object; call it once",
    )
}
