use super::*;
use crate::run_dir::RECOVERY_BUNDLE;
use crate::run_record::reads;
use crate::{Ending, Journal, NewRun, RunDir, Scratch};
use serde_json::{Map, Value};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use wp_codebox_contracts::{
    CONTROL_SOCKET, CancellationNote, ErrorCode, EventType, LifecycleCleanupStatus, Outcome,
    RunFacts, RunMode, RunState, SummaryCode, TaskTexts,
};

struct World {
    _temp: tempfile::TempDir,
    state: StateDir,
    site: SiteId,
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
        _temp: temp,
    }
}

fn run(n: u32) -> RunId {
    RunId::new(format!("run_{n:032x}")).unwrap()
}

fn ended(outcome: Outcome) -> Ending {
    Ending {
        outcome,
        summary: "it ended".to_owned(),
        summary_detail: None,
        error: None,
        bundle_id: None,
    }
}

const PAGE: ListFilter = ListFilter {
    status: StatusFilter::Any,
    limit: 50,
    offset: 0,
};
const EVENTS: PageLimits = PageLimits {
    count: 1000,
    bytes: 1 << 20,
};

impl World {
    fn begin(&self, n: u32) -> RunDir {
        let new = NewRun {
            facts: RunFacts::new(
                TaskTexts::of_goal(format!("goal {n}")),
                Map::from_iter([("requester".to_owned(), Value::from("a test"))]),
            ),
            ..NewRun::new(run(n))
        };
        RunDir::create(&self.state, &self.site, &new, 99).unwrap()
    }

    fn list(&self, filter: ListFilter) -> (u64, Vec<RunView>) {
        let sites = std::slice::from_ref(&self.site);
        let page = list(&self.state, sites, filter).unwrap();
        assert!(page.unreadable.is_empty(), "{:?}", page.unreadable);
        let views = page.rows.into_iter().map(|(_, view)| view);
        (page.total, views.collect())
    }

    fn find(&self, reference: &str) -> Result<FoundRun, RegistryError> {
        find(&self.state, std::slice::from_ref(&self.site), reference)
    }

    fn view(&self, n: u32) -> RunView {
        view(&self.state, &self.find(run(n).as_str()).unwrap()).unwrap()
    }
}

#[test]
fn status_running_is_reported_only_for_live_runs() {
    let world = world();
    let (alive, dead, done) = (world.begin(1), world.begin(2), world.begin(3));
    fs::write(dead.path().join(CONTROL_SOCKET), "").unwrap();
    fs::write(dead.path().join(".result.json.new"), "{").unwrap();
    drop(dead);
    done.settle(ended(Outcome::Succeeded), Scratch::Remove)
        .unwrap();
    let (total, rows) = world.list(PAGE);
    assert_eq!(total, 3);
    let status = |n| rows.iter().find(|r| r.run_id == run(n)).unwrap().status;
    assert_eq!(status(1), RunStatus::Running);
    assert_eq!((status(2), status(3)), (RunStatus::Ended, RunStatus::Ended));
    let dead = world.view(2);
    assert_eq!(dead.outcome, Some(Outcome::Failed));
    let error = dead.error.unwrap();
    assert_eq!(error.code, ErrorCode::RunnerUnavailable);
    assert!(error.message.contains("before anything ran"), "{error}");
    assert_eq!(dead.facts.goal(), Some("goal 2"));
    assert_eq!(dead.facts.provenance["requester"], "a test");
    assert!(!dead.salvaged && dead.bundle_id.is_none());
    let path = world.find(run(2).as_str()).unwrap().path;
    assert!(!path.join(CONTROL_SOCKET).exists());
    assert!(!path.join(".result.json.new").exists(), "half a result");
    let only = |status| {
        world.list(ListFilter {
            status: StatusFilter::Only(status),
            ..PAGE
        })
    };
    assert_eq!(only(RunStatus::Running).1[0].run_id, run(1));
    assert_eq!(only(RunStatus::Ended).0, 2);
    drop(alive);
    assert_eq!(only(RunStatus::Running).0, 0);
}

fn note(reason: &str) -> CancellationNote {
    CancellationNote {
        requested_at: "t".to_owned(),
        reason: Some(reason.to_owned()),
        requested_by: Some("a test".to_owned()),
    }
}

