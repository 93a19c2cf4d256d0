//! Self-test of the host: builds a guest at level `full` and, if that fails, at level `reduced`,
//! and reports the isolation that the probes observe.
//!
//! The result is cached in the state directory together with the facts that it depends on. It helps
//! to select a level and informs the operator. No run relies on it: each run's guest runs its own
//! probes. A cached result below `full` is not used, because the operator may have fixed the cause
//! without changing any recorded fact. An unreadable cache file counts as missing.

use crate::cgroup::Cgroup;
use crate::host::HostLayout;
use crate::host_facts::HostFacts;
use crate::launching::{LaunchOptions, observe};
use crate::probe_plan::probe_plan;
use crate::process_sandbox::ProcessSandbox;
use crate::reduced::GuestTree;
use crate::scratch::ScratchStorage;
use crate::spawner::GuestIdentity;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wp_codebox_artifacts::remove_tree;
use wp_codebox_contracts::{
    AxisReport, CodedError, Enforcement, ErrorBody, GuestPath, HostSource, IsolationAxis,
    IsolationLevel, IsolationReport, LaunchMount, LaunchPlan, LaunchPurpose, Limits,
    OuterSandboxKind, TmpfsEntry, schema_id,
};

/// File name of the cache in the state directory.
const FILE: &str = "self-test.json";
/// Size limit of the cache file in bytes.
const MAX_CACHE_BYTES: u64 = 256 * 1024;
/// Maximum wait for the guest's isolation report.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
const MIB: u64 = 1024 * 1024;
/// Limits of the self-test's guest: small, because its probes exhaust them.
pub const SELF_TEST_LIMITS: Limits = Limits {
    wall_clock_ms: 60_000,
    processes: 32,
    memory_bytes: 256 * MIB,
    disk_bytes: 16 * MIB,
    output_bytes: MIB,
    cpu_milli: Some(1000),
};

/// Input of a self-test.
#[derive(Clone, Copy)]
pub struct SelfTestRequest<'a> {
    /// Path of the launcher program.
    pub launcher: &'a Path,
    /// Process wrapper around the launcher, or none.
    pub sandbox: &'a dyn ProcessSandbox,
    /// Cgroup of the guests, or the reason why there is none.
    pub cgroup: &'a Cgroup,
    /// Kernel uid and gid of the guests.
    pub identity: &'a GuestIdentity,
    /// System directories of the host.
    pub host: &'a HostLayout,
    /// State directory, in which the result is cached.
    pub state_dir: &'a Path,
}

/// Result of a self-test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfTest {
    /// Schema id of this JSON document, `wp-codebox/self-test/v1`.
    pub schema: String,
    /// Host facts that the result depends on.
    pub facts: HostFacts,
    /// Identity of the launcher's program file; a cached result of another file is not used.
    pub launcher: LauncherIdentity,
    /// Kind of process wrapper around the launcher.
    pub outer: OuterSandboxKind,
    /// Results per level: `full` first; `reduced` only when `full` was not reached.
    pub trials: Vec<Trial>,
}

/// Identity of a program file, from its inode; a replaced or changed file gets a different value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LauncherIdentity {
    /// Device number of the file (`st_dev`).
    pub device: u64,
    /// Inode number of the file (`st_ino`).
    pub inode: u64,
    /// Size of the file in bytes.
    pub size: u64,
    /// Time of the file's last status change (ctime) in nanoseconds; every write and every chmod
    /// changes it.
    pub changed: i128,
}

/// Result of building a guest at one level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// Isolation level that the guest was built for; it may have reached a lower one.
    pub level: IsolationLevel,
    /// Observed isolation; no axis is enforced when no guest could be built.
    pub report: IsolationReport,
    /// Error because of which no guest could be built; `None` when one was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ErrorBody>,
}

impl SelfTest {
    /// Returns the highest level that a guest reached on this host.
    #[must_use]
    pub fn level(&self) -> IsolationLevel {
        self.trials
            .iter()
            .map(|trial| trial.report.level)
            .max()
            .unwrap_or(IsolationLevel::None)
    }

    /// Returns the result for the highest level reached, or the first result when none was reached.
    #[must_use]
    pub fn decisive(&self) -> &Trial {
        let level = self.level();
        let held = |trial: &&Trial| level > IsolationLevel::None && trial.report.level == level;
        // `run` always adds a result for level `full`.
        self.trials
            .iter()
            .find(held)
            .unwrap_or_else(|| &self.trials[0])
    }
}

