//! Sends requests to the browser and records the events that arrive while it waits for a response.

use super::events::{PhpError, cut};
use super::observed::{Observed, Reaction, Tab};
use super::pipe::{Pipe, Wake};
use serde_json::{Value, json};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::{Duration, Instant};

/// Maximum time between two calls of [`Host::pause`] while waiting for a browser message.
const TICK: Duration = Duration::from_millis(100);
/// Maximum time to wait for the last error output of a browser that has ended. A child process that
/// outlives the browser may keep the pipe of the error output open.
const STDERR_WAIT: Duration = Duration::from_secs(5);
/// Maximum number of characters of the browser's error output in an error message.
const STDERR_CHARS: usize = 600;

/// Functions that the caller of this crate provides to a browser command.
pub trait Host {
    /// Opens a connection to the site's web server in the guest that serves the site.
    fn connect(&mut self) -> io::Result<OwnedFd>;
    /// Called before each wait for a browser message and repeatedly while waiting, so that the
    /// caller can do other work.
    fn pause(&mut self);
    /// Reports the progress of the browser command.
    fn progress(&mut self, stage: &str, detail: Value);
    /// Returns whether the network policy refuses a request of the page.
    fn refuses(&self, method: &str, url: &str) -> bool;
    /// Takes the messages of PHP in the page's requests to the site since the last call.
    fn php_errors(&mut self) -> Vec<PhpError>;
}

/// Reason why a browser command failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The browser ended or violated the debugging protocol.
    #[error("the browser ended or violated its debugging protocol: {why}")]
    Lost {
        /// What happened, for the error message.
        why: String,
    },
    /// The renderer process of the page crashed.
    #[error(
        "the page crashed its renderer; it may have used more memory than the browser's guest may use"
    )]
    Crashed,
    /// The timeout of the command or of a part of it passed.
    #[error("the browser did not finish within {seconds} seconds: {what}")]
    Timeout {
        /// What the command waited for.
        what: String,
        /// How long the command waited, in seconds.
        seconds: u64,
    },
    /// The browser answered a request with an error.
    #[error("the browser refused the debugging command {method}: {message}")]
    Refused {
        /// Method of the debugging protocol.
        method: &'static str,
        /// Browser's error message.
        message: String,
    },
    /// The browser could not load the URL.
    #[error("the page {url} could not be opened: {why}")]
    Navigation {
        /// URL of the page.
        url: String,
        /// Browser's reason.
        why: String,
    },
    /// A step, a script or an assertion failed.
    #[error("{what}")]
    Step {
        /// What failed and why.
        what: String,
    },
    /// The page itself has a fault: its status, a fatal error of PHP or an exception of a script.
    #[error("{what}")]
    Page {
        /// What is wrong, and what to do if it is expected.
        what: String,
    },
}

impl Failure {
    /// Returns the error code for the result of the command.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "browser-lost",
            Self::Crashed => "page-crashed",
            Self::Timeout { .. } => "timeout",
            Self::Refused { .. } => "browser-refused",
            Self::Navigation { .. } => "navigation-failed",
            Self::Step { .. } => "step-failed",
            Self::Page { .. } => "page-error",
        }
    }

    /// Creates the failure of a step, a script or an assertion from its description.
    pub(super) fn step(what: impl Into<String>) -> Self {
        Self::Step { what: what.into() }
    }

    /// Returns whether this failure leaves the browser or its page unusable, so that every further
    /// request fails.
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Lost { .. } | Self::Crashed => true,
            Self::Timeout { .. }
            | Self::Refused { .. }
            | Self::Navigation { .. }
            | Self::Step { .. }
            | Self::Page { .. } => false,
        }
    }
}

/// Connection to a running browser.
pub struct Wire<'h> {
    /// The caller's functions, called while waiting for the browser.
    pub host: &'h mut dyn Host,
    /// Events that the browser has sent.
    pub observed: Observed,
    pipe: Pipe,
    /// Id of the debugging session of the page; `None` until [`Self::attach`] sets it.
    session: Option<String>,
    /// Pages of other actors: debugging session and load state.
    parked: Vec<(String, Tab)>,
    next: u64,
    lost: Option<String>,
}

