//! Runs one program in a guest: start, output streams, exit.
//!
//! Each output stream has its own pipe; only the exit status comes from pid 1. Output and exit
//! status are untrusted: sizes are limited, unknown ids are ignored, and a guest that does not
//! answer is killed at the deadline.

use crate::channel::{Received, SendFailure, timespec};
use crate::execution::{ExecCall, ExecEnd, ExecError, Execution};
use crate::guest::{Guest, KillCause};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ExecExit, GuestReply, GuestRequest, OutputStream};

/// Maximum sleep of the execution loop, so that it notices a deadline or a kill within this time.
const TICK: Duration = Duration::from_millis(250);
/// Maximum number of bytes per read from an output pipe.
const CHUNK: usize = 64 * 1024;
/// Maximum wait for pid 1 to report the exit of a program that it was asked to kill; afterwards the
/// whole guest is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum wait for the end of a killed guest. Also the maximum time for reading the output that is
/// still in the pipes after a program's exit.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The supervisor's ends of the pipes to one running program.
struct Streams<'a> {
    stdin: Option<(OwnedFd, &'a [u8])>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    limit: u64,
    bytes: u64,
    buffer: Vec<u8>,
}

type Sink<'s> = &'s mut dyn FnMut(OutputStream, &[u8]);

/// Makes pipes writable for every user, so that a program of a guest with another kernel uid can
/// open its own pipes by path, as `/dev/stderr` does. Other users gain nothing: only a process that
/// has the pipe open has a path to it.
pub(crate) fn reopenable(stdio: &[BorrowedFd<'_>; 3]) {
    for fd in stdio {
        let pipe = rustix::fs::fstat(fd)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        if pipe {
            // `fchmod` fails on a descriptor that another user created. Its creator chose the mode,
            // so the failure is ignored.
            let _ = rustix::fs::fchmod(fd, Mode::from_raw_mode(0o666));
        }
    }
}

impl Guest {
    /// Runs one program until it exits. `on_output` is called on this thread in the order in which
    /// bytes were read. A background process that the program leaves behind keeps running, but its
    /// later output is dropped.
    pub fn exec(
        &mut self,
        call: &ExecCall<'_>,
        on_output: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<Execution, ExecError> {
        self.exec_until(call, call.deadline, on_output)
    }

    /// Same as [`Guest::exec`], but at `stop_at` only the program and its descendants are killed
    /// and the guest keeps running. At `call.deadline` the whole guest is killed.
    pub fn exec_until(
        &mut self,
        call: &ExecCall<'_>,
        stop_at: Instant,
        on_output: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<Execution, ExecError> {
        let started = Instant::now();
        if self.launched.is_running(&call.request.id) {
            return Err(ExecError::NotStarted {
                program: call.request.argv.first().cloned().unwrap_or_default(),
                step: "input".to_owned(),
                errno: libc::EEXIST,
            });
        }
        let (stdin_guest, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, stdout_guest) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, stderr_guest) = pipe_with(PipeFlags::CLOEXEC)?;
        for ours in [&stdin, &stdout, &stderr] {
            rustix::fs::fcntl_setfl(ours, OFlags::NONBLOCK)?;
        }
        let request = GuestRequest::Exec(call.request.clone());
        let guests = [
            stdin_guest.as_fd(),
            stdout_guest.as_fd(),
            stderr_guest.as_fd(),
        ];
        reopenable(&guests);
        match self.channel.send(&request, &guests) {
            Ok(()) => {}
            Err(SendFailure::TooLarge) => return Err(ExecError::TooLarge),
            Err(SendFailure::Busy) => return Err(ExecError::Busy),
            Err(SendFailure::Gone) => {
                // Another thread may have killed the guest between two executions. Then the result
                // is the cause of that kill instead of an error.
                return match self.early_end() {
                    ExecEnd::GuestDied => Err(ExecError::Gone),
                    end => Ok(self.ended(end, None, started.elapsed())),
                };
            }
        }
        drop((stdin_guest, stdout_guest, stderr_guest));
        let mut streams = Streams {
            stdin: (!call.stdin.is_empty()).then_some((stdin, call.stdin)),
            stdout: Some(stdout),
            stderr: Some(stderr),
            limit: call.output_limit,
            bytes: 0,
            buffer: vec![0; CHUNK],
        };
        let (end, exit) = self.stream(call, stop_at, &mut streams, on_output)?;
        streams.drain(on_output);
        if let Some(layer) = self.layers.values().next() {
            self.shared.measure_disk(layer);
        }
        let execution = self.ended(end, exit.as_ref(), started.elapsed());
        Ok(Execution {
            output_bytes: streams.bytes,
            output_truncated: streams.bytes > call.output_limit,
            ..execution
        })
    }

    /// Returns the result of an execution with the given end, without the output counters: they are
    /// 0, and the caller sets them.
    fn ended(&self, end: ExecEnd, exit: Option<&ExecExit>, duration: Duration) -> Execution {
        let max_rss_bytes = exit.map_or(0, |exit| exit.max_rss_bytes);
        self.shared
            .record_memory(max_rss_bytes.min(self.limits.memory_bytes));
        let failed = !matches!(end, ExecEnd::Exited(0));
        Execution {
            end,
            duration,
            user_us: exit.map_or(0, |exit| exit.user_us),
            system_us: exit.map_or(0, |exit| exit.system_us),
            max_rss_bytes,
            output_bytes: 0,
            output_truncated: false,
            memory_pressure: end == ExecEnd::MemoryLimit
                || failed
                    && (max_rss_bytes / 9 >= self.limits.memory_bytes / 10
                        || self.shared.was_out_of_memory()),
            disk_full: self.shared.usage().disk_full,
        }
    }

    fn stream(
        &mut self,
        call: &ExecCall<'_>,
        stop_at: Instant,
        streams: &mut Streams<'_>,
        on_output: Sink<'_>,
    ) -> Result<(ExecEnd, Option<ExecExit>), ExecError> {
        let mut killed_at: Option<Instant> = None;
        let mut stopped_at: Option<Instant> = None;
        loop {
            if stopped_at.is_none() && stop_at < call.deadline && Instant::now() >= stop_at {
                let id = call.request.id.clone();
                // A failed send is ignored: after `STOP_TIMEOUT` the guest is killed, like a guest
                // that ignores the request.
                let _ = self.channel.send(&GuestRequest::Stop { id }, &[]);
                stopped_at = Some(Instant::now());
            }
            let disobeyed = stopped_at.is_some_and(|at| at.elapsed() > STOP_TIMEOUT);
            if killed_at.is_none() && (disobeyed || Instant::now() >= call.deadline) {
                self.shared.kill(KillCause::Deadline);
                killed_at = Some(Instant::now());
            }
            if killed_at.is_some_and(|at| at.elapsed() > DRAIN_TIMEOUT) {
                return Ok((self.early_end(), None));
            }
            let left = call.deadline.saturating_duration_since(Instant::now());
            let nap = match (killed_at, stopped_at) {
                (Some(_), _) => DRAIN_TIMEOUT,
                (None, Some(_)) => left,
                (None, None) => left.min(stop_at.saturating_duration_since(Instant::now())),
            };
            streams.wait(self.channel.as_fd(), nap.min(TICK));
            if !streams.step(on_output) {
                // An empty chunk lets the callback do periodic work.
                on_output(OutputStream::Stdout, &[]);
            }
            // Read at most 16 messages per round, so a flood of messages cannot delay output and
            // deadline.
            for _ in 0..16 {
                match self.channel.receive() {
                    Received::Message(reply, fds) => match *reply {
                        GuestReply::Exit(exit) if exit.id == call.request.id => {
                            let end = match (exit.code, exit.signal) {
                                _ if stopped_at.is_some() => ExecEnd::Stopped,
                                (Some(code), _) => ExecEnd::Exited(code),
                                (None, Some(signal)) => ExecEnd::Signaled(signal),
                                (None, None) => ExecEnd::GuestDied,
                            };
                            return Ok((end, Some(exit)));
                        }
                        GuestReply::ExecFailed { id, errno, step } if id == call.request.id => {
                            return Err(ExecError::NotStarted {
                                program: call.request.argv.first().cloned().unwrap_or_default(),
                                step: step.chars().take(32).collect(),
                                errno,
                            });
                        }
                        other => self.launched.handle_reply(other, fds),
                    },
                    Received::Malformed => {}
                    Received::Empty => break,
                    Received::Closed => {
                        self.launched.all_ended(self.early_end());
                        return Ok((self.early_end(), None));
                    }
                }
            }
        }
    }

    pub(crate) fn early_end(&self) -> ExecEnd {
        match self.shared.cause() {
            KillCause::Deadline => ExecEnd::TimedOut,
            KillCause::Memory => ExecEnd::MemoryLimit,
            KillCause::Disk => ExecEnd::DiskLimit,
            KillCause::KernelObjects => ExecEnd::KernelObjects,
            KillCause::Cancelled => ExecEnd::Cancelled,
            // The kernel can OOM-kill every process of the guest before the next poll sees the
            // limit exceeded.
            KillCause::None if self.shared.was_out_of_memory() => ExecEnd::MemoryLimit,
            KillCause::None | KillCause::Finished => ExecEnd::GuestDied,
        }
    }
}

impl Streams<'_> {
    fn wait(&self, channel: BorrowedFd<'_>, timeout: Duration) {
        let mut fds = vec![PollFd::from_borrowed_fd(channel, PollFlags::IN)];
        fds.extend(
            [&self.stdout, &self.stderr]
                .into_iter()
                .flatten()
                .map(|fd| PollFd::new(fd, PollFlags::IN)),
        );
        if let Some((fd, _)) = &self.stdin {
            fds.push(PollFd::new(fd, PollFlags::OUT));
        }
        // An error of `poll`, e.g. EINTR, only ends the wait earlier.
        let _ = poll(&mut fds, Some(&timespec(timeout)));
    }

    /// Reads once from each output pipe and writes once to standard input; returns true if output
    /// was read.
    fn step(&mut self, on_output: Sink<'_>) -> bool {
        if let Some((fd, left)) = &mut self.stdin {
            match rustix::io::write(&*fd, left) {
                Ok(written) => *left = &left[written.min(left.len())..],
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => *left = &[],
            }
            if left.is_empty() {
                self.stdin = None;
            }
        }
        let mut progress = false;
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let slot = match stream {
                OutputStream::Stdout => &mut self.stdout,
                OutputStream::Stderr => &mut self.stderr,
            };
            let Some(fd) = slot else { continue };
            match rustix::io::read(&*fd, self.buffer.as_mut_slice()) {
                Ok(0) => *slot = None,
                Ok(count) => {
                    progress = true;
                    let room = self.limit.saturating_sub(self.bytes);
                    let keep = usize::try_from(room).unwrap_or(usize::MAX).min(count);
                    self.bytes = self.bytes.saturating_add(count as u64);
                    if keep > 0 {
                        on_output(stream, &self.buffer[..keep]);
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => *slot = None,
            }
        }
        progress
    }

    /// Reads the bytes already in the pipes after the exit; does not wait for background processes
    /// that keep them open.
    fn drain(&mut self, on_output: Sink<'_>) {
        let until = Instant::now() + DRAIN_TIMEOUT;
        while self.step(on_output) && Instant::now() < until {}
    }
}
