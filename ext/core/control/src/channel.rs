//! Caller's end of the frame socket, which connects the caller of a run to the run's supervisor. It
//! carries JSON lines up to a maximum length. Every blocking call has a time limit, or repeatedly
//! calls an `idle` function of its caller, which can end the call.
//!
//! Only the process that opened a channel shuts the socket down: after `pcntl_fork()` the child
//! process has a copy of the descriptor, and the child's exit must not cancel the parent's run.

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
use wp_codebox_contracts::{CodedError, Frame, MAX_FRAME_BYTES};

/// Maximum single wait inside a send, after which the caller's `idle` function is called.
const SEND_WAIT: Duration = Duration::from_millis(50);

/// Error of the frame socket.
#[derive(Debug, thiserror::Error, CodedError)]
pub enum ChannelError {
    /// The serialized request exceeds the line length limit.
    #[error(
        "the request is {bytes} bytes long, but at most {longest} are accepted; put large inputs into staged files"
    )]
    #[code(InputInvalid)]
    RequestTooLarge {
        /// Length of the serialized request in bytes, including the newline.
        bytes: usize,
        /// Maximum length of a line that the supervisor accepts, in bytes.
        longest: usize,
    },
    /// The supervisor sent a frame that exceeds the line length limit.
    #[error(
        "the runner sent a frame longer than {longest} bytes; install the PHP extension and wp-codebox from the same release"
    )]
    #[code(RunnerUnavailable)]
    FrameTooLarge {
        /// Maximum length of a line that the caller accepts, in bytes.
        longest: usize,
    },
    /// The supervisor sent a line that cannot be parsed as a frame.
    #[error(
        "the runner sent a line that is not a frame ({reason}); install the PHP extension and wp-codebox from the same release"
    )]
    #[code(RunnerUnavailable)]
    NotAFrame {
        /// Parse error without the text of the line, which may contain a secret.
        reason: &'static str,
    },
    /// The caller's document cannot be serialized to JSON.
    #[error("the request cannot be written as JSON; report this as a defect of wp-codebox")]
    #[code(Internal)]
    NoJson,
    /// A system call on the socket failed.
    #[error("the connection to the runner failed: {errno}; check whether the runner still runs")]
    #[code(RunnerUnavailable)]
    Socket {
        /// Error number of the system call.
        errno: Errno,
    },
    /// The calling process is not the process that opened the channel.
    #[error(
        "only the process that started this run can use it; after a fork, start another run in the child process"
    )]
    #[code(InputInvalid)]
    Foreign,
}

/// Result of one read attempt on the socket.
#[derive(Debug)]
pub enum Received {
    /// The next line, without its newline.
    Line(Vec<u8>),
    /// No complete line is available yet.
    Nothing,
    /// The supervisor closed the socket; no further line will arrive.
    End,
}

/// Whether the socket accepted the whole line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The socket accepted all bytes.
    Whole,
    /// The peer closed the socket before it received all bytes.
    Cut,
}

/// Serializes a document to one line of at most `longest` bytes.
///
/// # Errors
/// Fails when the line is longer than `longest`.
pub(crate) fn line_of(document: &impl Serialize, longest: usize) -> Result<Vec<u8>, ChannelError> {
    let mut line = serde_json::to_vec(document).map_err(|_| ChannelError::NoJson)?;
    line.push(b'\n');
    match line.len() {
        bytes if bytes > longest => Err(ChannelError::RequestTooLarge { bytes, longest }),
        _ => Ok(line),
    }
}

/// Caller's end of the frame socket.
#[derive(Debug)]
pub struct Channel {
    socket: RefCell<Option<OwnedFd>>,
    lines: RefCell<LineBuffer>,
    ended: Cell<bool>,
    /// Maximum length of a received line, in bytes.
    longest: usize,
    owner: Pid,
}

impl Channel {
    /// Creates a connected socket pair for frames: the caller's end and the supervisor's end. Both are
    /// close-on-exec.
    ///
    /// # Errors
    /// Fails with the errno of `socketpair`.
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

    /// Creates a channel for frames over a connected stream socket, which must be close-on-exec.
    #[must_use]
    pub fn of_frames(socket: OwnedFd) -> Self {
        Self::new(socket, MAX_FRAME_BYTES)
    }

