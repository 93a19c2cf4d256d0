//! Moves this process into a transient scope of systemd, in whose cgroup it may create the cgroup of
//! a run.
//!
//! The cgroup of a login session or of an ordinary service belongs to systemd, and nothing is
//! created there by hand. A scope with `Delegate=yes` is made for that: systemd creates its cgroup,
//! moves this process into it, and removes everything below it when the last process has ended,
//! also after SIGKILL. Root asks the system's manager, any other user the manager of that user.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{RunId, RunMode};

/// Program of the package systemd that sends the request.
const BUSCTL: &str = "/usr/bin/busctl";
/// Bus of the system's service manager.
const SYSTEM_BUS: &str = "/run/dbus/system_bus_socket";
/// Directory with a file for each user whose service manager runs without a login session.
const LINGERING: &str = "/var/lib/systemd/linger";
/// CPU weight of the scope, half of what a service or session has.
const WEIGHT: &str = "50";
/// Maximum wait until systemd has moved this process.
const MOVED: Duration = Duration::from_secs(10);
/// Pause between two reads of this process's cgroup.
const PAUSE: Duration = Duration::from_millis(2);

/// Asks systemd for a scope and waits until this process is in it. Returns why there is none: one
/// clause for the isolation report.
pub(crate) fn enter((run_id, mode): (&RunId, RunMode)) -> Result<(), String> {
    let unit = format!("wp-codebox-{run_id}.scope");
    let mut request = Command::new(BUSCTL);
    request.env_clear();
    let uid = rustix::process::geteuid().as_raw();
    if uid == 0 {
        if !Path::new(SYSTEM_BUS).exists() {
            return Err("there is no system bus to ask for another; install dbus, or start the command with: systemd-run --scope --property=Delegate=yes".to_owned());
        }
    } else {
        let runtime = PathBuf::from(format!("/run/user/{uid}"));
        if !runtime.join("bus").exists() {
            return Err("this user has no service manager to ask for another; log in as the user, or use wp-codebox.socket".to_owned());
        }
        if mode == RunMode::Detached && !lingers(uid) {
            return Err("a detached run would end in another one at logout; permit the user to run programs after logout with: loginctl enable-linger".to_owned());
        }
        request.arg("--user").env("XDG_RUNTIME_DIR", runtime);
    }
    let pid = std::process::id().to_string();
    let answered = request
        .args(["call", "org.freedesktop.systemd1"])
        .args([
            "/org/freedesktop/systemd1",
            "org.freedesktop.systemd1.Manager",
        ])
        .args(["StartTransientUnit", "ssa(sv)a(sa(sv))", &unit, "fail", "5"])
        .args(["Description", "s", "A run of WP Codebox"])
        .args(["Delegate", "b", "true"])
        .args(["CPUWeight", "t", WEIGHT])
        .args(["CollectMode", "s", "inactive-or-failed"])
        .args(["PIDs", "au", "1", &pid, "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(|error| format!("{BUSCTL} cannot be started to ask for another: {error}"))?;
    if !answered.status.success() {
        let said = String::from_utf8_lossy(&answered.stderr);
        let said = said.lines().next().unwrap_or("no reason").trim();
        return Err(format!("it refused another: {said}"));
    }
    let until = Instant::now() + MOVED;
    while Instant::now() < until {
        if is_in(&unit) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err("it did not move this process into another in time".to_owned())
}

/// Returns whether this process's unified cgroup is the one of `unit`.
fn is_in(unit: &str) -> bool {
    std::fs::read_to_string("/proc/self/cgroup").is_ok_and(|text| {
        text.lines()
            .filter_map(|line| line.strip_prefix("0::"))
            .any(|path| path.rsplit('/').next() == Some(unit))
    })
}

/// Returns whether the service manager of a user outlives the user's sessions.
fn lingers(uid: u32) -> bool {
    let Ok(accounts) = std::fs::read_to_string("/etc/passwd") else {
        return false;
    };
    accounts.lines().any(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next(), fields.nth(1));
        id == Some(&uid.to_string())
            && name.is_some_and(|name| Path::new(LINGERING).join(name).exists())
    })
}
