//! Guests whose writable files lie in a directory on disk, as on kernels whose tmpfs stores no user
//! xattrs. No file system of their own limits them here; only root's spawner can make one.

use crate::fixture::*;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use wp_codebox_backend_native::{
    Cgroup, Guest, KillCause, LaunchOptions, NoSandbox, ScratchStorage,
};
use wp_codebox_contracts::{Enforcement, IsolationAxis, IsolationLevel, Limits};

fn launch_on(storage: &ScratchStorage, spec: &Spec) -> Guest {
    let options = LaunchOptions {
        launcher: &fixture().launcher,
        sandbox: &NoSandbox,
        ready_timeout: Duration::from_secs(20),
        cgroup: &Cgroup::none("this test creates no cgroup"),
        identity: shared_identity(),
        scratch: storage,
        used: &std::sync::Arc::default(),
    };
    Guest::launch(&spec.plan(), &options).unwrap()
}

fn place() -> (PathBuf, ScratchStorage) {
    let place = directory("scratch");
    let storage = ScratchStorage::Disk(place.clone());
    (place, storage)
}

fn left(place: &PathBuf) -> usize {
    fs::read_dir(place).unwrap().count()
}

#[test]
fn directory_removed_and_made_again_hides_the_files_of_the_mount_and_is_captured() {
    let source = directory("plugin");
    fs::create_dir(source.join("vendor")).unwrap();
    fs::write(source.join("vendor/old.php"), "old\n").unwrap();
    let spec = Spec {
        mounts: vec![mount(0, &source, "/workspace/demo")],
        ..Spec::default()
    };
    let (place, storage) = place();
    let mut guest = launch_on(&storage, &spec);
    assert_eq!(guest.report().level, IsolationLevel::Full);
    let script = "cd /workspace/demo && rm -r vendor && mkdir vendor && echo new > vendor/new.php && ls vendor";
    assert_eq!(sh(&mut guest, script).ok(), "new.php\n");
    guest.kill(KillCause::Finished);
    let layer = guest.layer(0).unwrap();
    let path = format!(
        "/proc/self/fd/{}/vendor",
        std::os::fd::AsRawFd::as_raw_fd(&layer)
    );
    let names: Vec<_> = fs::read_dir(path)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["new.php"]);
    assert_eq!(
        fs::read_to_string(source.join("vendor/old.php")).unwrap(),
        "old\n"
    );
    drop(guest);
    assert_eq!(left(&place), 0, "the guest's directory is removed with it");
}

#[test]
fn axis_disk_is_best_effort_and_a_guest_above_its_disk_limit_is_killed() {
    let spec = Spec {
        limits: Limits {
            disk_bytes: 32 << 20,
            ..Limits::default()
        },
        ..Spec::default()
    };
    let (place, storage) = place();
    let mut guest = launch_on(&storage, &spec);
    let row = |axis| {
        guest
            .report()
            .axes
            .iter()
            .find(|row| row.axis == axis)
            .unwrap()
    };
    let disk = row(IsolationAxis::Disk);
    assert_eq!(disk.enforced, Enforcement::BestEffort);
    assert!(
        disk.evidence.contains("only root can make a file system"),
        "{}",
        disk.evidence
    );
    assert_eq!(row(IsolationAxis::Files).enforced, Enforcement::Enforced);
    // Control: half of the limit is not too much.
    sh(&mut guest, "head -c 16M /dev/zero > /tmp/half").ok();
    sh(
        &mut guest,
        "for i in 1 2 3 4 5 6; do head -c 16M /dev/zero > /tmp/$i; done; sleep 60",
    );
    assert_eq!(guest.kill(KillCause::Finished).cause, KillCause::Disk);
    drop(guest);
    assert_eq!(left(&place), 0);
}
