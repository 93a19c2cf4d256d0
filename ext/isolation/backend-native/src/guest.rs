//! One guest, from launch to kill.
//!
//! Dropping a guest kills it; after [`Guest::kill`] no process of it is left. The descriptors of
//! its layers (upper directories of its overlays) stay usable. Changes are captured from them after
//! the kill, when no process can write any more. Messages after `Ready` come from an untrusted
//! guest; only their type is checked.

use crate::channel::{Channel, poll_in};
use crate::launch_error::LaunchError;
use crate::launched::Launched;
use crate::launcher_process::LauncherProcess;
use crate::launching::{LaunchOptions, Started, TEARDOWN, start};
use crate::processes::survey;
use crate::reduced::DiskWatch;
use crate::scratch::ScratchDirectory;
use crate::watch::{self, Measured, Shared, Usage};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use wp_codebox_contracts::{
    GuestDeath, IsolationLevel, IsolationReport, LaunchPlan, Limits, SandboxAudit,
};
use wp_codebox_runtime::EgressListeners;

pub use crate::watch::KillCause;

/// A running guest. Dropping it kills all its processes.
#[derive(Debug)]
pub struct Guest {
    pub(crate) channel: Channel,
    pub(crate) shared: Arc<Shared>,
    pub(crate) limits: Limits,
    pub(crate) layers: BTreeMap<u32, OwnedFd>,
    pub(crate) egress: Option<EgressListeners>,
    pub(crate) mail: Option<OwnedFd>,
    pub(crate) launched: Launched,
    pub(crate) process: LauncherProcess,
    pub(crate) death: Option<GuestDeath>,
    /// Polls the size of the guest's files if they lie on a disk of the host; ends with the guest.
    disk: Option<DiskWatch>,
    scratch: Option<ScratchDirectory>,
    report: IsolationReport,
    audit: SandboxAudit,
    watcher: Option<JoinHandle<()>>,
    end: Option<GuestEnd>,
}

/// Why a guest ended, and the resources it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestEnd {
    /// Why the guest was killed.
    pub cause: KillCause,
    /// User CPU time of launcher and guest in microseconds.
    pub user_us: u64,
    /// System CPU time of launcher and guest in microseconds.
    pub system_us: u64,
    /// Largest memory and disk use of the guest.
    pub usage: Usage,
}

/// Handle with which another thread kills a guest.
#[derive(Debug, Clone)]
pub struct GuestKiller {
    shared: Arc<Shared>,
}

impl GuestKiller {
    /// Kills every process of the guest immediately. Only the cause of the first call is recorded;
    /// later calls and calls after the guest's death have no effect.
    pub fn kill(&self, cause: KillCause) {
        self.shared.kill(cause);
    }
}

impl Guest {
    /// Builds a guest and waits until its isolation probes have run. Blocks for a few milliseconds,
    /// at most `ready_timeout`. If the observed isolation is below the plan's level, kills the
    /// guest and returns an error.
    pub fn launch(plan: &LaunchPlan, options: &LaunchOptions<'_>) -> Result<Self, LaunchError> {
        let host = |step| move |source: std::io::Error| LaunchError::Host { step, source };
        let Started {
            channel,
            process,
            shared,
            layers,
            scratch,
            egress,
            mail,
            report,
            audit,
        } = start(plan, options)?;
        let mut guest = Self {
            channel,
            shared,
            limits: plan.limits,
            layers,
            egress,
            mail,
            launched: Launched::default(),
            process,
            death: None,
            disk: None,
            scratch,
            report,
            audit,
            watcher: None,
            end: None,
        };
        if guest.report.level < plan.level {
            guest.kill(KillCause::Finished);
            return Err(LaunchError::Level {
                wanted: plan.level,
                report: Box::new(guest.report.clone()),
            });
        }
        let disk = match guest.layers.values().next() {
            Some(layer) => Some(layer.try_clone().map_err(host("layer"))?),
            None => None,
        };
        let unlimited = guest.scratch.as_ref().and_then(ScratchDirectory::unlimited);
        let measured = match unlimited.map(str::to_owned) {
            None => Measured::FileSystem,
            Some(path) => {
                guest.watch_disk(&[path]).map_err(host("disk"))?;
                Measured::Apart
            }
        };
        let spawner = options.identity.spawner().map(|spawner| spawner.pidfd());
        let spawner = spawner.transpose().map_err(host("spawner"))?;
        let own_network = guest.report.level == IsolationLevel::Full;
        let watcher = watch::start(
            Arc::clone(&guest.shared),
            guest.limits,
            (disk, measured),
            spawner,
            own_network,
        )
        .map_err(host("thread"))?;
        guest.watcher = Some(watcher);
        Ok(guest)
    }

