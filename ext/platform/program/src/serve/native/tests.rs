use super::*;
use serde_json::json;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CONTROL_SOCKET, Outcome, RunFacts, SandboxScope};
use wp_codebox_runtime::{Ending, Scratch};
use wp_codebox_service::SetupMetadata;
use wp_codebox_settings::PathArgs;

fn native() -> (tempfile::TempDir, Native) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("state");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&path, Some(12_345), Some(12_345)).unwrap();
    }
    let settings = Settings::resolve(&PathArgs {
        state: Some(path),
        ..PathArgs::default()
    });
    let site = SiteId::new("cli").unwrap();
    let roots = SourceRoots::default();
    let native = Native::new(settings.unwrap(), site, Runner::Child, roots, 4).unwrap();
    (temp, native)
}

fn request(sandbox: &str) -> Provision {
    Provision {
        sandbox: SandboxId::parse(sandbox).unwrap(),
        profile_id: "profile.test".to_owned(),
        profile_version: "1.0.0".to_owned(),
        profile_sha256: String::new(),
        host: None,
        profile: "id: profile.test\n".to_owned(),
        source: None,
        snapshot: None,
        services: Vec::new(),
        ttl_ms: 60_000,
        scope: SandboxScope::Session,
        actor: "atm:test".parse().unwrap(),
        instead_of: None,
        inputs: Map::new(),
        setup_metadata: SetupMetadata::default(),
    }
}

const RUN: &str = "run_0123456789abcdef0123456789abcdef";

#[test]
fn every_method_that_takes_a_sandbox_reports_unknown_and_malformed_ids_as_not_found() {
    let (_temp, native) = native();
    let actor: Actor = "adm:test".parse().unwrap();
    for id in [RUN, "run_1", "x"] {
        let id = SandboxId::parse(id).unwrap();
        let codes = [
            native.view(&id).unwrap_err().code,
            native.wait_ready(&id).unwrap_err().code,
            native.files(&id).unwrap_err().code,
            native.read_file(&id, "/workspace/a").unwrap_err().code,
            native.extend_ttl(&id, 1000, &actor).unwrap_err().code,
            native.snapshot(&id, None, &actor).unwrap_err().code,
            native.restore(&id, "snap_1", &actor).unwrap_err().code,
            native.teardown(&id, &actor, "test").unwrap_err().code,
            native.events(&id, 0).unwrap_err().code,
        ];
        assert_eq!(codes, [ErrorCode::SandboxNotFound; 9]);
    }
}

#[test]
fn invalid_provision_request_is_refused_before_a_run_exists() {
    let (_temp, native) = native();
    let refused = |change: &dyn Fn(&mut Provision)| {
        let mut request = request(RUN);
        change(&mut request);
        let error = native.provision(&request).unwrap_err();
        assert!(
            !native
                .sandboxes()
                .run(RunId::new(RUN).unwrap())
                .path
                .exists()
        );
        error.code
    };
    assert_eq!(
        refused(&|r| r.sandbox = SandboxId::parse("x").unwrap()),
        ErrorCode::InputInvalid
    );
    assert_eq!(
        refused(&|r| r.source = Some("/etc".to_owned())),
        ErrorCode::MountDenied
    );
    assert_eq!(
        refused(&|r| r.snapshot = Some("snap_0".to_owned())),
        ErrorCode::SnapshotNotFound
    );
    assert_eq!(refused(&|_| {}), ErrorCode::ProfileInvalid);
    let unknown = |r: &mut Provision| {
        r.inputs.insert("repo_ref".to_owned(), json!("x"));
    };
    assert_eq!(refused(&unknown), ErrorCode::InputInvalid);
    let version = |r: &mut Provision| {
        r.inputs.insert("wordpress".to_owned(), json!("0.1"));
    };
    assert_eq!(refused(&version), ErrorCode::InputInvalid);
}

/// A supervisor writes the final record and then removes its control socket.
#[test]
fn teardown_of_a_sandbox_that_just_ended_waits_until_its_control_socket_is_removed() {
    let (_temp, native) = native();
    let new = NewRun {
        facts: RunFacts {
            provenance: Map::from_iter([("sandbox".to_owned(), json!({}))]),
            ..RunFacts::default()
        },
        ..NewRun::new(RunId::new(RUN).unwrap())
    };
    let run = RunDir::create(&native.state, &native.site, &new, 9).unwrap();
    let socket = run.path().join(CONTROL_SOCKET);
    let ending = Ending {
        outcome: Outcome::Succeeded,
        summary: "The sandbox ended.".to_owned(),
        summary_detail: None,
        error: None,
        bundle_id: None,
    };
    run.settle(ending, Scratch::Remove).unwrap();
    // The whole path may be longer than the address of a socket.
    let directory = std::fs::File::open(socket.parent().unwrap()).unwrap();
    let short = format!("/proc/self/fd/{}/{CONTROL_SOCKET}", directory.as_raw_fd());
    let _listener = UnixListener::bind(short).unwrap();
    let (id, actor) = (SandboxId::parse(RUN).unwrap(), "adm:test".parse().unwrap());
    std::thread::scope(|scope| {
        let torn = scope.spawn(|| native.teardown(&id, &actor, "test"));
        let until = Instant::now() + Duration::from_millis(500);
        while Instant::now() < until && !torn.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::fs::remove_file(&socket).unwrap();
        let report = torn.join().unwrap().unwrap();
        assert!(report.complete, "{report:?}");
    });
}
