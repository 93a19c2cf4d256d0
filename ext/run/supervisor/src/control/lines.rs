//! Line reader and reply writer of a control connection. A line has a maximum length. After a line
//! that was sent only in part, nothing more is sent on the connection.

use bytes::{Buf, BytesMut};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, LiveReply, MAX_LIVE_LINE};

/// Maximum time that a client may take to read one line. A slower client gets no further line.
pub(super) const READING: Duration = Duration::from_secs(20);

/// Reads the client's lines from a control connection.
pub(super) struct Lines {
    half: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Lines {
    pub(super) fn new(half: OwnedReadHalf) -> Self {
        Self {
            half,
            buffer: Vec::new(),
        }
    }

    /// Returns the next line without its newline, or `None` at end of file. Dropping the future
    /// loses nothing: bytes already read stay in the buffer.
    pub(super) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.buffer[searched..].iter().position(|b| *b == b'\n') {
                let rest = self.buffer.split_off(searched + at + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                return Ok(Some(line));
            }
            searched = self.buffer.len();
            if searched >= MAX_LIVE_LINE {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a line is longer than 2 MiB",
                ));
            }
            // `read_buf` doubles a full buffer, so even a line of 1 MiB needs only few reads.
            if self.half.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Returns whether the peer has closed the connection, even if unread bytes remain.
    pub(super) fn is_gone(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stream: &tokio::net::UnixStream = self.half.as_ref();
        let mut fds = [PollFd::new(stream, PollFlags::empty())];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut fds, Some(&now)), Ok(1..))
            && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}

/// Writer of replies. A client that does not read in time, or has disconnected, gets no further
/// reply.
pub(super) struct Replies {
    half: OwnedWriteHalf,
    reading: Duration,
    state: ReaderState,
}

/// Whether the client of a connection still reads replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaderState {
    Reading,
    /// The client did not read in time, so it has received only a part of a reply.
    TimedOut,
    Gone,
}

impl Replies {
    /// Creates a writer for a client that must read each line within `reading`.
    pub(super) fn new(half: OwnedWriteHalf, reading: Duration) -> Self {
        Self {
            half,
            reading,
            state: ReaderState::Reading,
        }
    }

    pub(super) fn reader(&self) -> ReaderState {
        self.state
    }

    pub(super) async fn send(&mut self, reply: &LiveReply) {
        self.bytes(&line_of(reply)).await;
    }

    /// Converts the writer to the reply queue of a program, which waits for the client without a
    /// time limit. If an earlier line was sent only in part, the queue sends nothing.
    pub(super) fn into_queue(self) -> ReplyQueue {
        ReplyQueue {
            gone: self.state != ReaderState::Reading,
            half: self.half,
            out: BytesMut::new(),
        }
    }

    /// Returns the write half of the socket, for hyper, which writes the response itself.
    pub(super) fn into_half(self) -> OwnedWriteHalf {
        self.half
    }

    /// Writes bytes, unless an earlier line was sent only in part: the client would take the bytes
    /// for the rest of that line.
    pub(super) async fn bytes(&mut self, bytes: &[u8]) {
        if self.state != ReaderState::Reading {
            return;
        }
        match tokio::time::timeout(self.reading, self.half.write_all(bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.state = ReaderState::Gone,
            Err(_) => self.state = ReaderState::TimedOut,
        }
    }

    pub(super) async fn error(&mut self, error: ErrorBody) {
        self.send(&LiveReply::Error { error }).await;
    }
}

/// Queue of replies to one client. It waits for a slow client as long as the client stays
/// connected. Meanwhile the client's own lines are still read, but the program's output is not read
/// while the queue is too long.
pub(super) struct ReplyQueue {
    half: OwnedWriteHalf,
    out: BytesMut,
    gone: bool,
}

impl ReplyQueue {
    pub(super) fn push(&mut self, reply: &LiveReply) {
        if !self.gone {
            self.out.extend_from_slice(&line_of(reply));
        }
    }

    /// Number of bytes that wait to be sent.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Returns whether a write failed because the client has disconnected.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Drops the queued bytes and accepts no more.
    pub(super) fn close(&mut self) {
        self.gone = true;
        self.out.clear();
    }