/// Returns the cached result if it reached `full` and neither the host's facts nor the launcher nor
/// the kind of process wrapper have changed since; otherwise runs the self-test.
#[must_use]
pub fn self_test(request: &SelfTestRequest<'_>) -> SelfTest {
    let facts = HostFacts::read();
    let launcher = identity(request.launcher);
    match read_cache(request.state_dir) {
        Some(kept)
            if (&kept.facts, &kept.launcher, kept.outer)
                == (&facts, &launcher, request.sandbox.kind())
                && kept.level() == IsolationLevel::Full =>
        {
            kept
        }
        Some(_) | None => run(request, facts, launcher),
    }
}

/// Runs the self-test even if a result is cached; caches the new result.
#[must_use]
pub fn run_self_test(request: &SelfTestRequest<'_>) -> SelfTest {
    run(request, HostFacts::read(), identity(request.launcher))
}

fn run(request: &SelfTestRequest<'_>, facts: HostFacts, launcher: LauncherIdentity) -> SelfTest {
    let mut trials = vec![attempt(request, IsolationLevel::Full, &facts)];
    if trials[0].report.level < IsolationLevel::Full {
        trials.push(attempt(request, IsolationLevel::Reduced, &facts));
    }
    let answer = SelfTest {
        schema: schema_id::SELF_TEST.to_owned(),
        facts,
        launcher,
        outer: request.sandbox.kind(),
        trials,
    };
    // A failure to write the cache is ignored: the next caller only repeats the test.
    let _ = write_cache(request.state_dir, &answer);
    answer
}

fn attempt(request: &SelfTestRequest<'_>, level: IsolationLevel, facts: &HostFacts) -> Trial {
    let place = request
        .state_dir
        .join(format!(".self-test-{}", std::process::id()));
    let plan = plan(request.host, level, &place);
    let options = LaunchOptions {
        launcher: request.launcher,
        sandbox: request.sandbox,
        ready_timeout: READY_TIMEOUT,
        cgroup: request.cgroup,
        identity: request.identity,
        scratch: &ScratchStorage::of_kernel(request.state_dir),
        used: &std::sync::Arc::default(),
    };
    let seen = match level {
        IsolationLevel::Full | IsolationLevel::None => {
            let made = fs::create_dir(&place);
            let seen = observe(&plan, &options).map_err(|e| (e.to_string(), e.body()));
            if made.is_ok() {
                let _ = fs::remove_dir(&place);
            }
            seen
        }
        IsolationLevel::Reduced => observe_reduced(&place, &plan, &options),
    };
    match seen {
        Ok(report) => Trial {
            level,
            report,
            failure: None,
        },
        Err((why, failure)) => Trial {
            level,
            report: unbuilt(level, &why, facts),
            failure: Some(failure),
        },
    }
}

/// Builds a guest at level `reduced` and returns its report. The guest's directories are created on
/// the host's disk.
fn observe_reduced(
    place: &Path,
    plan: &LaunchPlan,
    options: &LaunchOptions<'_>,
) -> Result<IsolationReport, (String, ErrorBody)> {
    let seen = GuestTree::lay_out(plan, place)
        .map_err(|e| (e.to_string(), e.body()))
        .and_then(|tree| observe(tree.plan(), options).map_err(|e| (e.to_string(), e.body())));
    // The directory is small and named after this process, so a failed removal does no harm.
    let _ = remove_tree(place);
    seen
}

/// Returns a launch plan like that of a run, with small limits: system directories, scratch tmpfs
/// and, at level `full`, an overlay over the directory `lower`.
fn plan(host: &HostLayout, level: IsolationLevel, lower: &Path) -> LaunchPlan {
    let mut plan = probe_plan(host);
    plan.purpose = LaunchPurpose::Probe;
    plan.level = level;
    plan.limits = SELF_TEST_LIMITS;
    if let (IsolationLevel::Full, Some(lower), Ok(target)) = (
        level,
        lower.to_str(),
        GuestPath::new("/workspace/self-test"),
    ) {
        // A probe tries to truncate this file.
        plan.mounts
            .extend(GuestPath::new("/etc/hosts").ok().map(|target| {
                LaunchMount::File(TmpfsEntry {
                    target,
                    contents: "127.0.0.1 localhost\n".to_owned(),
                    mode: 0o644,
                })
            }));
        plan.writable.push(target.clone());
        plan.mounts.push(LaunchMount::Overlay {
            lowers: vec![HostSource::of(lower)],
            target,
            capture: Some(0),
        });
    }
    plan
}

