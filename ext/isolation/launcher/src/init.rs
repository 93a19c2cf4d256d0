//! Guest pid 1: starts programs on request, reaps children, ends on request or when the supervisor
//! ends.
//!
//! Pid 1 holds no capabilities, and Landlock and seccomp restrict it; no program of the guest can
//! trace it. Programs inherit only their three standard descriptors, neither the channel nor the
//! lifetime socket. An invalid request gets an error reply and has no partial effect.

use crate::channel::{Channel, Incoming, poll_retrying};
use crate::connect::Connections;
use crate::error::{At, Failure, Step};
use crate::program::{Progress, Starting};
use crate::{program, stop};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::mem::MaybeUninit;
use std::time::Instant;
use wp_codebox_contracts::{ExecExit, ExecRequest, ExecutionId, GuestReply, GuestRequest};

/// A program that has been started and has not ended.
struct Running {
    pid: i32,
    id: ExecutionId,
}

/// Programs and connects that pid 1 has started and that have not ended.
#[derive(Default)]
struct Service {
    starting: Vec<Starting>,
    running: Vec<Running>,
    connections: Connections,
}

/// Whether pid 1 continues to serve requests or ends.
enum Next {
    Continue,
    End,
}

/// Returns a signalfd that becomes readable when a child ends; SIGCHLD stays blocked from here on.
pub(crate) fn child_signals() -> Result<OwnedFd, Failure> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is initialised by sigemptyset before any other use; the descriptor that
    // signalfd returns is new and owned by no other value.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(std::io::Error::last_os_error()).at(Step::Channel, "signalfd");
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Serves requests until the supervisor asks pid 1 to end, or a descriptor in `ends` becomes readable
/// because the supervisor or the launcher has ended.
pub(crate) fn serve(channel: &Channel, ends: [BorrowedFd<'_>; 2]) -> Result<(), Failure> {
    let signals = child_signals()?;
    let mut service = Service::default();
    let mut buffer = Vec::new();
    loop {
        let [runner, launcher] = ends;
        let mut fds = vec![
            PollFd::new(channel, PollFlags::IN),
            // Only the launcher reads what the supervisor sends over this socket.
            PollFd::from_borrowed_fd(runner, PollFlags::empty()),
            PollFd::from_borrowed_fd(launcher, PollFlags::IN),
            PollFd::new(&signals, PollFlags::IN),
        ];
        fds.extend(service.connections.awaited());
        let reports = service.starting.iter();
        fds.extend(reports.map(|one| PollFd::new(&one.report, PollFlags::IN)));
        poll_retrying(&mut fds, service.poll_timeout().as_ref()).at(Step::Channel, "poll")?;
        let Some([request, runner, launcher, child]) = fds
            .first_chunk::<4>()
            .map(|fixed| fixed.each_ref().map(|fd| fd.revents()))
        else {
            return Ok(());
        };
        drop(fds);
        service.connections.settle(channel)?;
        service.settle_starts(channel)?;
        if !runner.is_empty() || !launcher.is_empty() {
            return Ok(());
        }
        if !child.is_empty() {
            let mut sink = [0_u8; 1024];
            while rustix::io::read(&signals, &mut sink).is_ok_and(|count| count > 0) {}
            service.reap(channel)?;
        }
        if !request.is_empty() {
            match handle_request(channel, &mut service, channel.receive(&mut buffer))? {
                Next::Continue => {}
                Next::End => return Ok(()),
            }
        }
    }
}

fn handle_request(
    channel: &Channel,
    service: &mut Service,
    incoming: Incoming<GuestRequest>,
) -> Result<Next, Failure> {
    match incoming {
        Incoming::Closed | Incoming::Request(GuestRequest::Shutdown, _) => return Ok(Next::End),
        Incoming::Nothing => {}
        Incoming::Malformed => {
            if let Ok(id) = ExecutionId::new("malformed") {
                refuse(channel, id, "input", libc::EBADMSG)?;
            }
        }
        Incoming::Request(GuestRequest::Exec(request), descriptors) => {
            service.start(channel, &request, descriptors)?;
        }
        Incoming::Request(GuestRequest::Stop { id }, _) => {
            // A program that ended meanwhile is not in the table; its exit was or will be reported.
            if let Some(pid) = service.pid(&id) {
                stop::end_session(pid);
            }
        }
        Incoming::Request(GuestRequest::Signal { id, signal }, _) => {
            if let Some(pid) = service.pid(&id) {
                stop::signal_foreground(pid, signal);
            }
        }
        Incoming::Request(GuestRequest::Connect { ticket, port }, _) => {
            service.connections.begin(channel, ticket, port)?;
        }
    }
    Ok(Next::Continue)
}

fn refuse(channel: &Channel, id: ExecutionId, step: &str, errno: i32) -> Result<(), Failure> {
    channel.send(&GuestReply::ExecFailed {
        id,
        errno,
        step: step.to_owned(),
    })
}

impl Service {
    /// Returns the pid of an execution that has not ended, before or after its `execve`.
    fn pid(&self, id: &ExecutionId) -> Option<i32> {
        let starting = self.starting.iter().map(|one| (&one.id, one.pid));
        let running = self.running.iter().map(|one| (&one.id, one.pid));
        let mut all = starting.chain(running);
        all.find_map(|(known, pid)| (known == id).then_some(pid))
    }

    /// Returns how long `poll` may wait: until the next signal to a starting program or the next
    /// deadline of a connect. `None` means without limit.
    fn poll_timeout(&self) -> Option<Timespec> {
        let starts = self.starting.iter().map(Starting::due);
        let until = starts.chain(self.connections.due()).min()?;
        let left = until.saturating_duration_since(Instant::now());
        Some(Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(left.subsec_nanos()),
        })
    }

    fn start(
        &mut self,
        channel: &Channel,
        request: &ExecRequest,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), Failure> {
        let id = request.id.clone();
        let Ok(stdio) = <[OwnedFd; 3]>::try_from(descriptors) else {
            return refuse(channel, id, "input", libc::EBADF);
        };
        if self.pid(&id).is_some() {
            return refuse(channel, id, "input", libc::EEXIST);
        }
        match program::start(request, &stdio) {
            Ok(starting) => {
                self.starting.push(starting);
                Ok(())
            }
            Err(failed) => refuse(channel, id, failed.step.name(), failed.errno),
        }
    }

    /// Tells the supervisor which children reached or failed `execve`. Resumes the others with SIGCONT,
    /// or kills them at their deadline.
    fn settle_starts(&mut self, channel: &Channel) -> Result<(), Failure> {
        let mut left = Vec::new();
        for mut one in std::mem::take(&mut self.starting) {
            let progress = match one.progress() {
                Progress::Pending => one.resume_or_kill(Instant::now()),
                known => known,
            };
            match progress {
                Progress::Pending => left.push(one),
                known => self.started(channel, one, &known)?,
            }
        }
        self.starting = left;
        Ok(())
    }

    fn started(
        &mut self,
        channel: &Channel,
        one: Starting,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let Starting { pid, id, .. } = one;
        match progress {
            Progress::Failed(failed) => refuse(channel, id, failed.step.name(), failed.errno),
            Progress::Pending | Progress::Running => {
                self.running.push(Running {
                    pid,
                    id: id.clone(),
                });
                channel.send(&GuestReply::Started { id })
            }
        }
    }

    /// Reaps every ended child: started programs and orphans they left behind.
    fn reap(&mut self, channel: &Channel) -> Result<(), Failure> {
        loop {
            let mut status = 0;
            let mut usage = MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: both pointers are valid for writing for the length of the call.
            let pid =
                unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
            if pid <= 0 {
                return Ok(());
            }
            // SAFETY: zeroed is a valid value, and wait4 filled it.
            let usage = unsafe { usage.assume_init() };
            // The child may have reported and ended after the last read of its report pipe. Read
            // the pipe again now, so `Started` is sent before `Exit`; a dead child's report is
            // complete.
            if let Some(position) = self.starting.iter().position(|one| one.pid == pid) {
                let one = self.starting.swap_remove(position);
                let progress = one.progress();
                self.started(channel, one, &progress)?;
            }
            let Some(position) = self.running.iter().position(|one| one.pid == pid) else {
                continue;
            };
            let ended = self.running.swap_remove(position);
            let exited = libc::WIFEXITED(status);
            channel.send(&GuestReply::Exit(ExecExit {
                id: ended.id,
                code: exited.then(|| libc::WEXITSTATUS(status)),
                signal: (!exited).then(|| libc::WTERMSIG(status)),
                user_us: micros(usage.ru_utime),
                system_us: micros(usage.ru_stime),
                max_rss_bytes: u64::try_from(usage.ru_maxrss)
                    .unwrap_or(0)
                    .saturating_mul(1024),
            }))?;
        }
    }
}

/// Converts a kernel time value to microseconds.
pub(crate) fn micros(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000)
        .saturating_add(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// Waits until a descriptor in `ends` shows that the supervisor or the launcher has ended. A self-test
/// keeps its guest alive this way while the supervisor inspects it from outside; no program is started.
pub(crate) fn wait_for_runner_end(ends: [BorrowedFd<'_>; 2]) {
    loop {
        let mut fds = ends.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        // An interrupted `poll` reports no descriptor as ready.
        if poll_retrying(&mut fds, None).is_err() || fds.iter().any(|fd| !fd.revents().is_empty()) {
            return;
        }
    }
}

/// Returns whether the supervisor has closed its end of the lifetime socket, which also happens when it
/// dies.
pub(crate) fn runner_is_gone(lifetime: &OwnedFd) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(lifetime.as_fd(), PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    !matches!(poll(&mut fds, Some(&now)), Ok(0))
}