impl<'h> Wire<'h> {
    /// Creates the connection from this process's ends of the browser's standard input, output and
    /// error.
    pub fn open(
        host: &'h mut dyn Host,
        wakes: (SyncSender<Wake>, Receiver<Wake>),
        streams: (OwnedFd, OwnedFd, OwnedFd),
    ) -> io::Result<Self> {
        Ok(Self {
            host,
            observed: Observed::default(),
            pipe: Pipe::open(wakes, streams)?,
            session: None,
            parked: Vec::new(),
            next: 0,
            lost: None,
        })
    }

    /// Sets the debugging session of the page, to which [`Self::ask`] sends its requests.
    pub(super) fn attach(&mut self, session: String) {
        self.session = Some(session);
    }

    /// Returns the debugging session of the page to which requests are sent.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Makes another page the one to which requests are sent: a new one, or one that was attached
    /// before. The events of the page that is left continue to be recorded.
    pub(super) fn turn_to(&mut self, session: &str) {
        if self.session.as_deref() == Some(session) {
            return;
        }
        let mut tab = match self.parked.iter().position(|row| row.0 == session) {
            Some(at) => self.parked.swap_remove(at).1,
            None => Tab::default(),
        };
        std::mem::swap(&mut self.observed.tab, &mut tab);
        if let Some(left) = self.session.replace(session.to_owned()) {
            self.parked.push((left, tab));
        }
    }

    /// Records an event of the page that sent it; returns the request to send in reaction, and the
    /// session of that page.
    fn record(&mut self, message: &Value) -> Option<(Reaction, Option<String>)> {
        let host = &*self.host;
        let refuses = |method: &str, url: &str| host.refuses(method, url);
        let from = message.get("sessionId").and_then(Value::as_str);
        let at = self
            .parked
            .iter()
            .position(|row| Some(row.0.as_str()) == from);
        let Some(row) = at.and_then(|at| self.parked.get_mut(at)) else {
            let reaction = self.observed.take(message, &refuses)?;
            return Some((reaction, self.session.clone()));
        };
        std::mem::swap(&mut self.observed.tab, &mut row.1);
        let reaction = self.observed.take(message, &refuses);
        std::mem::swap(&mut self.observed.tab, &mut row.1);
        Some((reaction?, Some(row.0.clone())))
    }

    /// Sends a request to the browser itself, not to its page, and returns the response.
    pub(super) fn ask_browser(
        &mut self,
        method: &'static str,
        params: Value,
        until: Instant,
    ) -> Result<Value, Failure> {
        self.call(None, method, params, until)
    }

    /// Sends a request to the page and returns the response.
    pub(super) fn ask(
        &mut self,
        method: &'static str,
        params: Value,
        until: Instant,
    ) -> Result<Value, Failure> {
        let session = self.session.clone();
        self.call(session, method, params, until)
    }

    fn call(
        &mut self,
        session: Option<String>,
        method: &'static str,
        params: Value,
        until: Instant,
    ) -> Result<Value, Failure> {
        let began = Instant::now();
        let id = self.send(session.as_deref(), method, &params)?;
        loop {
            let Some(message) = self.next_message(until)? else {
                return Err(timeout(method, began));
            };
            if message.get("id").and_then(Value::as_u64) != Some(id) {
                continue;
            }
            if let Some(error) = message.get("error") {
                let text = error.get("message").and_then(Value::as_str);
                return Err(Failure::Refused {
                    method,
                    message: cut(text.unwrap_or("the browser gave no reason"), STDERR_CHARS),
                });
            }
            return Ok(message.get("result").cloned().unwrap_or(Value::Null));
        }
    }

    /// Processes messages of the browser until a condition about the recorded events holds, or
    /// until `until`.
    pub(super) fn wait(
        &mut self,
        until: Instant,
        mut done: impl FnMut(&Observed) -> bool,
    ) -> Result<Waited, Failure> {
        loop {
            if done(&self.observed) {
                return Ok(Waited::Done);
            }
            if self.next_message(until)?.is_none() {
                return Ok(Waited::TooLong);
            }
        }
    }

    /// Processes messages of the browser until a condition about the recorded events holds; fails
    /// if it does not hold before `until`.
    pub(super) fn wait_for(
        &mut self,
        what: &str,
        until: Instant,
        done: impl FnMut(&Observed) -> bool,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        match self.wait(until, done)? {
            Waited::Done => Ok(()),
            Waited::TooLong => Err(timeout(what, began)),
        }
    }

