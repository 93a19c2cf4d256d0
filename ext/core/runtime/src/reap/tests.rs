//! Runs of which something cannot be read: they stay as they are.

use super::*;
use crate::{ArtifactRule, RECOVERY_BUNDLE};
use crate::{
    Ending, GcFailure, GcKind, GcMode, GcReport, GcRules, ListFilter, RunDir, Scratch, SizeBudget,
    SnapshotRule, StatusFilter, collect, find, list, view,
};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use wp_codebox_contracts::{CodedError, RunFacts, RunStatus, TaskTexts};

struct World {
    _temp: tempfile::TempDir,
    state: StateDir,
    site: SiteId,
    root: PathBuf,
}

fn world() -> World {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("state");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12_345), Some(12_345)).unwrap();
    }
    World {
        state: StateDir::open(&path).unwrap(),
        site: SiteId::new("s").unwrap(),
        root: path.join("sites/s"),
        _temp: temp,
    }
}

fn run(n: usize) -> RunId {
    RunId::new(format!("run_{n:032x}")).unwrap()
}

const EVERYTHING: GcRules = GcRules {
    max_age: Duration::ZERO,
    budget: SizeBudget::Bytes(0),
    artifacts: ArtifactRule::Keep,
    snapshots: SnapshotRule::Keep,
    mode: GcMode::Remove,
};

impl World {
    fn path(&self, n: usize) -> PathBuf {
        self.root.join("runs").join(run(n).as_str())
    }

    /// Creates a run with goal, scratch directory and recovery bundle. It ends with a kept scratch
    /// directory, or its supervisor dies.
    fn left(&self, n: usize, status: RunStatus) {
        let new = NewRun {
            facts: RunFacts::new(
                TaskTexts::of_goal(format!("goal {n}")),
                serde_json::Map::new(),
            ),
            ..NewRun::new(run(n))
        };
        let dir = RunDir::create(&self.state, &self.site, &new, 999).unwrap();
        fs::write(dir.scratch("layers").unwrap().join("change"), "only copy").unwrap();
        fs::write(dir.recovery_bundle().unwrap().join("partial"), "x").unwrap();
        if status == RunStatus::Ended {
            let ending = Ending {
                outcome: Outcome::Failed,
                summary: "the bundle could not be written".to_owned(),
                summary_detail: None,
                error: None,
                bundle_id: None,
            };
            dir.settle(ending, Scratch::Keep).unwrap();
        }
    }

    fn collect(&self, mode: GcMode) -> GcReport {
        let mut report = GcReport::default();
        let rules = GcRules { mode, ..EVERYTHING };
        collect(&self.state, &self.site, &rules, &mut report).unwrap();
        report
    }
}

/// Returns the names and contents of all files of a directory.
fn content(path: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut open = vec![path.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path.clone());
            }
            let bytes = fs::read(&path).ok();
            all.insert(path, bytes);
        }
    }
    all
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

