//! Launch of a guest: from a launch plan to a ready guest or an error.
//!
//! Starts the launcher, moves it into its cgroup, sends the plan and reads messages until the
//! guest's probes have run. On failure no process of the guest is left.

use crate::cgroup::Cgroup;
use crate::channel::{Channel, Received, poll_in};
use crate::grouping;
use crate::launch_error::LaunchError;
use crate::launcher_process::LauncherProcess;
use crate::process_sandbox::{LauncherCommand, ProcessSandbox};
use crate::scratch::{ScratchDirectory, ScratchStorage};
use crate::spawn::{send_plan, spawn};
use crate::spawner::GuestIdentity;
use crate::watch::{KillCause, Shared};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    Enforcement, GuestReply, IsolationAxis, IsolationReport, LaunchMount, LaunchPlan, PlanIdentity,
    SandboxAudit,
};
use wp_codebox_runtime::{EgressListeners, UsageMeter};

/// Maximum wait for the kernel to end a killed guest; after that the launcher is killed too.
pub(crate) const TEARDOWN: Duration = Duration::from_secs(10);

/// Settings of a launch that are not part of the guest's plan.
#[derive(Clone, Copy)]
pub struct LaunchOptions<'a> {
    /// Path of the launcher program on the host.
    pub launcher: &'a Path,
    /// Process wrapper around the launcher, or [`crate::NoSandbox`].
    pub sandbox: &'a dyn ProcessSandbox,
    /// Maximum wait for the guest to become ready.
    pub ready_timeout: Duration,
    /// Cgroup that the launcher joins, or the reason why there is none.
    pub cgroup: &'a Cgroup,
    /// Kernel uid and gid as which the guest runs.
    pub identity: &'a GuestIdentity,
    /// Where the guest's writable files lie.
    pub scratch: &'a ScratchStorage,
    /// Counters to which the guest's use is added.
    pub used: &'a Arc<UsageMeter>,
}

/// Value used in place of the pid of the guest's first process when that process has already ended.
const GONE: i32 = 0;

/// Descriptors and report that the launcher has sent so far, while the guest is not ready.
#[derive(Default)]
struct Arrivals {
    spawned: Option<(i32, OwnedFd)>,
    /// Mount of the guest's scratch tmpfs, which contains its layers; sent only for a guest with a
    /// kernel uid of its own.
    scratch: Option<OwnedFd>,
    directories: BTreeMap<u32, String>,
    layers: BTreeMap<u32, OwnedFd>,
    egress: Option<EgressListeners>,
    mail: Option<OwnedFd>,
    report: Option<IsolationReport>,
}

/// Launcher, channel and descriptors of a guest that has become ready.
pub(crate) struct Started {
    pub(crate) channel: Channel,
    pub(crate) process: LauncherProcess,
    pub(crate) shared: Arc<Shared>,
    pub(crate) layers: BTreeMap<u32, OwnedFd>,
    pub(crate) scratch: Option<ScratchDirectory>,
    pub(crate) egress: Option<EgressListeners>,
    pub(crate) mail: Option<OwnedFd>,
    pub(crate) report: IsolationReport,
    pub(crate) audit: SandboxAudit,
}

/// Starts the launcher and waits for the guest's isolation report. On failure no process of the
/// guest is left.
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
    let (unix, packets) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let (lifetime, their_lifetime) =
        socketpair(unix, packets, SocketFlags::CLOEXEC, None).map_err(errno("socket pair"))?;
    let mut scratch = ScratchDirectory::make(options.scratch, options.identity, plan)
        .map_err(host("scratch directory"))?;
    let mut plan = plan.clone();
    plan.scratch = scratch.as_ref().map(ScratchDirectory::planned);
    if let Some(spawner) = options.identity.spawner() {
        spawner.translate(&mut plan).map_err(host("copy"))?;
    }
    let plan = &plan;
    let bytes = serde_json::to_vec(plan).map_err(|_| LaunchError::Protocol {
        detail: "the plan cannot be written as JSON",
    })?;
    let program = options.launcher.to_str().ok_or(LaunchError::Protocol {
        detail: "the launcher's path is not UTF-8",
    })?;
    let command = LauncherCommand {
        program: program.to_owned(),
        args: Vec::new(),
        plan,
    };
    let wrapped = options.sandbox.wrap(&command.host_command());
    let around = options.sandbox.kind();
    let given = [plan_read.as_fd(), theirs.as_fd(), their_lifetime.as_fd()];
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
    drop((plan_read, theirs, their_lifetime));
    let until = Instant::now() + options.ready_timeout;
    // Only a spawner without root has a store (tmpfs with copies of host files). Such a spawner has
    // already moved the launcher into the cgroup, while the launcher still had the user's uid.
    let joined = match options.identity.store() {
        Some(_) => Ok(()),
        None => grouping::join(options.cgroup, process.pid()),
    };
    let joined = joined.map_err(|source| match source.raw_os_error() {
        // The launcher, or the wrapper around it, has ended.
        Some(libc::ESRCH) => died(&mut process),
        _ => host("cgroup")(source),
    });
    let begun = joined
        .and_then(|()| send_plan(plan_write, &bytes, until).map_err(host("plan")))
        .and_then(|()| await_ready(&mut channel, &mut process, plan, options.ready_timeout));
    let begun =
        begun.and_then(|arrivals| arrivals.read_through(options.identity, scratch.as_mut()));
    let arrivals = match begun {
        Ok(arrivals) => arrivals,
        Err(error) => {
            // No program of the caller has run yet, so killing the launcher ends all processes of
            // the guest.
            process.kill();
            let _ = process.wait();
            return Err(error.wrapped_in(around));
        }
    };
    let (Some((pid, pidfd)), Some(mut report)) = (arrivals.spawned, arrivals.report) else {
        process.kill();
        let _ = process.wait();
        return Err(LaunchError::Protocol {
            detail: "`ready` arrived before other required messages",
        });
    };
    if pid == GONE {
        process.kill();
        let _ = process.wait();
        return Err(LaunchError::Protocol {
            detail: "the descriptor sent with pid 1 is not a process of this host",
        });
    }
    if let Some(scratch) = &scratch {
        scratch.explain(&mut report);
    }
    let meter = grouping::confirm(
        options.cgroup,
        (process.pid(), pid),
        &plan.limits,
        &mut report,
    );
    if let Err(detail) = identified(options.identity, pid, &mut report) {
        process.kill();
        let _ = process.wait();
        return Err(LaunchError::Protocol { detail });
    }
    Ok(Started {
        channel,
        process,
        shared: Shared::new(pid, pidfd, lifetime, meter, Arc::clone(options.used)),
        layers: arrivals.layers,
        scratch,
        egress: arrivals.egress,
        mail: arrivals.mail,
        report,
        audit: wrapped.audit,
    })
}