/// Each row: number of the run, reason of a recorded cancellation, end of the last command in the
/// journal, expected outcome.
#[test]
fn run_whose_supervisor_died_after_cancel_or_timeout_is_cancelled_or_timed_out() {
    let world = world();
    let finished = |end: &str| Map::from_iter([("end".to_owned(), Value::from(end))]);
    let rows = [
        (1, None, Some("timed-out"), Outcome::TimedOut),
        (2, None, Some("cancelled"), Outcome::Cancelled),
        (3, Some("enough"), Some("exited"), Outcome::Cancelled),
        (4, Some("enough"), None, Outcome::Cancelled),
        (5, None, Some("exited"), Outcome::Failed),
        (6, None, None, Outcome::Failed),
    ];
    for (n, cancelled, end, _) in rows {
        let dir = world.begin(n);
        let mut journal = Journal::create(dir.path()).unwrap();
        if let Some(end) = end {
            for end in ["timed-out", "exited", end] {
                journal
                    .append(EventType::CommandFinished, None, finished(end))
                    .unwrap();
            }
        }
        if let Some(reason) = cancelled {
            dir.record().cancelled(note(reason));
        }
    }
    for (n, cancelled, _, outcome) in rows {
        let found = world.find(run(n).as_str()).unwrap();
        let entry = entry(&world.state, &found).unwrap();
        let view = world.view(n);
        assert_eq!(view.outcome, Some(outcome), "{n}");
        assert_eq!(entry.status, RunState::of_outcome(outcome), "{n}");
        let code = view.error.unwrap().code;
        assert_eq!(code == ErrorCode::RunTimeout, outcome == Outcome::TimedOut);
        assert_eq!(
            code == ErrorCode::RunCancelled,
            outcome == Outcome::Cancelled
        );
        assert_eq!(entry.lifecycle.cancellation, cancelled.map(note));
    }
}

#[test]
fn registry_entry_status_is_derived_from_the_journal_and_the_recorded_outcome() {
    let world = world();
    let alive = world.begin(1);
    let found = world.find(run(1).as_str()).unwrap();
    let entry = || entry(&world.state, &found).unwrap();
    assert_eq!(entry().status, RunState::Booting);
    assert!(entry().lifecycle.cancellable && !entry().lifecycle.cancel_requested);
    let mut journal = Journal::create(alive.path()).unwrap();
    let append = |journal: &mut Journal, kind| {
        journal.append(kind, None, Map::new()).unwrap();
    };
    append(&mut journal, EventType::Created);
    assert_eq!(entry().status, RunState::Booting);
    append(&mut journal, EventType::Observed);
    assert_eq!(entry().status, RunState::Running);
    for _ in 0..2000 {
        append(&mut journal, EventType::CommandOutput);
    }
    append(&mut journal, EventType::Destroyed);
    assert_eq!(entry().status, RunState::CollectingArtifacts);
    alive.record().cancelled(note("enough"));
    let asked = entry();
    assert!(asked.lifecycle.cancel_requested);
    assert_eq!(asked.lifecycle.cancellation, Some(note("enough")));
    alive.scratch("guests").unwrap();
    alive
        .settle(ended(Outcome::Cancelled), Scratch::Remove)
        .unwrap();
    let over = entry();
    assert_eq!(over.status, RunState::Cancelled);
    assert_eq!(
        over.lifecycle.cleanup.status,
        LifecycleCleanupStatus::Succeeded
    );
    let page = list_entries(&world.state, std::slice::from_ref(&world.site), PAGE).unwrap();
    assert_eq!((page.total, page.rows), (1, vec![over]));
}

#[test]
fn cleanup_status_failed_is_reported_only_for_an_ended_run_whose_scratch_remains() {
    use LifecycleCleanupStatus as C;
    let world = world();
    let between = |n| {
        let dir = world.begin(n);
        dir.scratch("guests").unwrap();
        dir.record().end(ended(Outcome::Succeeded)).unwrap();
        dir
    };
    let seen = |n| {
        let found = world.find(run(n).as_str()).unwrap();
        let cleanup = entry(&world.state, &found).unwrap().lifecycle.cleanup;
        let page = list_entries(&world.state, std::slice::from_ref(&world.site), PAGE).unwrap();
        let row = page
            .rows
            .into_iter()
            .find(|row| row.run_id == run(n))
            .unwrap();
        assert!(row.lifecycle.terminal);
        assert_eq!(row.lifecycle.cleanup, cleanup);
        cleanup.status
    };
    let (kept, removed, dies) = (between(1), between(2), between(3));
    // The supervisors of these runs still hold the markers, so they may still remove the scratch
    // directories.
    assert_eq!(
        (seen(1), seen(2), seen(3)),
        (C::Running, C::Running, C::Running)
    );
    kept.settle(ended(Outcome::Failed), Scratch::Keep).unwrap();
    removed
        .settle(ended(Outcome::Succeeded), Scratch::Remove)
        .unwrap();
    assert_eq!((seen(1), seen(2)), (C::Failed, C::Succeeded));
    // The first query after the death of a supervisor settles the run.
    let found = world.find(run(3).as_str()).unwrap();
    drop(dies);
    let after = entry(&world.state, &found).unwrap().lifecycle.cleanup;
    assert_eq!(after.status, C::Succeeded);
}

