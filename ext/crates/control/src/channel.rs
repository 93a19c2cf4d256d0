//! A caller's socket: lines of JSON, bounded in length, without a call that blocks beyond its time.
//!
//! Only the process that opened a channel may end the conversation: after
//! `pcntl_fork()` the child holds a copy, and its end must not cancel the parent's run.

use crate::lines::LineBuffer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown,
    socketpair,
};
use rustix::process::{Pid, getpid};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Frame, MAX_FRAME_BYTES};

/// Longest of the waits that a send consists of.
const SEND_WAIT: Duration = Duration::from_millis(50);

/// What went wrong on the socket.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The request is too long for one line.
    #[error(
        "the request is {bytes} bytes long, but at most {longest} are accepted; put large inputs into staged files"
    )]
    RequestTooLarge {
        /// With the line's end.
        bytes: usize,
        /// Bytes that a line may have.
        longest: usize,
    },
    /// The runner sent too long a frame.
    #[error("the runner sent a frame longer than {longest} bytes; install matching versions")]
    FrameTooLarge {
        /// Bytes that a line may have.
        longest: usize,
    },
    /// The runner sent something else than a frame.
    #[error("the runner sent a line that is not a frame ({reason}); install matching versions")]
    NotAFrame {
        /// What is wrong with it; never its text, which may hold a secret.
        reason: &'static str,
    },
    /// The socket failed.
    #[error("the socket to the runner failed: {errno}")]
    Socket {
        /// Why.
        errno: Errno,
    },
    /// The channel belongs to another process.
    #[error(
        "this run belongs to the process that started it; start a run of your own after a fork"
    )]
    Foreign,
}

impl From<ChannelError> for ErrorBody {
    fn from(error: ChannelError) -> Self {
        let code = match error {
            ChannelError::RequestTooLarge { .. } | ChannelError::Foreign => ErrorCode::InputInvalid,
            ChannelError::FrameTooLarge { .. }
            | ChannelError::NotAFrame { .. }
            | ChannelError::Socket { .. } => ErrorCode::RunnerUnavailable,
        };
        ErrorBody::new(code, error.to_string())
    }
}

/// What a look at the socket brought.
#[derive(Debug)]
pub enum Received {
    /// One line, without its newline.
    Line(Vec<u8>),
    /// Nothing yet.
    Nothing,
    /// The runner is gone; no further line will come.
    End,
}

/// How much of a line was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All of it.
    Whole,
    /// The other side closed the socket before it had all of it.
    Cut,
}

/// A document as a line of at most `longest` bytes.
///
/// # Errors
/// A document that is longer.
pub(crate) fn line_of(document: &impl Serialize, longest: usize) -> Result<Vec<u8>, ChannelError> {
    let mut line = serde_json::to_vec(document).map_err(|_| ChannelError::NotAFrame {
        reason: "it could not be written",
    })?;
    line.push(b'\n');
    match line.len() {
        bytes if bytes > longest => Err(ChannelError::RequestTooLarge { bytes, longest }),
        _ => Ok(line),
    }
}

/// The caller's end of a conversation.
#[derive(Debug)]
pub struct Channel {
    socket: RefCell<Option<OwnedFd>>,
    lines: RefCell<LineBuffer>,
    ended: Cell<bool>,
    /// Bytes that a received line may have.
    longest: usize,
    owner: Pid,
}

