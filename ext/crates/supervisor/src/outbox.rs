//! Frames on their way to the caller, written by a thread of their own: a caller that reads
//! slowly, or not at all, does not hold the run.
//!
//! What waits to be written is bounded. When it is full, the caller of an attached run gets
//! some time to read on, that of a detached one none; then the stream is given up: it gets
//! no further events, only the last frame. The journal has all of them, and a gap shows in
//! their sequence numbers. For the last frame a caller that keeps the socket open is waited
//! for again; the run itself is settled by then.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Frame, RunMode};
use wp_codebox_control::frame_bytes;

/// Bytes that may wait.
const WAITING: usize = 8 * 1024 * 1024;
/// How often a long wait looks up.
const TICK: Duration = Duration::from_millis(200);

/// How long a caller that does not read is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Without any progress, while events wait: attached callers only.
    pub event: Duration,
    /// For the last frame of an attached run.
    pub last_attached: Duration,
    /// For the last frame of a detached run.
    pub last_detached: Duration,
    /// For the last frame when this process was told to stop: enough for a caller that reads.
    pub last_stopped: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            event: Duration::from_secs(10),
            last_attached: Duration::from_secs(10 * 60),
            last_detached: Duration::from_secs(60),
            last_stopped: Duration::from_secs(2),
        }
    }
}

/// Whether the run still belongs to its caller. Detached once, it stays so.
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
    /// One is being written.
    writing: bool,
    /// The caller stopped reading.
    given_up: bool,
    /// The socket is of no use any more.
    broken: bool,
    /// Frames written so far.
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

/// The caller's side of the run.
#[derive(Debug)]
pub(crate) struct Outbox {
    shared: Arc<Shared>,
    attachment: Arc<CallerAttachment>,
    patience: Patience,
}

impl Outbox {
    /// Starts the thread that writes. It ends with the process, or when the caller is gone.
    pub(crate) fn start(
        stream: UnixStream,
        attachment: Arc<CallerAttachment>,
        patience: Patience,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("frames".to_owned())
            .spawn(move || write_all(&writer, stream))?;
        Ok(Self {
            shared,
            attachment,
            patience,
        })
    }

    /// Sends a frame, unless the caller is gone or does not read. May wait for a slow one.
    pub(crate) fn send(&self, frame: &Frame) {
        let Ok(bytes) = frame_bytes(frame) else {
            return;
        };
        let mut queue = self.shared.lock();
        let mut since = Instant::now();
        let mut written = queue.written;
        // A frame of any length has its place in an empty queue.
        let full = |queue: &Queue| queue.bytes > 0 && queue.bytes + bytes.len() > WAITING;
        while !queue.broken && !queue.given_up && full(&queue) {
            if queue.written != written {
                (since, written) = (Instant::now(), queue.written);
            }
            let waits = match self.attachment.mode() {
                RunMode::Attached => since.elapsed() < self.patience.event,
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

    /// Sends a frame that is of use only if it is read: whether it is on its way.
    pub(crate) fn send_now(&self, frame: &Frame) -> bool {
        self.send(frame);
        let queue = self.shared.lock();
        !queue.broken && !queue.given_up
    }

    /// What the caller should be told when events were not sent to it.
    pub(crate) fn notice(&self) -> Option<&'static str> {
        let missing = self.shared.lock().given_up;
        missing.then_some(
            "the caller stopped reading, so events were not sent to it any more; the journal of the run has all of them",
        )
    }

    /// Sends the last frame and waits until everything reached the socket, the caller is
    /// gone, or its time is up; that is short when `stop` says so.
    pub(crate) fn finish(self, frame: &Frame, stop: impl Fn() -> bool) {
        let too_long = |error: io::Error| {
            let message =
                format!("the answer of the run cannot be sent ({error}); `runs get` has it");
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
                _ if stop() => self.patience.last_stopped,
                RunMode::Attached => self.patience.last_attached,
                RunMode::Detached => self.patience.last_detached,
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

/// Writes until the caller is gone.
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

    /// Nobody waits that long: what ends earlier did not wait.
    const FOREVER: Duration = Duration::from_secs(600);
    /// What does not wait takes this at most, on a machine that is busy with other things.
    const AT_ONCE: Duration = Duration::from_secs(120);

    const PATIENT: Patience = Patience {
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

    fn outbox(mode: RunMode, patience: Patience) -> (Outbox, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let attachment = Arc::new(CallerAttachment::new(mode));
        (Outbox::start(ours, attachment, patience).unwrap(), theirs)
    }

    /// How long it took, which is not for ever: a test that waits fails instead.
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
    fn a_reader_gets_everything() {
        let (outbox, theirs) = outbox(RunMode::Attached, PATIENT);
        let reader = std::thread::spawn(move || read_all(theirs));
        for seq in 1..=14 {
            outbox.send(&event_of(seq));
        }
        outbox.finish(&last(), || false);
        assert_eq!(reader.join().unwrap(), ((1..=14).collect(), true));
    }

    /// It may read the rest and the last frame later; between them events are missing.
    #[test]
    fn who_does_not_read_does_not_hold_the_run() {
        let some_time = Duration::from_secs(2);
        for (mode, event) in [(RunMode::Attached, some_time), (RunMode::Detached, FOREVER)] {
            let (outbox, theirs) = outbox(mode, Patience { event, ..PATIENT });
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
    fn the_last_frame_waits_for_so_long_only() {
        let brief = Duration::from_millis(300);
        let detached = Patience {
            last_detached: brief,
            ..PATIENT
        };
        let (outbox, _theirs) = outbox(RunMode::Detached, detached);
        outbox.send(&event_of(1));
        let ((), took) = ends(move || outbox.finish(&last(), || false));
        assert!(took >= brief, "{took:?}");

        let stopped = Patience {
            last_stopped: brief,
            ..PATIENT
        };
        let (attached, _theirs) = self::outbox(RunMode::Attached, stopped);
        attached.send(&event_of(1));
        let begun = Instant::now();
        let told = begun + 2 * brief;
        ends(move || attached.finish(&last(), || Instant::now() > told));
        let took = begun.elapsed();
        assert!(took >= 2 * brief, "it was told to stop after {took:?}");
    }

    /// The process ends right after `finish`: what has not reached the socket by then is lost.
    #[test]
    fn told_to_stop_it_still_sends_the_last_frame() {
        for mode in [RunMode::Attached, RunMode::Detached].repeat(50) {
            let (outbox, theirs) = outbox(mode, PATIENT);
            outbox.finish(&last(), || true);
            theirs.set_nonblocking(true).unwrap();
            assert_eq!(read_all(theirs), (vec![], true));
        }
    }

    #[test]
    fn a_caller_that_is_gone_costs_nothing() {
        let (outbox, theirs) = outbox(RunMode::Attached, PATIENT);
        drop(theirs);
        ends(move || {
            for seq in 1..=14 {
                outbox.send(&event_of(seq));
            }
            outbox.finish(&last(), || false);
        });
    }
}