#[test]
fn consecutive_pages_of_the_run_list_return_each_run_once() {
    let world = world();
    for n in 0..7 {
        let dir = world.begin(n);
        dir.settle(ended(Outcome::NoOp), Scratch::Remove).unwrap();
    }
    let mut seen = Vec::new();
    for offset in [0, 3, 6, 9] {
        let (total, rows) = world.list(ListFilter {
            limit: 3,
            offset,
            ..PAGE
        });
        assert_eq!(total, 7);
        seen.extend(rows);
    }
    let dates: Vec<_> = seen.iter().map(|row| row.created_at.clone()).collect();
    assert!(dates.is_sorted_by(|a, b| a >= b), "newest first: {dates:?}");
    let mut ids: Vec<_> = seen.into_iter().map(|row| row.run_id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 7);
}

#[test]
fn run_reference_must_match_exactly_one_run() {
    let world = world();
    let _alive = [world.begin(0x10), world.begin(0x11)];
    assert_eq!(world.find(run(0x10).as_str()).unwrap().run_id, run(0x10));
    assert_eq!(
        world.find(&run(0x11).as_str()[4..]).unwrap().run_id,
        run(0x11)
    );
    let code = |reference| world.find(reference).unwrap_err().body().code;
    assert_eq!(code("run_0000"), ErrorCode::RunAmbiguous);
    assert_eq!(code("run_f"), ErrorCode::RunNotFound);
    assert_eq!(code("../runs"), ErrorCode::RunNotFound);
    assert_eq!(code("  "), ErrorCode::InputInvalid);
    let nobody = SiteId::new("never-used").unwrap();
    let sites = std::slice::from_ref(&nobody);
    assert_eq!(list(&world.state, sites, PAGE).unwrap().total, 0);
    assert!(
        !site_path(&world.state, &nobody).exists(),
        "asking makes no site"
    );
}

#[test]
fn result_of_a_run_is_shown_after_the_end_of_the_run_and_never_in_lists() {
    let world = world();
    let dir = world.begin(1);
    let path = dir.path().to_owned();
    fs::write(
        path.join("result.json"),
        r#"{"schema":"wp-codebox/run-result/v1","outcome":"succeeded"}"#,
    )
    .unwrap();
    assert!(world.view(1).result.is_none(), "it runs");
    dir.settle(ended(Outcome::Succeeded), Scratch::Remove)
        .unwrap();
    assert_eq!(world.view(1).result.unwrap()["outcome"], "succeeded");
    assert!(world.list(PAGE).1[0].result.is_none(), "lists have none");
}

#[test]
fn dead_run_with_incomplete_recovery_bundle_reports_that_only_its_journal_is_left() {
    let world = world();
    let dir = world.begin(1);
    let mut journal = Journal::create(dir.path()).unwrap();
    journal
        .append(EventType::Created, None, Map::new())
        .unwrap();
    fs::create_dir_all(dir.path().join(RECOVERY_BUNDLE).join(".writing-x")).unwrap();
    let path = dir.path().to_owned();
    drop((dir, journal));
    let view = world.view(1);
    assert!(
        view.summary
            .unwrap()
            .contains("only the journal of the run is left")
    );
    let code = view.summary_detail.map(|detail| detail.code);
    assert_eq!(code, Some(SummaryCode::InterruptedJournal));
    assert_eq!((view.salvaged, view.last_event), (false, 1));
    assert!(!path.join(RECOVERY_BUNDLE).exists());
    let page = events(&world.state, &world.find("run_").unwrap(), 0, EVENTS).unwrap();
    assert_eq!((page.events.len(), page.status), (1, RunStatus::Ended));
}

