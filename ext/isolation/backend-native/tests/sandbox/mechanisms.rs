//! Hosts that lack an isolation mechanism: the report of a self-test shows it, and a run is
//! refused.
//!
//! The program `tests/sandbox/withhold.c` makes one kernel mechanism unavailable to the launcher
//! alone, with namespaces or a seccomp filter of its own; the host is unchanged. The control of all
//! tests is the same launch with every mechanism available.

use crate::fixture::*;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use wp_codebox_backend_native::{
    Cgroup, ExecEnd, Guest, HostCommand, LaunchError, LaunchOptions, ProcessSandbox, SelfTest,
    SelfTestRequest, WrappedCommand, probe_plan, run_self_test, self_test,
};
use wp_codebox_contracts::{
    AxisReport, CodedError, Enforcement, ErrorCode, IsolationAxis, IsolationLevel, LaunchPurpose,
    MountAccess, MountView, OuterSandboxKind, SandboxAudit,
};

/// Wrapper that starts the launcher through the program `withhold`, which makes one kernel
/// mechanism unavailable to it.
#[derive(Debug)]
struct Without<'a>(&'a str);

impl ProcessSandbox for Without<'_> {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::None
    }

    fn wrap(&self, command: &HostCommand) -> WrappedCommand {
        WrappedCommand {
            program: withhold().to_owned(),
            args: vec![self.0.to_owned(), command.program.clone()],
            env: command.env.clone(),
            cwd: None,
            audit: SandboxAudit::default(),
        }
    }
}

/// The wrapper [`Without`], but with the kind bubblewrap: a cached self-test result depends on the
/// kind of wrapper.
#[derive(Debug)]
struct Relabelled<'a>(&'a Without<'a>);

impl ProcessSandbox for Relabelled<'_> {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::Bubblewrap
    }

    fn wrap(&self, command: &HostCommand) -> WrappedCommand {
        self.0.wrap(command)
    }
}

fn no_group() -> &'static Cgroup {
    static NONE: OnceLock<Cgroup> = OnceLock::new();
    NONE.get_or_init(|| Cgroup::none("this test creates no cgroup"))
}

fn withhold() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = fixture().root.join("withhold");
        let source = repository().join("tests/sandbox/withhold.c");
        let status = Command::new("cc")
            .arg("-o")
            .args([&program, &source])
            .status()
            .unwrap();
        assert!(status.success());
        program.to_str().unwrap().to_owned()
    })
}

fn request<'a>(sandbox: &'a dyn ProcessSandbox, state_dir: &'a Path) -> SelfTestRequest<'a> {
    SelfTestRequest {
        launcher: &fixture().launcher,
        sandbox,
        cgroup: no_group(),
        identity: shared_identity(),
        host: &fixture().host,
        state_dir,
    }
}

fn tested(without: &str) -> SelfTest {
    let state = directory("self-test");
    run_self_test(&request(&Without(without), &state))
}

/// Launches the guest of a run, not of a self-test, without the mechanism that `without` names.
fn served(without: &str) -> Result<Guest, LaunchError> {
    served_with(&Spec::default(), without)
}

fn served_with(spec: &Spec, without: &str) -> Result<Guest, LaunchError> {
    Guest::launch(
        &spec.plan(),
        &LaunchOptions {
            launcher: &fixture().launcher,
            sandbox: &Without(without),
            ready_timeout: Duration::from_secs(20),
            cgroup: no_group(),
            identity: shared_identity(),
            scratch: &wp_codebox_backend_native::ScratchStorage::of_kernel(std::env::temp_dir()),
            used: &std::sync::Arc::default(),
        },
    )
}

#[track_caller]
fn refused(without: &'static str) -> LaunchError {
    let error = served(without).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IsolationUnavailable, "{error}");
    assert_eq!(error.code().exit_status(), 125);
    error
}

#[track_caller]
fn row(test: &SelfTest, axis: IsolationAxis) -> &AxisReport {
    let axes = &test.trials[0].report.axes;
    assert_eq!(axes.len(), IsolationAxis::ALL.len());
    axes.iter().find(|row| row.axis == axis).unwrap()
}

