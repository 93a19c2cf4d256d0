//! Runs a test again inside new user and mount namespaces, in which it can mount file systems.
#![allow(dead_code)]

use std::path::Path;
use std::process::Command;

const INSIDE: &str = "CODEBOX_TEST_INSIDE";

/// Returns true if this process already runs in the new namespaces. Otherwise runs the test `name`
/// in a child process in new namespaces and returns false. On a host without user namespaces the
/// test is skipped, but fails if `CODEBOX_EXPECT` contains `capability` or `userns`.
pub fn entered(name: &str, capability: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let possible = Command::new("unshare")
        .args(["-Urm", "true"])
        .status()
        .is_ok_and(|s| s.success());
    if !possible {
        let expect = std::env::var("CODEBOX_EXPECT").unwrap_or_default();
        let expected = expect.split(',').any(|e| e == capability || e == "userns");
        assert!(
            !expected,
            "{capability} is expected, but namespaces are not available"
        );
        println!("{name}: no user namespaces on this host");
        return false;
    }
    let status = Command::new("unshare")
        .arg("-Urm")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{name} failed inside its namespaces");
    false
}

pub fn mount(kind: &str, options: &str, target: &Path) {
    let output = Command::new("mount")
        .args(["-t", kind, "-o", options, kind])
        .arg(target)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{options}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub fn unmount(target: &Path) {
    assert!(
        Command::new("umount")
            .arg(target)
            .status()
            .unwrap()
            .success()
    );
}
