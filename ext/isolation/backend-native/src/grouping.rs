//! Moves a starting guest into its run's cgroup and records the result in the isolation report.
//!
//! The launcher joins the cgroup before it gets its plan. Once the guest is ready, and before the
//! caller's first program starts, this module checks the membership in `/proc`. A process wrapper
//! around the launcher may have forked before it was moved; its descendants are then moved one by
//! one. Nothing in the guest forks before the supervisor requests it.

use crate::cgroup::{Cgroup, Evidence, Meter, RunCgroup};
use crate::processes::tree;
use std::io;
use wp_codebox_contracts::{AxisReport, Enforcement, IsolationAxis, IsolationReport, Limits};

/// Moves the process `pid`, a launcher or the process wrapper around it, into the run's cgroup.
pub(crate) fn join(cgroup: &Cgroup, pid: i32) -> io::Result<()> {
    match cgroup {
        Cgroup::Group(group) => group.join(pid),
        Cgroup::None { .. } => Ok(()),
    }
}

/// Checks that the guest is in its cgroup, writes the result into the isolation report and returns
/// a meter of the cgroup. Without a cgroup, or for a guest outside it, returns `None`: the supervisor
/// then polls `/proc`, and the report gives the reason.
pub(crate) fn confirm(
    cgroup: &Cgroup,
    (launcher, pid1): (i32, i32),
    limits: &Limits,
    report: &mut IsolationReport,
) -> Option<Meter> {
    let group = match cgroup {
        Cgroup::None { reason } => {
            missing(
                report,
                &format!("no writable memory cgroup: {reason}"),
                limits,
            );
            return None;
        }
        Cgroup::Group(group) => group,
    };
    if !group.holds(pid1) {
        for pid in tree(launcher) {
            // A process that has just ended cannot be moved and needs no limit.
            let _ = group.join(pid);
        }
    }
    let evidence = match group.evidence() {
        Some(evidence) if group.holds(pid1) => evidence,
        unusable => {
            let why = match unusable {
                None => "the limits of the run's cgroup cannot be read back",
                Some(_) => "the guest's pid 1 is not in the cgroup of the run",
            };
            missing(report, why, limits);
            return None;
        }
    };
    enforced(report, group, &evidence);
    Some(group.meter())
}

fn axis(report: &mut IsolationReport, axis: IsolationAxis) -> Option<&mut AxisReport> {
    report.axes.iter_mut().find(|row| row.axis == axis)
}

fn missing(report: &mut IsolationReport, why: &str, limits: &Limits) {
    if let Some(memory) = axis(report, IsolationAxis::Memory) {
        memory.evidence = format!("{}; {why}", memory.evidence);
    }
    if limits.cpu_milli.is_some()
        && let Some(cpu) = axis(report, IsolationAxis::Cpu)
    {
        cpu.evidence = format!("{}; no cgroup limits the run, see memory", cpu.evidence);
    }
}

fn enforced(report: &mut IsolationReport, group: &RunCgroup, evidence: &Evidence) {
    if let Some(memory) = axis(report, IsolationAxis::Memory) {
        memory.enforced = Enforcement::Enforced;
        memory.by = format!("memory cgroup of the run, {}", memory.by);
        memory.evidence = format!(
            "{}, read back; the kernel lists pid 1 as a member; {}",
            evidence.memory, memory.evidence
        );
    }
    if let Some(pids) = evidence.pids
        && let Some(row) = axis(report, IsolationAxis::Pids)
    {
        row.by = format!("{}, pids cgroup of the run", row.by);
        row.evidence = format!(
            "{}; pids.max {pids} in cgroup {}",
            row.evidence,
            group.kind()
        );
    }
    let Some(row) = axis(report, IsolationAxis::Cpu) else {
        return;
    };
    match &evidence.cpu {
        None => {}
        Some(Ok(limit)) => {
            row.enforced = Enforcement::Enforced;
            row.by = format!("CPU limit of the cgroup of the run, {}", row.by);
            row.evidence = limit.clone();
        }
        Some(Err(why)) => row.evidence = format!("{}; {why}", row.evidence),
    }
}
