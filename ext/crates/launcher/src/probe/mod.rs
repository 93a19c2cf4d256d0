//! What this guest looks like from inside, before the first foreign byte runs.
//!
//! Each axis is observed: forbidden things are tried, the kernel is asked. An
//! observation that contradicts the design fails the launch, or is a row of a self-test's
//! report; nothing is reported that was only configured. A denial is believed only where
//! a comparable thing succeeds.

mod active;
mod files;
mod findings;
mod limits;
mod network;
mod privileges;
mod processes;
mod syscalls;

use crate::error::{At, Failure, Step};
use crate::privileges::WATCHES;
use crate::shortfall::Shortfalls;
use findings::Findings;
use rustix::fs::{Mode, OFlags};
use std::fs;
use wp_codebox_contracts::{IsolationAxis, IsolationReport, LaunchPlan};

/// What is taken from the host before it goes out of sight.
pub(crate) struct HostRoot {
    device: u64,
    inode: u64,
    /// Limits on inotify of this user namespace, as the kernel shows them.
    watches: Vec<u64>,
}

/// Device and inode of the host's root, and the limits that only the host's `/proc` shows.
pub(crate) fn host_root() -> Result<HostRoot, Failure> {
    let stat = rustix::fs::stat("/").at(Step::Probe, "host root")?;
    let shown = |(path, _): &(&str, u64)| read(path).ok()?.trim().parse().ok();
    Ok(HostRoot {
        device: stat.st_dev,
        inode: stat.st_ino,
        watches: WATCHES.iter().filter_map(shown).collect(),
    })
}

/// Runs every probe of a guest with namespaces. `landlock_abi` is the one in force, 0 for none;
/// `bound` is [`crate::rootfs::Built::bound`].
pub(crate) fn run(
    plan: &LaunchPlan,
    host: &HostRoot,
    bound: &[String],
    landlock_abi: u32,
    shortfalls: &Shortfalls,
) -> Result<IsolationReport, Failure> {
    let mut findings = Findings::new(plan.level, shortfalls);
    findings.add(
        IsolationAxis::Files,
        files::files(plan, host, bound, shortfalls),
    )?;
    findings.add(IsolationAxis::Processes, processes::processes())?;
    findings.add(IsolationAxis::Network, network::network(plan))?;
    findings.add(IsolationAxis::Syscalls, syscalls::syscalls(shortfalls))?;
    findings.add(IsolationAxis::Privileges, privileges::privileges(plan))?;
    findings.add(IsolationAxis::Memory, limits::memory(plan))?;
    findings.add(IsolationAxis::Cpu, Ok(limits::cpu()))?;
    findings.add(IsolationAxis::Pids, limits::pids(plan, &host.watches))?;
    findings.add(IsolationAxis::Disk, limits::disk(plan))?;
    findings.add(IsolationAxis::Identity, Ok(privileges::identity()))?;
    Ok(findings.report(landlock_abi))
}

fn wrong(what: impl Into<String>) -> Failure {
    Failure::rule(Step::Probe, what)
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(path).at(Step::Probe, path)
}

/// The errno with which opening fails; `None` when it works.
fn open_errno(path: &str, flags: OFlags) -> Option<i32> {
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::open(path, flags | OFlags::CLOEXEC, mode)
        .err()
        .map(|errno| errno.raw_os_error())
}

fn status_field(name: &str) -> Result<String, Failure> {
    read("/proc/self/status")?
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(|value| value.trim().to_owned())
        .ok_or_else(|| wrong(format!("no {name} in status")))
}
