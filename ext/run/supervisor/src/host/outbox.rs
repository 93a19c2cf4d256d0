//! Queue of frames for the caller, written by a separate thread, so that a caller that reads slowly
//! or not at all does not delay the run.
//!
//! The queue has a maximum size. When it is full, an attached run waits for its caller to read, up
//! to a time limit; a detached run does not wait. If the queue is still full then, the caller
//! receives no further events, only the last frame. The journal contains all events, and sequence
//! numbers show the gap. For the last frame the supervisor waits again for a caller that keeps the
//! socket open; the run is already settled (its final record is written) at this point.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Frame, RunMode};
use wp_codebox_control::frame_bytes;

/// Maximum size of the frames that wait for the caller, in bytes.
const WAITING: usize = 8 * 1024 * 1024;
/// Interval at which a wait for the caller checks again whether it must end, e.g. because the run
/// was detached or a time limit is over.
const TICK: Duration = Duration::from_millis(200);

/// Time limits for a caller that does not read its frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendTimeouts {
    /// If the queue is full and the caller of an attached run reads nothing for this time, it gets
    /// no further events.
    pub event: Duration,
    /// Time limit for the last frame of an attached run.
    pub last_attached: Duration,
    /// Time limit for the last frame of a detached run.
    pub last_detached: Duration,
    /// Time limit for the last frame after the supervisor received a termination signal. It can be
    /// short, because a caller that still reads takes the frame at once.
    pub last_stopped: Duration,
}

impl Default for SendTimeouts {
    fn default() -> Self {
        Self {
            event: Duration::from_secs(10),
            last_attached: Duration::from_secs(10 * 60),
            last_detached: Duration::from_secs(60),
            last_stopped: Duration::from_secs(2),
        }
    }
}

/// Whether the run ends when its caller disconnects (attached) or continues without the caller
/// (detached). A detached run never becomes attached again.
#[derive(Debug, Default)]
pub(crate) struct CallerAttachment(AtomicBool);

impl CallerAttachment {
    pub(crate) fn new(mode: RunMode) -> Self {
        Self(AtomicBool::new(mode == RunMode::Detached))
    }

