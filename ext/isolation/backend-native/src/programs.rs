//! Starts, signals and awaits programs that run concurrently in a guest.

use crate::channel::{Received, SendFailure, poll_in, timespec};
use crate::exec::reopenable;
use crate::execution::{ExecEnd, ExecError, MAX_LAUNCHED};
use crate::guest::Guest;
use crate::launched::LaunchEnd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ExecRequest, ExecutionId, GuestRequest};

/// Maximum number of the guest's messages that are handled in one call, so that a waiting caller
/// notices its deadline even if the guest sends messages without pause.
const ROUND: usize = 64;

impl Guest {
    /// Starts a program without waiting for anything, not even for its `execve`. A failed start is
    /// reported by [`Guest::next_end`]. The program gets the descriptors `stdio` and no others.
    pub fn launch_program(
        &mut self,
        request: &ExecRequest,
        stdio: [OwnedFd; 3],
    ) -> Result<(), ExecError> {
        let program = request.argv.first().cloned().unwrap_or_default();
        if self.launched.running.len() >= MAX_LAUNCHED {
            return Err(ExecError::TooMany);
        }
        if self.launched.is_running(&request.id) {
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

    /// Sends a signal to a launched program; does nothing if no such program runs.
    pub fn signal_program(&mut self, id: &ExecutionId, signal: i32) -> Result<(), ExecError> {
        let id = id.clone();
        self.send_request(id.clone(), GuestRequest::Signal { id, signal })
    }

    /// Kills a launched program and its descendants; does nothing if no such program runs.
    pub fn stop_program(&mut self, id: &ExecutionId) -> Result<(), ExecError> {
        let id = id.clone();
        self.send_request(id.clone(), GuestRequest::Stop { id })
    }

    fn send_request(&mut self, id: ExecutionId, request: GuestRequest) -> Result<(), ExecError> {
        if !self.launched.is_running(&id) {
            return Ok(());
        }
        self.channel
            .send(&request, &[])
            .map_err(|failure| match failure {
                SendFailure::TooLarge | SendFailure::Gone => ExecError::Gone,
                SendFailure::Busy => ExecError::Busy,
            })
    }

    /// Returns how a launched program ended: the oldest end that was not returned yet. If there is
    /// none, waits for a program to end. Returns `None` if none has ended when `until` is reached
    /// or `wake` becomes readable, and if the guest dies while no program runs (see
    /// [`Guest::death`]).
    pub fn next_end(
        &mut self,
        wake: BorrowedFd<'_>,
        until: Instant,
    ) -> Option<(ExecutionId, LaunchEnd)> {
        loop {
            let was_closed = self.launched.closed;
            if !was_closed {
                self.handle_messages();
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

    /// Returns how the guest died, or `None` while it lives.
    pub fn death(&mut self) -> Option<ExecEnd> {
        if !self.launched.closed && poll_in(self.pidfd(), Duration::ZERO) {
            self.handle_messages();
            self.launched.all_ended(self.early_end());
        }
        self.launched.closed.then(|| self.early_end())
    }

    fn handle_messages(&mut self) {
        for _ in 0..ROUND {
            match self.channel.receive() {
                Received::Message(reply, fds) => self.launched.handle_reply(*reply, fds),
                Received::Malformed => {}
                Received::Empty => return,
                Received::Closed => return self.launched.all_ended(self.early_end()),
            }
        }
    }

    /// Processes the messages that have arrived; does not block.
    pub fn listen(&mut self) {
        if !self.launched.closed {
            self.handle_messages();
        }
    }
}
