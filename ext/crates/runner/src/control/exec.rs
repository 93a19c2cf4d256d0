//! A program in a held sandbox, and the client whose it is.
//!
//! Its streams are copied here: what it prints goes redacted to the client and to the journal,
//! what the client says goes to its standard input. Nothing here waits for the owner of the
//! guest but its start; a client that reads slowly holds up its own program and no other.

use super::Reins;
use super::lines::{Lines, Reader, Replies};
use crate::run::{Ask, PromptRedactor, Started, StreamRedactor, Streams, end_word, resize};
use base64::Engine;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use wp_codebox_contracts::{
    Disconnect, ErrorBody, ErrorCode, ExecutionId, LiveEnd, LiveExec, LiveInput, LiveReply,
    OutputStream,
};
use wp_codebox_runtime::ExecutionEnd;

/// One read.
const CHUNK: usize = 32 * 1024;
/// Input that may wait for the program; no more is taken from the client meanwhile.
const INPUT: usize = 1024 * 1024;
/// Silence after which what is no whole line is shown.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a client whose input waits is looked after.
const LOOK: Duration = Duration::from_millis(500);
/// Left when a program has ended: no more than a pipe holds. No bound of time, or who halts loses it.
const LEFT: usize = 1024 * 1024;
/// Time between a hang-up and a kill.
const GRACE: Duration = Duration::from_secs(2);

/// Answers a request to run a program, to its end.
pub(super) async fn converse(
    actor: String,
    exec: LiveExec,
    lines: Lines,
    mut replies: Replies,
    reins: &Reins,
) {
    let (answer, answered) = oneshot::channel();
    let disconnect = exec.disconnect;
    let put = reins.desk.put(Ask::Launch {
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
        Conversation::new(started, lines, disconnect, reins).map_err(|error| {
            let _ = reins.desk.put(Ask::Stop { id: id.clone() });
            let _ = reins.desk.put(Ask::Drained { id });
            ErrorBody::new(
                ErrorCode::RunFailed,
                format!("the program's streams cannot be watched: {error}"),
            )
        })
    });
    match begun {
        Ok(mut conversation) => conversation.run(replies).await,
        Err(error) => {
            let error = reins.redactor.redact_error(error);
            replies.error(error).await;
        }
    }
}

/// One of the program's outputs.
struct Out<'a> {
    stream: OutputStream,
    fd: Option<AsyncFd<OwnedFd>>,
    client: PromptRedactor<'a>,
    journal: StreamRedactor<'a>,
}

/// The client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    There,
    /// It says nothing more, but reads.
    Silent,
    Gone,
}

struct Conversation<'a> {
    id: ExecutionId,
    reins: &'a Reins,
    lines: Lines,
    client: Client,
    disconnect: Disconnect,
    ended: oneshot::Receiver<ExecutionEnd>,
    terminal: Option<OwnedFd>,
    stdin: Option<AsyncFd<OwnedFd>>,
    input: Vec<u8>,
    /// Whether its input ends when what waits is written.
    input_ends: bool,
    outs: [Out<'a>; 2],
    began: Instant,
    kill_at: Option<Instant>,
}

/// What happened next.
enum Next {
    Ended(ExecutionEnd),
    Line(std::io::Result<Option<Vec<u8>>>),
    Out(usize),
    In,
    Pause,
    Look,
}

impl<'a> Conversation<'a> {
    fn new(
        started: Started,
        lines: Lines,
        disconnect: Disconnect,
        reins: &'a Reins,
    ) -> std::io::Result<Self> {
        let readable = |fd| watched(fd, Interest::READABLE);
        let writable = |fd| watched(fd, Interest::WRITABLE);
        let (terminal, stdin, stdout, stderr) = match started.streams {
            // Reading and writing wait for different things, and each needs a descriptor of
            // its own to be waited for by.
            Streams::Terminal { master } => (
                Some(master.try_clone()?),
                writable(master.try_clone()?)?,
                readable(master)?,
                None,
            ),
            Streams::Pipes {
                stdin,
                stdout,
                stderr,
            } => (
                None,
                writable(stdin)?,
                readable(stdout)?,
                Some(readable(stderr)?),
            ),
        };
        let out = |stream, fd| Out {
            stream,
            fd,
            client: PromptRedactor::new(&reins.redactor),
            journal: StreamRedactor::new(&reins.redactor),
        };
        Ok(Self {
            id: started.id,
            reins,
            lines,
            client: Client::There,
            disconnect,
            ended: started.ended,
            terminal,
            stdin: Some(stdin),
            input: Vec::new(),
            input_ends: false,
            outs: [
                out(OutputStream::Stdout, Some(stdout)),
                out(OutputStream::Stderr, stderr),
            ],
            began: Instant::now(),
            kill_at: None,
        })
    }

