//! The processes axis: who is in sight.

use super::findings::Seen;
use super::observe::wrong;
use crate::error::{At, Failure, Step};
use std::fs;

/// Nobody else's process is in sight.
pub(super) fn processes() -> Result<Seen, Failure> {
    let mut visible = Vec::new();
    for entry in fs::read_dir("/proc").at(Step::Probe, "/proc")? {
        let name = entry.at(Step::Probe, "/proc")?.file_name();
        let name = name.to_string_lossy().into_owned();
        if name.bytes().all(|b| b.is_ascii_digit()) {
            visible.push(name);
        } else if !matches!(name.as_str(), "self" | "thread-self") {
            return Err(wrong(format!("/proc shows {name}")));
        }
    }
    if std::process::id() != 1 || visible.iter().any(|pid| pid != "1") {
        return Err(wrong("processes of others are visible"));
    }
    Ok(Seen::enforced(
        "pid namespace, proc with subset=pid and hidepid",
        "this process is pid 1; no other process and no host-wide file in /proc",
    ))
}
