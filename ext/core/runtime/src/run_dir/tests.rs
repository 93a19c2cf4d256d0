use super::*;
use crate::markers::NEW_MARKER;
use crate::reap::reap_dead;
use std::os::unix::fs::PermissionsExt;
use wp_codebox_contracts::{ErrorCode, Outcome, RunId, SpendCaps};

fn state(temp: &Path) -> StateDir {
    let path = temp.join("state");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12_345), Some(12_345)).unwrap();
    }
    StateDir::open(&path).unwrap()
}

fn new(n: u8) -> NewRun {
    NewRun::new(run(n))
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

/// Returns the numbers of settled and live runs; every run must be readable.
fn reaped(state: &StateDir, site: &SiteId) -> (usize, usize) {
    let reaped = reap_dead(state, site).unwrap();
    assert!(reaped.unreadable.is_empty(), "{:?}", reaped.unreadable);
    (reaped.settled, reaped.alive)
}

fn read_record(path: &Path) -> RunRecord {
    RunRecord::read(path).unwrap().unwrap()
}

fn run(n: u8) -> RunId {
    RunId::new(format!("run_{n:032x}")).unwrap()
}

#[test]
fn run_of_a_dead_supervisor_is_recorded_as_ended_exactly_once() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let site = SiteId::new("s").unwrap();
    let alive = RunDir::create(&state, &site, &new(1), 8).unwrap();
    let dead = RunDir::create(&state, &site, &new(2), 8).unwrap();
    let dead_path = dead.path().to_owned();
    fs::write(dead.scratch("x").unwrap().join("f"), "x").unwrap();
    drop(dead);
    assert_eq!(reaped(&state, &site), (1, 1));
    assert_eq!(reaped(&state, &site), (0, 1));
    assert!(!dead_path.join("scratch").exists());
    let record: RunRecord =
        serde_json::from_slice(&fs::read(dead_path.join("run.json")).unwrap()).unwrap();
    assert_eq!(
        (record.status, record.outcome),
        (
            wp_codebox_contracts::RunStatus::Ended,
            Some(Outcome::Failed)
        )
    );
    alive
        .settle(ended(Outcome::Succeeded, "done"), Scratch::Remove)
        .unwrap();
    assert_eq!(reaped(&state, &site), (0, 0));
}

/// [`RunDir::forestall`] records a run that never started as failed.
#[test]
fn forestalled_run_cannot_be_created_and_an_existing_run_cannot_be_forestalled() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let site = SiteId::new("s").unwrap();
    let why = || ErrorBody::new(ErrorCode::SandboxStartFailed, "it never started");
    let alive = RunDir::create(&state, &site, &new(1), 8).unwrap();
    RunDir::forestall(&state, &site, &new(1), why()).unwrap_err();
    alive
        .settle(ended(Outcome::Succeeded, "done"), Scratch::Remove)
        .unwrap();
    RunDir::forestall(&state, &site, &new(1), why()).unwrap_err();
    let record = read_record(&temp.path().join(format!("state/sites/s/runs/{}", run(1))));
    assert_eq!(record.outcome, Some(Outcome::Succeeded));
    RunDir::forestall(&state, &site, &new(2), why()).unwrap();
    RunDir::create(&state, &site, &new(2), 8).unwrap_err();
    let record = read_record(&temp.path().join(format!("state/sites/s/runs/{}", run(2))));
    assert_eq!(record.outcome, Some(Outcome::Failed));
    // Both runs are settled, so none is alive or dead.
    assert_eq!(reaped(&state, &site), (0, 0));
}