    /// Waits until the socket is writable and writes once. Cancel-safe: a dropped future has
    /// written nothing.
    pub(super) async fn flush_some(&mut self) {
        let written = match self.half.writable().await {
            Ok(()) => self.half.try_write(&self.out),
            Err(error) => Err(error),
        };
        match written {
            Ok(count) => self.out.advance(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.close(),
        }
    }
}

fn line_of(reply: &LiveReply) -> Vec<u8> {
    let mut line = serde_json::to_vec(reply).unwrap_or_else(|error| {
        let error = ErrorBody::new(ErrorCode::Internal, error.to_string());
        serde_json::json!({"type": "error", "error": error})
            .to_string()
            .into_bytes()
    });
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Instant;
    use tokio::net::UnixStream;

    const SHORT: Duration = Duration::from_millis(200);

    fn conversation(reading: Duration) -> (UnixStream, Replies) {
        let (client, server) = UnixStream::pair().unwrap();
        let (_, write) = server.into_split();
        (client, Replies::new(write, reading))
    }

    fn large() -> LiveReply {
        LiveReply::Answer {
            answer: json!("x".repeat(1024 * 1024)),
        }
    }

    #[tokio::test]
    async fn live_request_line_above_the_size_limit_is_refused_before_its_end_arrives() {
        for (length, accepted) in [(MAX_LIVE_LINE / 2, true), (MAX_LIVE_LINE + 65_536, false)] {
            let (mut client, server) = UnixStream::pair().unwrap();
            let (read, _write) = server.into_split();
            let mut line = vec![b'x'; length];
            line.push(b'\n');
            let writing = tokio::spawn(async move { client.write_all(&line).await.is_ok() });
            let mut lines = Lines::new(read);
            let next = lines.next().await;
            assert_eq!(next.is_ok(), accepted, "{length}");
            drop(lines);
            writing.abort();
        }
    }

    #[tokio::test]
    async fn reply_to_a_client_that_stops_reading_is_truncated_and_nothing_follows() {
        let (mut client, mut replies) = conversation(SHORT);
        let began = Instant::now();
        replies.send(&large()).await;
        assert_eq!(replies.reader(), ReaderState::TimedOut);
        assert!(began.elapsed() >= SHORT);
        // After the first timeout no write waits again: the first poll completes it.
        let mut context = Context::from_waker(Waker::noop());
        let more = pin!(replies.bytes(b"more\n")).poll(&mut context);
        assert!(more.is_ready());
        drop(replies);
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await.unwrap();
        assert!(heard.len() < 1024 * 1024 && !heard.contains(&b'\n'));
    }

    #[tokio::test]
    async fn slow_client_gets_all_replies_and_disconnected_client_gets_none() {
        // The time limit per line is generous: reader and writer share the one thread of this
        // runtime.
        let (mut client, mut replies) = conversation(300 * SHORT);
        let reading = tokio::spawn(async move {
            let (mut heard, mut piece) = (0, vec![0; 256 * 1024]);
            while heard < 3 * 1024 * 1024 {
                tokio::time::sleep(SHORT / 40).await;
                heard += client.read(&mut piece).await.unwrap();
            }
        });
        let began = Instant::now();
        for _ in 0..3 {
            replies.send(&large()).await;
            assert_eq!(
                replies.reader(),
                ReaderState::Reading,
                "{:?}",
                began.elapsed()
            );
        }
        reading.await.unwrap();
        replies.send(&large()).await;
        assert_eq!(replies.reader(), ReaderState::Gone);
    }

    #[tokio::test]
    async fn reply_queue_loses_no_byte_when_a_flush_future_is_dropped() {
        let (mut client, replies) = conversation(SHORT);
        let mut queue = replies.into_queue();
        let mut wanted = Vec::new();
        for reply in [large(), large(), LiveReply::StdinClosed] {
            queue.push(&reply);
            wanted.extend(line_of(&reply));
        }
        // Fills the socket buffer: a later flush must wait for the reader.
        while tokio::time::timeout(SHORT, queue.flush_some())
            .await
            .is_ok()
        {}
        assert!(!queue.is_empty() && !queue.is_gone());
        let mut heard = Vec::new();
        let mut byte = [0];
        while heard.len() < wanted.len() {
            tokio::select! {
                () = queue.flush_some(), if !queue.is_empty() => {}
                count = client.read(&mut byte) => heard.extend_from_slice(&byte[..count.unwrap()]),
            }
        }
        assert!(queue.is_empty() && heard == wanted);
    }

    #[tokio::test]
    async fn reply_queue_of_disconnected_client_is_emptied() {
        let (client, replies) = conversation(SHORT);
        let mut queue = replies.into_queue();
        queue.push(&large());
        while !queue.is_empty()
            && tokio::time::timeout(SHORT, queue.flush_some())
                .await
                .is_ok()
        {}
        assert!(!queue.is_gone());
        drop(client);
        queue.flush_some().await;
        assert!(queue.is_gone() && queue.is_empty());
        queue.push(&large());
        assert!(queue.is_empty());
    }
}
