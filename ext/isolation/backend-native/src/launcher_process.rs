//! Handle of a launcher process, which is a child of the supervisor or of a spawner.

use crate::cgroup::Cgroup;
use crate::process_sandbox::WrappedCommand;
use crate::spawn::{ChildProcess, ProcessEnd};
use crate::spawner::Spawner;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// A started launcher that has not been waited for.
#[derive(Debug)]
pub(crate) enum LauncherProcess {
    /// The supervisor itself started the launcher.
    Child(ChildProcess),
    /// A spawner (a process with rights over the guest's uid) started the launcher.
    Spawned {
        /// Pid of the launcher or of its process wrapper.
        pid: i32,
        pidfd: OwnedFd,
        spawner: Arc<Spawner>,
        end: Option<ProcessEnd>,
    },
}

impl LauncherProcess {
    /// Asks the spawner to start a launcher.
    pub(crate) fn from_spawner(
        spawner: &Arc<Spawner>,
        command: &WrappedCommand,
        descriptors: [BorrowedFd<'_>; 3],
        cgroup: &Cgroup,
    ) -> io::Result<Self> {
        let (pid, pidfd) = spawner.launch(command, descriptors, cgroup)?;
        Ok(Self::Spawned {
            pid,
            pidfd,
            spawner: Arc::clone(spawner),
            end: None,
        })
    }

    /// Returns how the spawner of the launcher ended; `None` if the launcher has no spawner or the
    /// spawner is still alive at `until`.
    pub(crate) fn spawners_end(&self, until: Instant) -> Option<ProcessEnd> {
        match self {
            Self::Child(_) => None,
            Self::Spawned { spawner, .. } => spawner.own_end(until),
        }
    }

    /// Returns the pid of the launcher or of its process wrapper.
    pub(crate) fn pid(&self) -> i32 {
        match self {
            Self::Child(child) => child.pid(),
            Self::Spawned { pid, .. } => *pid,
        }
    }

    /// Returns a pidfd that becomes readable when the launcher has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Child(child) => child.pidfd(),
            Self::Spawned { pidfd, .. } => pidfd.as_fd(),
        }
    }

    /// Sends SIGKILL to the launcher; the parent-death signal then ends its guest.
    pub(crate) fn kill(&self) {
        match self {
            Self::Child(child) => child.kill(),
            Self::Spawned { pid, spawner, .. } => spawner.kill(*pid),
        }
    }

    /// Waits for the launcher's exit; later calls return the same result.
    pub(crate) fn wait(&mut self) -> io::Result<ProcessEnd> {
        match self {
            Self::Child(child) => child.wait(),
            Self::Spawned { end: Some(end), .. } => Ok(*end),
            Self::Spawned {
                pid, spawner, end, ..
            } => Ok(*end.insert(spawner.ended(*pid)?)),
        }
    }
}