/// Creates the files that a supervisor leaves when it is killed between two steps of
/// [`RunDir::create`].
#[test]
fn run_killed_during_its_creation_gets_a_final_record() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let site = SiteId::new("s").unwrap();
    reap_dead(&state, &site).unwrap();
    let root = temp.path().join("state/sites/s");
    for n in 1..=3 {
        fs::write(root.join("active").join(run(n).as_str()), "").unwrap();
    }
    fs::create_dir(root.join("runs").join(run(2).as_str())).unwrap();
    fs::create_dir(root.join("runs").join(run(3).as_str())).unwrap();
    fs::write(root.join("runs").join(run(3).as_str()).join("lease"), "").unwrap();
    let artifacts = root.join("artifacts");
    fs::create_dir(&artifacts).unwrap();
    for n in [3, 4] {
        let staging = artifacts.join(format!(".writing-{}-0123456789abcdef", run(n)));
        fs::create_dir_all(staging.join("files")).unwrap();
    }
    assert_eq!(reap_dead(&state, &site).unwrap().settled, 3);
    for n in 1..=3 {
        let record = read_record(&root.join("runs").join(run(n).as_str()));
        assert!(record.is_terminal() && record.summary.is_some(), "{n}");
    }
    assert_eq!(fs::read_dir(root.join("active")).unwrap().count(), 0);
    assert_eq!(
        fs::read_dir(&artifacts).unwrap().count(),
        1,
        "another run's staging stays"
    );
}

/// A call of [`reap_dead`] that finds the marker of a starting run unlocked would record the run as
/// ended.
#[test]
fn concurrent_reaping_never_records_a_starting_run_as_ended() {
    let temp = tempfile::tempdir().unwrap();
    let (state, site) = (&state(temp.path()), &SiteId::new("s").unwrap());
    let left = temp.path().join("state/sites/s/active");
    reap_dead(state, site).unwrap();
    fs::write(left.join(format!("{NEW_MARKER}{}", run(250))), "").unwrap();
    let over = &std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(reap_dead(state, site).unwrap().settled, 0);
                }
            });
        }
        for n in 0..200 {
            let made = RunDir::create(state, site, &new(n), 8)
                .and_then(|dir| dir.settle(ended(Outcome::Succeeded, "x"), Scratch::Remove));
            if made.is_err() {
                over.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            made.unwrap();
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(fs::read_dir(left).unwrap().count(), 0);
}

#[test]
fn reaping_of_dead_runs_does_not_remove_retained_scratch_directories() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let site = SiteId::new("s").unwrap();
    let dir = RunDir::create(&state, &site, &new(1), 8).unwrap();
    let (path, marker) = (dir.path().to_owned(), dir.marker.clone());
    dir.scratch("work").unwrap();
    dir.settle(ended(Outcome::Failed, "no bundle"), Scratch::Keep)
        .unwrap();
    // The supervisor died right before it removed the marker.
    fs::write(marker, "").unwrap();
    assert_eq!(reap_dead(&state, &site).unwrap().settled, 1);
    assert!(path.join("scratch/work").exists());
    assert_eq!(read_record(&path).summary.unwrap(), "no bundle");
}

#[test]
fn run_start_above_the_limit_is_refused_until_a_run_ends() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let site = SiteId::new("s").unwrap();
    let first = RunDir::create(&state, &site, &new(1), 1).unwrap();
    let error = RunDir::create(&state, &site, &new(2), 1).unwrap_err();
    assert_eq!(error.body().code, ErrorCode::Busy);
    first
        .settle(ended(Outcome::Failed, "x"), Scratch::Keep)
        .unwrap();
    assert!(RunDir::create(&state, &site, &new(2), 1).is_ok());
}

fn of(requester: Requester, n: u8) -> NewRun {
    NewRun {
        share: Some(RequesterShare {
            requester,
            max_runs: 2,
            spend: SpendCaps::default(),
        }),
        ..new(n)
    }
}

#[test]
fn run_above_the_share_of_its_requester_is_refused_and_other_requesters_still_start() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let site = SiteId::new("s").unwrap();
    let start = |run: &NewRun| RunDir::create(&state, &site, run, 8);
    let user = Requester::User(5);
    let first = start(&of(user, 1)).unwrap();
    let _second = start(&of(user, 2)).unwrap();
    let error = start(&of(user, 3)).unwrap_err().body();
    assert_eq!(error.code, ErrorCode::Busy);
    let sentence = format!(
        "user 5 has 2 active runs on this site, and the limit for one requester is 2; wait until {} ends, or cancel one of them",
        run(1)
    );
    assert_eq!(error.message, sentence);
    let data = error.data.unwrap();
    assert_eq!(data["oldest_run_id"], run(1).as_str());
    assert_eq!(data["limit"], 2);
    // Other requesters, and a run without a share, count apart.
    let _others: Vec<RunDir> = [
        of(Requester::User(55), 4),
        of(Requester::Operator, 5),
        of(Requester::Nobody, 6),
        new(7),
    ]
    .iter()
    .map(|run| start(run).unwrap())
    .collect();
    first
        .settle(ended(Outcome::Failed, "x"), Scratch::Keep)
        .unwrap();
    assert!(start(&of(user, 3)).is_ok());
}

