use super::*;
use crate::cgroup::Intent;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use wp_codebox_runtime::StateDir;

fn run(n: u32) -> RunId {
    RunId::new(format!(
        "run_{:032x}",
        u64::from(std::process::id()) << 8 | u64::from(n)
    ))
    .unwrap()
}

/// Returns the parent cgroups below which this user may create cgroups, or `None` if no cgroup can
/// be created. A test that gets `None` checks nothing. Panics if no cgroup can be created although
/// the environment variable `CODEBOX_EXPECT` contains `cgroup`.
fn place() -> Option<CgroupParents> {
    // Tests run concurrently, so each call uses a run id of its own.
    static PROBES: AtomicU32 = AtomicU32::new(100);
    let place = CgroupParents::own().ok()?;
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    let probe = RunCgroup::make(&place, &run(number), &Limits::default());
    let possible = probe.is_ok();
    let expected = std::env::var("CODEBOX_EXPECT").unwrap_or_default();
    assert!(
        possible || !expected.split(',').any(|name| name == "cgroup"),
        "{probe:?}"
    );
    if let Ok(group) = probe {
        group.remove();
    }
    possible.then_some(place)
}

fn sleeper() -> std::process::Child {
    Command::new("sleep")
        .arg("300")
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn cgroup_of_a_run_has_its_limits_holds_only_joined_processes_and_is_removed() {
    let Some(place) = place() else { return };
    let limits = Limits {
        memory_bytes: 100 << 20,
        disk_bytes: 50 << 20,
        ..Limits::default()
    };
    let group = RunCgroup::make(&place, &run(1), &limits).unwrap();
    let directories = RunCgroup::directories(&place, &run(1));
    assert!(directories.iter().all(|path| path.is_dir()));
    let evidence = group.evidence().unwrap();
    assert!(
        evidence.memory.contains(&(150_u64 << 20).to_string()),
        "{evidence:?}"
    );
    assert!(
        evidence
            .pids
            .is_none_or(|n| n == limits.processes + OWN_PROCESSES)
    );
    assert!(evidence.cpu.is_none(), "no limit was asked for");
    let mut inside = sleeper();
    let mut outside = sleeper();
    let (inside_pid, outside_pid) = (inside.id() as i32, outside.id() as i32);
    group.join(inside_pid).unwrap();
    assert!(group.holds(inside_pid));
    assert!(!group.holds(outside_pid), "control: it was not moved");
    assert!(!group.holds(1));
    for child in [&mut inside, &mut outside] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    group.remove();
    assert!(directories.iter().all(|path| !path.exists()));
}

#[test]
fn meter_reports_an_oom_kill_that_happens_after_the_creation_of_the_meter() {
    let Some(place) = place() else { return };
    let limits = Limits {
        memory_bytes: 64 << 20,
        disk_bytes: 1 << 20,
        ..Limits::default()
    };
    let group = RunCgroup::make(&place, &run(2), &limits).unwrap();
    let meter = group.meter();
    let take = |mib: u32| {
        // The child waits for a line on standard input, so that it is a member before it allocates
        // memory. Then it uses 200 ms of CPU time: cgroup v1 tells user from system time by what
        // runs at each tick of the kernel's clock, so a few milliseconds may count as none.
        let mut child = Command::new("php")
            .args(["-n", "-d", "memory_limit=-1", "-r"])
            .arg(format!(
                "fgets(STDIN); $x = str_repeat('x', {mib} << 20); do {{ $u = getrusage(); }} while ($u['ru_utime.tv_sec'] === 0 && $u['ru_utime.tv_usec'] < 200000);"
            ))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        group.join(child.id() as i32).unwrap();
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        child.wait().unwrap().success()
    };
    assert!(take(20), "control: within the limit");
    assert!(!meter.was_out_of_memory());
    assert!(meter.cpu().is_none_or(|(user, system)| user + system > 0));
    assert!(!take(200));
    assert!(meter.was_out_of_memory());
    assert!(
        !group.meter().was_out_of_memory(),
        "counted from when it was taken"
    );
    group.remove();
}

#[test]
fn v2_cgroup_whose_memory_controller_cannot_be_enabled_for_children_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let place = CgroupParents {
        parents: vec![Hierarchy::Unified(temp.path().join("none"))],
    };
    let error = RunCgroup::make(&place, &run(3), &Limits::default()).unwrap_err();
    assert!(matches!(error, CgroupError::NotDelegated { .. }), "{error}");
}

/// Uses a plain directory in place of the cgroup file system, because the unified hierarchy of the
/// test machine has no memory controller. The files in it contain exactly what `make_in` wrote.
#[test]
fn every_limit_is_written_to_a_v2_cgroup() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("cgroup.subtree_control"), "cpu memory\n").unwrap();
    let place = CgroupParents {
        parents: vec![Hierarchy::Unified(temp.path().to_owned())],
    };
    let mut group = RunCgroup {
        name: "g".to_owned(),
        groups: Vec::new(),
        members: Vec::new(),
        limit: 8192,
        tcp: None,
        reclaim: None,
        pids: None,
        quota: Some(150_000),
    };
    // `make_in` fails after its last write: it opens `cgroup.procs`, which only the kernel creates.
    assert!(group.make_in(&place.parents[0], 7, 5).is_err());
    let read = |name: &str| fs::read_to_string(temp.path().join("g").join(name)).unwrap();
    assert_eq!(
        (read("memory.max"), read("memory.swap.max")),
        ("8192".into(), "0".into())
    );
    assert_eq!(
        (read("memory.oom.group"), read("pids.max")),
        ("1".into(), "7".into())
    );
    assert_eq!(group.pids, Some(7));
    assert_eq!(
        (read("cpu.max"), read("cpu.weight")),
        ("150000 100000".into(), "50".into())
    );
}

