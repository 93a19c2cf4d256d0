//! From a plan to a guest that has reported, or to the reason why there is none.
//!
//! The launcher is started, put into its group, given the plan and listened to until the
//! guest's probes have run. Whatever goes wrong on the way, nothing of it is left.

use crate::cgroup::Cgroup;
use crate::channel::{Channel, Received, poll_in};
use crate::grouping;
use crate::launch_error::LaunchError;
use crate::launcher_process::LauncherProcess;
use crate::process_sandbox::{LauncherCommand, ProcessSandbox};
use crate::spawn::{send_plan, spawn};
use crate::spawner::GuestIdentity;
use crate::watch::{KillCause, Shared};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    Enforcement, GuestReply, IsolationAxis, IsolationReport, LaunchMount, LaunchPlan, PlanIdentity,
    SandboxAudit,
};
use wp_codebox_runtime::EgressListeners;

/// Time for the kernel to tear a killed guest down before the launcher is killed too.
pub(crate) const TEARDOWN: Duration = Duration::from_secs(10);

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
    /// Whose kernel uid the guest gets.
    pub identity: &'a GuestIdentity,
}

/// In place of the number of a pid 1 that is gone.
const GONE: i32 = 0;

/// What the launcher sends until the guest is ready.
#[derive(Default)]
struct Arrivals {
    spawned: Option<(i32, OwnedFd)>,
    /// With an identity of its own: where the layers lie.
    scratch: Option<OwnedFd>,
    directories: BTreeMap<u32, String>,
    layers: BTreeMap<u32, OwnedFd>,
    egress: Option<EgressListeners>,
    mail: Option<OwnedFd>,
    report: Option<IsolationReport>,
}

/// A launcher whose guest has reported.
pub(crate) struct Started {
    pub(crate) channel: Channel,
    pub(crate) process: LauncherProcess,
    pub(crate) shared: Arc<Shared>,
    pub(crate) layers: BTreeMap<u32, OwnedFd>,
    pub(crate) egress: Option<EgressListeners>,
    pub(crate) mail: Option<OwnedFd>,
    pub(crate) report: IsolationReport,
    pub(crate) audit: SandboxAudit,
}

/// Starts the launcher and waits for the guest's report. On failure nothing of it is left.
pub(crate) fn start(
    plan: &LaunchPlan,
    options: &LaunchOptions<'_>,
) -> Result<Started, LaunchError> {
    let host = |step| move |source: std::io::Error| LaunchError::Host { step, source };
    let errno = |step| {
        move |source: rustix::io::Errno| LaunchError::Host {
            step,
            source: source.into(),
        }
    };
    let (plan_read, plan_write) = pipe_with(PipeFlags::CLOEXEC).map_err(errno("pipe"))?;
    let (mut channel, theirs) = Channel::pair().map_err(errno("channel"))?;
    let (lifetime_read, lifetime) = pipe_with(PipeFlags::CLOEXEC).map_err(errno("pipe"))?;
    let translated = options.identity.spawner().map(|one| one.translate(plan));
    let translated = translated.transpose().map_err(host("copy"))?;
    let plan = translated.as_ref().unwrap_or(plan);
    let bytes = serde_json::to_vec(plan).map_err(|_| LaunchError::Protocol {
        detail: "the plan is no JSON",
    })?;
    let program = options.launcher.to_str().ok_or(LaunchError::Protocol {
        detail: "the launcher's path is not UTF-8",
    })?;
    let wrapped = options.sandbox.wrap(&LauncherCommand {
        program: program.to_owned(),
        args: Vec::new(),
        plan,
    });
    let around = options.sandbox.kind();
    let given = [plan_read.as_fd(), theirs.as_fd(), lifetime_read.as_fd()];
    let started = match options.identity {
        GuestIdentity::Own(spawner) => {
            LauncherProcess::from_spawner(spawner, &wrapped, given, options.cgroup)
        }
        GuestIdentity::Shared { .. } => {
            let [plan, channel, lifetime] = given;
            spawn(&wrapped, plan, channel, lifetime).map(LauncherProcess::Child)
        }
    };
    let mut process = started.map_err(|source| {
        let path = options.launcher.to_owned();
        LaunchError::Launcher { path, source }.wrapped_in(around)
    })?;
    drop((plan_read, theirs, lifetime_read));
    let until = Instant::now() + options.ready_timeout;
    // A user's spawner has entered it already, while the process was still the user's own.
    let joined = match options.identity.store() {
        Some(_) => Ok(()),
        None => grouping::join(options.cgroup, process.pid()),
    };
    let begun = joined
        .map_err(host("cgroup"))
        .and_then(|()| send_plan(plan_write, &bytes, until).map_err(host("plan")))
        .and_then(|()| await_ready(&mut channel, &mut process, plan, options.ready_timeout));
    let begun = begun.and_then(|arrivals| arrivals.read_through(options.identity));
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
    if pid == GONE {
        process.kill();
        let _ = process.wait();
        return Err(LaunchError::Protocol {
            detail: "what came with pid 1 is no process of this host",
        });
    }
    let meter = grouping::confirm(options.cgroup, process.pid(), pid, &mut report);
    if let Err(detail) = identified(options.identity, pid, &mut report) {
        process.kill();
        let _ = process.wait();
        return Err(LaunchError::Protocol { detail });
    }
    Ok(Started {
        channel,
        process,
        shared: Shared::new(pid, pidfd, lifetime, meter),
        layers: arrivals.layers,
        egress: arrivals.egress,
        mail: arrivals.mail,
        report,
        audit: wrapped.audit,
    })
}