#[test]
fn living_run_whose_marker_names_no_requester_counts_for_every_requester() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let site = SiteId::new("s").unwrap();
    let start = |run: &NewRun| RunDir::create(&state, &site, run, 8);
    let _living = [start(&new(1)).unwrap(), start(&new(2)).unwrap()];
    assert!(start(&of(Requester::User(5), 3)).is_ok());
    // A program that wrote no requester into the markers started these runs.
    for n in [1, 2] {
        let marker = state.path().join("sites/s/active").join(run(n).as_str());
        fs::write(marker, "").unwrap();
    }
    let error = start(&of(Requester::User(5), 4)).unwrap_err();
    assert_eq!(error.body().code, ErrorCode::Busy);
}

/// Threads of two requesters start runs at once, more than the share of each.
#[test]
fn of_concurrent_starts_of_two_requesters_each_gets_exactly_its_share() {
    let temp = tempfile::tempdir().unwrap();
    let (state, site) = (&state(temp.path()), &SiteId::new("s").unwrap());
    for _ in 0..20 {
        let started: Vec<(u8, RunDir)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..12)
                .map(|n| {
                    scope.spawn(move || {
                        let new = of(Requester::User(u64::from(n % 2)), n);
                        Some((n % 2, RunDir::create(state, site, &new, 4).ok()?))
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.flatten().collect()
        });
        for user in [0, 1] {
            let own = started.iter().filter(|(of, _)| *of == user).count();
            assert_eq!(own, 2, "runs of user {user}");
        }
        for (_, run) in started {
            run.settle(ended(Outcome::Failed, "x"), Scratch::Keep)
                .unwrap();
        }
        fs::remove_dir_all(state.path().join("sites/s/runs")).unwrap();
    }
}

#[test]
fn ended_cluster_run_can_be_repeated_under_its_id_and_a_run_of_this_host_cannot() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let site = SiteId::new("s").unwrap();
    let placed = NewRun {
        work: RecordedWork {
            is_placed: true,
            ..RecordedWork::default()
        },
        ..new(1)
    };
    let first = RunDir::create(&state, &site, &placed, 8).unwrap();
    fs::write(first.path().join("first"), "").unwrap();
    let error = RunDir::create(&state, &site, &placed, 8).unwrap_err();
    assert_eq!(error.body().code, ErrorCode::ClusterConflict);
    assert!(first.path().join("first").exists());
    first
        .settle(ended(Outcome::Failed, "x"), Scratch::Remove)
        .unwrap();
    let second = RunDir::create(&state, &site, &placed, 8).unwrap();
    assert!(!second.path().join("first").exists());
    // The supervisor of the second attempt dies, then that of a third one before it has a record.
    drop(second);
    assert_eq!(reap_dead(&state, &site).unwrap().settled, 1);
    let third = RunDir::create(&state, &site, &placed, 8).unwrap();
    fs::remove_file(third.path().join("run.json")).unwrap();
    drop(third);
    assert_eq!(reap_dead(&state, &site).unwrap().settled, 1);
    RunDir::create(&state, &site, &placed, 8).unwrap();

    let mut local = new(2);
    local.work.checks.push("true".to_owned());
    RunDir::create(&state, &site, &local, 8)
        .unwrap()
        .settle(ended(Outcome::Succeeded, "done"), Scratch::Remove)
        .unwrap();
    let same = NewRun {
        run_id: run(2),
        ..placed
    };
    for repeated in [&local, &same] {
        RunDir::create(&state, &site, repeated, 8).unwrap_err();
    }
    let runs = temp.path().join("state/sites/s/runs");
    let record = read_record(&runs.join(run(2).as_str()));
    assert_eq!(record.outcome, Some(Outcome::Succeeded));
    let hidden = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with(REMOVING);
    assert!(!fs::read_dir(runs).unwrap().flatten().any(hidden));
}