/// The first row is the control: a run of the current boot whose supervisor left no crash note.
#[test]
fn dead_run_reports_a_restart_of_the_host_or_a_crash_or_kill_of_its_supervisor() {
    let world = world();
    for (number, change, cause, said) in [
        (1, "", "killed", "killed by a signal"),
        (2, "crash", "crash", "it crashed at src/a.rs:7, thread main"),
        (3, "boot", "restart", "this host was restarted"),
    ] {
        let path = world.begin(number).path().to_owned();
        match change {
            "crash" => fs::write(path.join("crash"), "src/a.rs:7, thread main").unwrap(),
            "boot" => {
                let file = path.join("run.json");
                let mut record: serde_json::Value =
                    serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
                record["host"]["boot_id"] = "another".into();
                fs::write(file, record.to_string()).unwrap();
            }
            _ => {}
        }
        let view = world.view(number);
        let error = view.error.unwrap();
        assert!(error.message.contains(said), "{}", error.message);
        assert_eq!(error.data.unwrap()["supervisor"]["cause"], cause);
        assert!(!view.summary.unwrap().contains(said), "what it came to");
        assert!(!path.join("crash").exists());
        let record = fs::read_to_string(path.join("run.json")).unwrap();
        assert!(!record.contains("boot_id"), "{record}");
    }
}

#[test]
fn run_is_reported_as_attached_until_its_record_says_detached() {
    let world = world();
    let dir = world.begin(1);
    assert_eq!(world.view(1).mode, RunMode::Attached);
    dir.record().detached();
    assert_eq!(world.view(1).mode, RunMode::Detached);
}

/// Stops the loops in the other threads of a test when it is dropped, also after a panic. Otherwise
/// the thread scope would wait for these threads forever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Three threads query runs. Meanwhile the main thread starts runs and ends them or simulates the
/// death of their supervisors, and another thread collects garbage. No query sees a partial record,
/// a dead run as running, or a removed run again.
#[test]
fn concurrent_queries_see_no_partial_record_and_no_dead_run_as_running() {
    let world = &world();
    let over = &AtomicBool::new(false);
    let settled = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = Over(over);
        let lookers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(move || {
                    let mut looks = 0;
                    while !over.load(Ordering::Relaxed) {
                        let (_, rows) = world.list(PAGE);
                        for row in rows {
                            let Ok(found) = world.find(row.run_id.as_str()) else {
                                continue;
                            };
                            let now = match view(&world.state, &found) {
                                Ok(view) => view,
                                Err(error) => {
                                    assert_eq!(error.body().code, ErrorCode::RunNotFound);
                                    continue;
                                }
                            };
                            if row.status == RunStatus::Ended {
                                assert_eq!(now.status, RunStatus::Ended, "it ended once");
                            }
                            if now.status == RunStatus::Ended {
                                assert!(now.outcome.is_some() && now.summary.is_some());
                            }
                            if let Ok(page) = events(&world.state, &found, 0, EVENTS) {
                                let seen = page.events.iter().map(|e| e.seq);
                                assert!(seen.eq(1..=page.cursor));
                                // GC may delete the journal between two reads.
                                if page.status == RunStatus::Ended
                                    && now.outcome == Some(Outcome::Succeeded)
                                    && found.path.join("events.jsonl").exists()
                                {
                                    assert_eq!(page.cursor, 3);
                                }
                            }
                            looks += 1;
                        }
                    }
                    looks
                })
            })
            .collect();
        let collector = scope.spawn(move || {
            let mut removed = 0;
            // The last collection follows the last run, so there is a run to collect.
            loop {
                let last = over.load(Ordering::Relaxed);
                let rules = crate::GcRules {
                    max_age: Duration::ZERO,
                    budget: crate::SizeBudget::Bytes(0),
                    artifacts: crate::ArtifactRule::Keep,
                    snapshots: crate::SnapshotRule::Keep,
                    mode: crate::GcMode::Remove,
                };
                let mut report = crate::GcReport::default();
                crate::collect(&world.state, &world.site, &rules, &mut report).unwrap();
                assert!(report.failed.is_empty(), "{report:?}");
                removed += report.removed.len();
                if report.settled > 0 {
                    settled.store(true, Ordering::Relaxed);
                }
                if last {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            removed
        });
        for n in 0..150 {
            let dir = world.begin(n);
            let mut journal = Journal::create(dir.path()).unwrap();
            for _ in 0..3 {
                journal
                    .append(EventType::Observed, None, Map::new())
                    .unwrap();
            }
            dir.scratch("x").unwrap();
            if n % 3 == 0 {
                drop(dir);
            } else {
                dir.settle(ended(Outcome::Succeeded), Scratch::Remove)
                    .unwrap();
            }
        }
        drop(ends);
        let looks: usize = lookers.into_iter().map(|l| l.join().unwrap()).sum();
        assert!(looks > 0, "somebody looked");
        assert!(collector.join().unwrap() > 0, "something was collected");
    });
    let (_, rows) = world.list(PAGE);
    assert!(rows.iter().all(|row| row.status == RunStatus::Ended));
}