    /// Returns the next message of the browser, an event or a response, and records it if it is an
    /// event; `None` when `until` has passed.
    fn next_message(&mut self, until: Instant) -> Result<Option<Value>, Failure> {
        if let Some(why) = &self.lost {
            return Err(Failure::Lost { why: why.clone() });
        }
        loop {
            if self.observed.crashed {
                return Err(Failure::Crashed);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(None);
            }
            self.host.pause();
            let pause = until.duration_since(now).min(TICK);
            let wake = match self.pipe.wakes.recv_timeout(pause) {
                Ok(wake) => wake,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => Wake::Closed("the browser has ended"),
            };
            match wake {
                Wake::Message(message) | Wake::Large(message, _) => {
                    if let Some((reaction, page)) = self.record(&message) {
                        let session = page.filter(|_| reaction.of_page);
                        self.send(session.as_deref(), reaction.method, &reaction.params)?;
                    }
                    return Ok(Some(message));
                }
                Wake::Dropped => self.observed.dropped += 1,
                Wake::Site(asker) => {
                    // Sending fails if the bridge no longer waits for the connection.
                    let _ = asker.send(self.host.connect());
                }
                Wake::Closed(why) => {
                    let why = self.explained(why);
                    self.lost = Some(why.clone());
                    return Err(Failure::Lost { why });
                }
            }
        }
    }

    fn send(
        &mut self,
        session: Option<&str>,
        method: &'static str,
        params: &Value,
    ) -> Result<u64, Failure> {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        match self.pipe.outgoing.try_send(bytes) {
            Ok(()) => Ok(self.next),
            Err(TrySendError::Full(_)) => Err(Failure::Lost {
                why: "too many requests wait, because the browser does not read them".to_owned(),
            }),
            Err(TrySendError::Disconnected(_)) => Err(Failure::Lost {
                why: self.explained("the browser no longer reads its pipe"),
            }),
        }
    }

    /// Appends a line of the browser's error output to a reason. A page that controls the browser
    /// controls this text, so it may be false.
    fn explained(&self, why: &str) -> String {
        let text = self.pipe.stderr.last(STDERR_WAIT);
        let telling = text
            .lines()
            .rfind(|line| line.contains("FATAL") || line.contains("rror"))
            .or_else(|| text.lines().last())
            .unwrap_or_default();
        if telling.is_empty() {
            why.to_owned()
        } else {
            format!("{why}; its error output: {}", cut(telling, STDERR_CHARS))
        }
    }
}

/// Whether the awaited condition held in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    Done,
    TooLong,
}

