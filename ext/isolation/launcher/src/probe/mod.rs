//! Checks of the isolation from inside the guest, before the first program of the caller runs.
//!
//! Each isolation axis is observed: a probe tries forbidden operations and reads the kernel's
//! state. An observation that contradicts the required level makes the launch fail; in a self-test
//! it becomes a row of the report. The report contains observed facts only, no configured ones. A
//! denial counts only if a comparable allowed operation succeeds.

mod active;
mod files;
mod findings;
mod limits;
mod network;
mod observe;
mod privileges;
mod processes;
mod syscalls;

use crate::error::Failure;
use crate::shortfall::Shortfalls;
use findings::Findings;
pub(crate) use observe::{Before, look_before};
use wp_codebox_contracts::{IsolationAxis, IsolationReport, LaunchPlan};

/// Runs every probe of a guest at level `full`. `landlock_abi` is the Landlock ABI version in
/// force, 0 for none; `bound` is [`crate::rootfs::Built::bound`].
pub(crate) fn run(
    plan: &LaunchPlan,
    before: &Before,
    bound: &[String],
    landlock_abi: u32,
    shortfalls: &Shortfalls,
) -> Result<IsolationReport, Failure> {
    let mut findings = Findings::new(plan.level, shortfalls);
    findings.add(
        IsolationAxis::Files,
        files::files(plan, before, bound, landlock_abi, shortfalls),
    )?;
    findings.add(IsolationAxis::Processes, processes::processes())?;
    findings.add(IsolationAxis::Network, network::network(plan, before))?;
    findings.add(IsolationAxis::Syscalls, syscalls::syscalls(shortfalls))?;
    findings.add(IsolationAxis::Privileges, privileges::privileges(plan))?;
    findings.add(IsolationAxis::Memory, limits::memory(plan))?;
    findings.add(IsolationAxis::Cpu, Ok(limits::cpu()))?;
    findings.add(IsolationAxis::Pids, limits::pids(plan, &before.watches))?;
    findings.add(IsolationAxis::Disk, limits::disk(plan))?;
    findings.add(IsolationAxis::Identity, Ok(privileges::identity()))?;
    Ok(findings.report(landlock_abi))
}
