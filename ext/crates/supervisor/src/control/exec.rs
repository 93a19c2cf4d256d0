//! A program in a held sandbox, and the client whose it is.
//!
//! Its streams are copied here: what it prints goes redacted to the client and to the journal,
//! what the client says goes to its standard input. One loop waits for all of it at once and
//! for nothing inside a step. So a client that does not read, or a full journal, stops only the
//! reading of this program's output: its signals and its standard input go on.

use super::handles::ControlHandles;
use super::lines::{Lines, Replies, ReplyQueue};
use super::stdin::{Misunderstood, Stdin, waits};
use super::streams::{Out, Streamed, readable};
use crate::run::{QueuedRequest, end_word, resize};
use base64::Engine;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use wp_codebox_contracts::{
    Disconnect, ErrorBody, ErrorCode, ExecutionId, LiveEnd, LiveExec, LiveInput, LiveReply,
    OutputStream,
};
use wp_codebox_runtime::{ExecutionEnd, kernel_error};

/// One read.
const CHUNK: usize = 32 * 1024;
/// Bytes of replies that wait for the client before the program is read no further.
const QUEUE: usize = 512 * 1024;
/// Silence after which what is no whole line is shown.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a client that is not read from is checked for being gone.
const LOOK: Duration = Duration::from_millis(500);
/// Left when a program has ended: no more than a pipe holds. What exceeds it comes from a process
/// in the background.
const LEFT: usize = 1024 * 1024;
/// Time between a hang-up and a kill.
const GRACE: Duration = Duration::from_secs(2);

/// Answers a request to run a program, to its end.
pub(super) async fn converse(
    actor: String,
    exec: LiveExec,
    lines: Lines,
    mut replies: Replies,
    handles: &ControlHandles,
) {
    // The end of the run waits a moment for the last bytes of conversations.
    let _follower = handles.queue.follow();
    let (answer, answered) = oneshot::channel();
    let (disconnect, flow) = (exec.disconnect, exec.stdin);
    let put = handles.queue.put(QueuedRequest::Launch {
        actor,
        exec,
        answer,
    });
    let over = || ErrorBody::new(ErrorCode::SandboxNotHeld, "the sandbox has ended");
    let started = match put {
        Ok(()) => answered.await.unwrap_or_else(|_| Err(over())),
        Err(error) => Err(error),
    };
    let begun = started.and_then(|started| {
        let id = started.id.clone();
        Streamed::new(started.streams, flow, handles)
            .map(|streams| (id.clone(), started.ended, streams))
            .map_err(|error| {
                let _ = handles.queue.put(QueuedRequest::Stop { id: id.clone() });
                let _ = handles.queue.put(QueuedRequest::Drained { id });
                let message = format!("the program's streams cannot be watched: {error}");
                kernel_error(ErrorCode::RunFailed, message, &error)
            })
    });
    match begun {
        Ok((id, ended, streams)) => {
            let conversation = Conversation {
                id,
                handles,
                lines,
                replies: replies.into_queue(),
                client: Client::There,
                disconnect,
                ended,
                terminal: streams.terminal,
                stdin: streams.stdin,
                failure: None,
                outs: streams.outs,
                journal: None,
                began: Instant::now(),
                kill_at: None,
            };
            conversation.run().await;
        }
        Err(error) => {
            let error = handles.redactor.redact_error(error);
            replies.error(error).await;
        }
    }
}

/// The client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    There,
    /// It says nothing more, but reads.
    Silent,
    Gone,
}

/// Output that waits for room in the journal. The future keeps its place in the queue.
struct Pending<'a> {
    stream: OutputStream,
    bytes: Vec<u8>,
    room: Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send + 'a>>,
}

struct Conversation<'a> {
    id: ExecutionId,
    handles: &'a ControlHandles,
    lines: Lines,
    replies: ReplyQueue,
    client: Client,
    disconnect: Disconnect,
    ended: oneshot::Receiver<ExecutionEnd>,
    terminal: Option<OwnedFd>,
    stdin: Stdin,
    /// Why the program is being killed; told instead of its end.
    failure: Option<ErrorBody>,
    outs: [Out<'a>; 2],
    journal: Option<Pending<'a>>,
    began: Instant,
    kill_at: Option<Instant>,
}

