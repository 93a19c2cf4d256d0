//! The frame socket: newline-delimited JSON, bounded, never blocking.
//!
//! Only the process that opened a channel may end the conversation: after
//! `pcntl_fork()` the child holds a copy, and its end must not cancel the parent's run.

use crate::guard::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown,
    socketpair,
};
use rustix::process::{Pid, getpid};
use serde_json::Value;
use std::cell::RefCell;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, ErrorCode, MAX_FRAME_BYTES};

/// How long a wait lasts before PHP is looked after.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// What went wrong on the socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    /// The request is too long for one frame.
    #[error(
        "the request is {bytes} bytes long, but at most {MAX_FRAME_BYTES} are accepted; put large inputs into staged files"
    )]
    RequestTooLarge { bytes: usize },
    /// The runner sent too long a frame.
    #[error(
        "the runner sent a frame longer than {MAX_FRAME_BYTES} bytes; install matching versions"
    )]
    FrameTooLarge,
    /// The runner sent something else than a frame.
    #[error("the runner sent a line that is not a frame ({reason}); install matching versions")]
    NotAFrame { reason: &'static str },
    /// The socket failed.
    #[error("the socket to the runner failed: {errno}")]
    Socket { errno: Errno },
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
            ChannelError::FrameTooLarge
            | ChannelError::NotAFrame { .. }
            | ChannelError::Socket { .. } => ErrorCode::RunnerUnavailable,
        };
        ErrorBody::new(code, error.to_string())
    }
}

impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        ErrorBody::from(error).into()
    }
}

/// What a look at the socket brought.
#[derive(Debug)]
pub(crate) enum Received {
    /// One line, parsed, without its newline.
    Line(Value),
    /// Nothing yet.
    Nothing,
    /// The runner is gone; no further line will come.
    End,
}

#[derive(Debug, Default)]
struct Inbox {
    bytes: Vec<u8>,
    /// Up to here no newline was found.
    searched: usize,
    /// Start of what has not been handed out.
    start: usize,
    ended: bool,
}

impl Inbox {
    fn take_line(&mut self) -> Option<Vec<u8>> {
        let from = self.searched.max(self.start);
        match self.bytes[from..].iter().position(|&b| b == b'\n') {
            Some(offset) => {
                let line = self.bytes[self.start..from + offset].to_vec();
                self.start = from + offset + 1;
                self.searched = self.start;
                if self.start == self.bytes.len() {
                    self.bytes.clear();
                    self.start = 0;
                    self.searched = 0;
                }
                Some(line)
            }
            None => {
                self.bytes.drain(..self.start);
                self.start = 0;
                self.searched = self.bytes.len();
                None
            }
        }
    }
}

/// One end of the frame socket.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: RefCell<Option<OwnedFd>>,
    inbox: RefCell<Inbox>,
    owner: Pid,
}

impl Channel {
    /// Makes a pair: our end, and the runner's, which is not inherited by accident.
    pub(crate) fn pair() -> Result<(Self, OwnedFd), ChannelError> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| ChannelError::Socket { errno })?;
        Ok((Self::over(ours), theirs))
    }

    /// A channel over a connected stream socket, which must be close-on-exec.
    pub(crate) fn over(socket: OwnedFd) -> Self {
        Self {
            socket: RefCell::new(Some(socket)),
            inbox: RefCell::new(Inbox::default()),
            owner: getpid(),
        }
    }

    /// Fails in a process that only inherited the channel.
    pub(crate) fn assert_ours(&self) -> Result<(), ChannelError> {
        if getpid() == self.owner {
            Ok(())
        } else {
            Err(ChannelError::Foreign)
        }
    }

    /// Sends a frame; calls `idle` whenever the socket is full for one tick.
    pub(crate) fn send(
        &self,
        frame: &impl serde::Serialize,
        mut idle: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.assert_ours()?;
        let mut line = serde_json::to_vec(frame).map_err(|_| ChannelError::NotAFrame {
            reason: "it could not be written",
        })?;
        line.push(b'\n');
        if line.len() > MAX_FRAME_BYTES {
            return Err(ChannelError::RequestTooLarge { bytes: line.len() }.into());
        }
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            match self.send_some(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.wait(PollFlags::OUT, TICK);
                    idle()?;
                }
                // The runner's last words, if any, are still in the socket.
                Err(Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(errno) => return Err(ChannelError::Socket { errno }.into()),
            }
        }
        Ok(())
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
    pub(crate) fn receive(&self, longest: Duration) -> Result<Received, ChannelError> {
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
    pub(crate) fn exchange(
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
    pub(crate) fn receive_read(&self) -> Result<Received, ChannelError> {
        self.assert_ours()?;
        Ok(self.buffered()?.unwrap_or(Received::Nothing))
    }

    fn buffered(&self) -> Result<Option<Received>, ChannelError> {
        let mut inbox = self.inbox.borrow_mut();
        if let Some(line) = inbox.take_line() {
            if line.len() >= MAX_FRAME_BYTES {
                return Err(ChannelError::FrameTooLarge);
            }
            return match serde_json::from_slice(&line) {
                Ok(value) => Ok(Some(Received::Line(value))),
                Err(_) => Err(ChannelError::NotAFrame {
                    reason: "it is not JSON",
                }),
            };
        }
        if inbox.bytes.len() >= MAX_FRAME_BYTES {
            return Err(ChannelError::FrameTooLarge);
        }
        Ok(inbox.ended.then_some(Received::End))
    }

    /// Reads what the socket holds, at most about 1 MiB at a time, without waiting.
    pub(crate) fn fill(&self) -> Result<(), ChannelError> {
        let socket = self.socket.borrow();
        let mut inbox = self.inbox.borrow_mut();
        let Some(socket) = socket.as_ref() else {
            inbox.ended = true;
            return Ok(());
        };
        let mut chunk = vec![0_u8; 64 * 1024];
        for _ in 0..16 {
            match recv(socket, &mut chunk[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) | Err(Errno::CONNRESET) => {
                    inbox.ended = true;
                    return Ok(());
                }
                Ok((_, count)) => inbox.bytes.extend_from_slice(&chunk[..count]),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(errno) => return Err(ChannelError::Socket { errno }),
            }
        }
        Ok(())
    }

    /// Ends the conversation: for the runner this is the sign that its caller is gone.
    pub(crate) fn close(&self) {
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
pub(crate) fn wait_for(fd: BorrowedFd<'_>, flags: PollFlags, time: Duration) {
    let time = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let _ = poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&time));
}