impl Channel {
    /// Makes a pair for frames: the caller's end, and the runner's. Both are close-on-exec.
    ///
    /// # Errors
    /// The kernel's, when it has no socket.
    pub fn pair() -> Result<(Self, OwnedFd), ChannelError> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| ChannelError::Socket { errno })?;
        Ok((Self::of_frames(ours), theirs))
    }

    /// For frames, over a connected stream socket, which must be close-on-exec.
    #[must_use]
    pub fn of_frames(socket: OwnedFd) -> Self {
        Self::new(socket, MAX_FRAME_BYTES)
    }

    /// Over a connected stream socket, which must be close-on-exec. A received line may have
    /// `longest` bytes.
    pub(crate) fn new(socket: OwnedFd, longest: usize) -> Self {
        Self {
            socket: RefCell::new(Some(socket)),
            lines: RefCell::new(LineBuffer::default()),
            ended: Cell::new(false),
            longest,
            owner: getpid(),
        }
    }

    /// Fails in a process that only inherited the channel.
    ///
    /// # Errors
    /// [`ChannelError::Foreign`].
    pub fn assert_ours(&self) -> Result<(), ChannelError> {
        if getpid() == self.owner {
            Ok(())
        } else {
            Err(ChannelError::Foreign)
        }
    }

    /// Sends a frame; calls `idle` whenever the socket was full for 50 ms. A runner that is gone
    /// is no error here: its last frames may still be there to be received.
    ///
    /// # Errors
    /// A frame that is too long, the socket's, or what `idle` fails with.
    pub fn send<E: From<ChannelError>>(
        &self,
        frame: &Frame,
        idle: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        self.assert_ours()?;
        let line = line_of(frame, MAX_FRAME_BYTES)?;
        self.send_line(&line, idle).map(|_: Sent| ())
    }

    pub(crate) fn send_line<E: From<ChannelError>>(
        &self,
        mut line: &[u8],
        mut idle: impl FnMut() -> Result<(), E>,
    ) -> Result<Sent, E> {
        self.assert_ours()?;
        while !line.is_empty() {
            match self.send_some(line) {
                Ok(sent) => line = &line[sent..],
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.wait(PollFlags::OUT, SEND_WAIT);
                    idle()?;
                }
                Err(Errno::PIPE | Errno::CONNRESET) => return Ok(Sent::Cut),
                Err(errno) => return Err(ChannelError::Socket { errno }.into()),
            }
        }
        Ok(Sent::Whole)
    }

    fn send_some(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self.socket.borrow().as_ref() {
            Some(socket) => send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            None => Err(Errno::PIPE),
        }
    }

    fn wait(&self, flags: PollFlags, time: Duration) {
        match self.socket.borrow().as_ref() {
            Some(socket) => wait_for(socket.as_fd(), flags, time),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }

    /// Takes the next line if there is one; waits at most this long for it.
    ///
    /// # Errors
    /// A line that is too long, or the socket's.
    pub fn receive(&self, longest: Duration) -> Result<Received, ChannelError> {
        self.assert_ours()?;
        if let Some(received) = self.buffered()? {
            return Ok(received);
        }
        self.wait(PollFlags::IN, longest);
        self.fill()?;
        Ok(self.buffered()?.unwrap_or(Received::Nothing))
    }

    /// Sends what the socket takes of `pending` and takes the next line if there is one; waits at
    /// most this long for either. A side that only sent would stop the other, which waits to be
    /// read. Answers how much was sent.
    ///
    /// # Errors
    /// As [`Channel::receive`].
    pub fn exchange(
        &self,
        pending: &[u8],
        longest: Duration,
    ) -> Result<(usize, Received), ChannelError> {
        self.assert_ours()?;
        let mut received = self.buffered()?;
        if received.is_none() {
            let flags = match pending.is_empty() {
                true => PollFlags::IN,
                false => PollFlags::IN | PollFlags::OUT,
            };
            self.wait(flags, longest);
        }
        let sent = match pending.is_empty() {
            true => 0,
            false => match self.send_some(pending) {
                Ok(sent) => sent,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                // The other side's last words, if any, are still in the socket.
                Err(Errno::PIPE | Errno::CONNRESET) => pending.len(),
                Err(errno) => return Err(ChannelError::Socket { errno }),
            },
        };
        if received.is_none() {
            self.fill()?;
            received = self.buffered()?;
        }
        Ok((sent, received.unwrap_or(Received::Nothing)))
    }

    /// Takes the next line of what has been read already.
    ///
    /// # Errors
    /// As [`Channel::receive`].
    pub fn receive_read(&self) -> Result<Received, ChannelError> {
        self.assert_ours()?;
        Ok(self.buffered()?.unwrap_or(Received::Nothing))
    }

    fn buffered(&self) -> Result<Option<Received>, ChannelError> {
        let mut lines = self.lines.borrow_mut();
        let longest = self.longest;
        match lines.next() {
            Some(line) if line.len() >= longest => Err(ChannelError::FrameTooLarge { longest }),
            Some(line) => Ok(Some(Received::Line(line))),
            None if lines.unfinished() >= longest => Err(ChannelError::FrameTooLarge { longest }),
            None => Ok(self.ended.get().then_some(Received::End)),
        }
    }

    /// Reads what the socket holds, at most about 1 MiB at a time, without waiting.
    ///
    /// # Errors
    /// The socket's.
    pub fn fill(&self) -> Result<(), ChannelError> {
        let socket = self.socket.borrow();
        let Some(socket) = socket.as_ref() else {
            self.ended.set(true);
            return Ok(());
        };
        let mut chunk = vec![0_u8; 64 * 1024];
        for _ in 0..16 {
            match recv(socket, &mut chunk[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) | Err(Errno::CONNRESET) => {
                    self.ended.set(true);
                    return Ok(());
                }
                Ok((_, count)) => self.lines.borrow_mut().extend(&chunk[..count]),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(errno) => return Err(ChannelError::Socket { errno }),
            }
        }
        Ok(())
    }

    /// Bytes of a line whose end was not read yet.
    pub(crate) fn unfinished(&self) -> usize {
        self.lines.borrow().unfinished()
    }

    /// The socket once more, for another thread.
    pub(crate) fn try_clone_socket(&self) -> io::Result<UnixStream> {
        match self.socket.borrow().as_ref() {
            Some(socket) => socket.try_clone().map(UnixStream::from),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Ends the conversation: for the runner this is the sign that its caller is gone.
    pub fn close(&self) {
        let Ok(mut slot) = self.socket.try_borrow_mut() else {
            return;
        };
        if let Some(socket) = slot.take()
            && getpid() == self.owner
        {
            let _ = shutdown(&socket, Shutdown::Both);
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.close();
    }
}

/// Waits until the descriptor is ready, at most `time`. An interrupted wait is a short
/// wait: every caller looks again.
pub fn wait_for(fd: BorrowedFd<'_>, flags: PollFlags, time: Duration) {
    let time = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let _ = poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&time));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SHORT: Duration = Duration::from_millis(50);

    fn conversation(longest: usize) -> (Channel, OwnedFd) {
        let (ours, theirs) = Channel::pair().unwrap();
        let socket = ours.socket.take().unwrap();
        (Channel::new(socket, longest), theirs)
    }

    fn say(to: &OwnedFd, text: &[u8]) {
        rustix::io::write(to, text).unwrap();
    }

    #[test]
    fn lines_arrive_one_by_one_and_the_end_comes_after_the_last() {
        let (ours, theirs) = conversation(64);
        assert!(matches!(ours.receive(SHORT), Ok(Received::Nothing)));
        say(&theirs, b"one\ntw");
        assert!(matches!(ours.receive(SHORT), Ok(Received::Line(line)) if line == b"one"));
        say(&theirs, b"o\n");
        drop(theirs);
        assert!(matches!(ours.receive(SHORT), Ok(Received::Line(line)) if line == b"two"));
        assert!(matches!(ours.receive(SHORT), Ok(Received::End)));
    }

    #[test]
    fn a_line_longer_than_the_bound_is_refused_whether_it_ends_or_not() {
        for text in [&[b'x'; 16][..], b"xxxxxxxxxxxxxxxx\n"] {
            let (ours, theirs) = conversation(16);
            say(&theirs, text);
            let got = ours.receive(SHORT);
            assert!(
                matches!(got, Err(ChannelError::FrameTooLarge { longest: 16 })),
                "{got:?}"
            );
        }
        let (ours, theirs) = conversation(16);
        say(&theirs, b"xxxxxxxxxxxxxxx\n");
        assert!(matches!(ours.receive(SHORT), Ok(Received::Line(_))));
        assert!(line_of(&json!("x"), 4).is_ok());
        let refused = line_of(&json!("x"), 3);
        assert!(matches!(
            refused,
            Err(ChannelError::RequestTooLarge {
                bytes: 4,
                longest: 3
            })
        ));
    }

    /// Two sides that only send would wait for each other.
    #[test]
    fn an_exchange_receives_while_the_other_side_takes_nothing() {
        let (ours, theirs) = conversation(64);
        let (mut pending, line) = (0, vec![b'x'; 8 * 1024 * 1024]);
        loop {
            let (sent, received) = ours.exchange(&line[pending..], SHORT).unwrap();
            assert!(matches!(received, Received::Nothing));
            pending += sent;
            if sent == 0 {
                break;
            }
        }
        say(&theirs, b"stop\n");
        let (_, received) = ours.exchange(&line[pending..], SHORT).unwrap();
        assert!(matches!(received, Received::Line(line) if line == b"stop"));
    }

    #[test]
    fn a_send_calls_its_caller_while_the_socket_is_full_and_ends_with_its_error() {
        let (ours, _theirs) = conversation(64);
        let mut calls = 0;
        let sent = ours.send_line(&vec![b'x'; 8 * 1024 * 1024], || {
            calls += 1;
            match calls {
                2 => Err(ChannelError::Foreign),
                _ => Ok(()),
            }
        });
        assert!(matches!(sent, Err(ChannelError::Foreign)));
    }

    #[test]
    fn what_a_runner_said_before_it_closed_its_socket_is_received() {
        let (ours, theirs) = conversation(64);
        say(&theirs, b"no\n");
        drop(theirs);
        ours.send(&Frame::Cancel, || Err(ChannelError::Foreign))
            .unwrap();
        assert!(matches!(ours.receive(SHORT), Ok(Received::Line(line)) if line == b"no"));
    }
}
