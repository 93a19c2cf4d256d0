//! One server program in a guest: start, readiness, end and shutdown.
//!
//! The output of a server is untrusted; only its end is stored, to explain a failure. The server
//! holds the write end of its output pipe, so the pipe tells when the server has ended, without a
//! message of the guest.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ExecutionId, GuestPath};
use wp_codebox_runtime::{Launch, Runtime, Terminal};
use zeroize::Zeroizing;

/// Maximum time from the start of a server until it accepts clients.
const READY: Duration = Duration::from_secs(60);
/// Maximum time for a server to shut down.
const SHUTDOWN: Duration = Duration::from_secs(60);
/// Delay between two attempts to connect to a server while it starts.
const PAUSE: Duration = Duration::from_millis(5);
/// Number of bytes stored from the end of the output.
const TAIL: usize = 8 * 1024;
/// Maximum length of the line of output in an error, in characters.
const LINE: usize = 300;
/// Maximum length of a record (one line of a server's output), in bytes; a longer one is split.
const RECORD: u64 = 512 * 1024;
/// Signal that makes a server shut down.
const TERMINATE: i32 = 15;

/// What is needed to start a server program.
pub(super) struct Server {
    pub argv: Vec<String>,
    /// Standard input of the program; less than the size of a pipe, so writing it does not block.
    pub stdin: Zeroizing<Vec<u8>>,
    /// Port on the guest's 127.0.0.1 at which the server listens.
    pub port: u16,
    /// What the standard output of the program contains.
    pub output: Output,
    /// Function that returns the server's version if the server at the other end of the connection
    /// answers within the given time.
    pub greets: fn(&TcpStream, Duration) -> Option<String>,
}

/// Function that gets each record of a server.
pub(super) type LineReader = Box<dyn FnMut(&[u8]) + Send>;

/// What the standard output of a server contains.
pub(super) enum Output {
    /// Messages, of which the end is stored.
    Tail,
    /// Records, one a line; the function gets each line.
    Lines(LineReader),
}

/// A server program that was started in a guest.
pub(super) struct ServerProcess {
    id: ExecutionId,
    port: u16,
    greets: fn(&TcpStream, Duration) -> Option<String>,
    /// Read end of the pipe to which the server writes its messages.
    output: OwnedFd,
    printed: Arc<Mutex<Vec<u8>>>,
    /// Thread that reads the server's records.
    lines: Option<JoinHandle<()>>,
}