/// Checks that the axes in `weaker` do not reach level `full`, that all other axes reach it, and
/// that the self-test as a whole does not reach it.
#[track_caller]
fn only(test: &SelfTest, weaker: &[IsolationAxis]) {
    for &axis in IsolationAxis::ALL {
        let row = row(test, axis);
        let fine = row.enforced >= IsolationLevel::Full.least(axis);
        assert_eq!(fine, !weaker.contains(&axis), "{row:?}");
    }
    assert_eq!(test.trials[0].report.level, IsolationLevel::None);
    assert!(test.level() < IsolationLevel::Full);
}

#[test]
fn self_test_on_an_unrestricted_host_reaches_level_full_and_each_resource_limit() {
    let test = tested("none");
    assert_eq!(test.level(), IsolationLevel::Full, "{test:#?}");
    assert_eq!(test.trials.len(), 1);
    // The self-test's plan includes every kind of mount of a run, overlays too.
    let files = row(&test, IsolationAxis::Files);
    assert!(files.evidence.contains("workspace"), "{files:?}");
    for (axis, seen) in [
        (IsolationAxis::Memory, "mapping was refused after "),
        (IsolationAxis::Pids, "fork was refused after "),
        (IsolationAxis::Disk, "writing was refused after "),
        (IsolationAxis::Files, "Landlock denies"),
    ] {
        assert!(
            row(&test, axis).evidence.contains(seen),
            "{:?}",
            row(&test, axis)
        );
    }
    served("none").unwrap();
}

#[test]
fn guest_with_launch_purpose_probe_executes_no_program_and_ends_when_it_is_dropped() {
    let end_of = |purpose, patience| {
        let mut plan = probe_plan(&fixture().host);
        plan.purpose = purpose;
        plan.limits.processes = 8;
        plan.limits.disk_bytes = 1024 * 1024;
        let mut guest = launch(&plan).unwrap();
        let call = wp_codebox_backend_native::ExecCall {
            request: &crate::fixture::request(&["/bin/true"]),
            stdin: &[],
            deadline: std::time::Instant::now() + patience,
            output_limit: 1024,
        };
        let pid = guest.pid();
        let ended = guest.exec(&call, &mut |_, _| {}).unwrap().end;
        drop(guest);
        in_time(|| !alive(pid));
        ended
    };
    assert_eq!(end_of(LaunchPurpose::Serve, GENEROUS), ExecEnd::Exited(0));
    let short = Duration::from_secs(1);
    assert_eq!(end_of(LaunchPurpose::Probe, short), ExecEnd::TimedOut);
}

#[test]
fn guest_cannot_be_started_without_user_namespaces() {
    for (without, errno) in [
        ("namespaces:user", libc::ENOSPC),
        ("deny:unshare", libc::EPERM),
    ] {
        let test = tested(without);
        only(&test, IsolationAxis::ALL);
        for &axis in IsolationAxis::ALL {
            assert_eq!(row(&test, axis).enforced, Enforcement::NotEnforced);
            assert!(row(&test, axis).evidence.contains("unshare"));
        }
        let data = test.trials[0].failure.clone().unwrap().data.unwrap();
        assert_eq!(
            (&data["step"], &data["errno"]),
            (&"unshare".into(), &errno.into())
        );
        let body = refused(without).body();
        assert!(!body.hints.is_empty(), "{body:?}");
    }
}

#[test]
fn missing_namespace_kind_lowers_the_isolation_axis_it_protects() {
    for (kind, axis, enforced) in [
        (
            "namespaces:net",
            IsolationAxis::Network,
            Enforcement::NotEnforced,
        ),
        (
            "namespaces:ipc",
            IsolationAxis::Processes,
            Enforcement::BestEffort,
        ),
        (
            "namespaces:uts",
            IsolationAxis::Processes,
            Enforcement::BestEffort,
        ),
        (
            "namespaces:cgroup",
            IsolationAxis::Processes,
            Enforcement::BestEffort,
        ),
    ] {
        let test = tested(kind);
        only(&test, &[axis]);
        let row = row(&test, axis);
        assert_eq!(row.enforced, enforced, "{row:?}");
        assert!(row.evidence.contains("No space left on device"), "{row:?}");
        refused(kind);
    }
}

