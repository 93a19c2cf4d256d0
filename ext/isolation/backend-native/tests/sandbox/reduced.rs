//! Guests at level `reduced`: the same launcher without namespaces, with a directory tree on the
//! host's disk.
//!
//! The guest shares paths, user and pids with the host. So each attempt targets an object of the
//! same user, and the same attempt succeeds outside the guest.

use crate::fixture::*;
use crate::lifetime::{all_gone, descendants, kill, parent};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use wp_codebox_artifacts::{CaptureLimits, Dir, ExcludeRules, capture_difference};
use wp_codebox_backend_native::{
    ConnectError, ExecEnd, Guest, GuestTree, LaunchError, NativeBackend, NativeSpec, NoSandbox,
    Template, TemplateRequest, ensure_template,
};
use wp_codebox_contracts::{
    CodedError, Enforcement, ErrorCode, ExecTerminal, ExecutionId, GuestPath, GuestProcess,
    HostSource, InodeId, IsolationAxis, IsolationLevel, LaunchMount, LaunchPlan, Limits, MountView,
    StagedFile,
};
use wp_codebox_runtime::{Backend as _, Cancellation, CapturedMounts, Execution, ExecutionEnd};

const PROBE: &str = "/run/codebox/staged/probe";

/// Launches a guest without a process wrapper: wrappers need namespaces, and level `reduced` is for
/// hosts that forbid them.
fn bare(plan: &LaunchPlan) -> Result<Guest, LaunchError> {
    launch_in(plan, &NoSandbox)
}

/// A guest at level `reduced` and its directory tree on the host.
struct ReducedGuest {
    guest: Guest,
    tree: GuestTree,
    consoles: Vec<super::concurrent_programs::TerminalProgram>,
}

impl ReducedGuest {
    fn new(spec: &Spec) -> Self {
        // The pid is in the name, because two processes may share a test environment.
        let place = directory(&format!("tree-{}", std::process::id()));
        let tree = GuestTree::lay_out(&spec.plan(), &place.join("guest")).unwrap();
        let guest = bare(tree.plan()).unwrap();
        Self {
            guest,
            tree,
            consoles: Vec::new(),
        }
    }

    fn run(&mut self, argv: &[&str]) -> ProgramOutput {
        self.run_in("/tmp", argv)
    }

    fn run_in(&mut self, cwd: &str, argv: &[&str]) -> ProgramOutput {
        let mut request = request(argv);
        request.cwd = GuestPath::new(cwd).unwrap();
        let request = self.tree.root().request(&request, &fixture().php).unwrap();
        run_request(&mut self.guest, &request, &[])
    }

    fn sh(&mut self, script: &str) -> ProgramOutput {
        self.run(&["/bin/sh", "-c", script])
    }

    /// Starts a shell script in the guest, in a terminal of its own.
    fn launch_in_terminal(&mut self, script: &str) -> ExecutionId {
        let (master, slave) = super::concurrent_programs::terminal();
        let mut request = request(&["/bin/bash", "-c", script]);
        request.terminal = ExecTerminal::Controlling;
        let request = self.tree.root().request(&request, &fixture().php).unwrap();
        let copy = || slave.try_clone().unwrap();
        let stdio = [copy(), copy(), copy()];
        self.guest.launch_program(&request, stdio).unwrap();
        let mut console =
            super::concurrent_programs::TerminalProgram::at(request.id.clone(), master);
        console.until("up");
        self.consoles.push(console);
        request.id
    }

    /// Returns the host path that stands for a guest path.
    fn host(&self, path: &str) -> PathBuf {
        self.tree.root().path(path).into()
    }
}

fn sandbox() -> ReducedGuest {
    ReducedGuest::new(&Spec::default())
}

fn compiled() -> PathBuf {
    let program = directory("probe").join("probe");
    let source = repository().join("tests/sandbox/probe_reduced.c");
    let status = Command::new("cc")
        .arg("-O1")
        .arg("-o")
        .args([&program, &source])
        .status();
    assert!(status.unwrap().success());
    program
}

