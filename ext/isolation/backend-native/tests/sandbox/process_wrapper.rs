//! Process wrappers (sandboxes around the launcher): a guest inside one has the same isolation as a
//! guest without one, and ends with the wrapper.
//!
//! With `CODEBOX_OUTER_SANDBOX=bubblewrap` every other test of this program also runs inside
//! bubblewrap.

use crate::fixture::*;
use crate::lifetime::{all_processes, kill, parent};
use std::fs;
use std::process::Command;
use wp_codebox_backend_native::{
    Bubblewrap, Guest, Gvisor, LaunchError, LauncherCommand, NoSandbox, ProcessSandbox,
};
use wp_codebox_contracts::{CodedError, ErrorCode, IsolationLevel, OuterSandboxKind};

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
fn guest_in_bubblewrap_gives_the_same_isolation_report_as_without_it() {
    let (bare, wrapped) = (inside(&NoSandbox), inside(&bubblewrap()));
    assert_eq!(wrapped.report().level, IsolationLevel::Full);
    assert_eq!(wrapped.report(), bare.report());
    assert_eq!(bare.audit().kind, "none");
    assert_eq!(wrapped.audit().kind, "bubblewrap");
    let record = serde_json::to_string(wrapped.audit()).unwrap();
    let root = fixture().root.to_str().unwrap();
    assert!(!record.contains(root), "{record}");
    assert!(record.contains("/wordpress"), "{record}");
}

/// `ls` takes the place of the launcher and lists the paths that are visible inside the wrapper.
#[test]
fn launcher_in_bubblewrap_sees_only_host_paths_of_the_launch_plan() {
    let source = directory("wrapped");
    fs::write(source.join("a"), "1").unwrap();
    let spec = Spec {
        mounts: vec![mount(0, &source, "/workspace/a")],
        ..Spec::default()
    };
    let plan = spec.plan();
    let command = LauncherCommand {
        program: fixture().launcher.to_str().unwrap().to_owned(),
        args: Vec::new(),
        plan: &plan,
    };
    let wrapped = bubblewrap().wrap(&command.host_command());
    let sees = |path: &str| {
        let arguments = &wrapped.args[..wrapped.args.len() - 1];
        let listed = Command::new(&wrapped.program)
            .args(arguments)
            .args(["/usr/bin/ls", "-d", path])
            .output()
            .unwrap();
        listed.status.success()
    };
    for path in ["/usr/bin", "/proc/self", source.join("a").to_str().unwrap()] {
        assert!(sees(path), "control: {path}");
    }
    let state = fixture().state.join("templates/.lock");
    let me = format!("/proc/{}/stat", std::process::id());
    for path in [
        state.to_str().unwrap(),
        "/etc/passwd",
        "/var/log",
        "/root",
        &me,
    ] {
        assert!(fs::exists(path).unwrap(), "control: {path}");
        assert!(!sees(path), "{path}");
    }
    let mut guest = launch_in(&plan, &bubblewrap()).unwrap();
    let script = "cat /workspace/a/a; echo 2 >/workspace/a/a; cat /workspace/a/a";
    assert_eq!(sh(&mut guest, script).ok(), "12\n");
    drop(guest);
    assert_eq!(fs::read_to_string(source.join("a")).unwrap(), "1");
}

#[test]
fn killing_the_wrapper_ends_every_guest_process() {
    let mut guest = inside(&bubblewrap());
    let all = all_processes(&mut guest);
    let wrapper = parent(all[0]);
    assert_eq!(parent(wrapper), i32::try_from(std::process::id()).unwrap());
    kill(wrapper);
    let took = in_time(|| all.iter().all(|pid| !alive(*pid)));
    println!("after kill -9 of bubblewrap: {took:?}");
}

#[test]
fn killing_a_wrapped_launcher_ends_every_guest_process() {
    let mut guest = inside(&bubblewrap());
    let all = all_processes(&mut guest);
    let wrapper = parent(all[0]);
    kill(all[0]);
    in_time(|| all.iter().chain([&wrapper]).all(|pid| !alive(*pid)));
}

#[test]
fn dropping_a_wrapped_guest_ends_every_guest_process() {
    let mut guest = inside(&bubblewrap());
    let mut all = all_processes(&mut guest);
    all.push(parent(all[0]));
    drop(guest);
    assert!(all.iter().all(|pid| !alive(*pid)), "without waiting");
}

/// The tests above are the control: the same guest starts inside bubblewrap, so the failure here is
/// due to gVisor.
#[test]
fn run_in_gvisor_is_refused_with_a_hint_about_landlock() {
    assert!(fs::exists(RUNSC).unwrap(), "install runsc");
    let sandbox = Gvisor {
        program: RUNSC.to_owned(),
        directory: directory("gvisor").to_str().unwrap().to_owned(),
    };
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
}

#[test]
fn launch_fails_if_the_wrapper_exits_without_starting_the_launcher() {
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