/// Returns the isolation report for a level at which no guest could be built: no axis is enforced,
/// with the error as evidence.
fn unbuilt(level: IsolationLevel, error: &str, facts: &HostFacts) -> IsolationReport {
    let rows = IsolationAxis::ALL.iter().map(|&axis| AxisReport {
        axis,
        requested: level.requested(axis),
        enforced: Enforcement::NotEnforced,
        by: "nothing".to_owned(),
        evidence: format!("no guest: {error}"),
    });
    IsolationReport {
        schema: schema_id::ISOLATION_REPORT.to_owned(),
        level: IsolationLevel::None,
        kernel: facts.kernel.clone(),
        landlock_abi: 0,
        axes: rows.collect(),
    }
}

fn identity(launcher: &Path) -> LauncherIdentity {
    fs::metadata(launcher)
        .map(|meta| LauncherIdentity {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            changed: i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec()),
        })
        .unwrap_or_default()
}

fn read_cache(state_dir: &Path) -> Option<SelfTest> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(state_dir.join(FILE), flags, Mode::empty()).ok()?;
    let mut text = String::new();
    File::from(file)
        .take(MAX_CACHE_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    let kept: SelfTest = serde_json::from_str(&text).ok()?;
    (kept.schema == schema_id::SELF_TEST && !kept.trials.is_empty()).then_some(kept)
}

/// Writes a temporary file and renames it, so a reader sees either the complete new file or the old
/// one.
fn write_cache(state_dir: &Path, answer: &SelfTest) -> std::io::Result<()> {
    let text = serde_json::to_vec(answer)?;
    let new: PathBuf = state_dir.join(format!(".{FILE}.{}", std::process::id()));
    let flags =
        OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(&new, flags, Mode::from_raw_mode(0o600))?);
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| fs::rename(&new, state_dir.join(FILE)));
    if placed.is_err() {
        let _ = fs::remove_file(&new);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(level: IsolationLevel) -> SelfTest {
        let facts = HostFacts::default();
        let mut report = unbuilt(level, "no answer", &facts);
        report.level = level;
        SelfTest {
            schema: schema_id::SELF_TEST.to_owned(),
            facts,
            launcher: LauncherIdentity::default(),
            outer: OuterSandboxKind::None,
            trials: vec![Trial {
                level: IsolationLevel::Full,
                report,
                failure: None,
            }],
        }
    }

    #[test]
    fn self_test_result_is_cached_atomically_and_a_broken_cache_is_ignored() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(read_cache(state.path()), None);
        let one = answer(IsolationLevel::Full);
        write_cache(state.path(), &one).unwrap();
        assert_eq!(read_cache(state.path()), Some(one.clone()));
        let other = answer(IsolationLevel::None);
        write_cache(state.path(), &other).unwrap();
        assert_eq!(read_cache(state.path()), Some(other));
        // Only the cache file is left; the temporary file was renamed.
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);

        let file = state.path().join(FILE);
        let mut half = serde_json::to_vec(&one).unwrap();
        half.truncate(half.len() / 2);
        for broken in [half, Vec::new(), b"{\"schema\":\"x\"}".to_vec()] {
            fs::write(&file, broken).unwrap();
            assert_eq!(read_cache(state.path()), None);
        }
        let mut empty = one;
        empty.trials.clear();
        write_cache(state.path(), &empty).unwrap();
        assert_eq!(read_cache(state.path()), None);
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
        assert_eq!(read_cache(state.path()), None);
    }

    #[test]
    fn decisive_self_test_trial_is_the_one_that_reached_its_level_else_the_first() {
        let mut both = answer(IsolationLevel::None);
        assert_eq!(both.decisive().level, IsolationLevel::Full);
        let mut second = answer(IsolationLevel::Reduced).trials.remove(0);
        second.level = IsolationLevel::Reduced;
        both.trials.push(second);
        assert_eq!(both.level(), IsolationLevel::Reduced);
        assert_eq!(both.decisive().level, IsolationLevel::Reduced);
    }

    #[test]
    fn isolation_report_of_a_guest_that_could_not_start_marks_every_axis_not_enforced() {
        let report = unbuilt(
            IsolationLevel::Full,
            "step unshare failed",
            &HostFacts::default(),
        );
        assert_eq!(report.axes.len(), IsolationAxis::ALL.len());
        for row in report.axes {
            assert_eq!(row.enforced, Enforcement::NotEnforced);
            assert!(row.evidence.contains("unshare"), "{}", row.evidence);
        }
    }
}
