//! Sends requests to the caller, i.e. the process that started the run, to execute tools, and
//! receives the results.
//!
//! At most one request waits for its result at a time. The thread that reads the caller's frames
//! delivers results. A result that belongs to another request, arrives late or is the second one
//! for a request is dropped. The waiting thread returns when the run is detached or cancelled; a
//! disconnect of the caller cancels an attached run.

use super::outbox::{CallerAttachment, Outbox};
use serde_json::Value;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_agent::{Parent, ParentAnswer};
use wp_codebox_contracts::{Frame, RunMode};
use wp_codebox_runtime::Cancellation;

/// Interval at which a wait checks for cancellation.
const TICK: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct Open {
    /// Id of the tool request whose result is awaited; `None` while no request waits.
    request_id: Option<String>,
    answer: Option<Value>,
}

/// Passes the caller's tool results from the thread that reads frames to the thread that waits.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    open: Mutex<Open>,
    changed: Condvar,
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a tool result to the waiting thread; drops it if no thread waits for this result.
    pub(crate) fn deliver(&self, result: Value) {
        let mut open = self.lock();
        let meant = result.get("request_id").and_then(Value::as_str);
        if meant.is_some() && meant == open.request_id.as_deref() {
            open.request_id = None;
            open.answer = Some(result);
            self.changed.notify_all();
        }
    }
}

/// Connection over which a run requests tools from its caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParentLine<'a> {
    pub answers: &'a Answers,
    pub outbox: &'a Outbox,
    pub attachment: &'a CallerAttachment,
    pub cancellation: &'a Cancellation,
}

impl ParentLine<'_> {
    /// Returns why the caller can send no result, or `None` if it still can.
    ///
    /// A disconnect of the caller is not a reason of its own: it cancels an attached run. If the
    /// wait ended before that, the run could finish in the time between.
    fn unavailable(&self) -> Option<&'static str> {
        if self.attachment.mode() == RunMode::Detached {
            Some("the run is detached, so no caller can execute tools")
        } else if self.cancellation.reason().is_some() {
            Some("the run is being cancelled")
        } else {
            None
        }
    }
}

impl Parent for ParentLine<'_> {
    fn ask(&self, request_id: &str, request: Value, until: Instant) -> ParentAnswer {
        if let Some(why) = self.unavailable() {
            return ParentAnswer::Unavailable(why);
        }
        {
            let mut open = self.answers.lock();
            open.request_id = Some(request_id.to_owned());
            open.answer = None;
        }
        if !self.outbox.send_now(&Frame::ToolRequest { request }) {
            self.answers.lock().request_id = None;
            return ParentAnswer::Unavailable("the caller of the run does not read requests");
        }
        let mut open = self.answers.lock();
        loop {
            if let Some(answer) = open.answer.take() {
                return ParentAnswer::Result(answer);
            }
            let left = until.saturating_duration_since(Instant::now());
            let unavailable = self.unavailable();
            if unavailable.is_some() || left.is_zero() {
                open.request_id = None;
                return unavailable.map_or(ParentAnswer::Timeout, ParentAnswer::Unavailable);
            }
            let waited = self.answers.changed.wait_timeout(open, left.min(TICK));
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::outbox::SendTimeouts;
    use serde_json::json;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use wp_codebox_control::FrameReader;
    use wp_codebox_runtime::CancelReason;

    struct Fixture {
        answers: Arc<Answers>,
        outbox: Outbox,
        attachment: Arc<CallerAttachment>,
        cancellation: Cancellation,
        theirs: UnixStream,
    }

    fn rig(mode: RunMode) -> Fixture {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let attachment = Arc::new(CallerAttachment::new(mode));
        Fixture {
            answers: Arc::default(),
            outbox: Outbox::start(ours, Arc::clone(&attachment), SendTimeouts::default()).unwrap(),
            attachment,
            cancellation: Cancellation::default(),
            theirs,
        }
    }

    impl Fixture {
        fn ask(&self, id: &str, wait: Duration) -> (ParentAnswer, Duration) {
            let line = ParentLine {
                answers: &self.answers,
                outbox: &self.outbox,
                attachment: &self.attachment,
                cancellation: &self.cancellation,
            };
            let began = Instant::now();
            let request = json!({"request_id": id});
            let answer = line.ask(id, request, began + wait);
            (answer, began.elapsed())
        }
    }

    /// Time limit of a request that must end before half of it, also on a busy machine.
    const LONG: Duration = Duration::from_secs(120);

    #[test]
    fn only_the_first_result_for_the_pending_tool_request_is_returned() {
        let rig = rig(RunMode::Attached);
        // Delivered before any request was sent, so it must be dropped.
        rig.answers
            .deliver(json!({"request_id": "r-1", "status": "succeeded"}));
        let answers = Arc::clone(&rig.answers);
        let mut reader = FrameReader::new(rig.theirs.try_clone().unwrap());
        let host = std::thread::spawn(move || {
            let Ok(Some(Frame::ToolRequest { request })) = reader.next_frame() else {
                panic!("no request")
            };
            assert_eq!(request["request_id"], "r-1");
            answers.deliver(json!({"request_id": "r-0", "n": 0}));
            answers.deliver(json!({"n": 1}));
            answers.deliver(json!("r-1"));
            answers.deliver(json!({"request_id": "r-1", "n": 2}));
            answers.deliver(json!({"request_id": "r-1", "n": 3}));
        });
        let (answer, _) = rig.ask("r-1", LONG);
        host.join().unwrap();
        assert_eq!(
            answer,
            ParentAnswer::Result(json!({"request_id": "r-1", "n": 2}))
        );
        // The second result must not answer the next request.
        let (answer, took) = rig.ask("r-2", Duration::from_millis(300));
        assert_eq!(answer, ParentAnswer::Timeout);
        assert!(took >= Duration::from_millis(300), "{took:?}");
        // A late result must not answer the next request either.
        rig.answers.deliver(json!({"request_id": "r-2"}));
        assert_eq!(
            rig.ask("r-3", Duration::from_millis(50)).0,
            ParentAnswer::Timeout
        );
    }

    #[test]
    fn tool_request_of_a_detached_or_cancelled_run_fails_at_once() {
        let detached = rig(RunMode::Detached);
        let cancelled = rig(RunMode::Attached);
        cancelled.cancellation.cancel(CancelReason::CallerGone);
        for rig in [detached, cancelled] {
            let (answer, took) = rig.ask("r", LONG);
            assert!(matches!(answer, ParentAnswer::Unavailable(_)), "{answer:?}");
            assert!(took < LONG / 2, "{took:?}");
        }
    }

    #[test]
    fn wait_for_a_tool_result_ends_on_detach_or_cancellation() {
        let ends: [fn(&Fixture); 2] = [
            |rig| rig.attachment.detach(),
            |rig| rig.cancellation.cancel(CancelReason::Asked),
        ];
        for end in ends {
            let rig = rig(RunMode::Attached);
            std::thread::scope(|scope| {
                let asked = scope.spawn(|| rig.ask("r", LONG));
                std::thread::sleep(Duration::from_millis(150));
                end(&rig);
                let (answer, took) = asked.join().unwrap();
                assert!(matches!(answer, ParentAnswer::Unavailable(_)), "{answer:?}");
                assert!(took < LONG / 2, "{took:?}");
            });
        }
    }
}