/// Three threads start a run each while the limit allows one more run: exactly one start succeeds.
#[test]
fn of_concurrently_started_runs_exactly_as_many_start_as_the_limit_allows() {
    let world = &world();
    for round in 0..40 {
        let _first = world.begin(round * 10);
        let results: Vec<_> = std::thread::scope(|scope| {
            let starters: Vec<_> = (1..=3)
                .map(|n| {
                    scope.spawn(move || {
                        let new = NewRun::new(run(round * 10 + n));
                        RunDir::create(&world.state, &world.site, &new, 2)
                    })
                })
                .collect();
            starters.into_iter().map(|s| s.join().unwrap()).collect()
        });
        let begun = results.iter().filter(|r| r.is_ok()).count();
        assert_eq!(begun, 1, "{results:?}");
        for error in results.iter().filter_map(|r| r.as_ref().err()) {
            assert_eq!(error.body().code, ErrorCode::Busy);
        }
        drop(results);
        world.list(PAGE);
    }
}

/// A second thread settles the dead runs at the same time, so a run may be in the middle of its
/// settling when runs are counted.
#[test]
fn dead_runs_do_not_count_towards_the_run_limit() {
    let world = &world();
    let over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Over(over);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                reap_dead(&world.state, &world.site).unwrap();
            }
        });
        let mut refused = Vec::new();
        for n in 0..200 {
            let new = NewRun::new(run(n));
            match RunDir::create(&world.state, &world.site, &new, 1) {
                // Dropping the directory releases the locks like the death of a supervisor.
                Ok(dir) => drop(dir),
                Err(error) => refused.push(error.to_string()),
            }
        }
        assert_eq!(refused, Vec::<String>::new());
    });
}

#[test]
fn list_of_a_user_has_only_runs_with_that_requester_and_reads_each_record_twice_whatever_the_page()
{
    let world = world();
    let requester = |kind: &str, id: u64| serde_json::json!({"kind": kind, "id": id, "site": "s"});
    for n in 0..60 {
        let who = match n % 3 {
            0 => requester("user", 7),
            1 => requester("user", 8),
            // An operator has no id of a user.
            _ => requester("operator", 7),
        };
        let new = NewRun {
            facts: RunFacts {
                provenance: Map::from_iter([("requester".to_owned(), who)]),
                ..RunFacts::default()
            },
            ..NewRun::new(run(n))
        };
        let made = RunDir::create(&world.state, &world.site, &new, 99).unwrap();
        made.settle(ended(Outcome::Succeeded), Scratch::Remove)
            .unwrap();
    }
    let sites = std::slice::from_ref(&world.site);
    let of = |user, offset, selected: fn(&RunId) -> bool| {
        let filter = ListFilter {
            limit: 8,
            offset,
            ..PAGE
        };
        list_of_user(&world.state, sites, filter, user, selected).unwrap()
    };
    let mut found = Vec::new();
    for (offset, length) in [(0, 8), (8, 8), (16, 4), (24, 0)] {
        let (reads, page) = reads::during(|| of(7, offset, |_| true));
        assert_eq!(
            (page.total, page.rows.len(), reads),
            (20, length, 120),
            "{offset}"
        );
        found.extend(page.rows.into_iter().map(|(_, view)| view.run_id));
    }
    found.sort();
    assert_eq!(found, (0..20).map(|n| run(n * 3)).collect::<Vec<_>>());
    assert_eq!(of(9, 0, |_| true).total, 0);
    // Runs that are not selected are not read.
    let (reads, page) = reads::during(|| of(7, 0, |id| *id == run(3)));
    assert_eq!((page.total, reads), (1, 2));
}