/// What the guest tries to reach outside its tree: files, sockets and a process of the same user.
struct Victim {
    place: PathBuf,
    _stream: UnixListener,
    _datagram: UnixDatagram,
    process: Child,
}

impl Victim {
    fn new() -> Self {
        let place = directory("victim");
        fs::write(place.join("file"), "host").unwrap();
        fs::write(place.join("program"), "#!/bin/sh\nexit 0\n").unwrap();
        fs::set_permissions(place.join("program"), fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            _stream: UnixListener::bind(place.join("stream")).unwrap(),
            _datagram: UnixDatagram::bind(place.join("datagram")).unwrap(),
            process: Command::new("sleep").arg("300").spawn().unwrap(),
            place,
        }
    }

    fn arguments(&self) -> [String; 4] {
        let text = |name: &str| self.place.join(name).to_str().unwrap().to_owned();
        let place = self.place.to_str().unwrap().to_owned();
        [
            place,
            text("stream"),
            text("datagram"),
            self.process.id().to_string(),
        ]
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn answers(text: &str) -> BTreeMap<String, i32> {
    text.lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, errno)| (name.to_owned(), errno.parse().unwrap()))
        .collect()
}

#[test]
fn guest_at_level_reduced_cannot_reach_files_or_processes_of_its_own_user() {
    let (victim, program) = (Victim::new(), compiled());
    let arguments = victim.arguments();
    let outside = Command::new(&program)
        .args(&arguments)
        .current_dir(directory("control"))
        .output()
        .unwrap();
    let outside = answers(&String::from_utf8(outside.stdout).unwrap());
    for (name, errno) in &outside {
        assert_eq!(*errno, 0, "control: {name} works outside");
    }
    let before = fs::metadata(victim.place.join("file")).unwrap();
    let staged = vec![StagedFile {
        source: program.to_str().unwrap().to_owned(),
        target: PROBE.to_owned(),
    }];
    let mut sandbox = ReducedGuest::new(&Spec {
        staged,
        ..Spec::default()
    });
    let argv: Vec<&str> = [PROBE]
        .into_iter()
        .chain(arguments.iter().map(String::as_str))
        .collect();
    // The victim's directory is not one of the guest's own, so its paths are the same in the guest.
    let mut request = request(&argv);
    request.argv[0] = sandbox.tree.root().path(PROBE);
    request.cwd = GuestPath::new(sandbox.host("/tmp").to_str().unwrap()).unwrap();
    let inside = answers(&run_request(&mut sandbox.guest, &request, &[]).ok());
    assert_eq!(inside.len(), outside.len());
    for (name, errno) in &inside {
        let expected: &[i32] = match name.as_str() {
            own if own.starts_with("own_") => &[0],
            // Landlock answers EXDEV where a rename or link would change the access rights of the
            // file.
            "take_name" | "move_out" => &[libc::EXDEV, libc::EACCES],
            "read_file" | "write_file" | "list" | "create" | "make_directory" | "make_link"
            | "make_fifo" | "truncated" | "execute" | "look_into_it" | "look_at_it" => {
                &[libc::EACCES]
            }
            "change_attribute" => &[libc::EOPNOTSUPP],
            _ => &[libc::EPERM],
        };
        assert!(expected.contains(errno), "{name} gave {errno}");
    }
    let after = fs::metadata(victim.place.join("file")).unwrap();
    assert_eq!(fs::read(victim.place.join("file")).unwrap(), b"host");
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
}