    pub(crate) fn detach(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mode(&self) -> RunMode {
        if self.0.load(Ordering::SeqCst) {
            RunMode::Detached
        } else {
            RunMode::Attached
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether the writer thread is writing a frame.
    writing: bool,
    /// Whether no more events are sent because the caller does not read.
    given_up: bool,
    /// Whether writing to the socket has failed.
    broken: bool,
    /// Number of frames written to the socket.
    written: u64,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>, time: Duration) -> MutexGuard<'a, Queue> {
        let waited = self.changed.wait_timeout(queue, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Sends frames to the caller through a queue. Sending waits for the caller only if the queue is
/// full.
#[derive(Debug)]
pub(crate) struct Outbox {
    shared: Arc<Shared>,
    attachment: Arc<CallerAttachment>,
    timeouts: SendTimeouts,
}

impl Outbox {
    /// Starts the writer thread. The thread ends with the process or when the caller closes the
    /// socket.
    pub(crate) fn start(
        stream: UnixStream,
        attachment: Arc<CallerAttachment>,
        timeouts: SendTimeouts,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("frames".to_owned())
            .spawn(move || write_all(&writer, stream))?;
        Ok(Self {
            shared,
            attachment,
            timeouts,
        })
    }

    /// Queues a frame, unless the caller has disconnected or stopped reading. If the queue is full,
    /// waits for the caller of an attached run up to a time limit; a detached run does not wait.
    pub(crate) fn send(&self, frame: &Frame) {
        let Ok(bytes) = frame_bytes(frame) else {
            return;
        };
        let mut queue = self.shared.lock();
        let mut since = Instant::now();
        let mut written = queue.written;
        // An empty queue accepts a frame of any length.
        let full = |queue: &Queue| queue.bytes > 0 && queue.bytes + bytes.len() > WAITING;
        while !queue.broken && !queue.given_up && full(&queue) {
            if queue.written != written {
                (since, written) = (Instant::now(), queue.written);
            }
            let waits = match self.attachment.mode() {
                RunMode::Attached => since.elapsed() < self.timeouts.event,
                RunMode::Detached => false,
            };
            if !waits {
                queue.given_up = true;
                break;
            }
            queue = self.shared.wait(queue, TICK);
        }
        if !queue.broken && !queue.given_up {
            self.push(queue, bytes);
        }
    }

    /// Queues a frame like [`send`](Self::send), and returns false if the caller has disconnected
    /// or stopped reading.
    pub(crate) fn send_now(&self, frame: &Frame) -> bool {
        self.send(frame);
        let queue = self.shared.lock();
        !queue.broken && !queue.given_up
    }

    /// Returns a notice for the caller if some events were not sent because the caller did not
    /// read.
    pub(crate) fn notice(&self) -> Option<&'static str> {
        let missing = self.shared.lock().given_up;
        missing.then_some(
            "the caller stopped reading, so later events were not sent to it; the journal of the run contains all events",
        )
    }

    /// Sends the last frame and waits until the socket has accepted everything, the caller has
    /// disconnected, or the time limit is over. The limit is short when `stop` returns true.
    pub(crate) fn finish(self, frame: &Frame, stop: impl Fn() -> bool) {
        let too_long = |error: io::Error| {
            let message = format!(
                "the result of the run cannot be sent ({error}); read it with `wp-codebox runs get`"
            );
            let error = ErrorBody::new(ErrorCode::RunFailed, message);
            frame_bytes(&Frame::Error { error })
        };
        let Ok(bytes) = frame_bytes(frame).or_else(too_long) else {
            return;
        };
        let queue = self.shared.lock();
        if queue.broken {
            return;
        }
        self.push(queue, bytes);
        let began = Instant::now();
        let mut queue = self.shared.lock();
        while !queue.broken && (queue.writing || !queue.frames.is_empty()) {
            let most = match self.attachment.mode() {
                _ if stop() => self.timeouts.last_stopped,
                RunMode::Attached => self.timeouts.last_attached,
                RunMode::Detached => self.timeouts.last_detached,
            };
            if began.elapsed() >= most {
                return;
            }
            queue = self.shared.wait(queue, TICK);
        }
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue>, bytes: Vec<u8>) {
        queue.bytes += bytes.len();
        queue.frames.push_back(bytes);
        self.shared.changed.notify_all();
    }
}

/// Writes frames until the caller has disconnected.
fn write_all(shared: &Shared, mut stream: UnixStream) {
    loop {
        let mut queue = shared.lock();
        let frame = loop {
            match queue.frames.pop_front() {
                Some(frame) => break frame,
                None => {
                    queue = shared
                        .changed
                        .wait(queue)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        queue.writing = true;
        drop(queue);
        let sent = stream.write_all(&frame);
        let mut queue = shared.lock();
        queue.writing = false;
        queue.bytes -= frame.len();
        queue.written += 1;
        if sent.is_err() {
            queue.broken = true;
            queue.frames.clear();
        }
        let broken = queue.broken;
        shared.changed.notify_all();
        if broken {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value};
    use wp_codebox_contracts::{EventType, LifecycleEvent};
    use wp_codebox_control::FrameReader;

    /// Time limit so long that no test reaches it.
    const FOREVER: Duration = Duration::from_secs(600);
    /// Upper bound for a step that must not wait, generous for a busy machine.
    const AT_ONCE: Duration = Duration::from_secs(120);

    const LONG_TIMEOUTS: SendTimeouts = SendTimeouts {
        event: FOREVER,
        last_attached: FOREVER,
        last_detached: FOREVER,
        last_stopped: FOREVER,
    };

    fn event_of(seq: u64) -> Frame {
        let mut data = Map::new();
        data.insert("text".to_owned(), Value::from("x".repeat(1 << 20)));
        Frame::Event {
            event: LifecycleEvent {
                id: format!("evt-{seq}"),
                seq,
                kind: EventType::CommandOutput,
                timestamp: String::new(),
                execution_id: None,
                data,
            },
        }
    }

    fn last() -> Frame {
        Frame::Error {
            error: ErrorBody::new(ErrorCode::RunFailed, "over"),
        }
    }

    fn outbox(mode: RunMode, timeouts: SendTimeouts) -> (Outbox, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let attachment = Arc::new(CallerAttachment::new(mode));
        (Outbox::start(ours, attachment, timeouts).unwrap(), theirs)
    }

    /// Runs `step` and returns its result and duration; panics after [`AT_ONCE`] instead of
    /// hanging.
    fn ends<T: Send + 'static>(step: impl FnOnce() -> T + Send + 'static) -> (T, Duration) {
        let (done, over) = std::sync::mpsc::channel();
        let began = Instant::now();
        std::thread::spawn(move || done.send(step()));
        let value = over.recv_timeout(AT_ONCE).expect("it waits");
        (value, began.elapsed())
    }

    fn read_all(stream: UnixStream) -> (Vec<u64>, bool) {
        let mut reader = FrameReader::new(stream);
        let (mut events, mut ended) = (Vec::new(), false);
        while let Ok(Some(frame)) = reader.next_frame() {
            match frame {
                Frame::Event { event } => events.push(event.seq),
                Frame::Error { .. } => {
                    ended = true;
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        (events, ended)
    }

    #[test]
    fn caller_that_reads_receives_all_frames() {
        let (outbox, theirs) = outbox(RunMode::Attached, LONG_TIMEOUTS);
        let reader = std::thread::spawn(move || read_all(theirs));
        for seq in 1..=14 {
            outbox.send(&event_of(seq));
        }
        outbox.finish(&last(), || false);
        assert_eq!(reader.join().unwrap(), ((1..=14).collect(), true));
    }

    /// The caller starts to read late: it gets the queued events and the last frame; the events in
    /// between are missing.
    #[test]
    fn caller_that_stalls_beyond_the_send_timeout_loses_events_but_not_the_last_frame() {
        let some_time = Duration::from_secs(2);
        for (mode, event) in [(RunMode::Attached, some_time), (RunMode::Detached, FOREVER)] {
            let (outbox, theirs) = outbox(
                mode,
                SendTimeouts {
                    event,
                    ..LONG_TIMEOUTS
                },
            );
            let (outbox, took) = ends(move || {
                for seq in 1..=14 {
                    outbox.send(&event_of(seq));
                }
                outbox
            });
            match mode {
                RunMode::Attached => assert!(took >= some_time, "{took:?}"),
                RunMode::Detached => {}
            }
            assert!(outbox.notice().is_some(), "it was given up");
            let reader = std::thread::spawn(move || read_all(theirs));
            outbox.finish(&last(), || false);
            let (events, ended) = reader.join().unwrap();
            assert!(ended && (7..14).contains(&events.len()), "{events:?}");
            assert!(events.iter().copied().eq(1..=events.len() as u64));
        }
    }

    #[test]
    fn last_frame_is_abandoned_if_the_caller_does_not_read_it_in_time() {
        let brief = Duration::from_millis(300);
        let detached = SendTimeouts {
            last_detached: brief,
            ..LONG_TIMEOUTS
        };
        let (outbox, _theirs) = outbox(RunMode::Detached, detached);
        outbox.send(&event_of(1));
        let ((), took) = ends(move || outbox.finish(&last(), || false));
        assert!(took >= brief, "{took:?}");

        let stopped = SendTimeouts {
            last_stopped: brief,
            ..LONG_TIMEOUTS
        };
        let (attached, _theirs) = self::outbox(RunMode::Attached, stopped);
        attached.send(&event_of(1));
        let begun = Instant::now();
        let told = begun + 2 * brief;
        ends(move || attached.finish(&last(), || Instant::now() > told));
        let took = begun.elapsed();
        assert!(took >= 2 * brief, "it was told to stop after {took:?}");
    }

    /// The process exits right after `finish` returns, so a frame that is not yet written to the
    /// socket would be lost.
    #[test]
    fn last_frame_is_sent_after_a_termination_signal() {
        for mode in [RunMode::Attached, RunMode::Detached].repeat(50) {
            let (outbox, theirs) = outbox(mode, LONG_TIMEOUTS);
            outbox.finish(&last(), || true);
            theirs.set_nonblocking(true).unwrap();
            assert_eq!(read_all(theirs), (vec![], true));
        }
    }

    #[test]
    fn disconnected_caller_does_not_block_sends() {
        let (outbox, theirs) = outbox(RunMode::Attached, LONG_TIMEOUTS);
        drop(theirs);
        ends(move || {
            for seq in 1..=14 {
                outbox.send(&event_of(seq));
            }
            outbox.finish(&last(), || false);
        });
    }
}
