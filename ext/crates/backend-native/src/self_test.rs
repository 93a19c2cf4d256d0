//! What guests of this host are worth, found out by building one of each level.
//!
//! The answer is kept in the state directory under the facts it depends on; it serves
//! to choose a level and to tell an operator, never to attest a run: each run's guest
//! looks for itself. A kept answer below `full` is not relied on, because the fix may be
//! something no fact shows. A file that cannot be read is as good as none.

use crate::cgroup::Cgroup;
use crate::host::HostLayout;
use crate::host_facts::HostFacts;
use crate::launching::{LaunchOptions, observe};
use crate::probe_plan::probe_plan;
use crate::process_sandbox::ProcessSandbox;
use crate::reduced::GuestTree;
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
    AxisReport, Enforcement, ErrorBody, GuestPath, HostSource, IsolationAxis, IsolationLevel,
    IsolationReport, LaunchMount, LaunchPlan, LaunchPurpose, Limits, OuterSandboxKind, schema_id,
};

/// Below the state directory.
const FILE: &str = "self-test.json";
/// Largest kept answer that is read.
const LONGEST: u64 = 256 * 1024;
/// Time a guest has to report.
const READY: Duration = Duration::from_secs(20);
const MIB: u64 = 1024 * 1024;
/// Small enough to be reached within a moment, see the launcher's probes.
pub const SELF_TEST_LIMITS: Limits = Limits {
    wall_clock_ms: 60_000,
    processes: 32,
    memory_bytes: 256 * MIB,
    disk_bytes: 16 * MIB,
    output_bytes: MIB,
};

/// What is tested.
#[derive(Clone, Copy)]
pub struct SelfTestRequest<'a> {
    /// The launcher.
    pub launcher: &'a Path,
    /// What is put around it.
    pub sandbox: &'a dyn ProcessSandbox,
    /// The group that the guests shall be in, or why there is none.
    pub cgroup: &'a Cgroup,
    /// Whose kernel uid the guests get.
    pub identity: &'a GuestIdentity,
    /// System directories of the host.
    pub host: &'a HostLayout,
    /// Where the answer is kept.
    pub state_dir: &'a Path,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfTest {
    /// `wp-codebox/self-test/v1`.
    pub schema: String,
    /// What the answer depends on.
    pub facts: HostFacts,
    /// Which launcher.
    pub launcher: LauncherIdentity,
    /// What was put around it.
    pub outer: OuterSandboxKind,
    /// `full` first; `reduced` only when `full` did not hold.
    pub trials: Vec<Trial>,
}

/// The launcher's file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LauncherIdentity {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Status change, nanoseconds; changes with every write and every chmod.
    pub changed: i128,
}

/// One level tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// What was asked for.
    pub level: IsolationLevel,
    /// What was seen; all rows not enforced when no guest could be built.
    pub report: IsolationReport,
    /// Why no guest could be built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ErrorBody>,
}

impl SelfTest {
    /// The highest level that held.
    #[must_use]
    pub fn level(&self) -> IsolationLevel {
        self.trials
            .iter()
            .map(|trial| trial.report.level)
            .max()
            .unwrap_or(IsolationLevel::None)
    }

    /// The trial that says most: the one that held, else the first.
    #[must_use]
    pub fn decisive(&self) -> &Trial {
        let level = self.level();
        let held = |trial: &&Trial| level > IsolationLevel::None && trial.report.level == level;
        // There is always a first trial; see `run`.
        self.trials
            .iter()
            .find(held)
            .unwrap_or_else(|| &self.trials[0])
    }
}

/// The kept answer when nothing it depends on changed and it is `full`; else a new one.
#[must_use]
pub fn self_test(request: &SelfTestRequest<'_>) -> SelfTest {
    let facts = HostFacts::read();
    let launcher = identity(request.launcher);
    match remembered(request.state_dir) {
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

/// A new answer, kept for later.
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
    // Not being able to keep it costs the next caller a moment, nothing else.
    let _ = keep(request.state_dir, &answer);
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
        ready_timeout: READY,
        cgroup: request.cgroup,
        identity: request.identity,
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

/// A guest at `reduced` needs its directories on the host's disk first.
fn observe_reduced(
    place: &Path,
    plan: &LaunchPlan,
    options: &LaunchOptions<'_>,
) -> Result<IsolationReport, (String, ErrorBody)> {
    let seen = GuestTree::lay_out(plan, place)
        .map_err(|e| (e.to_string(), e.body()))
        .and_then(|tree| observe(tree.plan(), options).map_err(|e| (e.to_string(), e.body())));
    // Small, and named after this process: what stays is in nobody's way.
    let _ = remove_tree(place);
    seen
}

/// A run's shape with small limits: system directories, scratch, and an overlay like a mount's,
/// over a directory of the state directory.
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
        plan.writable.push(target.clone());
        plan.mounts.push(LaunchMount::Overlay {
            lowers: vec![HostSource::of(lower)],
            target,
            capture: Some(0),
        });
    }
    plan
}

/// The report of a guest that could not be built: nothing is enforced, and why.
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

fn remembered(state_dir: &Path) -> Option<SelfTest> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(state_dir.join(FILE), flags, Mode::empty()).ok()?;
    let mut text = String::new();
    File::from(file)
        .take(LONGEST)
        .read_to_string(&mut text)
        .ok()?;
    let kept: SelfTest = serde_json::from_str(&text).ok()?;
    (kept.schema == schema_id::SELF_TEST && !kept.trials.is_empty()).then_some(kept)
}

/// Written whole under another name, then renamed: a reader sees all of it or the old one.
fn keep(state_dir: &Path, answer: &SelfTest) -> std::io::Result<()> {
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
    fn an_answer_is_kept_whole_and_a_broken_one_is_as_good_as_none() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(remembered(state.path()), None);
        let one = answer(IsolationLevel::Full);
        keep(state.path(), &one).unwrap();
        assert_eq!(remembered(state.path()), Some(one.clone()));
        let other = answer(IsolationLevel::None);
        keep(state.path(), &other).unwrap();
        assert_eq!(remembered(state.path()), Some(other));
        // Nothing but the answer is left behind.
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);

        let file = state.path().join(FILE);
        let mut half = serde_json::to_vec(&one).unwrap();
        half.truncate(half.len() / 2);
        for broken in [half, Vec::new(), b"{\"schema\":\"x\"}".to_vec()] {
            fs::write(&file, broken).unwrap();
            assert_eq!(remembered(state.path()), None);
        }
        let mut empty = one;
        empty.trials.clear();
        keep(state.path(), &empty).unwrap();
        assert_eq!(remembered(state.path()), None);
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
        assert_eq!(remembered(state.path()), None);
    }

    #[test]
    fn the_decisive_trial_is_the_one_that_held_else_the_first() {
        let mut both = answer(IsolationLevel::None);
        assert_eq!(both.decisive().level, IsolationLevel::Full);
        let mut second = answer(IsolationLevel::Reduced).trials.remove(0);
        second.level = IsolationLevel::Reduced;
        both.trials.push(second);
        assert_eq!(both.level(), IsolationLevel::Reduced);
        assert_eq!(both.decisive().level, IsolationLevel::Reduced);
    }

    #[test]
    fn without_a_guest_no_axis_is_enforced() {
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