impl ServerProcess {
    /// Starts the program; `name` is its name among the programs of the guest.
    pub(super) fn start(
        name: &str,
        server: Server,
        runtime: &mut dyn Runtime,
    ) -> Result<Self, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let id = ExecutionId::new(name).map_err(|e| text(&e))?;
        let (input, feed) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| text(&e))?;
        let (output, write) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| text(&e))?;
        let (stdout, lines) = match server.output {
            Output::Tail => (write.try_clone().map_err(|e| text(&e))?, None),
            Output::Lines(each) => {
                let (records, stdout) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| text(&e))?;
                let reader = std::thread::Builder::new()
                    .name("service".to_owned())
                    .spawn(move || pass_lines(records, each))
                    .map_err(|e| text(&e))?;
                (stdout, Some(reader))
            }
        };
        let read = output.try_clone().map_err(|e| text(&e))?;
        let printed = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&printed);
        std::thread::Builder::new()
            .name("service".to_owned())
            .spawn(move || keep_tail(read, &kept))
            .map_err(|e| text(&e))?;
        std::fs::File::from(feed)
            .write_all(&server.stdin)
            .map_err(|e| text(&e))?;
        let launch = Launch {
            id: id.clone(),
            argv: server.argv,
            env: BTreeMap::new(),
            cwd: GuestPath::new("/tmp").map_err(|e| text(&e))?,
            terminal: Terminal::None,
        };
        runtime
            .launch(&launch, [input, stdout, write])
            .map_err(|e| e.message)?;
        Ok(Self {
            id,
            port: server.port,
            greets: server.greets,
            output,
            printed,
            lines,
        })
    }

    /// Waits until the server answers a client. Returns the version of the server.
    pub(super) fn ready(
        &self,
        runtime: &mut dyn Runtime,
        deadline: Instant,
    ) -> Result<String, String> {
        let until = deadline.min(Instant::now() + READY);
        loop {
            if let Ok(connection) = runtime.connect(self.port) {
                let stream = TcpStream::from(connection);
                let left = until.saturating_duration_since(Instant::now());
                let wait = left.clamp(Duration::from_millis(1), Duration::from_secs(5));
                let blocking = stream.set_nonblocking(false).is_ok();
                if let Some(version) = (self.greets)(&stream, wait).filter(|_| blocking) {
                    return Ok(version);
                }
            }
            if self.has_ended() || runtime.death().is_some() {
                let line = self.last_line();
                return Err(line.unwrap_or_else(|| "it ended without a message".to_owned()));
            }
            if Instant::now() + PAUSE >= until {
                return Err(format!("it did not answer on port {} in time", self.port));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns whether the server has ended: then the kernel reports a hang-up of the pipe whose
    /// write end only the server had.
    pub(super) fn has_ended(&self) -> bool {
        self.hung_up(Duration::ZERO)
    }

    fn hung_up(&self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            // No event is requested; a hang-up is always reported.
            let mut row = [PollFd::from_borrowed_fd(
                self.output.as_fd(),
                PollFlags::empty(),
            )];
            match poll(&mut row, Some(&left)) {
                Ok(0) => return false,
                Ok(_) => return row[0].revents().contains(PollFlags::HUP),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// Returns the line of output that best explains the server's end: the first error in the
    /// stored output, else the last line.
    pub(super) fn last_line(&self) -> Option<String> {
        let bytes = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        explanation(&String::from_utf8_lossy(&bytes))
    }

    /// Waits until all records of the server are read. The server must have ended.
    pub(super) fn finish(self) {
        if let Some(reader) = self.lines {
            let _ = reader.join();
        }
    }

    /// Asks the server to shut down, and waits for its end.
    pub(super) fn shut_down(
        &self,
        runtime: &mut dyn Runtime,
        deadline: Instant,
    ) -> Result<(), String> {
        if self.has_ended() {
            return Err("it had already ended".to_owned());
        }
        runtime.signal(&self.id, TERMINATE).map_err(|e| e.message)?;
        let most = deadline.saturating_duration_since(Instant::now());
        if self.hung_up(SHUTDOWN.min(most)) {
            return Ok(());
        }
        let _ = runtime.stop(&self.id);
        Err("it did not end in time".to_owned())
    }
}

fn explanation(text: &str) -> Option<String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let error = lines.clone().find(|line| line.contains("[ERROR]"));
    let line = error.or_else(|| lines.next_back())?;
    Some(line.trim().chars().take(LINE).collect())
}

/// Reads records and passes them on, until the server ends. A line longer than the limit is split.
fn pass_lines(from: OwnedFd, mut each: LineReader) {
    let mut from = BufReader::new(std::fs::File::from(from));
    loop {
        let mut line = Vec::new();
        match (&mut from).take(RECORD).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => each(&line),
        }
    }
}

/// Reads output and keeps its end, until the last writer closes the pipe. That happens at the latest
/// when the guest ends.
fn keep_tail(from: OwnedFd, tail: &Mutex<Vec<u8>>) {
    let mut from = std::fs::File::from(from);
    let mut piece = [0_u8; 4096];
    while let Ok(count) = from.read(&mut piece) {
        if count == 0 {
            return;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(piece.get(..count).unwrap_or_default());
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanation_of_a_server_exit_is_its_first_error_line_or_else_its_last_line() {
        let explained = |text: &str| explanation(text).unwrap_or_default();
        let text = "[Note] start\n[ERROR] no space\n[ERROR] Aborting\n";
        assert_eq!(explained(text), "[ERROR] no space");
        assert_eq!(explained("one\n  two  \n\n"), "two");
        assert_eq!(explained("\n"), "");
        assert_eq!(explained(&"x".repeat(LINE + 1)).len(), LINE);
    }

    #[test]
    fn only_the_last_bytes_of_a_servers_output_are_stored() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let tail = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&tail);
        let reader = std::thread::spawn(move || keep_tail(read, &kept));
        let mut write = std::fs::File::from(write);
        write.write_all(&vec![b'a'; 3 * TAIL]).unwrap();
        write.write_all(b"the end").unwrap();
        drop(write);
        reader.join().unwrap();
        let tail = tail.lock().unwrap();
        assert!(tail.len() == TAIL && tail.ends_with(b"the end"));
    }
}
