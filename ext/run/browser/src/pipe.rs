//! Debugging pipe of the browser: JSON documents, each terminated by a NUL byte.

use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Maximum length of a browser's response in bytes; the longest one is a screenshot in base64.
const ANSWER: usize = 32 * 1024 * 1024;
/// Maximum length of a browser event in bytes; longer ones are dropped without parsing.
const EVENT: usize = 256 * 1024;
/// Maximum number of JSON values in one response. Each parsed value takes many times the memory of
/// its text.
const VALUES: usize = 2_000_000;
/// Maximum number of queued messages from the browser; when the queue is full, the browser's writes
/// block.
const WAITING: usize = 32;
/// Maximum number of queued messages to the browser.
const OUTGOING: usize = 64;
/// Maximum number of bytes kept of the browser's standard error output: the last ones.
const STDERR_BYTES: usize = 16 * 1024;
/// First bytes of every event; no response begins with them.
const EVENT_MARK: &[u8] = b"{\"method\"";

/// Input of the thread that controls the browser.
#[derive(Debug)]
pub enum Wake {
    /// Message that the browser sent.
    Message(Value),
    /// Long response of the browser. The reader thread waits until the receiver drops the second
    /// field, so that only one long response is in memory, even if the browser sends responses
    /// unasked.
    Large(
        Value,
        #[allow(dead_code, reason = "it is held, and dropped with the message")] SyncSender<()>,
    ),
    /// The browser sent a message that was too long, had too many JSON values or was not a JSON
    /// object.
    Dropped,
    /// The pipe has ended, or the reader closed it because a response exceeded the limits; the text
    /// says why.
    Closed(&'static str),
    /// The egress bridge needs a connection to the site's server and gets it through this sender.
    Site(tokio::sync::oneshot::Sender<io::Result<OwnedFd>>),
}

/// This process's ends of the browser's three streams.
pub(super) struct Pipe {
    pub wakes: Receiver<Wake>,
    pub outgoing: SyncSender<Vec<u8>>,
    pub stderr: Arc<StderrTail>,
}

/// The last bytes of the browser's standard error output, for error messages.
#[derive(Debug, Default)]
pub(super) struct StderrTail {
    state: Mutex<StderrState>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct StderrState {
    bytes: Vec<u8>,
    /// Whether the stream has ended, so that no more output follows.
    all: bool,
}

impl StderrTail {
    /// Waits at most `wait` for the end of the stream, and returns the output that has arrived.
    pub(super) fn last(&self, wait: Duration) -> String {
        let Ok(state) = self.state.lock() else {
            return String::new();
        };
        match self
            .over
            .wait_timeout_while(state, wait, |state| !state.all)
        {
            Ok((state, _)) => String::from_utf8_lossy(&state.bytes).into_owned(),
            Err(_) => String::new(),
        }
    }

    fn read_from(&self, mut errors: impl Read) {
        let mut chunk = [0_u8; 4096];
        while let Ok(count @ 1..) = errors.read(&mut chunk) {
            let Ok(mut state) = self.state.lock() else {
                return;
            };
            state
                .bytes
                .extend_from_slice(chunk.get(..count).unwrap_or_default());
            let over = state.bytes.len().saturating_sub(STDERR_BYTES);
            state.bytes.drain(..over);
        }
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        state.all = true;
        self.over.notify_all();
    }
}

/// Creates the channel whose messages wake the thread that controls the browser.
pub fn wakes() -> (SyncSender<Wake>, Receiver<Wake>) {
    sync_channel(WAITING)
}

impl Pipe {
    /// Starts the threads that read from and write to the browser; they end with the browser.
    pub(super) fn open(
        (to_driver, wakes): (SyncSender<Wake>, Receiver<Wake>),
        (input, output, errors): (OwnedFd, OwnedFd, OwnedFd),
    ) -> io::Result<Self> {
        let (outgoing, queue) = sync_channel::<Vec<u8>>(OUTGOING);
        let stderr = Arc::new(StderrTail::default());
        let kept = Arc::clone(&stderr);
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        named("browser-read").spawn(move || read_messages(File::from(output), &to_driver))?;
        named("browser-write").spawn(move || {
            let mut input = File::from(input);
            while let Ok(message) = queue.recv() {
                if input.write_all(&message).is_err() {
                    return;
                }
            }
        })?;
        named("browser-errors").spawn(move || kept.read_from(File::from(errors)))?;
        Ok(Self {
            wakes,
            outgoing,
            stderr,
        })
    }
}

/// Reads messages from the browser and sends them to `to`, until the stream ends or the receiver is
/// dropped.
pub(super) fn read_messages(mut from: impl Read, to: &SyncSender<Wake>) {
    let mut buffer: Vec<u8> = Vec::new();
    let mut chunk = vec![0_u8; 64 * 1024];
    // True while the rest of a too long message is skipped.
    let mut dropping = false;
    loop {
        let count = match from.read(&mut chunk) {
            Ok(0) | Err(_) => {
                let _ = to.send(Wake::Closed("the browser has ended"));
                return;
            }
            Ok(count) => count,
        };
        let mut rest = chunk.get(..count).unwrap_or_default();
        while let Some(at) = rest.iter().position(|byte| *byte == 0) {
            let (end, after) = rest.split_at(at);
            rest = after.get(1..).unwrap_or_default();
            buffer.extend_from_slice(end);
            let (done, finished) = sync_channel(0);
            let (wake, large) = match message(&buffer, dropping) {
                Some(value) if buffer.len() > EVENT => (Wake::Large(value, done), true),
                Some(value) => (Wake::Message(value), false),
                None => (Wake::Dropped, false),
            };
            buffer.clear();
            dropping = false;
            if to.send(wake).is_err() {
                return;
            }
            if large {
                // Nothing is sent on this channel; `recv` returns when the receiver of the message
                // drops the message.
                let _ = finished.recv();
            }
        }
        if dropping {
            continue;
        }
        buffer.extend_from_slice(rest);
        if buffer.len() > EVENT && buffer.starts_with(EVENT_MARK) {
            dropping = true;
            buffer = Vec::new();
        } else if buffer.len() > ANSWER {
            let _ = to.send(Wake::Closed("the browser sent a response above 32 MiB"));
            return;
        }
    }
}

fn message(bytes: &[u8], dropped: bool) -> Option<Value> {
    let too_long = bytes.len() > EVENT && bytes.starts_with(EVENT_MARK);
    let values = || {
        bytes
            .iter()
            .filter(|byte| matches!(byte, b',' | b'[' | b'{'))
            .count()
    };
    if dropped || too_long || bytes.len() > EVENT && values() > VALUES {
        return None;
    }
    serde_json::from_slice(bytes).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<String> {
        let (to, wakes) = sync_channel(64);
        // Reader that returns uneven pieces, as a pipe does.
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.1 = self.1 % 7 + 1;
                let count = self
                    .1
                    .max(self.0.len() / 40)
                    .min(self.0.len())
                    .min(into.len());
                let (now, later) = self.0.split_at(count);
                into[..count].copy_from_slice(now);
                self.0 = later;
                Ok(count)
            }
        }
        let bytes = bytes.to_vec();
        thread::spawn(move || read_messages(Pieces(&bytes, 0), &to));
        wakes
            .iter()
            .map(|wake| match wake {
                Wake::Message(value) | Wake::Large(value, _) => value.to_string(),
                Wake::Dropped => "dropped".to_owned(),
                Wake::Closed(why) => why.to_owned(),
                Wake::Site(_) => "site".to_owned(),
            })
            .collect()
    }