#[test]
fn axis_files_is_best_effort_and_shows_the_errno_if_landlock_is_missing() {
    for (without, text) in [
        ("deny:landlock", "Operation not permitted"),
        ("off:landlock", "Operation not supported"),
        ("absent:landlock", "Function not implemented"),
    ] {
        let test = tested(without);
        only(&test, &[IsolationAxis::Files]);
        let row = row(&test, IsolationAxis::Files);
        assert_eq!(row.enforced, Enforcement::BestEffort);
        assert!(row.evidence.contains(text), "{row:?}");
        assert!(!row.by.contains("Landlock"), "{row:?}");
        assert_eq!(test.trials[0].report.landlock_abi, 0);
        let error = refused(without);
        assert!(error.to_string().contains("landlock"), "{error}");
    }
}

#[test]
fn only_the_isolation_axes_syscalls_and_network_are_weaker_if_seccomp_is_missing() {
    let test = tested("deny:seccomp");
    only(&test, &[IsolationAxis::Syscalls, IsolationAxis::Network]);
    let row = row(&test, IsolationAxis::Syscalls);
    assert_eq!(row.enforced, Enforcement::NotEnforced);
    // The probe tried the system call that the filter would have refused, and it succeeded.
    assert!(
        row.evidence.contains("new namespace gave errno 0"),
        "{row:?}"
    );
    let error = refused("deny:seccomp");
    assert!(error.to_string().contains("seccomp"), "{error}");
}

#[test]
fn guest_cannot_be_started_when_parts_of_proc_are_covered() {
    let test = tested("proc");
    only(&test, IsolationAxis::ALL);
    let data = test.trials[0].failure.clone().unwrap().data.unwrap();
    assert_eq!(data["step"], "proc");
    let body = refused("proc").body();
    assert!(body.hints[0].contains("systempaths=unconfined"), "{body:?}");
}

/// Returns the evidence for the axis `files` in the report of a guest at level `full`.
fn files_of(guest: &Guest) -> String {
    let report = guest.report();
    assert_eq!(report.level, IsolationLevel::Full);
    let files = report
        .axes
        .iter()
        .find(|row| row.axis == IsolationAxis::Files);
    files.unwrap().evidence.clone()
}

#[test]
fn system_directory_unusable_as_overlay_lowerdir_is_bind_mounted_and_reported() {
    for without in ["none", "overlay:/usr"] {
        let mut guest = served(without).unwrap();
        let evidence = files_of(&guest);
        assert!(
            evidence.contains("no inode of the host except devices"),
            "control: {without}: {evidence}"
        );
        sh(&mut guest, "php -r 'exit(0);'").ok();
    }
    for without in ["overlays:/usr", "submount:/usr/local"] {
        let mut guest = served(without).unwrap();
        let evidence = files_of(&guest);
        assert!(
            evidence.contains("bind-mounted at /usr,"),
            "{without}: {evidence}"
        );
        sh(&mut guest, "php -r 'exit(0);'").ok();
        assert_ne!(sh(&mut guest, "echo x > /usr/lib/new").code(), 0);
    }
}

#[test]
fn mount_source_unusable_as_overlay_lowerdir_is_refused() {
    let source = directory("stacked");
    std::fs::write(source.join("f"), "seen").unwrap();
    let mut readonly = mount(0, &source, "/workspace/ro");
    readonly.access = MountAccess::Readonly;
    readonly.view = MountView::Bind;
    let spec = Spec {
        mounts: vec![readonly],
        ..Spec::default()
    };
    let path = source.to_str().unwrap();
    let mut guest = served_with(&spec, &format!("overlay:{path}")).unwrap();
    assert_eq!(
        sh(&mut guest, "cat /workspace/ro/f").ok(),
        "seen",
        "control"
    );
    let error = served_with(&spec, &format!("overlays:{path}"))
        .map(drop)
        .unwrap_err();
    let body = error.body();
    let data = body.data.unwrap();
    assert_eq!(
        (&data["step"], &data["errno"]),
        (&"overlay".into(), &libc::EINVAL.into())
    );
    assert!(
        body.hints.iter().any(|hint| hint.contains("overlays")),
        "{:?}",
        body.hints
    );
}