/// What happens to a run before it is read, and the part of the message that tells what to do. A link
/// to itself stands for every error of the kernel but `ENOENT`: it fails with `ELOOP`, for root too.
#[expect(clippy::type_complexity, reason = "one row per case")]
const CASES: &[(&str, RunStatus, fn(&Path), &str)] = &[
    (
        "unreadable record",
        RunStatus::Running,
        |run| itself(run, "run.json"),
        "the limit of open files",
    ),
    (
        "unreadable record",
        RunStatus::Ended,
        |run| itself(run, "run.json"),
        "the limit of open files",
    ),
    (
        "empty record",
        RunStatus::Running,
        |run| fs::write(run.join("run.json"), "").unwrap(),
        "from a backup",
    ),
    (
        "truncated record",
        RunStatus::Ended,
        |run| {
            let bytes = fs::read(run.join("run.json")).unwrap();
            // The beginning alone would be enough for a list.
            fs::write(run.join("run.json"), &bytes[..bytes.len() - 3]).unwrap();
        },
        "from a backup",
    ),
    (
        "missing record",
        RunStatus::Running,
        |run| fs::remove_file(run.join("run.json")).unwrap(),
        "from a backup",
    ),
    (
        "missing record",
        RunStatus::Ended,
        |run| fs::remove_file(run.join("run.json")).unwrap(),
        "from a backup",
    ),
    (
        "unknown outcome",
        RunStatus::Ended,
        |run| replace(&run.join("run.json"), "\"failed\"", "\"improved\""),
        "from a backup",
    ),
    (
        "newer record",
        RunStatus::Ended,
        |run| {
            replace(&run.join("run.json"), "\"failed\"", "\"improved\"");
            replace(&run.join("run.json"), "\"version\": 2", "\"version\": 3");
        },
        "use the newer wp-codebox",
    ),
    (
        "newer record",
        RunStatus::Running,
        |run| replace(&run.join("run.json"), "\"version\": 2", "\"version\": 3"),
        "use the newer wp-codebox",
    ),
    (
        "oversized record",
        RunStatus::Running,
        |run| {
            let file = fs::OpenOptions::new()
                .write(true)
                .open(run.join("run.json"))
                .unwrap();
            file.set_len(65 * 1024 * 1024).unwrap();
        },
        "from a backup",
    ),
    (
        "unreadable result",
        RunStatus::Running,
        |run| itself(run, "result.json"),
        "the limit of open files",
    ),
    (
        "damaged result",
        RunStatus::Running,
        |run| fs::write(run.join("result.json"), "{").unwrap(),
        "from a backup",
    ),
    (
        "result of another run",
        RunStatus::Running,
        |run| write_result(run, &format!("run_{}", "f".repeat(32))),
        "from a backup",
    ),
    (
        "unreadable journal beside a result",
        RunStatus::Running,
        |run| {
            write_result(run, own_id(run));
            itself(run, "events.jsonl");
        },
        "the limit of open files",
    ),
    (
        "unreadable journal",
        RunStatus::Running,
        |run| itself(run, "events.jsonl"),
        "the limit of open files",
    ),
    (
        "damaged facts of a held sandbox",
        RunStatus::Running,
        |run| fs::write(run.join("held.json"), "{").unwrap(),
        "from a backup",
    ),
    (
        "unreadable recovery bundle",
        RunStatus::Running,
        |run| {
            fs::remove_dir_all(run.join(RECOVERY_BUNDLE)).unwrap();
            itself(run, RECOVERY_BUNDLE);
        },
        "permissions of the state directory",
    ),
];

fn own_id(run: &Path) -> &str {
    run.file_name().unwrap().to_str().unwrap()
}

/// Writes the result of a run, which its supervisor writes before the final record.
fn write_result(run: &Path, id: &str) {
    let result = serde_json::json!({
        "schema": "wp-codebox/run-result/v1",
        "run_id": id,
        "outcome": "succeeded",
        "summary": "",
        "changed_files": [],
        "approvable": true,
        "checks": [],
        "isolation": {
            "schema": "wp-codebox/isolation-report/v1",
            "level": "full",
            "kernel": "",
            "landlockAbi": 7,
            "axes": [],
        },
        "cost": {"wall_ms": 0, "cpu_ms": 0, "peak_memory_bytes": 0},
        "completion_outcome": null,
        "agent_result": null,
        "transcript": null,
    });
    fs::write(run.join("result.json"), result.to_string()).unwrap();
}

fn itself(run: &Path, name: &str) {
    let _ = fs::remove_file(run.join(name));
    std::os::unix::fs::symlink(name, run.join(name)).unwrap();
}

