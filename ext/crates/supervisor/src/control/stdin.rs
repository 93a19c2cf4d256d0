//! Standard input of a program: what its client sent and the program did not take yet.

use base64::Engine;
use bytes::{Buf, BytesMut};
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use wp_codebox_contracts::{LiveReply, StdinFlow};

/// Bytes that may wait for the program, and the credit of a client that keeps to it.
const INPUT: usize = 1024 * 1024;
/// Credit is renewed in parts of this size: a small one for each write would double the lines.
const GRANT: usize = INPUT / 4;

/// Input that cannot be passed on. The program must not take the rest for all of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misunderstood;

/// What a client may still send.
#[derive(Debug)]
struct Window {
    open: usize,
    /// Taken by the program and not granted again yet.
    owed: usize,
}

impl Window {
    const fn new() -> Self {
        Self {
            open: INPUT,
            owed: 0,
        }
    }

    /// The client sent so much.
    fn spend(&mut self, bytes: usize) -> Result<(), Misunderstood> {
        self.open = self.open.checked_sub(bytes).ok_or(Misunderstood)?;
        Ok(())
    }

    /// Counts bytes that the program took and answers the credit to grant now. It is granted in
    /// parts of [`GRANT`]; a client that has used up its credit has [`INPUT`] bytes waiting here, so
    /// the program reaches the next part without further input.
    fn taken(&mut self, bytes: usize) -> Option<usize> {
        self.owed += bytes;
        (self.owed >= GRANT).then(|| {
            self.open += self.owed;
            std::mem::take(&mut self.owed)
        })
    }
}

/// The outer side of the program's standard input.
#[derive(Debug)]
pub(super) struct Stdin {
    fd: Option<AsyncFd<OwnedFd>>,
    waiting: BytesMut,
    /// Whether it ends when what waits is written.
    ends: bool,
    /// Only for a client that keeps to credit.
    window: Option<Window>,
}

impl Stdin {
    pub(super) fn new(fd: AsyncFd<OwnedFd>, flow: StdinFlow) -> Self {
        Self {
            fd: Some(fd),
            waiting: BytesMut::new(),
            ends: false,
            window: match flow {
                StdinFlow::Credit => Some(Window::new()),
                StdinFlow::Plain => None,
            },
        }
    }

    pub(super) fn flow(&self) -> StdinFlow {
        match self.window {
            Some(_) => StdinFlow::Credit,
            None => StdinFlow::Plain,
        }
    }

    /// The first credit.
    pub(super) fn opening(&self) -> Option<LiveReply> {
        self.window.as_ref().map(|window| credit(window.open))
    }

    /// Whether a line of the client has room here. With credit it always has, so that signals
    /// behind its input are heard.
    pub(super) fn has_room(&self) -> bool {
        self.window.is_some() || self.waiting.len() < INPUT
    }

    /// Whether something waits for the program.
    pub(super) fn waits(&self) -> bool {
        self.fd.is_some() && !self.waiting.is_empty()
    }

    /// Input of the client.
    pub(super) fn push(&mut self, base64: &str) -> Result<(), Misunderstood> {
        let engine = &base64::engine::general_purpose::STANDARD;
        let bytes = engine.decode(base64).map_err(|_| Misunderstood)?;
        if self.ends {
            return Err(Misunderstood);
        }
        if let Some(window) = &mut self.window {
            window.spend(bytes.len())?;
        }
        if self.fd.is_some() {
            self.waiting.extend_from_slice(&bytes);
        }
        Ok(())
    }

    /// No more input follows. A terminal ends its input by a character of its own, which the
    /// client types.
    pub(super) fn end(&mut self) {
        self.ends = true;
        self.settle();
    }

    /// Drops what waits without an end of input: the program is being killed.
    pub(super) fn discard(&mut self) {
        self.waiting.clear();
    }

    /// Waits until the program may take something.
    pub(super) async fn writable(&self) {
        match &self.fd {
            Some(fd) => drop(fd.writable().await),
            None => std::future::pending().await,
        }
    }

    /// Writes what the program takes, once; what the client is to be told.
    pub(super) fn feed(&mut self) -> Option<LiveReply> {
        let fd = self.fd.as_ref()?;
        let waiting = &self.waiting;
        let written = fd.try_io(Interest::WRITABLE, |fd| {
            rustix::io::write(fd, waiting).map_err(Into::into)
        });
        let reply = match written {
            Ok(count) => {
                self.waiting.advance(count);
                let granted = self.window.as_mut().and_then(|w| w.taken(count));
                granted.map(credit)
            }
            Err(error) if waits(&error) => None,
            // It reads no more.
            Err(_) => {
                self.waiting.clear();
                self.fd = None;
                self.window.is_some().then_some(LiveReply::StdinClosed)
            }
        };
        self.settle();
        reply
    }

    fn settle(&mut self) {
        if self.ends && self.waiting.is_empty() {
            self.fd = None;
        }
    }
}

fn credit(bytes: usize) -> LiveReply {
    LiveReply::StdinCredit {
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
    }
}

pub(super) fn waits(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_renewed_for_what_the_program_took_and_never_overdrawn() {
        let mut window = Window::new();
        assert_eq!(window.spend(INPUT + 1), Err(Misunderstood));
        assert_eq!(window.spend(INPUT), Ok(()));
        assert_eq!(window.spend(1), Err(Misunderstood));
        assert_eq!(window.taken(GRANT - 1), None);
        assert_eq!(window.spend(1), Err(Misunderstood));
        assert_eq!(window.taken(1), Some(GRANT));
        assert_eq!(window.spend(GRANT), Ok(()));
        assert_eq!(window.taken(INPUT), Some(INPUT));
        assert_eq!(window.open, INPUT);
    }

    fn piped(flow: StdinFlow) -> (Stdin, OwnedFd) {
        use rustix::pipe::{PipeFlags, pipe_with};
        let (program, ours) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let fd = crate::control::streams::watched(ours, Interest::WRITABLE).unwrap();
        (Stdin::new(fd, flow), program)
    }

    #[tokio::test]
    async fn what_does_not_decode_and_what_follows_the_end_are_refused() {
        let (mut stdin, program) = piped(StdinFlow::Plain);
        assert_eq!(stdin.push("!!"), Err(Misunderstood));
        assert_eq!(stdin.push("b2s="), Ok(()));
        stdin.end();
        assert_eq!(stdin.push("b2s="), Err(Misunderstood));
        stdin.writable().await;
        assert_eq!(stdin.feed(), None);
        let mut seen = [0; 8];
        assert_eq!(rustix::io::read(&program, &mut seen), Ok(2));
        assert_eq!(rustix::io::read(&program, &mut seen), Ok(0));
    }

    #[tokio::test]
    async fn a_program_that_closed_its_input_is_told_once_and_only_to_clients_with_credit() {
        for (flow, wanted) in [
            (StdinFlow::Credit, Some(LiveReply::StdinClosed)),
            (StdinFlow::Plain, None),
        ] {
            let (mut stdin, program) = piped(flow);
            drop(program);
            stdin.push("b2s=").unwrap();
            stdin.writable().await;
            assert_eq!(stdin.feed(), wanted);
            stdin.push("b2s=").unwrap();
            assert!(!stdin.waits() && stdin.feed().is_none());
        }
    }
}
