//! `WPCodebox\Native\Run`: one run as a process handle.
//!
//! `wait` calls PHP code, which may throw, exit, exceed the time limit, suspend a fiber or use the
//! same object again. Therefore methods take `&self`, hold no borrow across a call, and keep the
//! session in a `BailoutGuard`: a fatal error in the callback jumps (longjmp) over the Rust frames
//! without dropping their values, except those in such a guard. After a timeout, and for a detached
//! run after an exception, the next `wait` continues with the next event.
#![allow(non_snake_case)] // Parameter names are those of named arguments in PHP.

use crate::arguments::{Answer, Array, Text, call};
use crate::guard::{Failure, guard};
use crate::ini::Settings;
use crate::interrupt::tick;
use crate::parent_tool;
use crate::request::{self, Stage};
use crate::session::{CloseOnDrop, End, Session, Step, WaitLimit};
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::types::ZendCallable;
use ext_php_rs::zend::BailoutGuard;
use ext_php_rs::{php_class, php_impl};
use serde_json::json;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// The PHP class for one run: a handle on the supervisor process.
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

    /// Validates the request, starts the supervisor and returns a handle.
    pub(crate) fn start(task: Array<'_>, host: Array<'_>) -> PhpResult<Self> {
        guard(|| {
            let settings = Settings::checked()?;
            let (task, host) = (task.object("task")?, host.object("host")?);
            let request = request::build(task, host, &settings, Stage::Start)?;
            let session = Session::start(&settings, request)?;
            Ok(Self {
                session: Some(session),
                waiting: Cell::new(false),
            })
        })
    }

    /// Validates a request without starting a run.
    pub(crate) fn validate(task: Array<'_>, host: Array<'_>) -> PhpResult<()> {
        guard(|| {
            let settings = Settings::checked()?;
            let (task, host) = (task.object("task")?, host.object("host")?);
            request::build(task, host, &settings, Stage::Preview)?;
            Ok(())
        })
    }

    /// Splits a command line into arguments, as a POSIX shell does.
    pub(crate) fn split_command(line: Text<'_>) -> PhpResult<Answer> {
        guard(|| Ok(Answer(json!(request::split_command(line.utf8("line")?)?))))
    }

    /// Replaces the host files that command lines name by guest paths, and lists these files.
    pub(crate) fn stage_commands(lines: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let (lines, files) = request::stage_commands(&lines.texts("lines")?)?;
            Ok(Answer(json!({"lines": lines, "files": files})))
        })
    }

    /// Returns the run's id.
    pub(crate) fn id(&self) -> PhpResult<String> {
        guard(|| Ok(self.session()?.run_id().to_string()))
    }

    /// Waits until the run ends or the timeout passes, and calls the given functions for its
    /// events.
    pub(crate) fn wait(
        &self,
        onEvent: Option<ZendCallable<'_>>,
        timeoutMs: Option<i64>,
        onToolRequest: Option<ZendCallable<'_>>,
    ) -> PhpResult<Option<Answer>> {
        guard(|| {
            let session = Rc::clone(self.session()?);
            let wait_limit = wait_limit(timeoutMs)?;
            if self.waiting.replace(true) {
                return Err(busy().into());
            }
            let reset = Reset(&self.waiting);
            let guarded = BailoutGuard::new(CloseOnDrop::new(&session));
            let end = dispatch_events(
                &session,
                onEvent.as_ref(),
                onToolRequest.as_ref(),
                wait_limit,
            );
            // After an exception or a bailout, the armed guard cancels an attached run.
            if end.is_ok() {
                guarded.disarm();
            }
            drop(reset);
            end?.as_deref().map(answer).transpose()
        })
    }

    /// Detaches the run: it continues when its caller ends.
    pub(crate) fn detach(&self) -> PhpResult<()> {
        guard(|| self.session()?.detach())
    }

    /// Asks the supervisor to stop the run and write a recovery bundle.
    pub(crate) fn cancel(&self) -> PhpResult<()> {
        guard(|| self.session()?.cancel())
    }
}

impl Run {
    fn session(&self) -> Result<&Rc<Session>, ErrorBody> {
        self.session.as_ref().ok_or_else(|| {
            ErrorBody::new(
                ErrorCode::InputInvalid,
                "this object was not created by Run::start(); create it with that method",
            )
        })
    }
}

/// Exists while a `wait` is active; a nested `wait` on the same object is then refused. Its drop
/// permits the next `wait`.
struct Reset<'a>(&'a Cell<bool>);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

fn wait_limit(milliseconds: Option<i64>) -> Result<WaitLimit, ErrorBody> {
    match milliseconds.map(u64::try_from) {
        None => Ok(WaitLimit::Endless),
        Some(Ok(0)) => Ok(WaitLimit::None),
        // A deadline beyond the range of the clock counts as no deadline.
        Some(Ok(time)) => Ok(Instant::now()
            .checked_add(Duration::from_millis(time))
            .map_or(WaitLimit::Endless, WaitLimit::Until)),
        Some(Err(_)) => Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "timeoutMs must be a whole number from 0, or null to wait for the end",
        )
        .with("field", "timeoutMs")),
    }
}

/// Passes events to the callback until the run ends or the timeout passes. Reads at least one
/// frame, so repeated waits with a tiny timeout make progress.
fn dispatch_events(
    session: &Session,
    on_event: Option<&ZendCallable<'_>>,
    on_tool: Option<&ZendCallable<'_>>,
    wait_limit: WaitLimit,
) -> Result<Option<Rc<End>>, Failure> {
    let mut on_event = on_event;
    if matches!(wait_limit, WaitLimit::None) {
        session.gather()?;
    }
    loop {
        match session.next(wait_limit)? {
            Step::End(end) => return Ok(Some(end)),
            Step::Nothing if matches!(wait_limit, WaitLimit::None) => {
                tick()?;
                return Ok(None);
            }
            Step::Nothing => {}
            Step::Event(event) => {
                #[cfg(debug_assertions)]
                crate::guard::provoked_panic();
                if let Some(callable) = on_event
                    && call(callable, "onEvent", event)?.is_false()
                {
                    on_event = None;
                    session.cancel()?;
                }
            }
            Step::ToolRequest(request) => {
                let result = match on_tool {
                    Some(callable) => parent_tool::call(callable, request)?,
                    None => parent_tool::unavailable(&request),
                };
                session.answer_tool(result)?;
            }
        }
        tick()?;
        if wait_limit.is_over() {
            return Ok(None);
        }
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
        "wait() is already running on this object; call it again after it returns",
    )
}