#[test]
fn run_that_cannot_be_read_is_listed_with_its_cause_and_never_settled_or_removed() {
    let world = world();
    for (n, (_, status, damage, _)) in CASES.iter().enumerate() {
        world.left(n, *status);
        damage(&world.path(n));
    }
    // Controls: the same kinds of runs without damage.
    let controls = [CASES.len(), CASES.len() + 1, CASES.len() + 2];
    let [dead, ended, with_result] = controls;
    world.left(dead, RunStatus::Running);
    world.left(ended, RunStatus::Ended);
    world.left(with_result, RunStatus::Running);
    write_result(&world.path(with_result), run(with_result).as_str());
    let before: Vec<_> = (0..CASES.len()).map(|n| content(&world.path(n))).collect();

    let sites = std::slice::from_ref(&world.site);
    let page = list(
        &world.state,
        sites,
        ListFilter {
            status: StatusFilter::Any,
            limit: 999,
            offset: 0,
        },
    );
    let page = page.unwrap();
    let listed: Vec<&RunId> = page.rows.iter().map(|(run, _)| &run.run_id).collect();
    assert_eq!(listed.len(), controls.len(), "{listed:?}");
    assert!(controls.iter().all(|n| listed.contains(&&run(*n))));
    for (n, (name, _, _, advice)) in CASES.iter().enumerate() {
        let found = find(&world.state, sites, run(n).as_str()).unwrap();
        let error = view(&world.state, &found).unwrap_err().body();
        assert_eq!(error.code, ErrorCode::StateDirInvalid, "{name}");
        assert!(error.message.contains(advice), "{name}: {}", error.message);
        let listed = |other: &&ErrorBody| other.message == error.message;
        assert_eq!(page.unreadable.iter().filter(listed).count(), 1, "{name}");
    }
    assert_eq!(page.unreadable.len(), CASES.len());

    // A dry run settles nothing, so it finds only the records that cannot be read.
    let dry = world.collect(GcMode::DryRun);
    assert!(dry.failed.len() >= 10, "{:?}", dry.failed);
    for _ in 0..2 {
        let report = world.collect(GcMode::Remove);
        for (n, (name, _, _, advice)) in CASES.iter().enumerate() {
            let of = |failure: &&GcFailure| failure.id == run(n).as_str();
            let failure = report.failed.iter().find(of);
            let failure = failure.unwrap_or_else(|| panic!("{name} is not reported"));
            assert_eq!(failure.kind, GcKind::Run);
            assert!(
                failure.message.contains(advice),
                "{name}: {}",
                failure.message
            );
            assert_eq!(content(&world.path(n)), before[n], "{name}");
        }
        assert_eq!(report.failed.len(), CASES.len());
        assert_eq!((report.settled, report.alive), (0, 0));
    }
    assert!(controls.iter().all(|n| !world.path(*n).exists()));
}

#[test]
fn run_that_became_readable_again_is_settled_from_its_record() {
    let world = world();
    world.left(1, RunStatus::Running);
    let file = world.path(1).join("run.json");
    let record = fs::read(&file).unwrap();
    itself(&world.path(1), "run.json");
    assert_eq!(
        reap_dead(&world.state, &world.site)
            .unwrap()
            .unreadable
            .len(),
        1
    );
    fs::remove_file(&file).unwrap();
    fs::write(&file, record).unwrap();
    let reaped = reap_dead(&world.state, &world.site).unwrap();
    assert_eq!((reaped.settled, reaped.unreadable.len()), (1, 0));
    let record = RunRecord::read(&world.path(1)).unwrap().unwrap();
    assert_eq!(record.facts.goal(), Some("goal 1"));
    assert_eq!(record.outcome, Some(Outcome::Failed));
}

/// The directories that a kill between two steps of [`RunDir::create`] leaves have no record and no
/// other file than these.
#[test]
fn only_files_created_before_the_record_make_a_run_without_record_a_crashed_one() {
    let world = world();
    let site = std::slice::from_ref(&world.site);
    let left: &[&[&str]] = &[&[], &["lease"], &["lease", ".run.json.new"]];
    reap_dead(&world.state, &world.site).unwrap();
    let marker = |n: usize| world.root.join("active").join(run(n).as_str());
    for (n, names) in left.iter().enumerate() {
        fs::create_dir(world.path(n)).unwrap();
        for name in *names {
            fs::write(world.path(n).join(name), "{").unwrap();
        }
        fs::write(marker(n), "").unwrap();
        assert_eq!(reap_dead(&world.state, &world.site).unwrap().settled, 1);
        let found = find(&world.state, site, run(n).as_str()).unwrap();
        assert_eq!(
            view(&world.state, &found).unwrap().outcome,
            Some(Outcome::Failed)
        );
    }
    for (n, name) in [(10, "scratch"), (11, "events.jsonl"), (12, "unknown")] {
        fs::create_dir_all(world.path(n).join(name)).unwrap();
        fs::write(marker(n), "").unwrap();
        let reaped = reap_dead(&world.state, &world.site).unwrap();
        assert_eq!(
            (reaped.settled, reaped.unreadable.len()),
            (0, n - 9),
            "{name}"
        );
        assert!(world.path(n).join(name).exists() && marker(n).exists());
    }
}
