use super::*;
use crate::{Ending, NewRun, RunDir, Scratch};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;
use wp_codebox_contracts::Outcome;

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
    let state = StateDir::open(&path).unwrap();
    let site = SiteId::new("s").unwrap();
    let root = path.join("sites/s/runs");
    World {
        _temp: temp,
        state,
        site,
        root,
    }
}

fn run(n: u8) -> RunId {
    RunId::new(format!("run_{n:032x}")).unwrap()
}

fn ended(outcome: Outcome, summary: &str) -> Ending {
    Ending {
        outcome,
        summary: summary.to_owned(),
        summary_detail: None,
        error: None,
        bundle_id: None,
    }
}

const HOUR: Duration = Duration::from_secs(3600);

fn rules() -> GcRules {
    GcRules {
        max_age: HOUR,
        budget: SizeBudget::Unlimited,
        artifacts: ArtifactRule::Keep,
        snapshots: SnapshotRule::Keep,
        mode: GcMode::Remove,
    }
}

impl World {
    /// Creates a run that has ended and been settled. Its record has the given age, and its scratch
    /// directory has `bytes` bytes.
    fn settled(&self, n: u8, age: Duration, bytes: usize) {
        let dir = RunDir::create(&self.state, &self.site, &NewRun::new(run(n)), 99).unwrap();
        fs::write(dir.scratch("work").unwrap().join("file"), vec![7; bytes]).unwrap();
        dir.settle(ended(Outcome::Failed, "x"), Scratch::Keep)
            .unwrap();
        let record = fs::File::open(self.root.join(run(n).as_str()).join("run.json")).unwrap();
        record.set_modified(SystemTime::now() - age).unwrap();
    }

    fn collect(&self, rules: &GcRules) -> GcReport {
        let mut report = GcReport::default();
        collect(&self.state, &self.site, rules, &mut report).unwrap();
        report
    }

    fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = fs::read_dir(&self.root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        left
    }
}

fn ids(report: &GcReport) -> Vec<(String, GcReason)> {
    report
        .removed
        .iter()
        .map(|item| (item.id.clone(), item.reason))
        .collect()
}

#[test]
fn garbage_collection_removes_only_old_ended_runs() {
    let world = world();
    world.settled(1, 2 * HOUR, 10);
    world.settled(2, HOUR / 2, 10);
    let living = RunDir::create(&world.state, &world.site, &NewRun::new(run(3)), 99).unwrap();
    let record = fs::File::open(living.path().join("run.json")).unwrap();
    record.set_modified(SystemTime::now() - 50 * HOUR).unwrap();
    let dry = world.collect(&GcRules {
        mode: GcMode::DryRun,
        ..rules()
    });
    assert_eq!(world.left().len(), 3, "a dry run removes nothing");
    let report = world.collect(&rules());
    assert_eq!(report.removed, dry.removed);
    assert_eq!(ids(&report), [(run(1).to_string(), GcReason::Age)]);
    assert_eq!((report.alive, report.kept), (1, 1));
    assert_eq!(world.left(), [run(2).to_string(), run(3).to_string()]);
    drop(living);
    let report = world.collect(&rules());
    assert_eq!(
        (report.settled, report.alive),
        (1, 0),
        "control: the same run, dead"
    );
}

#[test]
fn size_budget_of_the_garbage_collection_retains_the_newest_runs() {
    let world = world();
    for n in 1..=4 {
        world.settled(n, Duration::from_secs(60 * u64::from(n)), 100_000);
    }
    let report = world.collect(&GcRules {
        budget: SizeBudget::Bytes(260_000),
        ..rules()
    });
    assert_eq!(
        ids(&report),
        [
            (run(3).to_string(), GcReason::Size),
            (run(4).to_string(), GcReason::Size)
        ]
    );
    assert!(report.removed.iter().all(|item| item.bytes >= 100_000));
    assert!(report.kept == 2 && report.kept_bytes <= 260_000);
}