    /// Creates a channel over a connected stream socket, which must be close-on-exec. Received
    /// lines may have up to `longest` bytes.
    pub(crate) fn new(socket: OwnedFd, longest: usize) -> Self {
        Self {
            socket: RefCell::new(Some(socket)),
            lines: RefCell::new(LineBuffer::default()),
            ended: Cell::new(false),
            longest,
            owner: getpid(),
        }
    }

    /// Returns an error if this process did not open the channel, but inherited it through `fork`.
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

    /// Sends a frame; calls `idle` each time the socket buffer has been full for 50 ms. Returns
    /// success also if the supervisor has closed its end, because the supervisor's last frames may still
    /// be in the receive buffer.
    ///
    /// # Errors
    /// Fails when the frame is too long, when the socket fails, or with the error that
    /// `idle` returns.
    pub fn send<E: From<ChannelError>>(
        &self,
        frame: &Frame,
        idle: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        self.send_document(frame, idle)
    }

    /// Sends a document as one line, like [`Channel::send`].
    ///
    /// # Errors
    /// The same as those of [`Channel::send`].
    pub fn send_document<E: From<ChannelError>>(
        &self,
        document: &impl Serialize,
        idle: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        self.assert_ours()?;
        let line = line_of(document, MAX_FRAME_BYTES)?;
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

    /// Returns the next line; waits at most `longest` for it to arrive.
    ///
    /// # Errors
    /// Fails when a line is too long or the socket fails.
    pub fn receive(&self, longest: Duration) -> Result<Received, ChannelError> {
        self.assert_ours()?;
        if let Some(received) = self.buffered()? {
            return Ok(received);
        }
        self.wait(PollFlags::IN, longest);
        self.fill()?;
        Ok(self.buffered()?.unwrap_or(Received::Nothing))
    }

    /// Writes as much of `pending` as the socket accepts and returns the next line if one is
    /// available; waits at most `longest` for either. Also returns the number of bytes written.
    /// Reading while writing prevents a deadlock: a peer whose own send buffer is full does not
    /// read.
    ///
    /// # Errors
    /// The same as those of [`Channel::receive`].
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
                // Not an error: the peer's last frames may still be in the receive buffer.
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

    /// Returns the next line from the bytes that were already read; does not read from the socket.
    ///
    /// # Errors
    /// The same as those of [`Channel::receive`].
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

    /// Reads the available bytes into the buffer without waiting, up to about 1 MiB per call.
    ///
    /// # Errors
    /// Fails when the socket fails.
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

    /// Returns the number of buffered bytes that belong to an incomplete line.
    pub(crate) fn unfinished(&self) -> usize {
        self.lines.borrow().unfinished()
    }

    /// Duplicates the socket descriptor, so that another thread can send.
    pub(crate) fn try_clone_socket(&self) -> io::Result<UnixStream> {
        match self.socket.borrow().as_ref() {
            Some(socket) => socket.try_clone().map(UnixStream::from),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Closes this process's descriptor. In the process that opened the channel, also shuts the
    /// socket down: the supervisor then reads end of file and knows that its caller is gone.
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

/// Waits until the descriptor is ready, at most `time`. Also returns early on `EINTR`, so every
/// caller checks the descriptor again.
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
    use wp_codebox_contracts::{ErrorBody, ErrorCode};

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
    fn receive_returns_each_complete_line_and_then_end_of_stream() {
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
    fn overlong_line_is_refused_when_received_with_or_without_newline_and_when_sent() {
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
        // A JSON object can have only strings as member names.
        let no_json = std::collections::BTreeMap::from([(vec![1], 1)]);
        let refused = line_of(&no_json, 99).unwrap_err();
        assert_eq!(ErrorBody::from(refused).code, ErrorCode::Internal);
        let refused = line_of(&json!("x"), 3);
        assert!(matches!(
            refused,
            Err(ChannelError::RequestTooLarge {
                bytes: 4,
                longest: 3
            })
        ));
    }

    /// Two peers that only send would deadlock once both socket buffers are full.
    #[test]
    fn exchange_receives_data_even_while_the_peer_does_not_read() {
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
    fn send_on_a_full_socket_calls_the_idle_callback_and_returns_the_callbacks_error() {
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
    fn frames_sent_before_the_peer_closed_its_socket_are_received() {
        let (ours, theirs) = conversation(64);
        say(&theirs, b"no\n");
        drop(theirs);
        ours.send(&Frame::Cancel, || Err(ChannelError::Foreign))
            .unwrap();
        assert!(matches!(ours.receive(SHORT), Ok(Received::Line(line)) if line == b"no"));
    }
}