/// What happened next.
enum Next {
    Ended(ExecutionEnd),
    Line(std::io::Result<Option<Vec<u8>>>),
    Out(usize),
    In,
    Sent,
    Room(Option<OwnedSemaphorePermit>),
    Pause,
    Look,
}

impl Conversation<'_> {
    async fn run(mut self) {
        self.replies.push(&LiveReply::Started {
            execution_id: self.id.clone(),
            stdin: self.stdin.flow(),
        });
        if let Some(credit) = self.stdin.opening() {
            self.replies.push(&credit);
        }
        let end = loop {
            match self.next().await {
                Next::Ended(end) => break end,
                Next::Line(Ok(Some(line))) => self.hear(&line),
                Next::Line(other) => self.silent(&other),
                Next::Out(index) => self.copy(index),
                Next::In => {
                    if let Some(reply) = self.stdin.feed() {
                        self.replies.push(&reply);
                    }
                }
                Next::Room(room) => self.keep(room),
                Next::Pause => {
                    for index in 0..self.outs.len() {
                        if let Some(bytes) = self.outs[index].client.pause() {
                            self.show(index, &bytes);
                        }
                    }
                }
                Next::Sent | Next::Look => {}
            }
            self.check_client();
            if self.kill_at.is_some_and(|at| Instant::now() >= at) {
                self.kill_at = None;
                let _ = self.handles.queue.put(QueuedRequest::Stop {
                    id: self.id.clone(),
                });
            }
        };
        let dropped = self.drain().await;
        // Before the client reads any of it: journal and status depend on no reader.
        let _ = self.handles.queue.put(QueuedRequest::Drained {
            id: self.id.clone(),
        });
        let last = self.last_word(end, dropped);
        self.replies.push(&last);
        while !self.replies.is_empty() {
            let hears = self.client == Client::There;
            tokio::select! {
                () = self.replies.flush_some() => {}
                // What it still sends is dropped; it may wait to be rid of it before it reads.
                line = self.lines.next(), if hears => match line {
                    Ok(Some(_)) => {}
                    other => self.silent(&other),
                },
                () = tokio::time::sleep(LOOK), if !hears => {}
            }
            self.check_client();
        }
    }

    async fn next(&mut self) -> Next {
        let reads = self.journal.is_none() && self.replies.len() < QUEUE;
        let waits = reads && self.outs.iter().any(|out| out.client.waits());
        let hears = self.client == Client::There && self.failure.is_none() && self.stdin.has_room();
        let looks = self.kill_at.is_some() || !hears;
        let feeds = self.stdin.waits();
        let sends = !self.replies.is_empty();
        let [first, second] = &self.outs;
        let (stdout, stderr) = (first.fd.as_ref(), second.fd.as_ref());
        tokio::select! {
            end = &mut self.ended => Next::Ended(end.unwrap_or_else(|_| ExecutionEnd::unknown_death())),
            line = self.lines.next(), if hears => Next::Line(line),
            () = readable(stdout), if reads && stdout.is_some() => Next::Out(0),
            () = readable(stderr), if reads && stderr.is_some() => Next::Out(1),
            () = self.stdin.writable(), if feeds => Next::In,
            () = self.replies.flush_some(), if sends => Next::Sent,
            room = room(self.journal.as_mut()), if self.journal.is_some() => Next::Room(room),
            () = tokio::time::sleep(PAUSE), if waits => Next::Pause,
            () = tokio::time::sleep(LOOK), if looks => Next::Look,
        }
    }

    /// No line came: an end of what the client says, or no client any more.
    fn silent(&mut self, line: &std::io::Result<Option<Vec<u8>>>) {
        match line {
            Ok(None) if !self.lines.is_gone() => self.client = Client::Silent,
            Ok(_) | Err(_) => self.left(),
        }
    }

    fn check_client(&mut self) {
        if self.client != Client::Gone && (self.lines.is_gone() || self.replies.is_gone()) {
            self.left();
        }
    }

    /// The client is gone.
    fn left(&mut self) {
        if self.client == Client::Gone {
            return;
        }
        self.client = Client::Gone;
        self.replies.close();
        match (self.disconnect, &self.terminal) {
            (Disconnect::Leave, _) => self.stdin.end(),
            // The kill waits its turn. An end of input before it would make the program take
            // what came by then for all there is.
            (Disconnect::End, Some(_)) => {
                self.signal(libc_signal("HUP"));
                self.kill_at = Some(Instant::now() + GRACE);
            }
            (Disconnect::End, None) => self.kill_at = Some(Instant::now()),
        }
    }

    fn signal(&self, signal: Option<i32>) {
        if let Some(signal) = signal {
            let id = self.id.clone();
            let _ = self.handles.queue.put(QueuedRequest::Signal { id, signal });
        }
    }

    /// One line of the client.
    fn hear(&mut self, line: &[u8]) {
        let understood = match serde_json::from_slice(line) {
            Ok(LiveInput::Stdin { base64 }) => self.stdin.push(&base64),
            Ok(LiveInput::StdinEnd) => {
                self.stdin.end();
                Ok(())
            }
            Ok(LiveInput::Resize(size)) => {
                if let Some(master) = &self.terminal {
                    let _ = resize(master, size);
                }
                Ok(())
            }
            Ok(LiveInput::Signal { signal }) => {
                self.signal(libc_signal(&signal));
                Ok(())
            }
            Err(_) if is_no_input(line) => Ok(()),
            Err(_) => Err(Misunderstood),
        };
        if understood == Err(Misunderstood) {
            self.failure = Some(ErrorBody::new(
                ErrorCode::InputInvalid,
                "a line of standard input was not understood; the program was ended because its input is incomplete",
            ));
            self.stdin.discard();
            let _ = self.handles.queue.put(QueuedRequest::Stop {
                id: self.id.clone(),
            });
        }
    }

    /// One read of one output that can be read.
    fn copy(&mut self, index: usize) {
        let mut buffer = vec![0; CHUNK];
        let Some(fd) = &self.outs[index].fd else {
            return;
        };
        let read = fd.try_io(Interest::READABLE, |fd| {
            rustix::io::read(fd, &mut buffer).map_err(Into::into)
        });
        self.take(index, read, &buffer);
    }

    /// What one read brought; how much it was.
    fn take(&mut self, index: usize, read: std::io::Result<usize>, buffer: &[u8]) -> usize {
        match read {
            Ok(0) => self.outs[index].fd = None,
            Ok(count) => {
                let bytes = &buffer[..count];
                let out = &mut self.outs[index];
                let (clean, kept) = (out.client.push(bytes), out.journal.push(bytes));
                if let Some(kept) = kept {
                    self.queue_for_journal(index, kept);
                }
                if let Some(clean) = clean {
                    self.show(index, &clean);
                }
                return count;
            }
            Err(error) if waits(&error) => return 0,
            // The last process of a terminal closed it.
            Err(_) => self.outs[index].fd = None,
        }
        0
    }

    /// Waits for its turn on the way into the journal. Nothing else waits there: the program is
    /// not read meanwhile.
    fn queue_for_journal(&mut self, index: usize, bytes: Vec<u8>) {
        self.journal = Some(Pending {
            stream: self.outs[index].stream,
            room: Box::pin(self.handles.queue.room(bytes.len())),
            bytes,
        });
    }

    /// Into the journal, by way of the queue. A sandbox that is over keeps nothing more.
    fn keep(&mut self, room: Option<OwnedSemaphorePermit>) {
        if let (Some(pending), Some(room)) = (self.journal.take(), room) {
            let _ = self.handles.queue.put(QueuedRequest::Output {
                id: self.id.clone(),
                stream: pending.stream,
                bytes: pending.bytes,
                room,
            });
        }
    }

    /// Waits until nothing is on its way into the journal.
    async fn settle_journal(&mut self) {
        if self.journal.is_some() {
            let room = room(self.journal.as_mut()).await;
            self.keep(room);
        }
    }

    fn show(&mut self, index: usize, bytes: &[u8]) {
        if self.client == Client::Gone {
            return;
        }
        for piece in bytes.chunks(256 * 1024) {
            let (text, base64) = match std::str::from_utf8(piece) {
                Ok(text) => (Some(text.to_owned()), None),
                Err(_) => {
                    let engine = &base64::engine::general_purpose::STANDARD;
                    (None, Some(engine.encode(piece)))
                }
            };
            self.replies.push(&LiveReply::Output {
                stream: self.outs[index].stream,
                text,
                base64,
            });
        }
    }

    /// Takes what is left when it has ended, without waiting for the client; whether there was
    /// more than that. A process in the background does not hold us.
    async fn drain(&mut self) -> bool {
        self.settle_journal().await;
        let (mut buffer, mut dropped) = (vec![0; CHUNK], false);
        for index in 0..self.outs.len() {
            let (mut read, mut taken) = (1, 0);
            while read > 0 && taken <= LEFT {
                let Some(fd) = &self.outs[index].fd else {
                    break;
                };
                let now = rustix::io::read(fd.get_ref(), &mut buffer).map_err(Into::into);
                read = self.take(index, now, &buffer);
                taken += read;
                self.settle_journal().await;
            }
            dropped |= taken > LEFT;
            let out = &mut self.outs[index];
            let (clean, kept) = (out.client.finish(), out.journal.finish());
            if let Some(kept) = kept {
                self.queue_for_journal(index, kept);
                self.settle_journal().await;
            }
            if let Some(clean) = clean {
                self.show(index, &clean);
            }
        }
        dropped
    }

    fn last_word(&mut self, end: ExecutionEnd, dropped: bool) -> LiveReply {
        if let Some(error) = self.failure.take() {
            return LiveReply::Error { error };
        }
        let (code, signal) = match &end {
            ExecutionEnd::Exited { code } => (Some(*code), None),
            ExecutionEnd::Signalled { signal } => (None, Some(*signal)),
            ExecutionEnd::NotStarted { error } => {
                let error = self.handles.redactor.redact_error(error.clone());
                return LiveReply::Error { error };
            }
            ExecutionEnd::TimedOut
            | ExecutionEnd::Cancelled
            | ExecutionEnd::LimitReached { .. }
            | ExecutionEnd::GuestDied { .. } => (None, None),
        };
        let duration = self.began.elapsed().as_millis();
        LiveReply::Exited(LiveEnd {
            code,
            signal,
            end: end_word(&end).to_owned(),
            reason: end.reason(),
            duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
            output_truncated: dropped,
        })
    }
}