/// The marker of a run is its file in the directory `active`.
#[test]
fn run_without_a_marker_is_settled_only_if_no_process_has_locked_its_lease_file() {
    let world = world();
    let dir = RunDir::create(&world.state, &world.site, &NewRun::new(run(1)), 99).unwrap();
    fs::remove_file(
        world
            .root
            .parent()
            .unwrap()
            .join("active")
            .join(run(1).as_str()),
    )
    .unwrap();
    let report = world.collect(&rules());
    assert_eq!(
        (report.alive, report.settled, world.left().len()),
        (1, 0, 1)
    );
    drop(dir);
    let report = world.collect(&rules());
    assert_eq!((report.alive, report.settled, report.kept), (0, 1, 1));
}

#[test]
fn garbage_collection_finishes_an_interrupted_removal_and_keeps_unknown_directories() {
    let world = world();
    world.settled(1, HOUR / 2, 1);
    let hidden = world.root.join(format!("{REMOVING}{}", run(9)));
    fs::create_dir_all(hidden.join("closed/deep")).unwrap();
    fs::set_permissions(hidden.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::create_dir(world.root.join("something-else")).unwrap();
    let report = world.collect(&rules());
    assert_eq!(ids(&report), [(run(9).to_string(), GcReason::Interrupted)]);
    assert_eq!(
        world.left(),
        [run(1).to_string(), "something-else".to_owned()]
    );
}

#[test]
fn garbage_collection_removes_old_bundles_with_a_date_only_if_its_rules_set_an_age() {
    let world = world();
    let artifacts = world.root.parent().unwrap().join("artifacts");
    for (n, created) in [
        (1, "2020-01-01T00:00:00.000Z"),
        (2, "2999-01-01T00:00:00.000Z"),
        (3, ""),
    ] {
        let bundle = artifacts.join(run(n).as_str());
        fs::create_dir_all(&bundle).unwrap();
        let manifest = format!("{{\"id\":\"x{n}\",\"createdAt\":\"{created}\"}}");
        fs::write(bundle.join("manifest.json"), manifest).unwrap();
    }
    assert!(world.collect(&rules()).removed.is_empty());
    let told = GcRules {
        artifacts: ArtifactRule::OlderThan(HOUR),
        ..rules()
    };
    assert_eq!(
        ids(&world.collect(&told)),
        [(run(1).to_string(), GcReason::Age)]
    );
    assert!(artifacts.join(run(2).as_str()).exists());
    assert!(
        artifacts.join(run(3).as_str()).exists(),
        "what has no date is not judged"
    );
}

#[test]
fn concurrent_garbage_collections_remove_each_old_run_once_and_no_new_run() {
    let world = world();
    for n in 0..60 {
        world.settled(n, 2 * HOUR, 10);
    }
    let (world, rules) = (&world, rules());
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let collectors: Vec<_> = (0..3)
            .map(|_| {
                let rules = &rules;
                scope.spawn(move || {
                    let report = world.collect(rules);
                    assert!(report.failed.is_empty(), "{report:?}");
                    report.removed.len()
                })
            })
            .collect();
        let starter = scope.spawn(move || {
            for n in 100..130 {
                let dir =
                    RunDir::create(&world.state, &world.site, &NewRun::new(run(n)), 99).unwrap();
                dir.scratch("x").unwrap();
                dir.settle(ended(Outcome::Succeeded, "x"), Scratch::Remove)
                    .unwrap();
            }
        });
        starter.join().unwrap();
        collectors
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(counts.iter().sum::<usize>(), 60, "each once: {counts:?}");
    assert_eq!(
        world.left().len(),
        30,
        "all old ones and none of the new ones"
    );
}

fn snapshot(world: &World, name: &str) -> String {
    let shelf = crate::SnapshotStore::of_site(&world.state, &world.site).unwrap();
    let upper = tempfile::tempdir().unwrap();
    std::fs::write(upper.path().join("file"), vec![7; 100_000]).unwrap();
    let directory = std::fs::File::open(upper.path()).unwrap();
    let source = crate::LayerSource {
        name: "content".to_owned(),
        upper: directory.as_fd(),
        below: None,
    };
    let facts = crate::SnapshotFacts {
        name: name.to_owned(),
        actor: "test".to_owned(),
        run_id: run(1),
        site: world.site.clone(),
        template: wp_codebox_contracts::SnapshotTemplate {
            key: String::new(),
            wordpress_version: String::new(),
            php_version: String::new(),
        },
        mounts: Vec::new(),
        metadata: serde_json::Map::new(),
    };
    let unsynced = wp_codebox_artifacts::Durability::Unsynced;
    // Creation times must differ, because the collection orders snapshots by them.
    std::thread::sleep(Duration::from_millis(5));
    shelf.keep(facts, &[source], unsynced).unwrap().id
}

#[test]
fn garbage_collection_removes_only_unused_snapshots_beyond_age_or_budget() {
    let world = world();
    let ids: Vec<String> = ["a", "b", "c"].map(|name| snapshot(&world, name)).to_vec();
    let shelf = crate::SnapshotStore::of_site(&world.state, &world.site).unwrap();
    let left = || -> Vec<String> {
        let all = shelf.list(crate::SnapshotScope::Any);
        all.into_iter().map(|snapshot| snapshot.name).collect()
    };
    world.collect(&rules());
    assert_eq!(left(), ["a", "b", "c"]);
    let within = |budget, max_age| GcRules {
        snapshots: SnapshotRule::Within { max_age, budget },
        ..rules()
    };
    let dry = GcRules {
        mode: GcMode::DryRun,
        ..within(SizeBudget::Bytes(250_000), HOUR)
    };
    assert_eq!(world.collect(&dry).removed.len(), 1);
    assert_eq!(left().len(), 3);
    let used = shelf.open(&ids[0], crate::SnapshotScope::Any).unwrap();
    let report = world.collect(&within(SizeBudget::Bytes(250_000), HOUR));
    assert_eq!(report.alive, 1, "the oldest is in use");
    assert_eq!(left(), ["a", "b", "c"]);
    drop(used);
    let report = world.collect(&within(SizeBudget::Bytes(250_000), HOUR));
    assert_eq!(report.removed[0].kind, GcKind::Snapshot);
    assert_eq!(left(), ["b", "c"]);
    world.collect(&within(SizeBudget::Unlimited, Duration::ZERO));
    assert!(left().is_empty());
}

#[test]
fn unfinished_snapshot_is_removed_after_its_creator_died() {
    let world = world();
    snapshot(&world, "whole");
    let shelf = world.root.parent().unwrap().join("snapshots");
    let half = shelf.join(format!(".new-snap_{:032x}", 1));
    std::fs::create_dir_all(half.join("content")).unwrap();
    let old = shelf.join(format!(".old-snap_{:032x}", 2));
    std::fs::create_dir_all(&old).unwrap();
    let maker = std::fs::File::open(&half).unwrap();
    rustix::fs::flock(&maker, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let report = world.collect(&rules());
    assert!(half.exists() && !old.exists());
    assert_eq!(report.removed[0].reason, GcReason::Interrupted);
    drop(maker);
    let report = world.collect(&rules());
    assert!(!half.exists());
    assert_eq!(report.removed[0].reason, GcReason::Orphaned);
    assert_eq!(std::fs::read_dir(&shelf).unwrap().count(), 1);
}

#[test]
fn damaged_snapshot_is_removed_by_age_unless_in_use_and_a_newer_one_stays() {
    let world = world();
    let ids: Vec<String> = ["edited", "used", "whole", "newer"]
        .map(|name| snapshot(&world, name))
        .to_vec();
    let shelf = crate::SnapshotStore::of_site(&world.state, &world.site).unwrap();
    let root = world.root.parent().unwrap().join("snapshots");
    let used = shelf.open(&ids[1], crate::SnapshotScope::Any).unwrap();
    for id in &ids[..2] {
        let document = root.join(id).join("snapshot.json");
        let text = fs::read_to_string(&document).unwrap();
        fs::write(&document, text.replace("\"test\"", "\"root\"")).unwrap();
    }
    let document = root.join(&ids[3]).join("snapshot.json");
    let text = fs::read_to_string(&document).unwrap();
    let newer = text.replace("sandbox-snapshot/v1", "sandbox-snapshot/v2");
    assert_ne!(newer, text);
    fs::write(&document, newer).unwrap();
    // A symbolic link with a snapshot's name is not a snapshot, so the collection must neither
    // remove nor follow it.
    let elsewhere = world.root.parent().unwrap().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), "kept").unwrap();
    let link = root.join(format!("snap_{:032x}", 9));
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    let mut damaged = ids[..2].to_vec();
    damaged.sort();
    assert_eq!(shelf.unusable().len(), 4);
    let within = |max_age| GcRules {
        snapshots: SnapshotRule::Within {
            max_age,
            budget: SizeBudget::Unlimited,
        },
        ..rules()
    };
    assert!(world.collect(&within(HOUR)).removed.is_empty());
    for name in [&ids[0], &ids[1], &ids[3]].map(|id| root.join(id)) {
        let old = SystemTime::now() - 2 * HOUR;
        fs::File::open(name).unwrap().set_modified(old).unwrap();
    }
    let report = world.collect(&within(HOUR));
    assert_eq!(ids_of(&report), [ids[0].clone()]);
    assert_eq!(report.alive, 1);
    // A newer program can use this one, so it stays whatever its age, and the report says so.
    assert_eq!(report.failed.len(), 1, "{:?}", report.failed);
    assert_eq!(report.failed[0].id, ids[3]);
    assert!(
        report.failed[0]
            .message
            .ends_with("use the newer wp-codebox that made it")
    );
    assert!(root.join(&ids[3]).exists());
    drop(used);
    assert_eq!(ids_of(&world.collect(&within(HOUR))), [ids[1].clone()]);
    assert!(root.join(&ids[2]).exists(), "control: a whole young one");
    assert_eq!(fs::read_to_string(elsewhere.join("file")).unwrap(), "kept");
}

