//! Sandboxes around the launcher: the guest inside is the same, and dies with them.
//!
//! With `CODEBOX_OUTER_SANDBOX=bubblewrap` every other test of this program runs inside one
//! as well.

use crate::lifetime::{everybody, kill, parent};
use crate::world::*;
use std::fs;
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{
    Bubblewrap, Guest, Gvisor, LaunchError, NoSandbox, ProcessSandbox,
};
use wp_codebox_contracts::{ErrorCode, IsolationLevel, MountAccess, OuterSandboxKind};

const BWRAP: &str = "/usr/bin/bwrap";
const RUNSC: &str = "/usr/bin/runsc";

fn bubblewrap() -> Bubblewrap {
    assert!(fs::exists(BWRAP).unwrap(), "install bubblewrap");
    Bubblewrap {
        program: BWRAP.to_owned(),
    }
}

fn inside(sandbox: &dyn ProcessSandbox) -> Guest {
    launch_in(&Spec::default().plan(), sandbox).unwrap()
}

#[test]
fn a_wrapped_guest_reports_what_an_unwrapped_one_does() {
    let (bare, wrapped) = (inside(&NoSandbox), inside(&bubblewrap()));
    assert_eq!(wrapped.report().level, IsolationLevel::Full);
    assert_eq!(wrapped.report(), bare.report());
    assert_eq!(bare.audit().kind, "none");
    assert_eq!(wrapped.audit().kind, "bubblewrap");
    let record = serde_json::to_string(wrapped.audit()).unwrap();
    let root = world().root.to_str().unwrap();
    assert!(!record.contains(root), "{record}");
    assert!(record.contains("/wordpress"), "{record}");
}

#[test]
fn a_wrapped_launcher_sees_the_plans_sources_only() {
    let source = directory("wrapped");
    fs::write(source.join("a"), "1").unwrap();
    let spec = Spec {
        mounts: vec![mount(0, &source, "/workspace/a")],
        ..Spec::default()
    };
    let mut guest = launch_in(&spec.plan(), &bubblewrap()).unwrap();
    // The wrapper's pid 1 has the view that the launcher started with.
    let helper = parent(parent(guest.pid()));
    let state = world().state.join("keys");
    fs::create_dir_all(&state).unwrap();
    assert!(may_see(helper, source.to_str().unwrap()), "control");
    for path in [state.to_str().unwrap(), "/etc/passwd", "/var"] {
        assert!(fs::exists(path).unwrap(), "control: {path}");
        assert!(!may_see(helper, path), "{path}");
    }
    assert_eq!(
        sh(
            &mut guest,
            "cat /workspace/a/a; echo 2 >/workspace/a/a; cat /workspace/a/a"
        )
        .ok(),
        "12\n"
    );
    assert_eq!(fs::read_to_string(source.join("a")).unwrap(), "1");
    assert_eq!(spec.mounts[0].access, MountAccess::Readwrite);
}

/// Whether something is mounted at a path or above it, in a process whose root is a tmpfs.
fn may_see(pid: i32, path: &str) -> bool {
    let table = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    let points: Vec<&str> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .collect();
    assert!(points.contains(&"/usr"), "control: {table}");
    points
        .iter()
        .any(|point| *point != "/" && (path == *point || path.starts_with(&format!("{point}/"))))
}

#[test]
fn killing_the_wrapper_ends_everything() {
    let mut guest = inside(&bubblewrap());
    let all = everybody(&mut guest);
    // launcher ← pid 1 of the wrapper's namespace ← the wrapper this process started.
    let wrapper = parent(parent(all[0]));
    assert_eq!(parent(wrapper), i32::try_from(std::process::id()).unwrap());
    kill(wrapper);
    let took = within_two_seconds(|| all.iter().all(|pid| !alive(*pid)));
    println!("after kill -9 of bubblewrap: {took:?}");
}

#[test]
fn killing_a_wrapped_launcher_ends_everything() {
    let mut guest = inside(&bubblewrap());
    let all = everybody(&mut guest);
    let wrapper = parent(parent(all[0]));
    kill(all[0]);
    within_two_seconds(|| all.iter().chain([&wrapper]).all(|pid| !alive(*pid)));
}

#[test]
fn dropping_a_wrapped_guest_ends_everything() {
    let mut guest = inside(&bubblewrap());
    let mut all = everybody(&mut guest);
    all.extend([parent(all[0]), parent(parent(all[0]))]);
    drop(guest);
    assert!(all.iter().all(|pid| !alive(*pid)), "without waiting");
}

/// The control is the same guest inside bubblewrap, above: what is missing is gVisor's.
#[test]
fn gvisor_cannot_come_to_full_and_the_run_is_refused() {
    assert!(fs::exists(RUNSC).unwrap(), "install runsc");
    let sandbox = Gvisor {
        program: RUNSC.to_owned(),
        directory: directory("gvisor").to_str().unwrap().to_owned(),
    };
    let began = Instant::now();
    let refused = launch_in(&Spec::default().plan(), &sandbox).unwrap_err();
    assert!(
        matches!(
            &refused,
            LaunchError::Wrapper {
                kind: OuterSandboxKind::Gvisor,
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(refused.body().code, ErrorCode::SandboxStartFailed);
    assert!(refused.body().hints[0].contains("Landlock"));
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_wrapper_that_starts_nothing_is_an_error() {
    let sandbox = Bubblewrap {
        program: "/bin/false".to_owned(),
    };
    let refused = launch_in(&Spec::default().plan(), &sandbox).unwrap_err();
    assert!(matches!(refused, LaunchError::Wrapper { .. }), "{refused}");
    let sandbox = Bubblewrap {
        program: "/nonexistent/bwrap".to_owned(),
    };
    let refused = launch_in(&Spec::default().plan(), &sandbox).unwrap_err();
    assert!(matches!(refused, LaunchError::Wrapper { .. }), "{refused}");
}
