//! One guest, from launch to death.
//!
//! A guest that is dropped is killed; after [`Guest::kill`] no process of it is left.
//! Layer descriptors stay usable after that: capture happens when nothing can write
//! any more. Nothing that arrives after `Ready` is believed further than its type.

use crate::channel::{Channel, poll_in};
use crate::launch_error::LaunchError;
use crate::launched::Launched;
use crate::launcher_process::LauncherProcess;
use crate::launching::{LaunchOptions, Started, TEARDOWN, start};
use crate::watch::{self, Shared, Usage};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use wp_codebox_contracts::{GuestDeath, IsolationReport, LaunchPlan, Limits, SandboxAudit};
use wp_codebox_runtime::EgressListeners;

pub use crate::watch::KillCause;

/// A running guest.
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
    report: IsolationReport,
    audit: SandboxAudit,
    watcher: Option<JoinHandle<()>>,
    end: Option<GuestEnd>,
}

/// How a guest ended and what all of it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestEnd {
    /// Why it was ended.
    pub cause: KillCause,
    /// User CPU of launcher and guest, microseconds.
    pub user_us: u64,
    /// System CPU of launcher and guest, microseconds.
    pub system_us: u64,
    /// Peaks.
    pub usage: Usage,
}

/// Ends a guest from another thread.
#[derive(Debug, Clone)]
pub struct GuestKiller {
    shared: Arc<Shared>,
}

impl GuestKiller {
    /// Kills every process of the guest at once. The first cause given stays; calling it again,
    /// or after the guest's death, does nothing.
    pub fn kill(&self, cause: KillCause) {
        self.shared.kill(cause);
    }
}

impl Guest {
    /// Builds a guest and waits until its probes have run. Blocks for a few milliseconds,
    /// at most `ready_timeout`. Fails closed: below the plan's level the guest is killed.
    pub fn launch(plan: &LaunchPlan, options: &LaunchOptions<'_>) -> Result<Self, LaunchError> {
        let host = |step| move |source: std::io::Error| LaunchError::Host { step, source };
        let Started {
            channel,
            process,
            shared,
            layers,
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
        let spawner = options.identity.spawner().map(|spawner| spawner.pidfd());
        let spawner = spawner.transpose().map_err(host("spawner"))?;
        let watcher = watch::start(Arc::clone(&guest.shared), guest.limits, disk, spawner)
            .map_err(host("thread"))?;
        guest.watcher = Some(watcher);
        Ok(guest)
    }

    /// What the probes inside saw before the first foreign byte ran.
    #[must_use]
    pub fn report(&self) -> &IsolationReport {
        &self.report
    }

    /// The wrapper's record.
    #[must_use]
    pub fn audit(&self) -> &SandboxAudit {
        &self.audit
    }

    /// The upper directory of the mount with this index, readable. Walk it only after
    /// [`Guest::kill`], with `openat2` beneath it: its names are the guest's.
    #[must_use]
    pub fn layer(&self, index: u32) -> Option<BorrowedFd<'_>> {
        self.layers.get(&index).map(AsFd::as_fd)
    }

    /// The sockets on which the guest's clients of the egress bridge arrive; once.
    pub fn take_egress(&mut self) -> Option<EgressListeners> {
        self.egress.take()
    }

    /// The socket on which the guest's mail arrives; once.
    pub fn take_mail(&mut self) -> Option<OwnedFd> {
        self.mail.take()
    }

    /// Pid 1 of the guest, as this process sees it.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.shared.pid
    }

    /// Peaks so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.shared.usage()
    }

    /// Becomes readable when the guest's pid 1 is gone, e.g. for an event loop.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.shared.pidfd.as_fd()
    }

    /// A handle that ends this guest from another thread.
    #[must_use]
    pub fn killer(&self) -> GuestKiller {
        GuestKiller {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Kills every process of the guest, waits until they are gone and the launcher is reaped.
    /// Idempotent; the first call's cause stays unless the guest was ended before.
    pub fn kill(&mut self, cause: KillCause) -> GuestEnd {
        if let Some(end) = self.end {
            return end;
        }
        let alive = watch::survey(self.shared.pid);
        if self.shared.was_out_of_memory() {
            self.shared.kill(KillCause::Memory);
        }
        let layer = self.layers.values().next();
        if let Some(layer) = layer {
            self.shared.look_at_disk(layer);
        }
        self.shared.saw_kernel_peak(layer);
        self.shared.kill(cause);
        if !poll_in(self.process.pidfd(), TEARDOWN) {
            self.process.kill();
        }
        let process = self.process.wait();
        // A wrapper that had to be killed is gone before what it wrapped.
        poll_in(self.shared.pidfd.as_fd(), TEARDOWN);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        // Children that die with their namespace are not waited for by anybody, so their CPU
        // time is in nobody's account: what was seen a moment ago is added.
        let lost = alive.ticks.saturating_mul(1_000_000 / 100);
        let (user, system) = process.map_or((0, 0), |end| (end.user_us, end.system_us));
        // A group counts them all.
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