    /// Polls the size of these directories on a disk of the host, and kills the guest above its disk
    /// limit.
    pub(crate) fn watch_disk(&mut self, paths: &[String]) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        self.disk = Some(DiskWatch::start(shared, paths, self.limits.disk_bytes)?);
        Ok(())
    }

    /// Returns the isolation report of the probes, which ran inside the guest before the caller's
    /// first program.
    #[must_use]
    pub fn report(&self) -> &IsolationReport {
        &self.report
    }

    /// Returns the audit record of the process wrapper around this guest's launcher.
    #[must_use]
    pub fn audit(&self) -> &SandboxAudit {
        &self.audit
    }

    /// Returns a readable descriptor of the overlay upper directory of the mount with this index.
    /// The directory contains the guest's changes. Read it only after [`Guest::kill`] and with
    /// `openat2(RESOLVE_BENEATH)`, because the guest chose the file names in it.
    #[must_use]
    pub fn layer(&self, index: u32) -> Option<BorrowedFd<'_>> {
        self.layers.get(&index).map(AsFd::as_fd)
    }

    /// Returns the descriptors of all layers, by the index of their mount. Their directories stay
    /// when the guest is dropped.
    pub(crate) fn take_layers(&mut self) -> BTreeMap<u32, OwnedFd> {
        if let Some(scratch) = &mut self.scratch {
            scratch.keep_layers();
        }
        std::mem::take(&mut self.layers)
    }

    /// Returns the sockets on which the egress bridge (the supervisor's proxy to the network) accepts
    /// this guest's connections; `None` after the first call.
    pub fn take_egress(&mut self) -> Option<EgressListeners> {
        self.egress.take()
    }

    /// Returns the socket on which the supervisor accepts the guest's mail; `None` after the first
    /// call.
    pub fn take_mail(&mut self) -> Option<OwnedFd> {
        self.mail.take()
    }

    /// Returns the pid of the guest's pid 1 in this process's pid namespace.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.shared.pid
    }

    /// Returns the largest memory and disk use of the guest so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.shared.usage()
    }

    /// Returns a pidfd that becomes readable when the guest's pid 1 ends, for an event loop.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.shared.pidfd.as_fd()
    }

    /// Returns a handle that kills this guest from another thread.
    #[must_use]
    pub fn killer(&self) -> GuestKiller {
        GuestKiller {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Kills every process of the guest, waits until they are gone and reaps the launcher. Later
    /// calls return the first result; only the first cause is recorded.
    pub fn kill(&mut self, cause: KillCause) -> GuestEnd {
        if let Some(end) = self.end {
            return end;
        }
        let alive = survey(self.shared.pid);
        if self.shared.was_out_of_memory() {
            self.shared.kill(KillCause::Memory);
        }
        let layer = self.layers.values().next();
        if let Some(layer) = layer {
            self.shared.measure_disk(layer);
        }
        self.shared.record_kernel_peak(layer);
        self.shared.kill(cause);
        if !poll_in(self.process.pidfd(), TEARDOWN) {
            self.process.kill();
        }
        let process = self.process.wait();
        // Wait for the guest's pid 1 as well: a killed process wrapper may end before the processes
        // inside the wrapper.
        poll_in(self.shared.pidfd.as_fd(), TEARDOWN);
        self.disk = None;
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        // The kernel does not add the CPU time of processes that die with their pid namespace to a
        // parent's usage. So add their CPU time as polled just before the kill.
        let lost = alive.cpu;
        let (user, system) = process.map_or((0, 0), |end| (end.user_us, end.system_us));
        // The cgroup counts the CPU time of all processes.
        let (user, system) = match self.shared.cpu() {
            Some((all_user, all_system)) => (user.max(all_user), system.max(all_system)),
            None => (user.saturating_add(lost), system),
        };
        let end = GuestEnd {
            cause: self.shared.cause(),
            user_us: user,
            system_us: system,
            usage: self.shared.usage(),
        };
        self.end = Some(end);
        end
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill(KillCause::Finished);
    }
}