    async fn run(&mut self, mut replies: Replies) {
        let execution_id = self.id.clone();
        replies.send(&LiveReply::Started { execution_id }).await;
        let end = loop {
            match self.next().await {
                Next::Ended(end) => break end,
                Next::Line(Ok(Some(line))) => self.hear(&line),
                Next::Line(Ok(None)) if !self.lines.is_gone() => self.client = Client::Silent,
                Next::Line(_) => self.left(),
                Next::Out(index) => {
                    self.copy(index, &mut replies).await;
                }
                Next::In => self.feed().await,
                Next::Pause => {
                    for index in 0..self.outs.len() {
                        if let Some(bytes) = self.outs[index].client.pause() {
                            self.show(index, &bytes, &mut replies).await;
                        }
                    }
                }
                Next::Look => {}
            }
            if self.client != Client::Gone
                && (self.lines.is_gone() || replies.reader() == Reader::Gone)
            {
                self.left();
            }
            if self.kill_at.is_some_and(|at| Instant::now() >= at) {
                self.kill_at = None;
                let _ = self.reins.desk.put(Ask::Stop {
                    id: self.id.clone(),
                });
            }
        };
        self.drain(&mut replies).await;
        let _ = self.reins.desk.put(Ask::Drained {
            id: self.id.clone(),
        });
        self.tell(end, &mut replies).await;
    }

    async fn next(&mut self) -> Next {
        let waits = self.outs.iter().any(|out| out.client.waits());
        let hears = self.client == Client::There && self.input.len() < INPUT;
        let looks = self.kill_at.is_some() || self.client != Client::There || !hears;
        let feeds = self.stdin.is_some() && !self.input.is_empty();
        let [first, second] = &self.outs;
        let (stdout, stderr, stdin) = (first.fd.as_ref(), second.fd.as_ref(), self.stdin.as_ref());
        tokio::select! {
            end = &mut self.ended => Next::Ended(end.unwrap_or_else(|_| ExecutionEnd::unknown_death())),
            line = self.lines.next(), if hears => Next::Line(line),
            () = readable(stdout), if stdout.is_some() => Next::Out(0),
            () = readable(stderr), if stderr.is_some() => Next::Out(1),
            () = writable(stdin), if feeds => Next::In,
            () = tokio::time::sleep(PAUSE), if waits => Next::Pause,
            () = tokio::time::sleep(LOOK), if looks => Next::Look,
        }
    }

    /// The client is gone.
    fn left(&mut self) {
        if self.client == Client::Gone {
            return;
        }
        self.client = Client::Gone;
        self.input_ends = true;
        self.end_input();
        match (self.disconnect, &self.terminal) {
            (Disconnect::Leave, _) => {}
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
            let _ = self.reins.desk.put(Ask::Signal { id, signal });
        }
    }