#[test]
fn read_only_cgroups_make_isolation_axis_memory_best_effort_at_level_full() {
    let test = tested("cgroup");
    assert_eq!(test.level(), IsolationLevel::Full);
    let memory = row(&test, IsolationAxis::Memory);
    assert_eq!(memory.enforced, Enforcement::BestEffort, "{memory:?}");
    assert_eq!(memory.requested, Enforcement::Enforced);
    let guest = served("cgroup").unwrap();
    let memory = guest
        .report()
        .axes
        .iter()
        .find(|row| row.axis == IsolationAxis::Memory);
    assert_eq!(memory.unwrap().enforced, Enforcement::BestEffort);
}

#[test]
fn container_seccomp_profile_denies_no_call_that_level_full_needs() {
    let profile = std::fs::read(repository().join("packaging/container/seccomp.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&profile).unwrap();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ALLOW");
    let denied = profile["syscalls"][0]["names"].as_array().unwrap();
    assert!(
        denied.contains(&"bpf".into()),
        "the profile denies something"
    );
    // A container engine's own profile denies these calls.
    for name in [
        "fsconfig",
        "fsmount",
        "fsopen",
        "mount",
        "mount_setattr",
        "move_mount",
        "open_tree",
        "pivot_root",
        "sethostname",
        "umount2",
        "unshare",
    ] {
        assert!(!denied.contains(&name.into()), "the profile denies {name}");
        let test = tested(&format!("deny:{name}"));
        assert!(test.level() < IsolationLevel::Full, "not needed: {name}");
    }
}

#[test]
fn self_test_result_is_reused_only_if_level_full_and_host_facts_are_unchanged() {
    let state = directory("kept");
    let file = state.join("self-test.json");
    let written = || std::fs::read(&file).unwrap();
    let (whole, lacking) = (Without("none"), Without("off:landlock"));

    let first = self_test(&request(&whole, &state));
    assert_eq!(first.level(), IsolationLevel::Full);
    // An equal request is answered from the cache. If the launcher were started, it would not reach
    // level `full`, because it has no Landlock here.
    assert_eq!(self_test(&request(&lacking, &state)), first);
    // A result that was cached for a different kind of process wrapper is not used.
    let relabelled = Relabelled(&lacking);
    let other = request(&relabelled, &state);
    assert!(self_test(&other).level() < IsolationLevel::Full);
    // A cached result below `full` is not used.
    let again = SelfTestRequest {
        sandbox: &whole,
        ..other
    };
    assert_eq!(self_test(&again).level(), IsolationLevel::Full);
    // A result of another boot, kernel or launcher, or a truncated file, is not used either.
    for (key, value) in [
        ("bootId", "\"other\""),
        ("kernel", "\"1.0\""),
        ("seccomp", "\"9\""),
    ] {
        let mut kept: serde_json::Value = serde_json::from_slice(&written()).unwrap();
        kept["facts"][key] = serde_json::from_str(value).unwrap();
        std::fs::write(&file, kept.to_string()).unwrap();
        let seen = SelfTestRequest {
            sandbox: &lacking,
            ..again
        };
        assert!(self_test(&seen).level() < IsolationLevel::Full, "{key}");
        assert_eq!(self_test(&again).level(), IsolationLevel::Full);
    }
    let mut kept: serde_json::Value = serde_json::from_slice(&written()).unwrap();
    kept["launcher"]["changed"] = 1.into();
    std::fs::write(&file, kept.to_string()).unwrap();
    let seen = SelfTestRequest {
        sandbox: &lacking,
        ..again
    };
    assert!(self_test(&seen).level() < IsolationLevel::Full);
    std::fs::write(&file, "{").unwrap();
    assert_eq!(self_test(&again).level(), IsolationLevel::Full);
}