#[test]
fn report_at_level_reduced_marks_four_axes_enforced_and_five_others_best_effort() {
    let sandbox = sandbox();
    let report = sandbox.guest.report();
    assert_eq!(report.level, IsolationLevel::Reduced);
    assert!(report.landlock_abi >= 6);
    let axis = |wanted: IsolationAxis| {
        report
            .axes
            .iter()
            .find(|axis| axis.axis == wanted)
            .unwrap()
            .enforced
    };
    for firm in [
        IsolationAxis::Files,
        IsolationAxis::Network,
        IsolationAxis::Syscalls,
        IsolationAxis::Privileges,
    ] {
        assert_eq!(axis(firm), Enforcement::Enforced, "{firm:?}");
    }
    for soft in [
        IsolationAxis::Processes,
        IsolationAxis::Memory,
        IsolationAxis::Cpu,
        IsolationAxis::Pids,
        IsolationAxis::Disk,
    ] {
        assert_eq!(axis(soft), Enforcement::BestEffort, "{soft:?}");
    }
    let syscalls = report
        .axes
        .iter()
        .find(|axis| axis.axis == IsolationAxis::Syscalls)
        .unwrap();
    let synced = "fsync succeeds and does nothing";
    assert!(syscalls.evidence.contains(synced), "{syscalls:?}");
    // Control: the report of the same plan at level `full` also has one row per axis, and states
    // the level `full`.
    let full = guest();
    assert_eq!(full.report().level, IsolationLevel::Full);
    assert_eq!(full.report().axes.len(), report.axes.len());
}

#[test]
fn guest_at_level_reduced_reads_system_directories_but_no_other_host_files() {
    let mut sandbox = sandbox();
    let state = fixture().state.to_str().unwrap().to_owned();
    for (path, control) in [
        ("/etc/passwd", Path::new("/etc/passwd").exists()),
        ("/proc/self/status", true),
        ("/proc/version", true),
        ("/var", true),
        ("/", true),
        ("/tmp", true),
        (state.as_str(), fs::read_dir(&state).is_ok()),
        (&fixture().share, fs::read_dir(&fixture().share).is_ok()),
    ] {
        assert!(control, "control: {path} is there");
        assert_ne!(
            sandbox.sh(&format!("exec 3< {path} && ls {path}")).code(),
            0,
            "{path}"
        );
    }
    assert_ne!(sandbox.sh("echo x > /tmp/wp-codebox-must-not-be").code(), 0);
    // Control: its own tree can be listed.
    sandbox.sh("ls ..").ok();
    let core = sandbox.sh("ls \"$CODEBOX_ROOT/wordpress\"").ok();
    assert!(core.contains("wp-load.php"), "{core}");
    assert_ne!(
        sandbox
            .sh("echo x >> \"$CODEBOX_ROOT/wordpress/wp-load.php\"")
            .code(),
        0
    );
    sandbox
        .sh("echo x > \"$HOME/x\" && echo x > \"$TMPDIR/x\" && test -r /usr/bin/env")
        .ok();
}

fn plugin() -> PathBuf {
    let source = directory("plugin");
    fs::create_dir(source.join("lib")).unwrap();
    fs::write(
        source.join("sample.php"),
        "<?php\n/* Plugin Name: Sample */\nfunction sample_is() { return 'here'; }\n",
    )
    .unwrap();
    fs::write(source.join("lib/a.txt"), "one\n").unwrap();
    source
}

/// Returns a mount as a run at level `reduced` plans it: the guest gets a copy of the source, and
/// the source's inode is recorded.
fn copied(index: u32, source: &Path, target: &str) -> wp_codebox_backend_native::PlannedMount {
    let meta = rustix::fs::stat(source).unwrap();
    let mut mount = mount(index, source, target);
    mount.view = MountView::Copy;
    mount.lowers = vec![HostSource {
        path: source.to_str().unwrap().to_owned(),
        inode: Some(InodeId {
            device: meta.st_dev,
            inode: meta.st_ino,
        }),
    }];
    mount
}

