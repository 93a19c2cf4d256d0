//! Buffer and flow control for a program's standard input. The buffer holds bytes that the client
//! has sent and that are not yet written to the program.

use base64::Engine;
use bytes::{Buf, BytesMut};
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use wp_codebox_contracts::{LiveReply, StdinFlow};

/// Buffer size in bytes. A client that uses flow control may have at most this many bytes in the
/// buffer.
const INPUT: usize = 1024 * 1024;
/// Minimum number of bytes by which the client's credit (how much it may still send) is extended at
/// once. One credit message per small write would double the number of protocol lines.
const GRANT: usize = INPUT / 4;

/// Error: input of the client cannot be passed on to the program. The program must then not treat
/// the input that it has received as complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidInput;

/// How many more bytes a client that uses flow control may send.
#[derive(Debug)]
struct Window {
    open: usize,
    /// Number of bytes that were written to the program and not yet given back to the client as
    /// credit.
    owed: usize,
}

impl Window {
    const fn new() -> Self {
        Self {
            open: INPUT,
            owed: 0,
        }
    }

    /// Subtracts received bytes from the client's credit; fails if the client has sent more bytes
    /// than its credit.
    fn spend(&mut self, bytes: usize) -> Result<(), InvalidInput> {
        self.open = self.open.checked_sub(bytes).ok_or(InvalidInput)?;
        Ok(())
    }

    /// Counts bytes that were written to the program. Returns the credit to give back to the client
    /// now, at least [`GRANT`] bytes; `None` while less is owed. A client without credit never
    /// waits forever: the bytes in the buffer suffice to reach [`GRANT`].
    fn taken(&mut self, bytes: usize) -> Option<usize> {
        self.owed += bytes;
        (self.owed >= GRANT).then(|| {
            self.open += self.owed;
            std::mem::take(&mut self.owed)
        })
    }
}

/// Supervisor's end of the program's standard input.
#[derive(Debug)]
pub(super) struct Stdin {
    fd: Option<AsyncFd<OwnedFd>>,
    waiting: BytesMut,
    /// Whether to close the program's standard input when the buffer is empty.
    ends: bool,
    /// Credit of a client that uses flow control; `None` for any other client.
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

    /// Returns the reply that gives the client its first credit; `None` without flow control.
    pub(super) fn opening(&self) -> Option<LiveReply> {
        self.window.as_ref().map(|window| credit(window.open))
    }

    /// Returns whether the buffer has space for another line of input. With flow control the buffer
    /// always has space. The supervisor then keeps reading the client's lines and also gets a
    /// signal that the client sends after the input.
    pub(super) fn has_room(&self) -> bool {
        self.window.is_some() || self.waiting.len() < INPUT
    }

    /// Returns whether buffered bytes wait for the program.
    pub(super) fn waits(&self) -> bool {
        self.fd.is_some() && !self.waiting.is_empty()
    }

    /// Adds input of the client to the buffer.
    pub(super) fn push(&mut self, base64: &str) -> Result<(), InvalidInput> {
        let engine = &base64::engine::general_purpose::STANDARD;
        let bytes = engine.decode(base64).map_err(|_| InvalidInput)?;
        if self.ends {
            return Err(InvalidInput);
        }
        if let Some(window) = &mut self.window {
            window.spend(bytes.len())?;
        }
        if self.fd.is_some() {
            self.waiting.extend_from_slice(&bytes);
        }
        Ok(())
    }

    /// Marks the input as complete. A program on a terminal does not see this as end of file; its
    /// client types the end-of-file character instead.
    pub(super) fn end(&mut self) {
        self.ends = true;
        self.settle();
    }

    /// Drops the buffered bytes without closing standard input: the program is being killed.
    pub(super) fn discard(&mut self) {
        self.waiting.clear();
    }

    /// Waits until the program's standard input is writable.
    pub(super) async fn writable(&self) {
        match &self.fd {
            Some(fd) => drop(fd.writable().await),
            None => std::future::pending().await,
        }
    }

    /// Writes once to the program and returns the reply for the client, if any.
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
            // The program has closed its standard input.
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
    fn stdin_credit_is_granted_again_after_the_program_reads_and_cannot_be_exceeded() {
        let mut window = Window::new();
        assert_eq!(window.spend(INPUT + 1), Err(InvalidInput));
        assert_eq!(window.spend(INPUT), Ok(()));
        assert_eq!(window.spend(1), Err(InvalidInput));
        assert_eq!(window.taken(GRANT - 1), None);
        assert_eq!(window.spend(1), Err(InvalidInput));
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
    async fn client_input_with_invalid_base64_or_after_the_end_of_input_is_rejected() {
        let (mut stdin, program) = piped(StdinFlow::Plain);
        assert_eq!(stdin.push("!!"), Err(InvalidInput));
        assert_eq!(stdin.push("b2s="), Ok(()));
        stdin.end();
        assert_eq!(stdin.push("b2s="), Err(InvalidInput));
        stdin.writable().await;
        assert_eq!(stdin.feed(), None);
        let mut seen = [0; 8];
        assert_eq!(rustix::io::read(&program, &mut seen), Ok(2));
        assert_eq!(rustix::io::read(&program, &mut seen), Ok(0));
    }

    #[tokio::test]
    async fn stdin_closed_is_reported_once_and_only_to_clients_with_flow_control() {
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