pub(super) fn timeout(what: &str, began: Instant) -> Failure {
    Failure::Timeout {
        what: what.to_owned(),
        seconds: began.elapsed().as_secs().max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pipe::wakes;
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::fs::File;
    use std::io::{BufRead, BufReader, Write};

    struct NoHost;
    impl Host for NoHost {
        fn connect(&mut self) -> io::Result<OwnedFd> {
            Err(io::Error::other("there is no site"))
        }
        fn pause(&mut self) {}
        fn progress(&mut self, _: &str, _: Value) {}
        fn refuses(&self, _: &str, _: &str) -> bool {
            false
        }
        fn php_errors(&mut self) -> Vec<PhpError> {
            Vec::new()
        }
    }

    /// Runs `test` with a connection to a fake browser that answers each request with `answer`.
    fn with_browser(
        answer: impl Fn(&Value) -> Vec<String> + Send + 'static,
        test: impl FnOnce(&mut Wire<'_>),
    ) {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).unwrap();
        let ((input, to_input), (from_output, output), (from_errors, errors)) =
            (pipe(), pipe(), pipe());
        let browser = std::thread::spawn(move || {
            let mut output = File::from(output);
            File::from(errors)
                .write_all(b"[1:1] FATAL: enough\n")
                .unwrap();
            for message in BufReader::new(File::from(input)).split(0) {
                let message: Value = serde_json::from_slice(&message.unwrap()).unwrap();
                let answers = answer(&message);
                if answers.is_empty() {
                    return;
                }
                for text in answers {
                    output.write_all(text.as_bytes()).unwrap();
                    output.write_all(&[0]).unwrap();
                }
            }
        });
        let mut host = NoHost;
        let streams = (to_input, from_output, from_errors);
        test(&mut Wire::open(&mut host, wakes(), streams).unwrap());
        browser.join().unwrap();
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn browser_response_is_matched_to_its_request_while_a_dialog_is_handled() {
        let answer = |message: &Value| {
            let id = message["id"].as_u64().unwrap();
            match message["method"].as_str().unwrap() {
                "A" => vec![
                    format!("{{\"id\":{},\"result\":{{\"no\":1}}}}", id + 100),
                    "{\"method\":\"Page.javascriptDialogOpening\",\"params\":{\"type\":\"alert\",\"message\":\"hi\"}}".to_owned(),
                ],
                "Page.handleJavaScriptDialog" => {
                    assert_eq!(message["params"], json!({"accept": false}));
                    vec![
                        format!("{{\"id\":{id},\"result\":{{}}}}"),
                        format!("{{\"id\":{},\"result\":{{\"yes\":1}}}}", id - 1),
                    ]
                }
                _ => vec![format!("{{\"id\":{id},\"error\":{{\"message\":\"no such\"}}}}")],
            }
        };
        with_browser(answer, |wire| {
            assert_eq!(wire.ask("A", json!({}), soon()).unwrap(), json!({"yes": 1}));
            assert_eq!(wire.observed.dialogs.total, 1);
            let refused = wire.ask("B", json!({}), soon()).unwrap_err();
            assert_eq!(refused.word(), "browser-refused");
        });
    }

    #[test]
    fn unanswered_browser_request_times_out_and_browser_exit_error_contains_stderr() {
        with_browser(
            |message| match message["method"].as_str().unwrap() {
                "silence" => vec!["{\"method\":\"x\"}".to_owned()],
                _ => Vec::new(),
            },
            |wire| {
                let late = Instant::now() + Duration::from_millis(50);
                let silent = wire.ask("silence", json!({}), late).unwrap_err();
                assert_eq!(silent.word(), "timeout");
                let lost = wire.ask("end", json!({}), soon()).unwrap_err();
                assert!(lost.is_final());
                assert!(lost.to_string().contains("FATAL: enough"), "{lost}");
                // A later request fails with the same reason.
                assert_eq!(
                    wire.ask("again", json!({}), soon()).unwrap_err().word(),
                    "browser-lost"
                );
            },
        );
    }

    #[test]
    fn error_of_a_lost_browser_contains_late_stderr_even_if_stderr_never_ends() {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).unwrap();
        for ends in [true, false] {
            let ((_input, to_input), (from_output, output), (from_errors, errors)) =
                (pipe(), pipe(), pipe());
            let mut host = NoHost;
            let streams = (to_input, from_output, from_errors);
            let mut wire = Wire::open(&mut host, wakes(), streams).unwrap();
            drop(output);
            let mut errors = File::from(errors);
            let late = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(500));
                errors.write_all(b"[1:1] FATAL: late\n").unwrap();
                // A returned file stays open, so the browser's standard error does not end.
                (!ends).then_some(errors)
            });
            let lost = wire.ask("A", json!({}), soon()).unwrap_err();
            assert!(lost.to_string().contains("FATAL: late"), "{lost}");
            drop(late.join().unwrap());
        }
    }

    #[test]
    fn events_of_an_inactive_page_change_only_the_load_state_of_that_page() {
        let event = |session: &str| {
            format!(
                "{{\"method\":\"Page.frameStartedLoading\",\"sessionId\":\"{session}\",\"params\":{{\"frameId\":\"frame-{session}\"}}}}"
            )
        };
        let answer = move |message: &Value| {
            let id = message["id"].as_u64().unwrap();
            let reply = format!(
                "{{\"id\":{id},\"result\":{{\"to\":{}}}}}",
                message["sessionId"]
            );
            vec![event("one"), reply]
        };
        with_browser(answer, |wire| {
            wire.turn_to("one");
            wire.observed.tab.frame = "frame-one".to_owned();
            wire.turn_to("two");
            wire.observed.tab.frame = "frame-two".to_owned();
            assert_eq!(wire.ask("A", json!({}), soon()).unwrap()["to"], "two");
            assert!(!wire.observed.tab.loading);
            wire.turn_to("one");
            assert!(wire.observed.tab.loading && wire.observed.tab.frame == "frame-one");
            assert_eq!(wire.ask("B", json!({}), soon()).unwrap()["to"], "one");
        });
    }

    #[test]
    fn page_crash_ends_the_pending_browser_request() {
        with_browser(
            |_| vec!["{\"method\":\"Inspector.targetCrashed\",\"params\":{}}".to_owned()],
            |wire| {
                let crashed = wire.ask("A", json!({}), soon()).unwrap_err();
                assert_eq!(crashed, Failure::Crashed);
            },
        );
    }
}