#[test]
fn guest_at_level_reduced_runs_wordpress_and_its_changes_are_captured() {
    let source = plugin();
    let mut sandbox = ReducedGuest::new(&Spec {
        mounts: vec![copied(0, &source, "/wordpress/wp-content/plugins/sample")],
        ..Spec::default()
    });
    sandbox.run(&["wp", "plugin", "activate", "sample"]).ok();
    let listed = sandbox
        .run(&["wp", "plugin", "list", "--field=name", "--status=active"])
        .ok();
    assert!(listed.lines().any(|line| line == "sample"), "{listed}");
    let own = sandbox.run(&["wp", "eval", "echo WP_CLI_ROOT;"]).ok();
    assert!(own.starts_with("phar://"), "{own}");
    let code = sandbox.host("/tmp/code.php");
    fs::write(
        &code,
        "<?php echo sample_is(), ' ', ABSPATH, ' ', ini_get('sys_temp_dir');",
    )
    .unwrap();
    let result = sandbox
        .run(&["php", "/opt/codebox/guest/run-php.php", "/tmp/code.php"])
        .ok();
    let root = sandbox.tree.root().as_str().to_owned();
    assert_eq!(result, format!("here {root}/wordpress/ {root}/tmp"));
    sandbox.run_in(
        "/workspace/sample",
        &[
            "/bin/sh",
            "-c",
            "echo two >> lib/a.txt; rm sample.php; mkdir new; echo n > new/n; ln -s a.txt lib/l",
        ],
    )
    .ok();
    sandbox
        .guest
        .kill(wp_codebox_backend_native::KillCause::Finished);
    let layers = sandbox.tree.into_layers();
    let changes = capture_difference(
        Dir::open(&source).unwrap().as_fd(),
        layers[&0].as_fd(),
        &ExcludeRules::default(),
        &CaptureLimits::default(),
    )
    .unwrap();
    let paths: Vec<_> = changes
        .entries
        .iter()
        .map(|entry| String::from_utf8_lossy(&entry.path).into_owned())
        .collect();
    assert_eq!(paths, ["lib/a.txt", "lib/l", "new/n", "sample.php"]);
    assert_eq!(fs::read(source.join("lib/a.txt")).unwrap(), b"one\n");
}

#[test]
fn mount_directory_moved_by_the_guest_is_not_captured() {
    let source = plugin();
    let inside = "/wordpress/wp-content/uploads/deep";
    let mounts = || {
        vec![
            copied(0, &source, inside),
            copied(1, &source, "/workspace/kept"),
        ]
    };
    let mut sandbox = ReducedGuest::new(&Spec {
        mounts: mounts(),
        ..Spec::default()
    });
    sandbox.sh("cd \"$CODEBOX_ROOT/wordpress/wp-content/uploads\" && mv deep gone && mkdir deep && echo forged > deep/x").ok();
    // Control: a directory cannot be moved when its parent is not writable.
    assert_ne!(
        sandbox
            .sh("mv \"$CODEBOX_ROOT/workspace/kept\" \"$CODEBOX_ROOT/workspace/x\"")
            .code(),
        0
    );
    sandbox
        .guest
        .kill(wp_codebox_backend_native::KillCause::Finished);
    let layers = sandbox.tree.into_layers();
    assert!(!layers.contains_key(&0) && layers.contains_key(&1));
}

#[test]
fn mount_source_replaced_after_planning_fails_the_copy_at_level_reduced() {
    let source = plugin();
    let mount = copied(0, &source, "/workspace/a");
    let plan = Spec {
        mounts: vec![mount],
        ..Spec::default()
    }
    .plan();
    fs::rename(&source, source.with_extension("old")).unwrap();
    fs::create_dir(&source).unwrap();
    let error = GuestTree::lay_out(&plan, &directory("tree").join("guest")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::SandboxStartFailed);
    assert!(error.to_string().contains("/workspace/a"), "{error}");
    fs::remove_dir(&source).unwrap();
    fs::rename(source.with_extension("old"), &source).unwrap();
    GuestTree::lay_out(&plan, &directory("tree").join("guest")).unwrap();
}

