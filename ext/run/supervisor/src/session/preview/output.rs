//! Output of the guest's web server: its last bytes, which explain a failure, and the PHP messages of
//! requests, which the router prints as lines of JSON.
//!
//! Everything that the server prints is untrusted: lines and lists have maximum sizes.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use wp_codebox_browser::PhpError;

/// Number of last bytes that are kept.
const TAIL: usize = 8 * 1024;
/// Prefix of a line with a PHP message, as in `preview/php-errors.php`.
const PREFIX: &str = "codebox-php ";
/// Maximum length of a line, in bytes; the router prints at most 4096.
const LINE: usize = 8 * 1024;
/// Maximum number of PHP messages that wait to be taken. Fatal errors have a list of their own size,
/// so that warnings cannot displace them.
const MESSAGES: usize = 500;

/// A PHP message and the origin under which its visitor sees the site.
#[derive(Debug, Deserialize)]
struct Printed {
    origin: String,
    #[serde(flatten)]
    error: PhpError,
}

#[derive(Debug)]
struct State {
    pipe: File,
    tail: Vec<u8>,
    /// Begin of the line whose end was not read yet.
    line: Vec<u8>,
    messages: Vec<Printed>,
    fatal: Vec<Printed>,
}

/// Output of one web server.
#[derive(Debug, Clone)]
pub(crate) struct SiteOutput(Arc<Mutex<State>>);

impl SiteOutput {
    /// Starts the thread that reads the pipe, because the server would block on a full pipe.
    pub(super) fn read(pipe: OwnedFd) -> io::Result<Self> {
        let flags = fcntl_getfl(&pipe)?;
        fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        let polled = pipe.try_clone()?;
        let output = Self(Arc::new(Mutex::new(State {
            pipe: File::from(pipe),
            tail: Vec::new(),
            line: Vec::new(),
            messages: Vec::new(),
            fatal: Vec::new(),
        })));
        let read = output.clone();
        std::thread::Builder::new()
            .name("site".to_owned())
            .spawn(move || {
                loop {
                    let waited = poll(&mut [PollFd::new(&polled, PollFlags::IN)], None);
                    match waited {
                        Ok(_) if read.with(State::fill) => {}
                        Err(rustix::io::Errno::INTR) => {}
                        Ok(_) | Err(_) => return,
                    }
                }
            })?;
        Ok(output)
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the last bytes of the output.
    pub(super) fn tail(&self) -> String {
        self.with(|state| String::from_utf8_lossy(&state.tail).into_owned())
    }

    /// Takes the PHP messages of requests to this origin, and drops those of other visitors. All that
    /// the server has printed so far is read first: a request whose response has ended has printed
    /// its messages.
    pub(crate) fn take_php_errors(&self, origin: &str) -> Vec<PhpError> {
        self.with(|state| {
            state.fill();
            let messages = std::mem::take(&mut state.messages).into_iter();
            let all = messages.chain(std::mem::take(&mut state.fatal));
            all.filter(|row| row.origin == origin)
                .map(|row| row.error)
                .collect()
        })
    }
}

impl State {
    /// Reads what the pipe contains; returns false when no more can follow.
    fn fill(&mut self) -> bool {
        let mut piece = [0_u8; 4096];
        loop {
            match self.pipe.read(&mut piece) {
                Ok(0) => return false,
                Ok(count) => self.add(piece.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            // Of a longer line, the rest is dropped; it is no line of the router.
            let room = LINE.saturating_sub(self.line.len());
            self.line
                .extend_from_slice(piece.get(..room).unwrap_or(piece));
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.add_line(&line);
            }
        }
    }

    fn add_line(&mut self, line: &[u8]) {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let json = text.trim_end().strip_prefix(PREFIX);
        let Some(row) = json.and_then(|json| serde_json::from_str::<Printed>(json).ok()) else {
            return;
        };
        let list = match row.error.is_fatal() {
            true => &mut self.fatal,
            false => &mut self.messages,
        };
        if list.len() < MESSAGES {
            list.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::io::Write;

    fn line(level: &str, origin: &str) -> String {
        format!(
            "{PREFIX}{{\"level\":\"{level}\",\"message\":\"m\",\"file\":\"/f\",\"line\":3,\"origin\":\"{origin}\",\"request\":\"GET /\"}}\n"
        )
    }

    #[test]
    fn php_messages_of_one_origin_are_taken_once_and_many_warnings_do_not_displace_a_fatal_error() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let output = SiteOutput::read(read).unwrap();
        let mut write = File::from(write);
        for _ in 0..MESSAGES + 5 {
            write
                .write_all(line("warning", "http://localhost").as_bytes())
                .unwrap();
        }
        // A line of PHP's own log, one that is too long, and one that is no JSON.
        write.write_all(b"[1] PHP Warning: x\n").unwrap();
        write.write_all(&vec![b'x'; 3 * LINE]).unwrap();
        write
            .write_all(format!("\n{PREFIX}{{\n").as_bytes())
            .unwrap();
        for origin in ["http://localhost", "http://127.0.0.1:8000"] {
            write.write_all(line("fatal", origin).as_bytes()).unwrap();
        }
        let taken = output.take_php_errors("http://localhost");
        assert_eq!(taken.len(), MESSAGES + 1);
        assert_eq!(taken.iter().filter(|error| error.is_fatal()).count(), 1);
        assert!(output.take_php_errors("http://localhost").is_empty());
        assert!(output.tail().len() <= TAIL);
    }

    #[test]
    fn last_bytes_of_the_output_are_readable_after_the_server_has_ended() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let output = SiteOutput::read(read).unwrap();
        File::from(write).write_all(b"the end").unwrap();
        output.take_php_errors("");
        assert!(output.tail().ends_with("the end"));
    }
}
