//! Operations that a guest cannot do. As control, each test makes the same or a comparable attempt
//! that must succeed.

use crate::fixture::*;
use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;
use wp_codebox_backend_native::{Guest, HostCommand, LaunchError, ProcessSandbox, WrappedCommand};
use wp_codebox_contracts::{
    BindSource, CodedError, Enforcement, GuestPath, HostSource, IsolationAxis, LaunchMount,
    OuterSandboxKind, SandboxAudit, StagedFile,
};

const PROBE: &str = "/run/codebox/staged/probe";

fn probe_guest() -> Guest {
    let staged = vec![StagedFile {
        source: fixture().probe.to_str().unwrap().to_owned(),
        target: PROBE.to_owned(),
    }];
    Spec {
        staged,
        ..Spec::default()
    }
    .launch()
}

fn outside(argv: &[&str]) -> String {
    let output = Command::new(&fixture().probe).args(argv).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn inside(guest: &mut Guest, argv: &[&str]) -> String {
    let argv: Vec<&str> = std::iter::once(PROBE).chain(argv.iter().copied()).collect();
    run(guest, &argv).ok()
}

/// Tests only operations that programs need; the attack suite tests the refused ones.
#[test]
fn sockets_fifos_and_personality_queries_that_programs_need_succeed_in_the_guest() {
    let mut guest = probe_guest();
    for needed in [
        &["socket", "1", "1"][..],
        &["socket", "2", "1"],
        &["socket", "10", "1"],
        &["personality-query"],
        &["fifo", "/tmp"],
        &["create", "/tmp"],
    ] {
        assert_eq!(inside(&mut guest, needed), "ok\n", "{needed:?}");
    }
}

#[test]
fn host_files_outside_system_directories_and_mounts_do_not_exist_in_the_guest() {
    let place = directory("host");
    let marker = place.join("marker.txt");
    fs::write(&marker, "secret-of-the-host").unwrap();
    let path = marker.to_str().unwrap();
    let cat = Command::new("cat").arg(path).output().unwrap();
    assert_eq!(
        cat.stdout, b"secret-of-the-host",
        "control: readable for the same user"
    );
    let staged = vec![StagedFile {
        source: path.to_owned(),
        target: "/run/codebox/staged/marker".to_owned(),
    }];
    let mut guest = Spec {
        staged,
        ..Spec::default()
    }
    .launch();
    assert_ne!(run(&mut guest, &["cat", path]).code(), 0);
    assert_eq!(
        run(&mut guest, &["cat", "/run/codebox/staged/marker"]).ok(),
        "secret-of-the-host",
        "control: the same file, given on purpose"
    );
    for missing in [
        "/root",
        "/srv",
        "/mnt",
        "/media",
        "/boot",
        "/sys",
        "/etc/shadow",
        "/etc/machine-id",
        "/etc/hostname",
        "/run/systemd",
        "/run/php",
        "/var/lib",
        "/var/log",
        "/proc/sys",
        "/proc/cmdline",
        "/proc/kcore",
        "/proc/mounts.x",
    ] {
        assert_ne!(
            run(&mut guest, &["test", "-e", missing]).code(),
            0,
            "{missing}"
        );
    }
    let state = fixture().state.to_str().unwrap();
    assert_ne!(run(&mut guest, &["test", "-e", state]).code(), 0);
    let result = sh(
        &mut guest,
        "grep -rl secret-of-the-host / --exclude-dir=proc --exclude-dir=usr --exclude-dir=staged 2>/dev/null | head -1",
    );
    assert_eq!(result.out, "");
    assert_eq!(
        sh(
            &mut guest,
            "ls /home; cat /etc/passwd | wc -l; id -un; hostname"
        )
        .ok(),
        "agent\n3\nagent\ncodebox\n"
    );
}

#[test]
fn host_root_is_unreachable_through_proc_links_and_dot_dot() {
    let mut guest = guest();
    for path in [
        "/proc/1/root/",
        "/proc/1/cwd/",
        "/proc/1/fd/0",
        "/proc/1/environ",
        "/proc/1/mem",
    ] {
        assert_ne!(run(&mut guest, &["ls", path]).code(), 0, "{path}");
    }
    assert_eq!(
        sh(&mut guest, "ls -d /proc/self/root/usr").ok(),
        "/proc/self/root/usr\n",
        "control: one's own root is this one"
    );
    assert_eq!(
        sh(&mut guest, "cd /; cd ../../..; pwd -P; ls -d /../usr").ok(),
        "/\n/../usr\n"
    );
    // If the host's root were reachable as `..`, it would have another device or inode number.
    let same = "[ $(stat -c %d:%i /) = $(stat -c %d:%i /..) ] && ls -d /../wordpress";
    assert_eq!(sh(&mut guest, same).ok(), "/../wordpress\n");
    let mounts = sh(&mut guest, "cut -d' ' -f5 /proc/self/mountinfo").ok();
    let at_root = mounts.lines().filter(|point| *point == "/").count();
    assert_eq!(at_root, 1, "{mounts}");
}

#[test]
fn host_processes_are_invisible_and_cannot_be_signalled() {
    let mut guest = probe_guest();
    let mut sleeper = Command::new("sleep").arg("300").spawn().unwrap();
    let pid = sleeper.id().to_string();
    assert_eq!(
        outside(&["signal", &pid]),
        "ok\n",
        "control: the same user may signal it"
    );
    let answer = inside(&mut guest, &["signal", &pid]);
    assert_eq!(answer, "ESRCH\n");
    let result = sh(
        &mut guest,
        "sleep 20 & ls /proc | grep -c '^[0-9]'; kill -9 1; kill -9 -1; true",
    );
    let visible: u32 = result.out.trim().parse().unwrap();
    assert!((2..=6).contains(&visible), "only its own: {visible}");
    assert!(alive(sleeper.id().try_into().unwrap()));
    assert_eq!(
        run(&mut guest, &["true"]).code(),
        0,
        "pid 1 does not die by its children's hand"
    );
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn guest_cannot_connect_to_host_sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect =
        format!("$s=@fsockopen('127.0.0.1',{port},$e,$m,1); echo $s?'open':\"errno $e\";");
    let control = Command::new("php")
        .args(["-n", "-r", &connect])
        .output()
        .unwrap();
    assert_eq!(control.stdout, b"open", "control");
    let name = format!("codebox-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract_listener = UnixListener::bind_addr(&address).unwrap();
    assert_eq!(outside(&["abstract", &name]), "ok\n", "control");
    let mut guest = probe_guest();
    assert_eq!(
        run(&mut guest, &["php", "-r", &connect]).ok(),
        format!("errno {}", libc::ECONNREFUSED)
    );
    assert_eq!(inside(&mut guest, &["abstract", &name]), "ECONNREFUSED\n");
    let own = "$l=stream_socket_server('tcp://127.0.0.1:0');$n=stream_socket_get_name($l,false);echo stream_socket_client(\"tcp://$n\")?'open':'closed';";
    assert_eq!(
        run(&mut guest, &["php", "-r", own]).ok(),
        "open",
        "control: loopback inside works"
    );
    // Connecting a UDP socket would send no packet.
    let away = "echo @stream_socket_client('udp://192.0.2.1:9') ? 'open' : 'refused';";
    assert_eq!(run(&mut guest, &["php", "-r", away]).ok(), "refused");
    assert_eq!(
        sh(&mut guest, "cat /proc/self/net/route | wc -l").ok(),
        "1\n"
    );
    assert_eq!(
        inside(&mut guest, &["receive-buffer", "65536"]),
        "bounded\n"
    );
    assert_eq!(
        sh(
            &mut guest,
            "cat /proc/self/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' ' | head -1"
        )
        .ok(),
        "lo\n"
    );
}

#[test]
fn guest_has_no_capabilities_and_cannot_gain_any() {
    let mut guest = guest();
    let status = sh(
        &mut guest,
        "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status",
    )
    .ok();
    for line in status.lines() {
        let (name, value) = line.split_once(':').unwrap();
        let expected = match name {
            "NoNewPrivs" => "1",
            "Seccomp" => "2",
            _ => "0000000000000000",
        };
        assert_eq!(value.trim(), expected, "{name}");
    }
    assert_eq!(status.lines().count(), 7);
    let map = sh(&mut guest, "cat /proc/self/uid_map").ok();
    let fields: Vec<_> = map.split_whitespace().collect();
    assert_eq!(
        fields,
        [
            "1000",
            &rustix::process::geteuid().as_raw().to_string(),
            "1"
        ]
    );
    assert_ne!(sh(&mut guest, "mount -t tmpfs x /tmp").code(), 0);
    assert_ne!(sh(&mut guest, "chroot / true").code(), 0);
    assert_ne!(sh(&mut guest, "touch /tmp/f && chown 0 /tmp/f").code(), 0);
    assert_eq!(
        sh(
            &mut guest,
            "touch /tmp/f && chown 1000 /tmp/f && chmod 700 /tmp/f"
        )
        .code(),
        0,
        "control"
    );
}

#[test]
fn guest_dev_has_only_null_zero_full_random_urandom_tty_shm_fd_and_standard_streams() {
    let mut guest = guest();
    let result = sh(&mut guest, "ls /dev | tr '\\n' ' '");
    let names = result.ok();
    assert_eq!(
        names.replace("tty ", ""),
        "fd full null random shm stderr stdin stdout urandom zero "
    );
    assert_eq!(
        sh(
            &mut guest,
            "echo x > /dev/null && head -c 4 /dev/urandom | wc -c && echo e > /dev/stderr"
        )
        .ok(),
        "4\n"
    );
    assert_ne!(
        sh(&mut guest, "echo x > /dev/urandom").code(),
        0,
        "Landlock; the file's mode allows it"
    );
    assert_ne!(sh(&mut guest, "rm /dev/null").code(), 0);
}

#[test]
fn report_at_level_full_has_best_effort_only_for_memory_cpu_identity_and_contains_no_host_path() {
    let guest = guest();
    let report = guest.report();
    assert_eq!(report.axes.len(), IsolationAxis::ALL.len());
    assert!(report.landlock_abi >= 3);
    for row in &report.axes {
        assert!(!row.evidence.is_empty() && !row.by.is_empty());
        let best_effort = matches!(
            row.axis,
            IsolationAxis::Memory | IsolationAxis::Cpu | IsolationAxis::Identity
        );
        let expected = if best_effort {
            Enforcement::BestEffort
        } else {
            Enforcement::Enforced
        };
        assert_eq!(row.enforced, expected, "{:?}", row.axis);
    }
    let text = serde_json::to_string(report).unwrap();
    assert!(
        !text.contains(fixture().root.to_str().unwrap()),
        "no host path"
    );
}

/// Process wrapper that starts the launcher through the given program and arguments.
#[derive(Debug)]
struct Through(&'static [&'static str]);

impl ProcessSandbox for Through {
    fn kind(&self) -> OuterSandboxKind {
        OuterSandboxKind::None
    }

    fn wrap(&self, command: &HostCommand) -> WrappedCommand {
        let mut args: Vec<String> = self.0[1..].iter().map(|&a| a.to_owned()).collect();
        args.push(command.program.clone());
        WrappedCommand {
            program: self.0[0].to_owned(),
            args,
            env: command.env.clone(),
            cwd: None,
            audit: SandboxAudit::default(),
        }
    }
}

#[test]
fn launcher_that_runs_as_root_of_a_user_namespace_is_refused() {
    let plan = Spec::default().plan();
    let launch = |sandbox: &dyn ProcessSandbox| {
        Guest::launch(
            &plan,
            &wp_codebox_backend_native::LaunchOptions {
                launcher: &fixture().launcher,
                sandbox,
                ready_timeout: std::time::Duration::from_secs(20),
                cgroup: &wp_codebox_backend_native::Cgroup::none("this test creates no cgroup"),
                identity: shared_identity(),
                scratch: &wp_codebox_backend_native::ScratchStorage::of_kernel(std::env::temp_dir()),
                used: &std::sync::Arc::default(),
            },
        )
    };
    launch(&Through(&["/usr/bin/env"])).unwrap();
    let error = launch(&Through(&["/usr/bin/unshare", "--map-root-user"])).unwrap_err();
    let LaunchError::Step { step, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(step, "root");
    assert!(!error.body().hints.is_empty());
}

/// Checks the plan steps that hide paths. The tests of `plan.rs` check which paths a plan hides.
#[test]
fn mount_of_an_empty_directory_or_file_hides_a_path_below_a_mounted_directory() {
    let system = directory("system");
    for name in ["site", "other"] {
        fs::create_dir(system.join(name)).unwrap();
        fs::write(system.join(name).join("wp-config.php"), "secret").unwrap();
    }
    fs::write(system.join("wp-config.php"), "secret").unwrap();
    let bind = |source, target: &str| LaunchMount::Bind {
        source,
        target: GuestPath::new(target).unwrap(),
        writable: false,
    };
    let cover = |path: &str| BindSource::Guest {
        path: GuestPath::new(path).unwrap(),
    };
    let path = system.to_str().unwrap().to_owned();
    let mut plan = Spec::default().plan();
    plan.mounts.extend([
        bind(BindSource::Host(HostSource::of(path)), "/opt/system"),
        bind(cover("/run/codebox/empty"), "/opt/system/site"),
        bind(cover("/run/codebox/blank"), "/opt/system/wp-config.php"),
    ]);
    let mut guest = launch(&plan).unwrap();
    let cat = |guest: &mut Guest, name: &str| run(guest, &["cat", &format!("/opt/system/{name}")]);
    let control = cat(&mut guest, "other/wp-config.php").ok();
    assert_eq!(control, "secret", "control: bound");
    assert_ne!(cat(&mut guest, "site/wp-config.php").code(), 0);
    assert_eq!(run(&mut guest, &["ls", "-A", "/opt/system/site"]).ok(), "");
    assert_eq!(cat(&mut guest, "wp-config.php").ok(), "");
}
