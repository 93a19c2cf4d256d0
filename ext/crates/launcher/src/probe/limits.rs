//! The memory, cpu, pids and disk axes.
//!
//! A run reads the limits back; a self-test reaches them, see [`super::active`].

use super::active;
use super::findings::Seen;
use super::observe::wrong;
use crate::error::{At, Failure, Step};
use crate::privileges::{OWN_PROCESSES, WATCHES, data_limit};
use rustix::process::{Resource, getrlimit};
use wp_codebox_contracts::{FIXED_LIMITS, LaunchMount, LaunchPlan, LaunchPurpose};

/// The limit in force, given that it is at most this.
pub(super) fn limit_of(resource: Resource, at_most: u64, name: &str) -> Result<u64, Failure> {
    let limit = getrlimit(resource);
    match (limit.current, limit.maximum) {
        (Some(soft), Some(hard)) if soft <= at_most && hard <= at_most => Ok(soft),
        _ => Err(wrong(format!("limit on {name}"))),
    }
}

/// One process's private memory; the sum is the runner's to watch.
pub(super) fn memory(plan: &LaunchPlan) -> Result<Seen, Failure> {
    let most = data_limit(&plan.limits);
    let data = limit_of(Resource::Data, most, "data")?;
    let locked = limit_of(
        Resource::Memlock,
        FIXED_LIMITS.locked_bytes,
        "locked memory",
    )?;
    let mut evidence = format!("data limit {data} bytes per process, {locked} bytes locked");
    if plan.purpose == LaunchPurpose::Probe {
        let mapped = active::map_until_refused(most)?;
        evidence = format!("{evidence}; mapping was refused after {mapped} bytes");
    }
    Ok(Seen::best_effort(
        "RLIMIT_DATA of twice the limit per process, polled sum with a kill",
        evidence,
    ))
}

/// Nothing here can see a quota; the runner's clock decides.
pub(super) fn cpu() -> Seen {
    Seen::best_effort(
        "wall clock deadline with a kill",
        "no CPU quota; the runner ends the guest at its deadline",
    )
}

/// Processes and threads alive at once, and what else the kernel counts for all of them.
pub(super) fn pids(plan: &LaunchPlan, watches: &[u64]) -> Result<Seen, Failure> {
    let most = plan.limits.processes.saturating_add(OWN_PROCESSES);
    let limit = limit_of(Resource::Nproc, most, "processes")?;
    let signals = limit_of(
        Resource::Sigpending,
        FIXED_LIMITS.queued_signals,
        "queued signals",
    )?;
    let [instances, marks] = watches else {
        return Err(wrong("no limit on inotify"));
    };
    if WATCHES.iter().zip(watches).any(|((_, most), is)| is > most) {
        return Err(wrong("limit on inotify"));
    }
    let mut evidence = format!(
        "at most {limit} processes and threads, two of them the sandbox's own; \
         {signals} queued signals, {instances} inotify instances, {marks} watches"
    );
    if plan.purpose == LaunchPurpose::Probe {
        let started = active::fork_until_refused(plan.limits.processes)?;
        let files = FIXED_LIMITS.open_files;
        active::open_until_refused(files)?;
        let seen = active::watch_until_refused(*instances)?;
        evidence = format!(
            "{evidence}; fork was refused after {started} children, another descriptor at {files}, \
             another inotify instance after {seen}"
        );
    }
    Ok(Seen::enforced(
        "RLIMIT_NPROC, RLIMIT_SIGPENDING and inotify limits of the user namespace",
        evidence,
    ))
}

/// What can be written in all, and in one file.
pub(super) fn disk(plan: &LaunchPlan) -> Result<Seen, Failure> {
    let file = limit_of(Resource::Fsize, plan.limits.disk_bytes, "file size")?;
    let mut size = None;
    let mut place = None;
    for mount in &plan.mounts {
        let (LaunchMount::Scratch { target, .. } | LaunchMount::Overlay { target, .. }) = mount
        else {
            continue;
        };
        let stat = rustix::fs::statfs(target.as_str()).at(Step::Probe, target.as_str())?;
        let block = u64::try_from(stat.f_bsize).unwrap_or(0);
        let bytes = stat.f_blocks.saturating_mul(block);
        // The kernel rounds the size up to whole pages.
        if bytes == 0 || bytes > plan.limits.disk_bytes.saturating_add(active::PAGES) {
            return Err(wrong(format!("{target} has {bytes} bytes")));
        }
        size = Some(bytes);
        if matches!(mount, LaunchMount::Scratch { .. }) {
            place = Some(target);
        }
    }
    let mut evidence = match size {
        Some(size) => format!("everything writable shares {size} bytes; files up to {file} bytes"),
        None => "nothing is writable".to_owned(),
    };
    if let (LaunchPurpose::Probe, Some(place)) = (plan.purpose, place) {
        let seen = active::fill(place.as_str(), plan.limits.disk_bytes)?;
        evidence = format!("{evidence}; {seen}");
    }
    Ok(Seen::enforced(
        "size of the scratch tmpfs, RLIMIT_FSIZE",
        evidence,
    ))
}
