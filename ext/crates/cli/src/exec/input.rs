//! Standard input of this command on its way to the sandbox, and everything else that is sent.
//!
//! Lines are whole or the last: after a failed write nothing follows, because it would be read
//! as the rest of the line before. A sandbox that grants credit reads at any time, so a signal
//! never waits behind input that the program does not take.

use base64::Engine;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wp_codebox_contracts::{ErrorBody, ErrorCode, LiveInput, LiveReply};
use wp_codebox_control::StdinCredit;
use wp_codebox_runtime::kernel_error;

/// Bytes of one line of input, before base64.
const PIECE: usize = 48 * 1024;

/// The sending half of the conversation.
pub(super) struct Input {
    /// `None` after a line that was not sent to its end.
    stream: Mutex<Option<UnixStream>>,
    credit: Mutex<StdinCredit>,
    changed: Condvar,
    failure: Mutex<Option<ErrorBody>>,
}

impl Input {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream: Mutex::new(Some(stream)),
            credit: Mutex::default(),
            changed: Condvar::new(),
            failure: Mutex::new(None),
        }
    }

    /// Sends one line. That the sandbox is gone is reported by the thread that reads its replies.
    pub(super) fn say(&self, input: &LiveInput) -> io::Result<()> {
        let mut line = serde_json::to_vec(input)?;
        line.push(b'\n');
        let mut stream = locked(&self.stream);
        let Some(open) = stream.as_mut() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        open.write_all(&line).inspect_err(|_| *stream = None)
    }

    /// Takes what a reply says of standard input.
    pub(super) fn hear(&self, reply: &LiveReply) {
        self.change(|credit| credit.hear(reply));
    }

    /// Why standard input could not be read to its end.
    pub(super) fn failure(&self) -> Option<ErrorBody> {
        locked(&self.failure).clone()
    }

    fn change(&self, change: impl FnOnce(&mut StdinCredit)) {
        change(&mut locked(&self.credit));
        self.changed.notify_all();
    }

    /// Waits until input may be sent; at most how much. `None` when the program takes no more.
    fn room(&self) -> Option<usize> {
        let waits =
            |credit: &mut StdinCredit| *credit != StdinCredit::Closed && credit.room(PIECE) == 0;
        let credit = self.changed.wait_while(locked(&self.credit), waits);
        Some(credit.unwrap_or_else(PoisonError::into_inner).room(PIECE)).filter(|room| *room > 0)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.change(|credit| credit.spend(bytes.len()));
        self.say(&LiveInput::Stdin {
            base64: base64::engine::general_purpose::STANDARD.encode(bytes),
        })
    }

    /// Copies until the end of standard input or of the program's interest in it.
    fn copy(&self, tty: bool) -> Result<(), Errno> {
        let mut buffer = vec![0; PIECE];
        while let Some(room) = self.room() {
            let count = match rustix::io::read(rustix::stdio::stdin(), &mut buffer[..room]) {
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                // Another process made the open file non-blocking.
                Err(Errno::AGAIN) => {
                    let stdin = rustix::stdio::stdin();
                    let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            let said = match count {
                // A terminal's input ends by a character, whatever this one here does.
                0 if tty => self.send(&[4]),
                0 => self.say(&LiveInput::StdinEnd),
                count => self.send(&buffer[..count]),
            };
            if count == 0 || said.is_err() {
                return Ok(());
            }
        }
        // A producer at the other end of a pipe is to get SIGPIPE, as from the program itself.
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

/// Copies standard input in a thread of its own, which ends with the process. An input that
/// cannot be read to its end kills the program: an end of input would make it take a part for
/// the whole.
pub(super) fn copy_stdin(input: Arc<Input>, tty: bool) -> Result<(), ErrorBody> {
    let copy = move || {
        if let Err(errno) = input.copy(tty) {
            let message = format!("standard input cannot be read: {errno}");
            *locked(&input.failure) = Some(
                ErrorBody::new(ErrorCode::InputInvalid, message)
                    .hint("the program was killed because its input is incomplete"),
            );
            let _ = input.say(&LiveInput::Signal {
                signal: "KILL".to_owned(),
            });
        }
    };
    let unable = |error: io::Error| {
        let message = format!("standard input cannot be followed: {error}");
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

    #[test]
    fn credit_bounds_what_is_sent_and_a_closed_input_ends_it() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let input = Input::new(ours);
        input.change(|credit| *credit = StdinCredit::Bytes(7));
        assert_eq!(input.room(), Some(7));
        input.send(b"words").unwrap();
        assert_eq!(input.room(), Some(2));
        input.hear(&LiveReply::StdinClosed);
        assert_eq!(input.room(), None);
    }

    #[test]
    fn nothing_follows_a_line_that_was_cut() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let input = Input::new(ours);
        // The socket takes a part of it.
        assert!(input.send(&vec![0; 4 * 1024 * 1024]).is_err());
        assert!(input.say(&LiveInput::StdinEnd).is_err());
        drop(input);
        let mut heard = Vec::new();
        theirs.read_to_end(&mut heard).unwrap();
        assert!(!heard.is_empty() && !heard.contains(&b'\n'));
    }
}
