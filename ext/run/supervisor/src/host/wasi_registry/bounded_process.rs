//! Runs a program with a limit of its time and its output, without starting a thread: callers
//! change the user and group ids of this process, which works only while it has one thread.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Largest output that is kept, for each of the two streams.
const OUTPUT: usize = 1 << 20;

/// Exit status and output of a program.
pub(super) struct Finished {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs the program; kills it and returns `None` if it has not ended after `limit`.
pub(super) fn run(command: &mut Command, limit: Duration) -> io::Result<Option<Finished>> {
    let until = Instant::now() + limit;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let read = read(&mut child, until);
    if !matches!(read, Ok(Some(_))) {
        child.kill()?;
    }
    let status = child.wait()?;
    Ok(read?.map(|[stdout, stderr]| Finished {
        status,
        stdout,
        stderr,
    }))
}

/// Reads both streams until the program has ended; `None` if it still runs at `until`.
fn read(child: &mut Child, until: Instant) -> io::Result<Option<[Vec<u8>; 2]>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pidfd = pidfd_open(pid.ok_or(Errno::SRCH)?, PidfdFlags::empty())?;
    let mut streams = [
        Stream::new(child.stdout.take().map(OwnedFd::from))?,
        Stream::new(child.stderr.take().map(OwnedFd::from))?,
    ];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let mut fds = vec![PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
        let open = streams.iter().filter_map(|stream| stream.fd.as_ref());
        fds.extend(open.map(|fd| PollFd::new(fd, PollFlags::IN)));
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // Checked before the streams are read: if the program has ended, the read gets all of its
        // output.
        let ended = !fds[0].revents().is_empty();
        for stream in &mut streams {
            stream.drain()?;
        }
        if ended {
            return Ok(Some(streams.map(|stream| stream.bytes)));
        }
    }
}

/// One output of the program.
struct Stream {
    /// `None` after the end of the stream.
    fd: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl Stream {
    fn new(fd: Option<OwnedFd>) -> io::Result<Self> {
        if let Some(fd) = &fd {
            rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK)?;
        }
        Ok(Self {
            fd,
            bytes: Vec::new(),
        })
    }

    /// Reads what is available, and drops what exceeds [`OUTPUT`].
    fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0; 8192];
        while let Some(fd) = &self.fd {
            match rustix::io::read(fd, &mut buffer) {
                Ok(0) => self.fd = None,
                Ok(count) => {
                    let room = OUTPUT - self.bytes.len();
                    self.bytes.extend_from_slice(&buffer[..count.min(room)]);
                    // Returns, so that the caller checks the deadline: a program may write without
                    // end.
                    if room == 0 {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}