impl Arrivals {
    /// Opens the layers (overlay upper directories) of a guest with a kernel uid of its own,
    /// through an idmapped mount that shows their files as owned by the owner of the state
    /// directory. No program of the caller has run yet, so the directory names come from the
    /// launcher and not from an untrusted program.
    fn read_through(
        mut self,
        identity: &GuestIdentity,
        mut on_disk: Option<&mut ScratchDirectory>,
    ) -> Result<Self, LaunchError> {
        if let Some(on_disk) = &mut on_disk {
            self.directories
                .values()
                .for_each(|name| on_disk.add_layer(name));
        }
        let (Some(spawner), Some(scratch)) = (identity.spawner(), self.scratch.take()) else {
            return Ok(self);
        };
        let host = |step| move |source: std::io::Error| LaunchError::Host { step, source };
        // A directory on disk shows the guest's files as those of this process already.
        let scratch = match on_disk {
            Some(on_disk) => on_disk.reopen().map_err(host("scratch directory"))?,
            None => {
                spawner.expose(scratch.as_fd()).map_err(host("expose"))?;
                scratch
            }
        };
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

/// Completes the row of the isolation report that states the guest's kernel uid and gid. For a
/// guest with a kernel uid of its own, fails unless the host's `/proc` shows that pid 1 has that
/// uid and gid.
fn identified(
    identity: &GuestIdentity,
    pid: i32,
    report: &mut IsolationReport,
) -> Result<(), &'static str> {
    let row = report
        .axes
        .iter_mut()
        .find(|row| row.axis == IsolationAxis::Identity)
        .ok_or("the isolation report does not contain the axis identity")?;
    match identity {
        GuestIdentity::Shared { reason } => {
            row.evidence = format!("{}; {reason}", row.evidence);
            Ok(())
        }
        GuestIdentity::Own(spawner) => {
            let id = spawner.id();
            if kernel_ids(pid) != Some([id, id]) {
                return Err("the guest does not run as the uid and gid allocated for it");
            }
            row.enforced = Enforcement::Enforced;
            row.by = "a kernel uid and gid that nothing else on this host has".to_owned();
            // The ids are left out of the text, so that equal runs give equal reports.
            "the kernel reports that pid 1 runs as the uid and gid that were locked for it; no \
             process had them before"
                .clone_into(&mut row.evidence);
            Ok(())
        }
    }
}

/// Returns real uid and gid of the process `pid`, as numbered in this process's user namespace.
fn kernel_ids(pid: i32) -> Option<[u32; 2]> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let first = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some([first("Uid:")?, first("Gid:")?])
}

/// Launches a guest for a self-test, ends it and returns its isolation report.
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
            Received::Malformed => {
                return Err(LaunchError::Protocol {
                    detail: "a message is malformed",
                });
            }
            Received::Closed => return Err(died(process)),
            Received::Message(reply, descriptors) => {
                accept(&mut arrivals, *reply, descriptors, plan)?;
                if arrivals.report.is_some() && arrivals.spawned.is_some() {
                    return complete(arrivals, plan);
                }
            }
        }
    }
}

/// Returns the error for a launcher that has closed its channel without a message, with its exit
/// status. Kills the launcher if it still runs.
fn died(process: &mut LauncherProcess) -> LaunchError {
    process.kill();
    let status = process.wait().map_or_else(
        |error| error.to_string(),
        |end| end_status(end.code, end.signal),
    );
    LaunchError::Died { status }
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
            // The message contains the pid in the launcher's pid namespace. The pid in the
            // namespace of this process is read from the pidfd. If pid 1 has already failed and
            // ended, the pidfd has no pid, and the next message gives the cause.
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
            let twice = arrivals.directories.insert(index, directory).is_some();
            if let Some(layer) = layer {
                arrivals.layers.insert(index, layer);
            }
            if twice || !captures(plan).any(|wanted| wanted == index) {
                return protocol("the descriptor of an unexpected overlay layer arrived");
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
        ) => protocol("a message arrived out of order"),
    }
}

/// Returns the pid that the process of `pidfd` has in this process's pid namespace.
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
        "the descriptor of an overlay layer is missing"
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