#[test]
fn cpu_limit_holds_for_all_processes_of_a_cgroup_together() {
    let Some(place) = place() else { return };
    let limits = Limits {
        cpu_milli: Some(200),
        ..Limits::default()
    };
    let group = RunCgroup::make(&place, &run(4), &limits).unwrap();
    let Some(Ok(shown)) = group.evidence().unwrap().cpu else {
        // A host without the CPU controller; the run would be refused.
        group.remove();
        return;
    };
    assert!(shown.starts_with("20000 microseconds"), "{shown}");
    // Two processes that always compute get a fifth of one processor together, so the one second of
    // CPU time that they need takes five.
    let busy = || {
        let mut child = Command::new("php")
            .args(["-n", "-r"])
            .arg("fgets(STDIN); do { $u = getrusage(); } while ($u['ru_utime.tv_sec'] === 0 && $u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec'] < 500000);")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        group.join(child.id() as i32).unwrap();
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        child
    };
    let begun = std::time::Instant::now();
    for mut child in [busy(), busy()] {
        assert!(child.wait().unwrap().success());
    }
    assert!(begun.elapsed().as_millis() > 3500, "{:?}", begun.elapsed());
    group.remove();
}

#[test]
fn v2_meter_reads_current_memory_and_counts_oom_kills_and_cpu_from_its_creation() {
    let temp = tempfile::tempdir().unwrap();
    let set = |name: &str, text: &str| fs::write(temp.path().join(name), text).unwrap();
    set(
        "memory.stat",
        "anon 4096\nfile 9\nkernel 5000\nsock 300\nanon_thp 7\nslab_reclaimable 1000\n",
    );
    set(
        "memory.events",
        "low 0\noom 3\noom_kill 2\noom_group_kill 1\n",
    );
    set("cpu.stat", "usage_usec 30\nuser_usec 10\nsystem_usec 20\n");
    let group = RunCgroup {
        name: "g".to_owned(),
        groups: vec![Hierarchy::Unified(temp.path().to_owned())],
        members: Vec::new(),
        limit: 0,
        tcp: None,
        reclaim: None,
        pids: None,
        quota: None,
    };
    set("memory.peak", "9000\n");
    set(
        "cpu.pressure",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=7000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
    );
    assert_eq!(
        group.used(),
        GroupUse {
            memory_peak_bytes: Some(9000),
            cpu_wait_ms: Some(7),
            ..GroupUse::default()
        }
    );
    let meter = group.meter();
    assert_eq!(
        (meter.processes(), meter.kernel()),
        (Some(4096), Some(4300))
    );
    assert_eq!(
        (meter.was_out_of_memory(), meter.cpu()),
        (false, Some((0, 0)))
    );
    set("memory.events", "oom_kill 3\n");
    set("cpu.stat", "user_usec 15\nsystem_usec 27\n");
    assert_eq!(
        (meter.was_out_of_memory(), meter.cpu()),
        (true, Some((5, 7)))
    );
}

#[test]
fn reaper_removes_the_cgroup_of_a_dead_creator_and_keeps_that_of_a_living_one() {
    let Some(place) = place() else { return };
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("state");
    fs::create_dir(&path).unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12_345), Some(12_345)).unwrap();
    }
    let state = StateDir::open(&path).unwrap();
    let make = |n| {
        let directories = RunCgroup::directories(&place, &run(n));
        let intent = Intent::announce(&state, &run(n), &directories).unwrap();
        (
            intent,
            RunCgroup::make(&place, &run(n), &Limits::default()).unwrap(),
            directories,
        )
    };
    let (alive, kept, kept_paths) = make(10);
    let (dead, _, dead_paths) = make(11);
    drop(dead);
    // The record of a dead run can contain any path. The reaper must not remove a directory outside
    // the cgroup file system.
    let foreign = temp.path().join(format!("{PREFIX}{}", run(12)));
    fs::create_dir(&foreign).unwrap();
    let named = [foreign.clone(), "/sys/fs/cgroup".into()];
    drop(Intent::announce(&state, &run(12), &named).unwrap());
    // A child that another test forks inherits the lock and holds it until it calls `execve`, so
    // the first attempts may find the dead run locked.
    let (mut removed, begun) = (0, std::time::Instant::now());
    while removed < dead_paths.len() && begun.elapsed().as_secs() < 20 {
        removed += super::super::reap_cgroups(&state).unwrap().removed;
    }
    assert_eq!(removed, dead_paths.len());
    assert!(dead_paths.iter().all(|path| !path.exists()));
    assert!(
        kept_paths.iter().all(|path| path.exists()),
        "control: its maker lives"
    );
    assert!(foreign.exists(), "no cgroup: left alone");
    kept.remove();
    alive.done();
    fs::remove_dir(&foreign).unwrap();
    super::super::reap_cgroups(&state).unwrap();
    assert_eq!(fs::read_dir(path.join("cgroups")).unwrap().count(), 0);
}
