//! Lines of a conversation: bounded in length, whole or not at all.

use bytes::{Buf, BytesMut};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, LiveReply, MAX_LIVE_LINE};

/// How long a client may take to read one line; whatever it does not read by then it does not
/// get.
pub(super) const READING: Duration = Duration::from_secs(20);

/// The client's lines.
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

    /// The next line without its end; `None` at the end of the stream. What is read before this
    /// future is dropped stays for the next.
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
            // A mebibyte of base64 arrives in a few reads.
            if self.half.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Whether the other side is gone altogether, whatever of it is still to be read.
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

/// Answers on their way. One who does not read in time, or is gone, gets no more.
pub(super) struct Replies {
    half: OwnedWriteHalf,
    reading: Duration,
    state: Reader,
}

/// The client as a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Reads,
    /// Too slowly: something was not sent.
    Slow,
    Gone,
}

impl Replies {
    /// To somebody who may take `reading` for each line.
    pub(super) fn new(half: OwnedWriteHalf, reading: Duration) -> Self {
        Self {
            half,
            reading,
            state: Reader::Reads,
        }
    }

    pub(super) fn reader(&self) -> Reader {
        self.state
    }

    pub(super) async fn send(&mut self, reply: &LiveReply) {
        self.bytes(&line_of(reply)).await;
    }

    /// For a program's replies, which have no time limit. Nothing may have been cut before.
    pub(super) fn into_queue(self) -> ReplyQueue {
        ReplyQueue {
            gone: self.state != Reader::Reads,
            half: self.half,
            out: BytesMut::new(),
        }
    }

    /// The socket, for a library that writes to it.
    pub(super) fn into_half(self) -> OwnedWriteHalf {
        self.half
    }

    /// After a line that was cut nothing follows: it would be read as part of that.
    pub(super) async fn bytes(&mut self, bytes: &[u8]) {
        if self.state != Reader::Reads {
            return;
        }
        match tokio::time::timeout(self.reading, self.half.write_all(bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.state = Reader::Gone,
            Err(_) => self.state = Reader::Slow,
        }
    }

    pub(super) async fn error(&mut self, error: ErrorBody) {
        self.send(&LiveReply::Error { error }).await;
    }
}

/// Replies that wait for their reader as long as it is there. The conversation queues lines and
/// goes on hearing its client; it stops reading the program while too much waits here.
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

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Whether a write failed because the client is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Drops what waits and takes nothing more.
    pub(super) fn close(&mut self) {
        self.gone = true;
        self.out.clear();
    }

    /// Waits until the socket takes something and writes once. Dropped while it waits, it has
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
    async fn one_who_does_not_read_is_cut_and_gets_nothing_after_that() {
        let (mut client, mut replies) = conversation(SHORT);
        let began = Instant::now();
        replies.send(&large()).await;
        assert_eq!(replies.reader(), Reader::Slow);
        assert!(began.elapsed() >= SHORT);
        // Nobody waits for such a one again: a thousand times would take minutes.
        let began = Instant::now();
        for _ in 0..1000 {
            replies.bytes(b"more\n").await;
        }
        assert!(began.elapsed() < 100 * SHORT);
        drop(replies);
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await.unwrap();
        assert!(heard.len() < 1024 * 1024 && !heard.contains(&b'\n'));
    }

    #[tokio::test]
    async fn one_who_reads_slowly_gets_all_of_it_and_one_who_is_gone_nothing() {
        // Reader and writer are kept from running alike: the time for a line is far from over.
        let (mut client, mut replies) = conversation(100 * SHORT);
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
            assert_eq!(replies.reader(), Reader::Reads, "{:?}", began.elapsed());
        }
        reading.await.unwrap();
        replies.send(&large()).await;
        assert_eq!(replies.reader(), Reader::Gone);
    }

    #[tokio::test]
    async fn a_queue_waits_for_a_reader_of_single_bytes_and_a_dropped_flush_loses_nothing() {
        let (mut client, replies) = conversation(SHORT);
        let mut queue = replies.into_queue();
        let mut wanted = Vec::new();
        for reply in [large(), large(), LiveReply::StdinClosed] {
            queue.push(&reply);
            wanted.extend(line_of(&reply));
        }
        // Until the socket is full: from here on a flush waits for the reader.
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
    async fn a_queue_whose_client_is_gone_holds_nothing() {
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
