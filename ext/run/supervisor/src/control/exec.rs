//! Runs one program in a sandbox that is kept open for clients, on behalf of one client of the
//! control socket.
//!
//! One loop copies the program's output, redacted, to the client and to the journal, and the
//! client's input to the program's standard input. The loop waits for all descriptors at once and
//! never blocks on a single one. If the client does not read or the journal is full, only the
//! reading of this program's output pauses; signals and standard input continue.

use super::handles::ControlHandles;
use super::lines::{Lines, Replies, ReplyQueue};
use super::stdin::{InvalidInput, Stdin, waits};
use super::streams::{Out, Streamed, readable};
use crate::journal::queue::QueuedRequest;
use crate::journal::recorder::end_word;
use crate::work::hold::resize;
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

/// Maximum number of bytes that one read takes from a program's output.
const CHUNK: usize = 32 * 1024;
/// Maximum number of bytes that wait to be sent to the client; above it, the program's output is
/// not read.
const QUEUE: usize = 512 * 1024;
/// Time without further output after which an incomplete line is sent to the client.
const FLUSH_DELAY: Duration = Duration::from_millis(20);
/// Interval of checks for a disconnected client while nothing is read from its socket.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of bytes read from one stream after the program has ended: the largest pipe
/// capacity that Linux allows by default (`fs.pipe-max-size`). Any further output comes from a
/// background process and is dropped.
const DRAIN_LIMIT: usize = 1024 * 1024;
/// Time between SIGHUP and SIGKILL for a program on a terminal.
const GRACE: Duration = Duration::from_secs(2);

/// Runs the program that the client requested and sends replies until the program has ended.
pub(super) async fn converse(
    actor: String,
    exec: LiveExec,
    lines: Lines,
    mut replies: Replies,
    handles: &ControlHandles,
) {
    // At its end, a run waits briefly for clients that follow the journal. This conversation
    // registers as such a client, so the run also waits until the final bytes of the conversation
    // are sent.
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
                let message = format!(
                    "the supervisor cannot wait for data of the program's streams: {error}"
                );
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
                client: Client::Connected,
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

/// Connection state of the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    Connected,
    /// The client closed its sending side but still reads.
    HalfClosed,
    Gone,
}

/// Output that waits for a permit, i.e. for free space in the journal queue. The future `permit` is
/// stored until it completes, so that this output keeps its place among the outputs that wait for
/// permits.
struct Pending<'a> {
    stream: OutputStream,
    bytes: Vec<u8>,
    permit: Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send + 'a>>,
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
    /// Why the supervisor killed the program; the client gets this error instead of the exit
    /// status.
    failure: Option<ErrorBody>,
    outs: [Out<'a>; 2],
    journal: Option<Pending<'a>>,
    began: Instant,
    kill_at: Option<Instant>,
}

