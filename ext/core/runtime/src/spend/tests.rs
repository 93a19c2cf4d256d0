use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use wp_codebox_contracts::{ErrorCode, SpendCaps};

fn state(temp: &Path) -> StateDir {
    let path = temp.join("state");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12_345), Some(12_345)).unwrap();
    }
    StateDir::open(&path).unwrap()
}

fn share(user: u64, site: Option<u64>, requester: Option<u64>) -> RequesterShare {
    RequesterShare {
        requester: Requester::User(user),
        max_runs: 4,
        spend: SpendCaps {
            site_microusd: site,
            requester_microusd: requester,
        },
    }
}

fn reserve(
    state: &StateDir,
    n: u8,
    share: &RequesterShare,
    wanted: Option<u64>,
) -> Result<Option<SpendReservation>, SpendError> {
    let run = RunId::new(format!("run_{n:032x}")).unwrap();
    SpendReservation::make(state, &SiteId::new("s").unwrap(), &run, share, wanted)
}

fn granted(result: Result<Option<SpendReservation>, SpendError>) -> SpendReservation {
    result.unwrap().unwrap()
}

#[test]
fn share_without_caps_reserves_nothing_and_makes_no_file() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let made = reserve(&state, 1, &share(1, None, None), Some(5)).unwrap();
    assert!(made.is_none());
    assert!(!state.path().join("sites").exists());
}

#[test]
fn run_gets_at_most_what_is_left_of_both_caps_and_is_refused_when_one_is_used_up() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let of = |user| share(user, Some(1000), Some(600));
    // A tenth of the lowest cap without a budget, else the budget.
    let first = granted(reserve(&state, 1, &of(1), None));
    assert_eq!(first.microusd(), 60);
    let second = granted(reserve(&state, 2, &of(1), Some(5000)));
    assert_eq!(second.microusd(), 540, "600 - 60 reserved");
    let error = reserve(&state, 3, &of(1), Some(1)).unwrap_err();
    assert!(
        matches!(
            &error,
            SpendError::Reached {
                who: "this requester",
                used: 600,
                cap: 600,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.body().code, ErrorCode::BudgetExhausted);
    // Another user still gets what is left for the site.
    let third = granted(reserve(&state, 4, &of(2), Some(5000)));
    assert_eq!(third.microusd(), 400);
    let error = reserve(&state, 5, &of(3), None).unwrap_err();
    assert!(
        matches!(
            error,
            SpendError::Reached {
                who: "this site",
                ..
            }
        ),
        "{error}"
    );
    // What a run did not use is free again; what it used is not.
    first.settle(10).unwrap();
    second.settle(100).unwrap();
    assert_eq!(
        granted(reserve(&state, 6, &of(1), Some(5000))).microusd(),
        490
    );
}

#[test]
fn reservation_of_a_run_that_never_settled_counts_as_used() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let of = share(1, None, Some(100));
    drop(granted(reserve(&state, 1, &of, Some(80))));
    assert_eq!(granted(reserve(&state, 2, &of, Some(80))).microusd(), 20);
}

#[test]
fn record_that_cannot_be_read_refuses_every_run_with_a_cap() {
    let temp = tempfile::tempdir().unwrap();
    let state = state(temp.path());
    let of = share(1, Some(100), None);
    let made = granted(reserve(&state, 1, &of, Some(1)));
    let file = made.directory.join(FILE);
    made.settle(1).unwrap();
    let good = fs::read(&file).unwrap();
    let newer = String::from_utf8(good.clone())
        .unwrap()
        .replace("\"version\":1", "\"version\":2");
    for bad in ["", "{", "{}", &newer] {
        fs::write(&file, bad).unwrap();
        let error = reserve(&state, 2, &of, Some(1)).unwrap_err();
        assert!(matches!(error, SpendError::Record { .. }), "{bad}: {error}");
        assert_eq!(error.body().code, ErrorCode::StateDirInvalid);
        assert_eq!(fs::read(&file).unwrap(), bad.as_bytes(), "the file stays");
        assert!(
            reserve(&state, 3, &share(1, None, None), None)
                .unwrap()
                .is_none()
        );
    }
    fs::write(&file, good).unwrap();
    assert_eq!(granted(reserve(&state, 2, &of, Some(5))).microusd(), 5);
}

#[test]
fn concurrent_reservations_never_exceed_the_cap_together() {
    let temp = tempfile::tempdir().unwrap();
    let state = &state(temp.path());
    let sum: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn(move || {
                    let of = share(u64::from(n), Some(100), None);
                    let made = reserve(state, n, &of, Some(30)).ok().flatten();
                    made.map_or(0, |made| made.microusd())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(sum, 100);
}