    /// One line of the client. What makes no sense changes nothing.
    fn hear(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(LiveInput::Stdin { base64 }) => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(base64);
                if let (Ok(bytes), false) = (bytes, self.input_ends) {
                    self.input.extend_from_slice(&bytes);
                    self.end_input();
                }
            }
            Ok(LiveInput::StdinEnd) => {
                self.input_ends = true;
                self.end_input();
            }
            Ok(LiveInput::Resize(size)) => {
                if let Some(master) = &self.terminal {
                    let _ = resize(master, size);
                }
            }
            Ok(LiveInput::Signal { signal }) => self.signal(libc_signal(&signal)),
            Err(_) => {}
        }
    }

    /// Writes what the program takes, once.
    async fn feed(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        let Ok(mut guard) = stdin.writable().await else {
            return;
        };
        // The guard is from before the write: what changes meanwhile is not missed.
        let input = &self.input;
        match guard.try_io(|fd| rustix::io::write(fd.get_ref(), input).map_err(Into::into)) {
            Ok(Ok(count)) => drop(self.input.drain(..count)),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // It reads no more.
            Ok(Err(_)) => {
                self.input.clear();
                self.stdin = None;
            }
            Err(_) => {}
        }
        self.end_input();
    }

    /// Ends its input when nothing waits for it and nothing more comes.
    fn end_input(&mut self) {
        if self.stdin.is_none() {
            self.input.clear();
        }
        if self.input.is_empty() && self.input_ends {
            // A terminal ends its input by a character of its own, which the client types.
            self.stdin = None;
        }
    }

    /// One read of one output that can be read.
    async fn copy(&mut self, index: usize, replies: &mut Replies) {
        let mut buffer = vec![0; CHUNK];
        let read = {
            let Some(fd) = &self.outs[index].fd else {
                return;
            };
            let Ok(mut guard) = fd.readable().await else {
                return;
            };
            let read = |fd: &AsyncFd<OwnedFd>| {
                rustix::io::read(fd.get_ref(), &mut buffer).map_err(Into::into)
            };
            match guard.try_io(read) {
                Ok(read) => read,
                Err(_) => return,
            }
        };
        self.take(index, read, &buffer, replies).await;
    }

    /// One read of one output, whether it can be read or not; how much there was.
    async fn copy_now(&mut self, index: usize, replies: &mut Replies) -> usize {
        let mut buffer = vec![0; CHUNK];
        let Some(fd) = &self.outs[index].fd else {
            return 0;
        };
        let read = rustix::io::read(fd.get_ref(), &mut buffer).map_err(Into::into);
        self.take(index, read, &buffer, replies).await
    }

    async fn take(
        &mut self,
        index: usize,
        read: std::io::Result<usize>,
        buffer: &[u8],
        replies: &mut Replies,
    ) -> usize {
        match read {
            Ok(0) => self.outs[index].fd = None,
            Ok(count) => {
                let bytes = &buffer[..count];
                let out = &mut self.outs[index];
                let (clean, kept) = (out.client.push(bytes), out.journal.push(bytes));
                if let Some(kept) = kept {
                    self.keep(index, kept).await;
                }
                if let Some(clean) = clean {
                    self.show(index, &clean, replies).await;
                }
                return count;
            }
            Err(error) if waits(&error) => return 0,
            // The last process of a terminal closed it.
            Err(_) => self.outs[index].fd = None,
        }
        0
    }

    /// Into the journal, by way of the desk.
    async fn keep(&self, index: usize, bytes: Vec<u8>) {
        let Some(room) = self.reins.desk.room(bytes.len()).await else {
            return;
        };
        // A sandbox that is over keeps nothing more.
        let _ = self.reins.desk.put(Ask::Output {
            id: self.id.clone(),
            stream: self.outs[index].stream,
            bytes,
            room,
        });
    }

    async fn show(&self, index: usize, bytes: &[u8], replies: &mut Replies) {
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
            let stream = self.outs[index].stream;
            let output = LiveReply::Output {
                stream,
                text,
                base64,
            };
            replies.send(&output).await;
        }
    }

    /// What is left when it has ended; a process in the background does not hold us.
    async fn drain(&mut self, replies: &mut Replies) {
        for index in 0..self.outs.len() {
            let (mut read, mut left) = (1, LEFT);
            while read > 0 && left > 0 {
                read = self.copy_now(index, replies).await;
                left = left.saturating_sub(read);
            }
            let out = &mut self.outs[index];
            let (clean, kept) = (out.client.finish(), out.journal.finish());
            if let Some(kept) = kept {
                self.keep(index, kept).await;
            }
            if let Some(clean) = clean {
                self.show(index, &clean, replies).await;
            }
        }
    }

    async fn tell(&self, end: ExecutionEnd, replies: &mut Replies) {
        let (code, signal) = match &end {
            ExecutionEnd::Exited { code } => (Some(*code), None),
            ExecutionEnd::Signalled { signal } => (None, Some(*signal)),
            ExecutionEnd::NotStarted { error } => {
                let error = self.reins.redactor.redact_error(error.clone());
                return replies.error(error).await;
            }
            ExecutionEnd::TimedOut
            | ExecutionEnd::Cancelled
            | ExecutionEnd::LimitReached { .. }
            | ExecutionEnd::GuestDied { .. } => (None, None),
        };
        let duration = self.began.elapsed().as_millis();
        replies
            .send(&LiveReply::Exited(LiveEnd {
                code,
                signal,
                end: end_word(&end).to_owned(),
                reason: end.reason(),
                duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
                output_truncated: replies.reader() == Reader::Slow,
            }))
            .await;
    }
}

#[expect(
    deprecated,
    reason = "unsound only for types that can change their descriptor; an OwnedFd cannot"
)]
fn watched(fd: OwnedFd, interest: Interest) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}

/// Waits until it can be read. A descriptor that is not there is never asked. That it is ready
/// is forgotten only by a read or write that finds it otherwise.
async fn readable(fd: Option<&AsyncFd<OwnedFd>>) {
    if let Some(fd) = fd {
        let _ = fd.readable().await;
    }
}

async fn writable(fd: Option<&AsyncFd<OwnedFd>>) {
    if let Some(fd) = fd {
        let _ = fd.writable().await;
    }
}

fn waits(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
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
}
