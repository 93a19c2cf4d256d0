//! Probes of the isolation axes memory, cpu, pids and disk.
//!
//! The guest of a run only reads the limits back. The guest of a self-test also uses them up, see
//! [`super::active`].

use super::active;
use super::findings::Observation;
use super::observe::wrong;
use crate::error::{At, Failure, Step};
use crate::privileges::{OWN_PROCESSES, WATCHES, data_limit};
use rustix::process::{Resource, getrlimit};
use wp_codebox_contracts::{FIXED_LIMITS, LaunchMount, LaunchPlan, LaunchPurpose, ScratchSize};

/// Returns the limit in force for `resource`; fails when it is above `at_most`.
pub(super) fn limit_of(resource: Resource, at_most: u64, name: &str) -> Result<u64, Failure> {
    let limit = getrlimit(resource);
    match (limit.current, limit.maximum) {
        (Some(soft), Some(hard)) if soft <= at_most && hard <= at_most => Ok(soft),
        _ => Err(wrong(format!(
            "the limit on {name}, which is missing or too high"
        ))),
    }
}

/// Checks RLIMIT_DATA, the memory limit of each process; the supervisor polls the sum of all processes.
pub(super) fn memory(plan: &LaunchPlan) -> Result<Observation, Failure> {
    let most = data_limit(&plan.limits);
    let data = limit_of(Resource::Data, most, "data")?;
    let locked = limit_of(
        Resource::Memlock,
        FIXED_LIMITS.locked_bytes,
        "locked memory",
    )?;
    let mut evidence =
        format!("data limit {data} bytes and locked memory limit {locked} bytes per process");
    if plan.purpose == LaunchPurpose::Probe {
        let mapped = active::map_until_refused(most)?;
        evidence = format!("{evidence}; mapping was refused after {mapped} bytes");
    }
    Ok(Observation::best_effort(
        "RLIMIT_DATA of twice the limit per process, polled sum with a kill",
        evidence,
    ))
}

/// Returns a fixed observation without probing: no CPU quota exists that could be probed, and the
/// supervisor kills the guest at its deadline.
pub(super) fn cpu() -> Observation {
    Observation::best_effort(
        "wall clock deadline with a kill",
        "no CPU quota; the runner ends the guest at its deadline",
    )
}

/// Checks the limit on processes and threads, and the other limits that the kernel counts per user
/// namespace.
pub(super) fn pids(plan: &LaunchPlan, watches: &[u64]) -> Result<Observation, Failure> {
    let most = plan.limits.processes.saturating_add(OWN_PROCESSES);
    let limit = limit_of(Resource::Nproc, most, "processes")?;
    let signals = limit_of(
        Resource::Sigpending,
        FIXED_LIMITS.queued_signals,
        "queued signals",
    )?;
    let [instances, marks] = watches else {
        return Err(wrong("the inotify limits, which cannot be read"));
    };
    if WATCHES.iter().zip(watches).any(|((_, most), is)| is > most) {
        return Err(wrong("an inotify limit, which is too high"));
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
    Ok(Observation::enforced(
        "RLIMIT_NPROC, RLIMIT_SIGPENDING and inotify limits of the user namespace",
        evidence,
    ))
}

/// Checks the limit on all files of the guest together and the limit on one file.
pub(super) fn disk(plan: &LaunchPlan) -> Result<Observation, Failure> {
    let file = limit_of(Resource::Fsize, plan.limits.disk_bytes, "file size")?;
    let most = match plan.scratch.as_ref().map(|scratch| scratch.size) {
        None => plan.limits.disk_bytes,
        Some(ScratchSize::Limited(bytes)) => bytes,
        Some(ScratchSize::Unlimited) => {
            return Ok(Observation::best_effort(
                "RLIMIT_FSIZE, polled size with a kill",
                format!("files up to {file} bytes; they lie on a disk of the host"),
            ));
        }
    };
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
        // The kernel rounds the size of a tmpfs up to whole pages.
        if bytes == 0 || bytes > most.saturating_add(active::PAGES) {
            return Err(wrong(format!(
                "{target}, whose size {bytes} is 0 or above the limit"
            )));
        }
        size = Some(bytes);
        if matches!(mount, LaunchMount::Scratch { .. }) {
            place = Some(target);
        }
    }
    let mut evidence = match size {
        Some(size) => {
            format!("all writable directories share {size} bytes; files up to {file} bytes")
        }
        None => "nothing is writable".to_owned(),
    };
    if let (LaunchPurpose::Probe, Some(place)) = (plan.purpose, place) {
        let seen = active::fill(place.as_str(), plan.limits.disk_bytes)?;
        evidence = format!("{evidence}; {seen}");
    }
    Ok(Observation::enforced(
        match plan.scratch {
            None => "size of the scratch tmpfs, RLIMIT_FSIZE",
            Some(_) => "size of the file system that the run's sandboxes share, RLIMIT_FSIZE",
        },
        evidence,
    ))
}
