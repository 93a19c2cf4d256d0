//! Channel to a spawner (the process that starts launchers under a uid of their own): sends
//! requests and waits for their replies.

use super::error::{SpawnerError, broken, host};
use super::request::{SpawnerRequestSpec, ViewState};
use crate::channel::{Channel, Received};
use crate::spawn::ProcessEnd;
use rustix::fd::{BorrowedFd, OwnedFd};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{GuestIds, SpawnerReply, SpawnerRequest};

/// Maximum wait for a spawner to become ready, and for each of its replies.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// Channel to a spawner. It stores exits of launchers that arrive while a caller waits for another
/// reply.
#[derive(Debug)]
pub(super) struct SpawnerChannel {
    channel: Channel,
    ends: BTreeMap<i32, ProcessEnd>,
}

/// What a spawner reports when it is ready.
#[derive(Debug)]
pub(super) struct ReadySpawner {
    /// Kernel uid and gid of its guests.
    pub(super) id: u32,
    /// Result for each host directory, in the order of the request.
    pub(super) states: Vec<ViewState>,
    /// Mount of the store (the tmpfs for copies), if the spawner has one.
    pub(super) store: Option<OwnedFd>,
    /// Mount of the file system for the guests' files, or why there is none; `None` if none was
    /// requested.
    pub(super) scratch: Option<Result<OwnedFd, String>>,
    /// Host directories from which the spawner removed a mount that an earlier version left there.
    pub(super) removed: Vec<String>,
}

impl SpawnerChannel {
    pub(super) fn new(channel: Channel) -> Self {
        Self {
            channel,
            ends: BTreeMap::new(),
        }
    }

    /// Sends a request to which the spawner does not reply.
    pub(super) fn send(&self, request: &SpawnerRequest) {
        // A failed send means that the spawner has ended, and all its launchers have ended with it.
        let _ = self.channel.send(request, &[]);
    }

    /// Waits until the launcher with this pid has exited and returns how.
    pub(super) fn ended(&mut self, pid: i32) -> io::Result<ProcessEnd> {
        let until = Instant::now() + REPLY_TIMEOUT;
        loop {
            if let Some(end) = self.ends.remove(&pid) {
                return Ok(end);
            }
            // Only exits can arrive here: the sender of every other request keeps this value locked
            // until the reply has arrived.
            self.next(until)?;
        }
    }

    /// Reads replies until the spawner is ready; a spawner started by root has dropped root by
    /// then.
    pub(super) fn ready(
        &mut self,
        spec: &SpawnerRequestSpec<'_>,
        until: Instant,
    ) -> Result<ReadySpawner, SpawnerError> {
        let (mut states, mut removed) = (Vec::new(), Vec::new());
        let mut scratch = None;
        loop {
            let (reply, mut fds) = self.receive(until).map_err(host("reading a reply"))?;
            match reply {
                SpawnerReply::View {
                    index,
                    errno,
                    uncovered,
                } if index == states.len() => {
                    let view = spec.views.get(index).map_or("", |view| &view.path);
                    removed.extend(uncovered.iter().map(|name| format!("{view}/{name}")));
                    states.push(match (errno, fds.pop()) {
                        (0, None) => ViewState::Shown,
                        (0, Some(mount)) => ViewState::ShownWith(mount),
                        (errno, _) => ViewState::Refused(errno),
                    });
                }
                SpawnerReply::Scratch { subject, errno } if scratch.is_none() => {
                    scratch = Some(fds.pop().ok_or_else(|| match errno {
                        0 => subject,
                        errno => format!("{subject}: {}", io::Error::from_raw_os_error(errno)),
                    }));
                }
                SpawnerReply::Ready { id } if states.len() == spec.views.len() => {
                    return Ok(ReadySpawner {
                        id,
                        states,
                        store: fds.pop(),
                        scratch,
                        removed,
                    });
                }
                SpawnerReply::Failed { step, errno, .. }
                    if step == "guest_ids" && errno == libc::EAGAIN =>
                {
                    let GuestIds { first, count } = spec.ids;
                    return Err(SpawnerError::Exhausted { first, count });
                }
                SpawnerReply::Failed {
                    step,
                    subject,
                    errno,
                } => {
                    return Err(SpawnerError::Step {
                        step,
                        subject,
                        errno,
                    });
                }
                SpawnerReply::View { .. }
                | SpawnerReply::Scratch { .. }
                | SpawnerReply::Ready { .. }
                | SpawnerReply::Launched { .. }
                | SpawnerReply::NotLaunched { .. }
                | SpawnerReply::Ended { .. }
                | SpawnerReply::Shown { .. }
                | SpawnerReply::Exposed { .. } => {
                    return Err(host("reading a reply")(io::ErrorKind::InvalidData.into()));
                }
            }
        }
    }

    fn receive(&mut self, until: Instant) -> io::Result<(SpawnerReply, Vec<OwnedFd>)> {
        loop {
            match self.channel.receive() {
                Received::Message(reply, fds) => return Ok((*reply, fds)),
                Received::Malformed => return Err(io::ErrorKind::InvalidData.into()),
                Received::Closed => return Err(broken()),
                Received::Empty if self.channel.wait(until) => {}
                Received::Empty => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    /// Reads the next message. An exit of a launcher is stored in `ends`, and `None` is returned.
    fn next(&mut self, until: Instant) -> io::Result<Option<(SpawnerReply, Vec<OwnedFd>)>> {
        let (reply, fds) = self.receive(until)?;
        let SpawnerReply::Ended {
            pid,
            code,
            signal,
            user_us,
            system_us,
        } = reply
        else {
            return Ok(Some((reply, fds)));
        };
        self.ends.insert(
            pid,
            ProcessEnd {
                code,
                signal,
                user_us,
                system_us,
            },
        );
        Ok(None)
    }

    pub(super) fn ask(
        &mut self,
        request: &SpawnerRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(SpawnerReply, Vec<OwnedFd>)> {
        self.channel
            .send(request, descriptors)
            .map_err(|_| broken())?;
        let until = Instant::now() + REPLY_TIMEOUT;
        loop {
            if let Some(answer) = self.next(until)? {
                return Ok(answer);
            }
        }
    }
}