    #[test]
    fn browser_messages_are_split_at_nul_bytes_and_those_that_are_no_json_object_are_dropped() {
        let seen = read(b"{\"id\":1,\"result\":{}}\0{\"method\":\"a\"}\0not json\0[1]\0{\"id\"");
        assert_eq!(
            seen,
            [
                "{\"id\":1,\"result\":{}}",
                "{\"method\":\"a\"}",
                "dropped",
                "dropped",
                "the browser has ended"
            ]
        );
    }

    #[test]
    fn oversized_browser_event_is_dropped_and_the_next_message_is_read() {
        let mut bytes = b"{\"method\":\"flood\",\"params\":{\"x\":\"".to_vec();
        bytes.resize(EVENT * 3, b'a');
        bytes.extend_from_slice(b"\"}}\0{\"id\":2}\0");
        assert_eq!(
            read(&bytes),
            ["dropped", "{\"id\":2}", "the browser has ended"]
        );
        // Control: a response of the same size is accepted.
        let mut bytes = b"{\"id\":3,\"x\":\"".to_vec();
        bytes.resize(EVENT * 2, b'a');
        bytes.extend_from_slice(b"\"}\0");
        assert!(read(&bytes)[0].starts_with("{\"id\":3"));
    }

    #[test]
    fn browser_response_above_the_size_limit_closes_the_pipe() {
        let mut bytes = b"{\"id\":3,\"x\":\"".to_vec();
        bytes.resize(ANSWER + 1024, b'a');
        assert_eq!(read(&bytes), ["the browser sent a response above 32 MiB"]);
    }

    #[test]
    fn only_one_large_browser_response_is_in_memory_at_a_time() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        use std::time::Instant;

        /// Endless stream of long responses without a request.
        struct Large(Arc<AtomicUsize>, Vec<u8>);
        impl Read for Large {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let at = self.0.fetch_add(into.len(), Ordering::SeqCst) % self.1.len();
                let count = into.len().min(self.1.len() - at);
                into[..count].copy_from_slice(&self.1[at..at + count]);
                self.0.fetch_sub(into.len() - count, Ordering::SeqCst);
                Ok(count)
            }
        }
        let mut answer = format!("{{\"id\":1,\"a\":\"{}\"}}", "x".repeat(2 * EVENT)).into_bytes();
        answer.push(0);
        let (read, length) = (Arc::new(AtomicUsize::new(0)), answer.len());
        let (to, taken) = sync_channel(WAITING);
        let from = Large(Arc::clone(&read), answer);
        let reading = thread::spawn(move || read_messages(from, &to));
        let mut before = 0;
        for _ in 0..3 {
            let begun = Instant::now();
            while read.load(Ordering::SeqCst) <= before {
                assert!(begun.elapsed() < Duration::from_secs(60), "it stands still");
                thread::sleep(Duration::from_millis(5));
            }
            // Wait long enough that a reader without the limit would read too much.
            thread::sleep(Duration::from_millis(200));
            let now = read.load(Ordering::SeqCst);
            assert!(now - before <= 2 * length, "{} answers wait", now / length);
            before = now;
            assert!(matches!(taken.recv().unwrap(), Wake::Large(_, _)));
        }
        drop(taken);
        reading.join().unwrap();
    }

    #[test]
    fn browser_response_with_too_many_json_values_is_dropped() {
        let few = format!("\"{}\"", "x".repeat(15 * EVENT));
        let many = format!("[{}0]", "[],".repeat(5 * EVENT));
        for (value, expected) in [(few, true), (many, false)] {
            let text = format!("{{\"id\":1,\"result\":{value}}}");
            assert_eq!(
                message(text.as_bytes(), false).is_some(),
                expected,
                "{}",
                text.len()
            );
        }
    }
}
