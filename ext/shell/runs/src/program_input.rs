//! Sends standard input, signals and terminal sizes to the sandbox, as JSON lines.
//!
//! After a failed write nothing more is sent, because the sandbox would read it as part of the
//! incomplete line. The sandbox grants a credit, a number of bytes of standard input that it can
//! buffer, and this command never sends more. So the sandbox can always read the socket, and a
//! signal never waits behind input that the program does not read.

use base64::Engine;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wp_codebox_contracts::{ErrorBody, ErrorCode, LiveInput, LiveReply};
use wp_codebox_control::StdinCredit;
use wp_codebox_runtime::kernel_error;

/// Maximum size of the standard input in one message, in bytes before base64 encoding.
const PIECE: usize = 48 * 1024;

/// Sending half of the connection to the sandbox.
#[derive(Debug)]
pub struct ProgramInput {
    /// Socket; `None` after a line was sent incompletely.
    stream: Mutex<Option<UnixStream>>,
    credit: Mutex<StdinCredit>,
    changed: Condvar,
    failure: Mutex<Option<ErrorBody>>,
}

impl ProgramInput {
    /// Creates the sending half of a connection, without credit.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream: Mutex::new(Some(stream)),
            credit: Mutex::default(),
            changed: Condvar::new(),
            failure: Mutex::new(None),
        }
    }

    /// Sends one line. If the connection is closed, callers may ignore the error: the thread that
    /// reads replies reports it.
    pub fn send_message(&self, input: &LiveInput) -> io::Result<()> {
        let mut line = serde_json::to_vec(input)?;
        line.push(b'\n');
        let mut stream = locked(&self.stream);
        let Some(open) = stream.as_mut() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        open.write_all(&line).inspect_err(|_| *stream = None)
    }

    /// Adds the credit (bytes of input that the sandbox agrees to receive) that a reply grants.
    pub fn update_credit(&self, reply: &LiveReply) {
        self.change(|credit| credit.update(reply));
    }

    /// Returns the error that stopped the reading of standard input, if there was one.
    pub fn failure(&self) -> Option<ErrorBody> {
        locked(&self.failure).clone()
    }

    fn change(&self, change: impl FnOnce(&mut StdinCredit)) {
        change(&mut locked(&self.credit));
        self.changed.notify_all();
    }

    /// Waits until the sandbox grants credit for standard input. Returns the maximum number of
    /// bytes to send, or `None` after the program closed its standard input.
    fn next_len(&self) -> Option<usize> {
        let waits = |credit: &mut StdinCredit| {
            *credit != StdinCredit::Closed && credit.next_chunk_len(PIECE) == 0
        };
        let credit = self.changed.wait_while(locked(&self.credit), waits);
        Some(
            credit
                .unwrap_or_else(PoisonError::into_inner)
                .next_chunk_len(PIECE),
        )
        .filter(|room| *room > 0)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.change(|credit| credit.spend(bytes.len()));
        self.send_message(&LiveInput::Stdin {
            base64: base64::engine::general_purpose::STANDARD.encode(bytes),
        })
    }

    /// Copies standard input to the program, until end of file or until the program closes its
    /// standard input.
    fn copy(&self, tty: bool) -> Result<(), Errno> {
        let mut buffer = vec![0; PIECE];
        while let Some(room) = self.next_len() {
            let count = match rustix::io::read(rustix::stdio::stdin(), &mut buffer[..room]) {
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                // Another process that shares this open file has set O_NONBLOCK.
                Err(Errno::AGAIN) => {
                    let stdin = rustix::stdio::stdin();
                    let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            let said = match count {
                // On the sandbox's terminal the end-of-file character (Ctrl-D) ends the input.
                0 if tty => self.send(&[4]),
                0 => self.send_message(&LiveInput::StdinEnd),
                count => self.send(&buffer[..count]),
            };
            if count == 0 || said.is_err() {
                return Ok(());
            }
        }
        // Close standard input, so that the process that writes to the pipe gets SIGPIPE, as if it
        // wrote to the program directly.
        if !io::stdin().is_terminal()
            && let Ok(null) = std::fs::File::open("/dev/null")
        {
            let _ = rustix::stdio::dup2_stdin(&null);
        }
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies standard input in a separate thread, which runs until this process ends. A read error
/// kills the program: if it got an end of file instead, it would take partial input for complete.
pub fn copy_stdin(input: Arc<ProgramInput>, tty: bool) -> Result<(), ErrorBody> {
    let copy = move || {
        if let Err(errno) = input.copy(tty) {
            let message = format!("standard input cannot be read: {errno}");
            *locked(&input.failure) = Some(
                ErrorBody::new(ErrorCode::InputInvalid, message)
                    .hint("the program was killed because its input is incomplete"),
            );
            let _ = input.send_message(&LiveInput::Signal {
                signal: "KILL".to_owned(),
            });
        }
    };
    let unable = |error: io::Error| {
        let message = format!("the thread for standard input cannot start: {error}");
        kernel_error(ErrorCode::Internal, message, &error)
    };
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(copy)
        .map(drop)
        .map_err(unable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// The credit is the number of bytes that the sandbox accepts at this time.
    #[test]
    fn stdin_is_sent_only_up_to_the_credit_and_not_after_the_program_closed_its_stdin() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let input = ProgramInput::new(ours);
        input.change(|credit| *credit = StdinCredit::Bytes(7));
        assert_eq!(input.next_len(), Some(7));
        input.send(b"words").unwrap();
        assert_eq!(input.next_len(), Some(2));
        input.update_credit(&LiveReply::StdinClosed);
        assert_eq!(input.next_len(), None);
    }

    #[test]
    fn nothing_is_sent_to_the_sandbox_after_an_incomplete_line() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let input = ProgramInput::new(ours);
        // The socket accepts only a part of this line.
        assert!(input.send(&vec![0; 4 * 1024 * 1024]).is_err());
        assert!(input.send_message(&LiveInput::StdinEnd).is_err());
        drop(input);
        let mut heard = Vec::new();
        theirs.read_to_end(&mut heard).unwrap();
        assert!(!heard.is_empty() && !heard.contains(&b'\n'));
    }
}