#[test]
fn plan_at_level_reduced_may_bind_only_system_directories_of_another_user_and_only_read_only() {
    let own = directory("own");
    let tree =
        GuestTree::lay_out(&Spec::default().plan(), &directory("tree").join("guest")).unwrap();
    let with = |path: &str, writable: bool| {
        let mut plan = tree.plan().clone();
        plan.mounts.push(LaunchMount::Bind {
            source: wp_codebox_contracts::BindSource::Host(HostSource::of(path)),
            target: GuestPath::new(path).unwrap(),
            writable,
        });
        plan
    };
    drop(bare(&with("/usr/share", false)).unwrap());
    for (path, writable, step) in [
        (own.to_str().unwrap(), false, "landlock"),
        ("/var", false, "plan"),
        ("/usr/share", true, "plan"),
    ] {
        match bare(&with(path, writable)) {
            Err(LaunchError::Step { step: seen, .. }) => assert_eq!(seen, step, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
}

/// Starts programs, some in sessions of their own; returns the pids of the launcher, the first
/// process and all programs.
fn all_processes(sandbox: &mut ReducedGuest) -> Vec<i32> {
    sandbox.sh("for i in 1 2 3; do (setsid sleep 77 >/dev/null 2>&1 &) ; done; trap '' TERM HUP; sleep 78 >/dev/null 2>&1 & true").ok();
    let all = descendants(parent(sandbox.guest.pid()));
    assert!(all.len() >= 6, "{all:?}");
    assert!(all.iter().all(|pid| alive(*pid)), "control: they live");
    all
}

/// Returns a status line for each process that still exists; empty when there is none.
fn survivors(pids: &[i32]) -> Vec<String> {
    let stat = |pid: &&i32| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    pids.iter()
        .filter(|pid| alive(**pid))
        .map(|pid| stat(&pid))
        .collect()
}

#[test]
fn dropping_a_guest_at_level_reduced_ends_all_its_processes() {
    let mut sandbox = sandbox();
    let all = all_processes(&mut sandbox);
    drop(sandbox);
    assert_eq!(survivors(&all), [""; 0]);
}

#[test]
fn killing_a_guest_at_level_reduced_ends_all_its_processes_and_no_others() {
    let victim = Victim::new();
    let mut sandbox = sandbox();
    let all = all_processes(&mut sandbox);
    sandbox
        .guest
        .kill(wp_codebox_backend_native::KillCause::Finished);
    assert!(
        all_gone(&all),
        "without waiting: kill returns when they are gone"
    );
    let other = i32::try_from(victim.process.id()).unwrap();
    assert!(alive(other), "a process of the same user lives on");
}

#[test]
fn killing_the_launcher_or_the_first_process_ends_a_guest_at_level_reduced() {
    for (which, process) in [(0, GuestProcess::Launcher), (1, GuestProcess::First)] {
        let mut sandbox = sandbox();
        let all = all_processes(&mut sandbox);
        kill(all[which]);
        let took = in_time(|| all_gone(&all[1..]));
        println!("after kill -9 of {which}: {took:?}");
        let death = sandbox.guest.cause_of_death();
        assert_eq!(death.process, process, "{death}");
    }
}

#[test]
fn kill_minus_one_in_a_guest_at_level_reduced_ends_that_guest_and_no_other_process() {
    let victim = Victim::new();
    let mut sandbox = sandbox();
    let all = all_processes(&mut sandbox);
    let script = "kill -9 -1; sleep 50; true";
    let mut request = request(&["/bin/sh", "-c", script]);
    request.cwd = GuestPath::new(sandbox.host("/tmp").to_str().unwrap()).unwrap();
    let result = run_request(&mut sandbox.guest, &request, &[]);
    assert_eq!(result.execution.end, ExecEnd::GuestDied);
    in_time(|| all_gone(&all));
    assert!(alive(i32::try_from(victim.process.id()).unwrap()));
    assert!(alive(i32::try_from(std::process::id()).unwrap()));
}

/// Acts as the supervisor that `killing_the_runner_ends_a_guest_at_level_reduced` kills.
#[test]
#[ignore = "a process that another test starts and kills"]
fn child_process_that_acts_as_the_killed_runner_at_isolation_level_reduced() {
    let mut sandbox = sandbox();
    let pids: Vec<_> = all_processes(&mut sandbox)
        .iter()
        .map(ToString::to_string)
        .collect();
    println!("pids {}", pids.join(" "));
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn killing_the_runner_ends_a_guest_at_level_reduced() {
    use std::io::BufRead;
    template();
    let mut runner = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "reduced::child_process_that_acts_as_the_killed_runner_at_isolation_level_reduced",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(REUSE, &fixture().root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pids = std::io::BufReader::new(runner.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .find_map(|line| line.split("pids ").nth(1).map(str::to_owned))
        .unwrap();
    let pids: Vec<i32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| alive(*pid)));
    runner.kill().unwrap();
    runner.wait().unwrap();
    let took = in_time(|| all_gone(&pids));
    println!("after kill -9 of the runner: {took:?}");
}

#[test]
fn fork_bomb_at_isolation_level_reduced_is_limited_and_ends_with_the_guest() {
    let limits = Limits {
        processes: 40,
        ..Limits::default()
    };
    let mut sandbox = ReducedGuest::new(&Spec {
        limits,
        ..Spec::default()
    });
    // The shell itself may fail to fork and then exits with 2; the exit status does not matter.
    sandbox.sh("b() { b >/dev/null 2>&1 & b >/dev/null 2>&1 & }; b 2>/dev/null; true");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let launcher = parent(sandbox.guest.pid());
    let most = descendants(launcher).len();
    println!("fork bomb: {most} processes");
    // The kernel's process limit also counts this user's processes outside the guest, so the bound
    // checked here is far above the guest's limit.
    assert!(most < 400, "{most}");
    let all = descendants(launcher);
    sandbox
        .guest
        .kill(wp_codebox_backend_native::KillCause::Finished);
    assert!(all_gone(&all));
}

fn backend(template: &Template) -> NativeBackend {
    let fixture = fixture();
    NativeBackend {
        identity: crate::fixture::shared_identity().clone(),
        scratch: wp_codebox_backend_native::ScratchStorage::Memory,
        launcher: fixture.launcher.clone(),
        host: fixture.host.clone(),
        php: fixture.php.clone(),
        sandbox: std::sync::Arc::new(NoSandbox),
        template: template.clone(),
        share_dir: fixture.share.clone(),
        cancellation: std::sync::Arc::new(Cancellation::default()),
        cgroup: std::sync::Arc::new(wp_codebox_backend_native::Cgroup::none(
            "this test creates no cgroup",
        )),
        used: std::sync::Arc::default(),
    }
}

fn native(limits: Limits) -> NativeSpec {
    NativeSpec {
        mounts: vec![copied(0, &plugin(), "/workspace/sample")],
        content: Vec::new(),
        components: wp_codebox_backend_native::PlannedComponents::default(),
        programs: Vec::new(),
        task_json: "{}".to_owned(),
        staged: Vec::new(),
        egress: wp_codebox_backend_native::GuestEgress::Denied,
        limits,
        level: IsolationLevel::Reduced,
        tree: directory("native").join("guest"),
    }
}

fn execution(script: &str) -> Execution {
    Execution {
        id: ExecutionId::new("e1").unwrap(),
        argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        env: BTreeMap::new(),
        cwd: GuestPath::new("/workspace/sample").unwrap(),
        stdin: None,
        output_bytes: 1 << 20,
        stop_at: std::time::Instant::now() + std::time::Duration::from_secs(60),
        deadline: std::time::Instant::now() + std::time::Duration::from_secs(60),
    }
}

#[test]
fn template_for_level_reduced_has_its_own_key_and_runs_wp_cli() {
    let template = ensure_template(&TemplateRequest {
        level: IsolationLevel::Reduced,
        sandbox: &NoSandbox,
        ..template_request()
    })
    .unwrap();
    assert_ne!(template.key, crate::fixture::template().key);
    let mut runtime = backend(&template)
        .create(&native(Limits::default()))
        .unwrap();
    let mut output = Vec::new();
    let result = runtime
        .execute(
            &execution("wp option get blogname; echo new > new.txt"),
            &mut |_, bytes| {
                output.extend_from_slice(bytes);
            },
        )
        .unwrap();
    assert_eq!(
        result.end,
        ExecutionEnd::Exited { code: 0 },
        "{}",
        String::from_utf8_lossy(&output)
    );
    assert_eq!(output, b"Codebox\n");
    let CapturedMounts::Trees(trees) = runtime.destroy().left else {
        panic!("a tree was expected");
    };
    assert!(trees.contains_key(&0));
}

#[test]
fn guest_at_level_reduced_above_disk_bytes_ends_with_the_error_disk_limit() {
    let limits = Limits {
        disk_bytes: 32 * 1024 * 1024,
        ..Limits::default()
    };
    let mut runtime = backend(template()).create(&native(limits)).unwrap();
    let within = "for i in 1 2 3 4; do head -c 4000000 /dev/zero > $i.bin; done; sleep 1; rm *.bin";
    let result = runtime.execute(&execution(within), &mut |_, _| {}).unwrap();
    assert_eq!(
        result.end,
        ExecutionEnd::Exited { code: 0 },
        "control: below the limit"
    );
    let one = "head -c 40000000 /dev/zero > big.bin";
    let result = runtime.execute(&execution(one), &mut |_, _| {}).unwrap();
    assert_ne!(
        result.end,
        ExecutionEnd::Exited { code: 0 },
        "one file alone meets RLIMIT_FSIZE"
    );
    let many = "rm -f big.bin; i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > $i.bin; sleep 0.02; done";
    let result = runtime.execute(&execution(many), &mut |_, _| {}).unwrap();
    let ExecutionEnd::LimitReached { error } = result.end else {
        panic!("{result:?}");
    };
    assert_eq!(error.code, ErrorCode::DiskLimit);
}

#[test]
fn guest_tree_for_a_plan_that_hides_a_path_in_a_system_directory_is_refused() {
    let mut plan = Spec::default().plan();
    let covered = LaunchMount::Bind {
        source: wp_codebox_contracts::BindSource::Guest {
            path: GuestPath::new("/run/codebox/empty").unwrap(),
        },
        target: GuestPath::new("/usr/share/site").unwrap(),
        writable: false,
    };
    GuestTree::lay_out(&plan, &directory("tree").join("guest")).unwrap();
    plan.mounts.push(covered);
    let error = GuestTree::lay_out(&plan, &directory("tree").join("guest")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IsolationUnavailable);
    assert!(error.to_string().contains("/usr/share/site"), "{error}");
}

#[test]
fn guest_at_level_reduced_runs_concurrent_programs_but_refuses_connections_into_it() {
    let mut sandbox = sandbox();
    let id = sandbox
        .launch_in_terminal("trap 'stty size; exit 5' INT; echo up; while :; do sleep 0.05; done");
    // A second program runs while the program in the terminal runs.
    assert_eq!(sandbox.sh("sleep 0.2; echo beside").ok(), "beside\n");
    sandbox.guest.signal_program(&id, libc::SIGINT).unwrap();
    assert_eq!(
        super::concurrent_programs::end(&mut sandbox.guest),
        (id, ExecEnd::Exited(5))
    );
    match sandbox.guest.connect(8080) {
        Err(ConnectError::Refused { errno, .. }) => assert_eq!(errno, libc::EPERM),
        other => panic!("{other:?}"),
    }
}
