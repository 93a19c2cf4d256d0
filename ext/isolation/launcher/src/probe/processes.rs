//! Probe of the isolation axis `processes`: which other processes are visible.

use super::findings::Observation;
use super::observe::wrong;
use crate::error::{At, Failure, Step};
use std::fs;

/// Checks that no process outside the guest is visible in `/proc`.
pub(super) fn processes() -> Result<Observation, Failure> {
    let mut visible = Vec::new();
    for entry in fs::read_dir("/proc").at(Step::Probe, "/proc")? {
        let name = entry.at(Step::Probe, "/proc")?.file_name();
        let name = name.to_string_lossy().into_owned();
        if name.bytes().all(|b| b.is_ascii_digit()) {
            visible.push(name);
        } else if !matches!(name.as_str(), "self" | "thread-self") {
            return Err(wrong(format!("/proc, which shows the host-wide {name}")));
        }
    }
    if std::process::id() != 1 || visible.iter().any(|pid| pid != "1") {
        return Err(wrong("/proc, which shows processes besides pid 1"));
    }
    Ok(Observation::enforced(
        "pid namespace, proc with subset=pid and hidepid",
        "this process is pid 1; no other process and no host-wide file in /proc",
    ))
}
