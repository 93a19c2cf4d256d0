//! One guest, from launch to death.
//!
//! A guest that is dropped is killed; after [`Guest::kill`] no process of it is left.
//! Layer descriptors stay usable after that: capture happens when nothing can write
//! any more. Nothing that arrives after `Ready` is believed further than its type.

use crate::cgroup::Cgroup;
use crate::channel::{Channel, Received};
use crate::grouping;
use crate::launch_error::LaunchError;
use crate::process_sandbox::{LauncherCommand, ProcessSandbox};
use crate::spawn::{LauncherProcess, send_plan, spawn};
use crate::watch::{self, Shared, Usage};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    GuestReply, IsolationReport, LaunchMount, LaunchPlan, LaunchPurpose, Limits, SandboxAudit,
};
use wp_codebox_runtime::EgressListeners;

pub use crate::watch::KillCause;

/// In place of the number of a pid 1 that is gone.
const GONE: i32 = 0;
/// Time for the kernel to tear a killed guest down before the launcher is killed too.
const TEARDOWN: Duration = Duration::from_secs(10);

/// How to start the launcher.
#[derive(Clone, Copy)]
pub struct LaunchOptions<'a> {
    /// The launcher.
    pub launcher: &'a Path,
    /// A further wrapper, or [`crate::NoSandbox`].
    pub sandbox: &'a dyn ProcessSandbox,
    /// Time until the guest must be ready.
    pub ready_timeout: Duration,
    /// The group that the guest shall be in, or why there is none.
    pub cgroup: &'a Cgroup,
}