/// Whether a line that is none we know is surely no input: a message of another type.
fn is_no_input(line: &[u8]) -> bool {
    let message = serde_json::from_slice::<serde_json::Value>(line).unwrap_or_default();
    message["type"]
        .as_str()
        .is_some_and(|kind| !kind.starts_with("stdin"))
}

async fn room(pending: Option<&mut Pending<'_>>) -> Option<OwnedSemaphorePermit> {
    match pending {
        Some(pending) => pending.room.as_mut().await,
        None => None,
    }
}

/// The signals that a client may send, by name.
fn libc_signal(name: &str) -> Option<i32> {
    use rustix::process::Signal;
    let signal = match name {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "TERM" => Signal::TERM,
        "KILL" => Signal::KILL,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "STOP" => Signal::STOP,
        "CONT" => Signal::CONT,
        _ => return None,
    };
    Some(signal.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signals_of_the_list_are_sent() {
        assert_eq!(libc_signal("TERM"), Some(15));
        for name in ["SEGV", "term", "SIGTERM", "9", "", "WINCH"] {
            assert_eq!(libc_signal(name), None, "{name}");
        }
    }

    #[test]
    fn only_messages_of_other_types_are_no_input() {
        for line in [
            "",
            "x",
            "\"x\"",
            "{}",
            "[]",
            r#"{"type":"stdin"}"#,
            r#"{"type":"stdin","bas"#,
        ] {
            assert!(!is_no_input(line.as_bytes()), "{line}");
        }
        for line in [
            r#"{"type":"resize","columns":-1}"#,
            r#"{"type":"of-tomorrow"}"#,
        ] {
            assert!(is_no_input(line.as_bytes()), "{line}");
        }
    }
}
