//! Starting, signalling and awaiting programs that run beside others.

use crate::channel::{Received, SendFailure, poll_in, timespec};
use crate::exec::reopenable;
use crate::execution::{ExecEnd, ExecError, LAUNCHED};
use crate::guest::Guest;
use crate::launched::LaunchEnd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ExecRequest, ExecutionId, GuestRequest};

/// Most messages taken in a row: whoever waits must not starve behind a flood.
const ROUND: usize = 64;

impl Guest {
    /// Starts a program and does not wait for it, not even for whether it starts:
    /// [`Guest::next_end`] tells that too. It has the three descriptors and no other.
    pub fn launch_program(
        &mut self,
        request: &ExecRequest,
        stdio: [OwnedFd; 3],
    ) -> Result<(), ExecError> {
        let program = request.argv.first().cloned().unwrap_or_default();
        if self.launched.running.len() >= LAUNCHED {
            return Err(ExecError::TooMany);
        }
        if self.launched.knows(&request.id) {
            return Err(ExecError::NotStarted {
                program,
                step: "input".to_owned(),
                errno: libc::EEXIST,
            });
        }
        let fds = stdio.each_ref().map(AsFd::as_fd);
        reopenable(&fds);
        match self
            .channel
            .send(&GuestRequest::Exec(request.clone()), &fds)
        {
            Ok(()) => {}
            Err(SendFailure::TooLarge) => return Err(ExecError::TooLarge),
            Err(SendFailure::Busy) => return Err(ExecError::Busy),
            Err(SendFailure::Gone) => return Err(ExecError::Gone),
        }
        self.launched.running.insert(request.id.clone(), program);
        Ok(())
    }

    /// Signals a launched program; of one that is not there, nobody.
    pub fn signal_program(&mut self, id: &ExecutionId, signal: i32) -> Result<(), ExecError> {
        let id = id.clone();
        self.tell(id.clone(), GuestRequest::Signal { id, signal })
    }

    /// Kills a launched program and what it started.
    pub fn stop_program(&mut self, id: &ExecutionId) -> Result<(), ExecError> {
        let id = id.clone();
        self.tell(id.clone(), GuestRequest::Stop { id })
    }

    fn tell(&mut self, id: ExecutionId, request: GuestRequest) -> Result<(), ExecError> {
        if !self.launched.knows(&id) {
            return Ok(());
        }
        self.channel
            .send(&request, &[])
            .map_err(|failure| match failure {
                SendFailure::TooLarge | SendFailure::Gone => ExecError::Gone,
                SendFailure::Busy => ExecError::Busy,
            })
    }

    /// The end of a launched program: one that is known already, or the first that comes before
    /// `until` and before `wake` is readable. Nothing is also answered when the guest dies
    /// without one: see [`Guest::death`].
    pub fn next_end(
        &mut self,
        wake: BorrowedFd<'_>,
        until: Instant,
    ) -> Option<(ExecutionId, LaunchEnd)> {
        loop {
            let was_closed = self.launched.closed;
            if !was_closed {
                self.hear_all();
            }
            if let Some(end) = self.launched.ends.pop_front() {
                return Some(end);
            }
            if self.launched.closed && !was_closed {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = vec![PollFd::from_borrowed_fd(wake, PollFlags::IN)];
            if !self.launched.closed {
                fds.push(PollFd::new(&self.channel, PollFlags::IN));
            }
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(0) => return None,
                Ok(_) => {
                    if fds.first().is_some_and(|fd| !fd.revents().is_empty()) {
                        return None;
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// How the guest died, when it is dead.
    pub fn death(&mut self) -> Option<ExecEnd> {
        if !self.launched.closed && poll_in(self.pidfd(), Duration::ZERO) {
            self.hear_all();
            self.launched.all_ended(self.early_end());
        }
        self.launched.closed.then(|| self.early_end())
    }

    fn hear_all(&mut self) {
        for _ in 0..ROUND {
            match self.channel.receive() {
                Received::Message(reply, fds) => self.launched.hear(*reply, fds),
                Received::Garbage => {}
                Received::Empty => return,
                Received::Closed => return self.launched.all_ended(self.early_end()),
            }
        }
    }

    /// Takes note of what was said meanwhile; waits for nothing.
    pub fn listen(&mut self) {
        if !self.launched.closed {
            self.hear_all();
        }
    }
}