/// A running guest.
#[derive(Debug)]
pub struct Guest {
    pub(crate) channel: Channel,
    pub(crate) shared: Arc<Shared>,
    pub(crate) limits: Limits,
    pub(crate) layers: BTreeMap<u32, OwnedFd>,
    pub(crate) egress: Option<EgressListeners>,
    process: LauncherProcess,
    lifetime: Option<OwnedFd>,
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

/// What the launcher sends until the guest is ready.
#[derive(Default)]
struct Arrivals {
    spawned: Option<(i32, OwnedFd)>,
    layers: BTreeMap<u32, OwnedFd>,
    egress: Option<EgressListeners>,
    report: Option<IsolationReport>,
}

impl Guest {
    /// Builds a guest and waits until its probes have run. Blocks for a few milliseconds,
    /// at most `ready_timeout`. Fails closed: below the plan's level the guest is killed.
    pub fn launch(plan: &LaunchPlan, options: &LaunchOptions<'_>) -> Result<Self, LaunchError> {
        let host = |step| move |source: std::io::Error| LaunchError::Host { step, source };
        let Started {
            channel,
            process,
            lifetime,
            shared,
            layers,
            egress,
            report,
            audit,
        } = start(plan, options)?;
        let mut guest = Self {
            channel,
            shared,
            limits: plan.limits,
            layers,
            egress,
            process,
            lifetime: Some(lifetime),
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
        let watcher =
            watch::start(Arc::clone(&guest.shared), guest.limits, disk).map_err(host("thread"))?;
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
        if let Some(layer) = self.layers.values().next() {
            self.shared.look_at_disk(layer);
        }
        self.shared.kill(cause);
        if !poll_in(self.process.pidfd(), TEARDOWN) {
            self.process.kill();
        }
        let process = self.process.wait();
        // A wrapper that had to be killed is gone before what it wrapped.
        poll_in(self.shared.pidfd.as_fd(), TEARDOWN);
        self.lifetime = None;
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

/// A launcher whose guest has reported.
struct Started {
    channel: Channel,
    process: LauncherProcess,
    lifetime: OwnedFd,
    shared: Arc<Shared>,
    layers: BTreeMap<u32, OwnedFd>,
    egress: Option<EgressListeners>,
    report: IsolationReport,
    audit: SandboxAudit,
}

/// Starts the launcher and waits for the guest's report. On failure nothing of it is left.
fn start(plan: &LaunchPlan, options: &LaunchOptions<'_>) -> Result<Started, LaunchError> {
    let host = |step| move |source: std::io::Error| LaunchError::Host { step, source };
    let errno = |step| {
        move |source: rustix::io::Errno| LaunchError::Host {
            step,
            source: source.into(),
        }
    };
    let bytes = serde_json::to_vec(plan).map_err(|_| LaunchError::Protocol {
        detail: "the plan is no JSON",
    })?;
    let (plan_read, plan_write) = pipe_with(PipeFlags::CLOEXEC).map_err(errno("pipe"))?;
    let (mut channel, theirs) = Channel::pair().map_err(errno("channel"))?;
    let (lifetime_read, lifetime) = pipe_with(PipeFlags::CLOEXEC).map_err(errno("pipe"))?;
    let program = options.launcher.to_str().ok_or(LaunchError::Protocol {
        detail: "the launcher's path is not UTF-8",
    })?;
    let wrapped = options.sandbox.wrap(&LauncherCommand {
        program: program.to_owned(),
        args: Vec::new(),
        plan,
    });
    let around = options.sandbox.kind();
    let mut process = spawn(
        &wrapped,
        plan_read.as_fd(),
        theirs.as_fd(),
        lifetime_read.as_fd(),
    )
    .map_err(|source| {
        let path = options.launcher.to_owned();
        LaunchError::Launcher { path, source }.wrapped_in(around)
    })?;
    drop((plan_read, theirs, lifetime_read));
    let until = Instant::now() + options.ready_timeout;
    let begun = grouping::join(options.cgroup, process.pid())
        .map_err(host("cgroup"))
        .and_then(|()| send_plan(plan_write, &bytes, until).map_err(host("plan")))
        .and_then(|()| await_ready(&mut channel, &mut process, plan, options.ready_timeout));
    let arrivals = match begun {
        Ok(arrivals) => arrivals,
        Err(error) => {
            // Nothing foreign has run yet; what is left dies with the launcher.
            process.kill();
            let _ = process.wait();
            return Err(error.wrapped_in(around));
        }
    };
    let (Some((pid, pidfd)), Some(mut report)) = (arrivals.spawned, arrivals.report) else {
        process.kill();
        let _ = process.wait();
        return Err(LaunchError::Protocol {
            detail: "ready came before everything else",
        });
    };
    if pid == GONE && plan.purpose == LaunchPurpose::Serve {
        process.kill();
        let _ = process.wait();
        return Err(LaunchError::Protocol {
            detail: "what came with pid 1 is no process of this host",
        });
    }
    let meter = grouping::confirm(options.cgroup, process.pid(), pid, &mut report);
    Ok(Started {
        channel,
        process,
        lifetime,
        shared: Shared::new(pid, pidfd, meter),
        layers: arrivals.layers,
        egress: arrivals.egress,
        report,
        audit: wrapped.audit,
    })
}

/// What the guest of a self-test reports. It ends by itself, and is gone afterwards.
pub(crate) fn observe(
    plan: &LaunchPlan,
    options: &LaunchOptions<'_>,
) -> Result<IsolationReport, LaunchError> {
    let mut started = start(plan, options)?;
    if !poll_in(started.process.pidfd(), TEARDOWN) {
        started.process.kill();
    }
    let _ = started.process.wait();
    Ok(started.report)
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill(KillCause::Finished);
    }
}

/// Waits for readability; false after `timeout`.
pub(crate) fn poll_in(fd: BorrowedFd<'_>, timeout: Duration) -> bool {
    let until = Instant::now() + timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [rustix::event::PollFd::from_borrowed_fd(
            fd,
            rustix::event::PollFlags::IN,
        )];
        match rustix::event::poll(&mut fds, Some(&crate::channel::timespec(left))) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

fn await_ready(
    channel: &mut Channel,
    process: &mut LauncherProcess,
    plan: &LaunchPlan,
    timeout: Duration,
) -> Result<Arrivals, LaunchError> {
    let until = Instant::now() + timeout;
    let mut arrivals = Arrivals::default();
    loop {
        match channel.receive() {
            Received::Empty => {
                if !channel.wait(until) {
                    return Err(LaunchError::Timeout {
                        seconds: timeout.as_secs(),
                    });
                }
            }
            Received::Garbage => {
                return Err(LaunchError::Protocol {
                    detail: "a message is malformed",
                });
            }
            Received::Closed => {
                process.kill();
                let status = process.wait().map_or_else(
                    |error| error.to_string(),
                    |end| format!("exit status {}", end.status),
                );
                return Err(LaunchError::Died { status });
            }
            Received::Message(reply, descriptors) => {
                accept(&mut arrivals, *reply, descriptors, plan)?;
                if arrivals.report.is_some() && arrivals.spawned.is_some() {
                    return complete(arrivals, plan);
                }
            }
        }
    }
}

fn accept(
    arrivals: &mut Arrivals,
    reply: GuestReply,
    descriptors: Vec<OwnedFd>,
    plan: &LaunchPlan,
) -> Result<(), LaunchError> {
    let protocol = |detail| Err(LaunchError::Protocol { detail });
    let mut descriptors = descriptors.into_iter();
    match (reply, descriptors.next()) {
        (GuestReply::Egress, Some(unix)) if plan.egress.is_some() && arrivals.egress.is_none() => {
            let Some(tcp) = descriptors.next() else {
                return protocol("a listening socket is missing");
            };
            arrivals.egress = Some(EgressListeners { unix, tcp });
            Ok(())
        }
        (GuestReply::Spawned { .. }, Some(pidfd)) if arrivals.spawned.is_none() => {
            // The number in the message is one of the launcher's own pid namespace. A pid 1
            // that failed may be gone already: why it did is the next message.
            arrivals.spawned = Some((pid_here(pidfd.as_fd()).unwrap_or(GONE), pidfd));
            Ok(())
        }
        (GuestReply::Layer { index }, Some(layer)) => {
            if !captures(plan).any(|wanted| wanted == index)
                || arrivals.layers.insert(index, layer).is_some()
            {
                return protocol("a layer nobody asked for arrived");
            }
            Ok(())
        }
        (GuestReply::Ready { report }, None) if arrivals.report.is_none() => {
            arrivals.report = Some(report);
            Ok(())
        }
        (
            GuestReply::Failed {
                step,
                subject,
                errno,
            },
            None,
        ) => Err(LaunchError::Step {
            step: cut(step),
            subject: cut(subject),
            errno,
        }),
        (
            GuestReply::Spawned { .. }
            | GuestReply::Layer { .. }
            | GuestReply::Egress
            | GuestReply::Ready { .. }
            | GuestReply::Failed { .. }
            | GuestReply::Started { .. }
            | GuestReply::ExecFailed { .. }
            | GuestReply::Exit(_),
            _,
        ) => protocol("a message came out of turn"),
    }
}

/// The number that this process knows the process of a pidfd by.
fn pid_here(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let path = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let text = std::fs::read_to_string(path).ok()?;
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok().filter(|pid| *pid > 0)
}

fn captures(plan: &LaunchPlan) -> impl Iterator<Item = u32> + '_ {
    plan.mounts.iter().filter_map(|mount| match mount {
        LaunchMount::Overlay { capture, .. } => *capture,
        LaunchMount::Directory { .. }
        | LaunchMount::File(_)
        | LaunchMount::Symlink { .. }
        | LaunchMount::Bind { .. }
        | LaunchMount::Scratch { .. }
        | LaunchMount::Proc
        | LaunchMount::Dev => None,
    })
}

fn complete(arrivals: Arrivals, plan: &LaunchPlan) -> Result<Arrivals, LaunchError> {
    let detail = if !captures(plan).all(|index| arrivals.layers.contains_key(&index)) {
        "a layer is missing"
    } else if plan.egress.is_some() && arrivals.egress.is_none() {
        "the listening sockets are missing"
    } else {
        return Ok(arrivals);
    };
    Err(LaunchError::Protocol { detail })
}

fn cut(text: String) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