impl Arrivals {
    /// Opens the layers of a guest with a kernel uid of its own: through a mount in which its
    /// files are the state owner's. No foreign code has run yet, so the names are the launcher's.
    fn read_through(mut self, identity: &GuestIdentity) -> Result<Self, LaunchError> {
        let (Some(spawner), Some(scratch)) = (identity.spawner(), self.scratch.take()) else {
            return Ok(self);
        };
        let host = |step| move |source: std::io::Error| LaunchError::Host { step, source };
        spawner.expose(scratch.as_fd()).map_err(host("expose"))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        for (index, name) in std::mem::take(&mut self.directories) {
            let layer = openat2(&scratch, &*name, flags, Mode::empty(), resolve)
                .map_err(|errno| host("layer")(errno.into()))?;
            self.layers.insert(index, layer);
        }
        Ok(self)
    }
}

/// Completes the row of the identity from what the kernel says of pid 1, seen from outside.
fn identified(
    identity: &GuestIdentity,
    pid: i32,
    report: &mut IsolationReport,
) -> Result<(), &'static str> {
    let row = report
        .axes
        .iter_mut()
        .find(|row| row.axis == IsolationAxis::Identity)
        .ok_or("the report has no identity")?;
    match identity {
        GuestIdentity::Shared { reason } => {
            row.evidence = format!("{}; {reason}", row.evidence);
            Ok(())
        }
        GuestIdentity::Own(spawner) => {
            let id = spawner.id();
            if kernel_ids(pid) != Some([id, id]) {
                return Err("the guest does not have the identity made for it");
            }
            row.enforced = Enforcement::Enforced;
            row.by = "a kernel uid and gid that nothing else on this host has".to_owned();
            // Without the number: the same run gives the same report.
            "pid 1 runs as the uid and gid that were locked for it, as the kernel shows it; no \
             process had them before"
                .clone_into(&mut row.evidence);
            Ok(())
        }
    }
}

/// Real user and group of a process, in this process's namespace.
fn kernel_ids(pid: i32) -> Option<[u32; 2]> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let first = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some([first("Uid:")?, first("Gid:")?])
}

/// What the guest of a self-test reports. It is gone afterwards.
pub(crate) fn observe(
    plan: &LaunchPlan,
    options: &LaunchOptions<'_>,
) -> Result<IsolationReport, LaunchError> {
    let mut started = start(plan, options)?;
    started.shared.kill(KillCause::Finished);
    if !poll_in(started.process.pidfd(), TEARDOWN) {
        started.process.kill();
    }
    let _ = started.process.wait();
    Ok(started.report)
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
                    |end| end_status(end.code, end.signal),
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
        (GuestReply::Mail, Some(listener)) if plan.mail.is_some() && arrivals.mail.is_none() => {
            arrivals.mail = Some(listener);
            Ok(())
        }
        (GuestReply::Spawned { .. }, Some(pidfd)) if arrivals.spawned.is_none() => {
            // The number in the message is one of the launcher's own pid namespace. A pid 1
            // that failed may be gone already: why it did is the next message.
            arrivals.spawned = Some((pid_here(pidfd.as_fd()).unwrap_or(GONE), pidfd));
            Ok(())
        }
        (GuestReply::Scratch, Some(scratch))
            if plan.identity == PlanIdentity::Own && arrivals.scratch.is_none() =>
        {
            arrivals.scratch = Some(scratch);
            Ok(())
        }
        (GuestReply::Layer { index, directory }, layer)
            if layer.is_some() == arrivals.scratch.is_none() =>
        {
            let twice = match layer {
                Some(layer) => arrivals.layers.insert(index, layer).is_some(),
                None => arrivals.directories.insert(index, directory).is_some(),
            };
            if twice || !captures(plan).any(|wanted| wanted == index) {
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
        (GuestReply::Over { code, signal }, None) => Err(LaunchError::Died {
            status: end_status(code, signal),
        }),
        (
            GuestReply::Spawned { .. }
            | GuestReply::Scratch
            | GuestReply::Layer { .. }
            | GuestReply::Egress
            | GuestReply::Mail
            | GuestReply::Ready { .. }
            | GuestReply::Failed { .. }
            | GuestReply::Over { .. }
            | GuestReply::Started { .. }
            | GuestReply::ExecFailed { .. }
            | GuestReply::Connected { .. }
            | GuestReply::ConnectFailed { .. }
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
        | LaunchMount::Merged { .. }
        | LaunchMount::Proc
        | LaunchMount::Dev => None,
    })
}

fn complete(arrivals: Arrivals, plan: &LaunchPlan) -> Result<Arrivals, LaunchError> {
    let there =
        |index| arrivals.layers.contains_key(&index) || arrivals.directories.contains_key(&index);
    let detail = if !captures(plan).all(there) {
        "a layer is missing"
    } else if plan.egress.is_some() && arrivals.egress.is_none()
        || plan.mail.is_some() && arrivals.mail.is_none()
    {
        "the listening sockets are missing"
    } else {
        return Ok(arrivals);
    };
    Err(LaunchError::Protocol { detail })
}

fn end_status(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit status".to_owned(),
    }
}

pub(crate) fn cut(text: String) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
