//! Runs a native program that attacks, `tests/wasi/probe.c`, in each wrapper. A WASI module would
//! already fail in the runtime and prove nothing about the wrapper, so the probe stands for a
//! runtime that an attacker controls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Tests may panic.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use wp_codebox_contracts::OuterSandboxKind;
use wp_codebox_process_wrapper::{
    Bubblewrap, GvisorRoot, HostCommand, Mount, MountAccess, NoSandbox, Presence, ProcessSandbox,
    find_program, prepare_root,
};

/// Runs the probe and returns what it reports for each attempt.
fn probe(kind: OuterSandboxKind) -> BTreeMap<String, String> {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let crate_dir = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let built = Command::new("cc")
        .args(["-static", "-o", &path("probe")])
        .arg(Path::new(&crate_dir).join("../../../tests/wasi/probe.c"))
        .status()
        .unwrap();
    assert!(built.success());
    fs::create_dir_all(path("root/work")).unwrap();
    fs::create_dir(path("runsc")).unwrap();
    // For root, the secret is a file that only root can read; for another user, the test creates
    // one.
    let secret = if rustix::process::geteuid().is_root() {
        "/etc/shadow".to_owned()
    } else {
        fs::write(path("secret"), "x").unwrap();
        path("secret")
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let work = match kind {
        OuterSandboxKind::None => path("root/work"),
        OuterSandboxKind::Bubblewrap | OuterSandboxKind::Gvisor => "/work".to_owned(),
    };
    let command = HostCommand {
        program: path("probe"),
        args: vec![port, path("outside"), work, secret],
        mounts: vec![Mount {
            host: path("root/work"),
            target: "/work".to_owned(),
            label: "/work".to_owned(),
            access: MountAccess::Write,
            presence: Presence::Required,
        }],
        ..HostCommand::default()
    };
    let program = find_program(kind, None).unwrap();
    let sandbox: Box<dyn ProcessSandbox> = match (kind, program) {
        (OuterSandboxKind::Bubblewrap, Some(program)) => Box::new(Bubblewrap { program }),
        (OuterSandboxKind::Gvisor, Some(program)) => {
            prepare_root(Path::new(&path("root")), &command).unwrap();
            Box::new(GvisorRoot {
                program,
                directory: path("runsc"),
                root: path("root"),
            })
        }
        _ => Box::new(NoSandbox),
    };
    let output = sandbox.wrap(&command).to_std().output().unwrap();
    let mut told: BTreeMap<String, String> = String::from_utf8(output.stdout.clone())
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(what, how)| (what.to_owned(), how.to_owned()))
        .collect();
    assert_eq!(told.len(), 6, "{kind:?}: {output:?}");
    // What the host sees afterwards counts, not what the probe believes.
    let seen = |path: String| {
        if Path::new(&path).exists() {
            "yes"
        } else {
            "no"
        }
    };
    told.insert(
        "outside on the host".to_owned(),
        seen(path("outside")).to_owned(),
    );
    told.insert(
        "work on the host".to_owned(),
        seen(path("root/work/made")).to_owned(),
    );
    told
}

#[test]
fn native_probe_reaches_a_secret_a_socket_and_files_outside_its_directory_only_without_a_wrapper() {
    let bare = probe(OuterSandboxKind::None);
    for (what, how) in &bare {
        assert_eq!(how, "yes", "control: {what}");
    }
    for kind in [OuterSandboxKind::Bubblewrap, OuterSandboxKind::Gvisor] {
        let inside = probe(kind);
        for what in ["secret", "socket", "outside", "outside on the host"] {
            assert_ne!(inside[what], "yes", "{kind:?} {what}: {inside:?}");
        }
        // Control: the probe can use what the command gives it.
        for what in ["fork", "work", "work on the host"] {
            assert_eq!(inside[what], "yes", "{kind:?} {what}: {inside:?}");
        }
    }
}

/// A plain `runsc do` shows the files of the host: this is why a tool gets a prepared root.
#[test]
fn gvisor_without_a_prepared_root_shows_the_files_of_the_host() {
    let place = tempfile::tempdir().unwrap();
    let secret = place.path().join("secret");
    fs::write(&secret, "the secret").unwrap();
    let sandbox = wp_codebox_process_wrapper::Gvisor {
        program: find_program(OuterSandboxKind::Gvisor, None)
            .unwrap()
            .unwrap(),
        directory: place.path().to_str().unwrap().to_owned(),
    };
    let command = HostCommand {
        program: "/bin/cat".to_owned(),
        args: vec![secret.to_str().unwrap().to_owned()],
        ..HostCommand::default()
    };
    let output = sandbox.wrap(&command).to_std().output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "the secret",
        "{output:?}"
    );
}