fn ids_of(report: &GcReport) -> Vec<String> {
    report.removed.iter().map(|item| item.id.clone()).collect()
}

#[test]
fn sandbox_seed_file_of_a_removed_or_missing_run_is_removed_and_of_an_existing_run_kept() {
    let world = world();
    world.settled(1, 2 * HOUR, 10);
    world.settled(2, HOUR / 2, 10);
    let living = RunDir::create(&world.state, &world.site, &NewRun::new(run(3)), 99).unwrap();
    let seeds = world.root.parent().unwrap().join(crate::SEEDS);
    fs::create_dir(&seeds).unwrap();
    let names = [
        format!("{}.json", run(1)),
        format!("{}.json", run(2)),
        format!("{}.json", run(3)),
        format!("{}.json", run(4)),
        format!(".{}.new", run(3)),
        format!(".{}.new", run(5)),
        "notes.json".to_owned(),
    ];
    for name in &names {
        fs::write(seeds.join(name), "{}").unwrap();
    }
    let seeds_of = |report: &GcReport| -> Vec<(String, GcReason)> {
        let seeds = report.removed.iter().filter(|i| i.kind == GcKind::Seed);
        let mut seeds: Vec<_> = seeds.map(|i| (i.id.clone(), i.reason)).collect();
        seeds.sort_by(|a, b| a.0.cmp(&b.0));
        seeds
    };
    let gone = [
        (run(1).to_string(), GcReason::Orphaned),
        (run(4).to_string(), GcReason::Orphaned),
        (run(5).to_string(), GcReason::Interrupted),
    ];
    let dry = GcRules {
        mode: GcMode::DryRun,
        ..rules()
    };
    assert_eq!(seeds_of(&world.collect(&dry)), gone);
    assert!(names.iter().all(|name| seeds.join(name).exists()));
    let report = world.collect(&rules());
    assert_eq!(seeds_of(&report), gone);
    assert_eq!(report.failed, []);
    for (name, stays) in names
        .iter()
        .zip([false, true, true, false, true, false, true])
    {
        assert_eq!(seeds.join(name).exists(), stays, "{name}");
    }
    drop(living);
}