/// Event for which the loop of a conversation waits. The loop handles one event, then waits again.
enum LoopEvent {
    Ended(ExecutionEnd),
    Line(std::io::Result<Option<Vec<u8>>>),
    Out(usize),
    In,
    Sent,
    Permit(Option<OwnedSemaphorePermit>),
    Pause,
    Tick,
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
                LoopEvent::Ended(end) => break end,
                LoopEvent::Line(Ok(Some(line))) => self.handle_line(&line),
                LoopEvent::Line(other) => self.handle_end_of_input(&other),
                LoopEvent::Out(index) => self.copy(index),
                LoopEvent::In => {
                    if let Some(reply) = self.stdin.feed() {
                        self.replies.push(&reply);
                    }
                }
                LoopEvent::Permit(permit) => self.send_to_journal(permit),
                LoopEvent::Pause => {
                    for index in 0..self.outs.len() {
                        if let Some(bytes) = self.outs[index].client.pause() {
                            self.show(index, &bytes);
                        }
                    }
                }
                LoopEvent::Sent | LoopEvent::Tick => {}
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
        // Queued before the final reply is sent: journal and status must be complete even if the
        // client never reads the reply.
        let _ = self.handles.queue.put(QueuedRequest::Drained {
            id: self.id.clone(),
        });
        let last = self.final_reply(end, dropped);
        self.replies.push(&last);
        while !self.replies.is_empty() {
            let hears = self.client == Client::Connected;
            tokio::select! {
                () = self.replies.flush_some() => {}
                // The program has ended, so further input of the client is dropped. It is still
                // read: a client that blocks in writing its input would never read the final reply.
                line = self.lines.next(), if hears => match line {
                    Ok(Some(_)) => {}
                    other => self.handle_end_of_input(&other),
                },
                () = tokio::time::sleep(CHECK_INTERVAL), if !hears => {}
            }
            self.check_client();
        }
    }

    async fn next(&mut self) -> LoopEvent {
        let reads = self.journal.is_none() && self.replies.len() < QUEUE;
        let waits = reads && self.outs.iter().any(|out| out.client.waits());
        let hears =
            self.client == Client::Connected && self.failure.is_none() && self.stdin.has_room();
        let looks = self.kill_at.is_some() || !hears;
        let feeds = self.stdin.waits();
        let sends = !self.replies.is_empty();
        let [first, second] = &self.outs;
        let (stdout, stderr) = (first.fd.as_ref(), second.fd.as_ref());
        tokio::select! {
            end = &mut self.ended => LoopEvent::Ended(end.unwrap_or_else(|_| ExecutionEnd::unknown_death())),
            line = self.lines.next(), if hears => LoopEvent::Line(line),
            () = readable(stdout), if reads && stdout.is_some() => LoopEvent::Out(0),
            () = readable(stderr), if reads && stderr.is_some() => LoopEvent::Out(1),
            () = self.stdin.writable(), if feeds => LoopEvent::In,
            () = self.replies.flush_some(), if sends => LoopEvent::Sent,
            permit = journal_permit(self.journal.as_mut()), if self.journal.is_some() => LoopEvent::Permit(permit),
            () = tokio::time::sleep(FLUSH_DELAY), if waits => LoopEvent::Pause,
            () = tokio::time::sleep(CHECK_INTERVAL), if looks => LoopEvent::Tick,
        }
    }

    /// Handles a read that returned no line: the client half-closed or closed the connection.
    fn handle_end_of_input(&mut self, line: &std::io::Result<Option<Vec<u8>>>) {
        match line {
            Ok(None) if !self.lines.is_gone() => self.client = Client::HalfClosed,
            Ok(_) | Err(_) => self.handle_disconnect(),
        }
    }

    fn check_client(&mut self) {
        if self.client != Client::Gone && (self.lines.is_gone() || self.replies.is_gone()) {
            self.handle_disconnect();
        }
    }

    /// Marks the client as gone. Then kills its program or lets it continue, as the client
    /// requested when it started the program.
    fn handle_disconnect(&mut self) {
        if self.client == Client::Gone {
            return;
        }
        self.client = Client::Gone;
        self.replies.close();
        match (self.disconnect, &self.terminal) {
            (Disconnect::Leave, _) => self.stdin.end(),
            // Standard input stays open until the kill is carried out: if it were closed, the
            // program would see end of file and treat truncated input as complete.
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

    /// Handles one line from the client.
    fn handle_line(&mut self, line: &[u8]) {
        let handled = match serde_json::from_slice(line) {
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
            Err(_) if is_other_message(line) => Ok(()),
            Err(_) => Err(InvalidInput),
        };
        if handled == Err(InvalidInput) {
            self.failure = Some(ErrorBody::new(
                ErrorCode::InputInvalid,
                "a line that the client sent is not a valid message, or has standard input that the client may not send now; the program was killed because its standard input is incomplete",
            ));
            self.stdin.discard();
            let _ = self.handles.queue.put(QueuedRequest::Stop {
                id: self.id.clone(),
            });
        }
    }

    /// Reads once from the output stream with this index, which must be readable.
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

    /// Passes the bytes of one read on to client and journal; returns their number.
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
            // Reading a pty fails with EIO after its last process has closed it.
            Err(_) => self.outs[index].fd = None,
        }
        0
    }

    /// Requests a permit to put this chunk of output into the journal queue. At most one chunk
    /// waits for a permit: no further output is read meanwhile.
    fn queue_for_journal(&mut self, index: usize, bytes: Vec<u8>) {
        self.journal = Some(Pending {
            stream: self.outs[index].stream,
            permit: Box::pin(self.handles.queue.permit(bytes.len())),
            bytes,
        });
    }

    /// Puts the waiting chunk of output into the queue to the journal. `None` instead of a permit
    /// means that the sandbox has ended; the chunk is then dropped.
    fn send_to_journal(&mut self, permit: Option<OwnedSemaphorePermit>) {
        if let (Some(pending), Some(permit)) = (self.journal.take(), permit) {
            let _ = self.handles.queue.put(QueuedRequest::Output {
                id: self.id.clone(),
                stream: pending.stream,
                bytes: pending.bytes,
                permit,
            });
        }
    }

    /// Waits until the waiting chunk of output, if any, is in the queue to the journal.
    async fn settle_journal(&mut self) {
        if self.journal.is_some() {
            let permit = journal_permit(self.journal.as_mut()).await;
            self.send_to_journal(permit);
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

    /// Reads the remaining output after the program has ended, without waiting for the client.
    /// Returns whether output was dropped. A background process that holds the pipe open does not
    /// delay this.
    async fn drain(&mut self) -> bool {
        self.settle_journal().await;
        let (mut buffer, mut dropped) = (vec![0; CHUNK], false);
        for index in 0..self.outs.len() {
            let (mut read, mut taken) = (1, 0);
            while read > 0 && taken <= DRAIN_LIMIT {
                let Some(fd) = &self.outs[index].fd else {
                    break;
                };
                let now = rustix::io::read(fd.get_ref(), &mut buffer).map_err(Into::into);
                read = self.take(index, now, &buffer);
                taken += read;
                self.settle_journal().await;
            }
            dropped |= taken > DRAIN_LIMIT;
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

    fn final_reply(&mut self, end: ExecutionEnd, dropped: bool) -> LiveReply {
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

/// Returns whether a line that could not be parsed has a message type that does not begin with
/// `stdin`. Such a line is ignored, because it carries no standard input.
fn is_other_message(line: &[u8]) -> bool {
    let message = serde_json::from_slice::<serde_json::Value>(line).unwrap_or_default();
    message["type"]
        .as_str()
        .is_some_and(|kind| !kind.starts_with("stdin"))
}

async fn journal_permit(pending: Option<&mut Pending<'_>>) -> Option<OwnedSemaphorePermit> {
    match pending {
        Some(pending) => pending.permit.as_mut().await,
        None => None,
    }
}

/// Returns the number of a signal by its name; `None` for a signal that clients may not send.
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
    fn signal_names_outside_the_allow_list_are_rejected() {
        assert_eq!(libc_signal("TERM"), Some(15));
        for name in ["SEGV", "term", "SIGTERM", "9", "", "WINCH"] {
            assert_eq!(libc_signal(name), None, "{name}");
        }
    }

    #[test]
    fn unparsed_line_is_ignored_only_if_it_has_a_message_type_that_does_not_begin_with_stdin() {
        for line in [
            "",
            "x",
            "\"x\"",
            "{}",
            "[]",
            r#"{"type":"stdin"}"#,
            r#"{"type":"stdin","bas"#,
        ] {
            assert!(!is_other_message(line.as_bytes()), "{line}");
        }
        for line in [
            r#"{"type":"resize","columns":-1}"#,
            r#"{"type":"of-tomorrow"}"#,
        ] {
            assert!(is_other_message(line.as_bytes()), "{line}");
        }
    }
}
