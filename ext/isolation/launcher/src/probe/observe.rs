//! Helpers of the probes: read kernel state, try to open files.

use crate::egress::SocketTable;
use crate::error::{At, Failure, Step};
use crate::privileges::WATCHES;
use rustix::fs::{Mode, OFlags};
use std::fs;

/// What the probes need from before the restrictions take effect.
pub(crate) struct Before {
    /// Device and inode number of the host's root directory.
    pub(super) device: u64,
    pub(super) inode: u64,
    /// inotify limits of the guest's user namespace, as read back from the kernel.
    pub(super) watches: Vec<u64>,
    pub(super) sockets: SocketTable,
}

/// Reads the facts that the guest's root will cover, such as the inotify limits, which only the
/// host's `/proc` mount shows. Call it in the guest's network namespace.
pub(crate) fn look_before() -> Result<Before, Failure> {
    let stat = rustix::fs::stat("/").at(Step::Probe, "host root")?;
    let shown = |(path, _): &(&str, u64)| read(path).ok()?.trim().parse().ok();
    Ok(Before {
        device: stat.st_dev,
        inode: stat.st_ino,
        watches: WATCHES.iter().filter_map(shown).collect(),
        sockets: SocketTable::open(),
    })
}

pub(super) fn wrong(what: impl Into<String>) -> Failure {
    Failure::rule(Step::Probe, what)
}

pub(super) fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(path).at(Step::Probe, path)
}

/// Returns the errno of opening `path`, or `None` when it succeeds.
pub(super) fn open_errno(path: &str, flags: OFlags) -> Option<i32> {
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::open(path, flags | OFlags::CLOEXEC, mode)
        .err()
        .map(|errno| errno.raw_os_error())
}

pub(super) fn status_field(name: &str) -> Result<String, Failure> {
    read("/proc/self/status")?
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(|value| value.trim().to_owned())
        .ok_or_else(|| wrong(format!("/proc/self/status, which has no {name}")))
}
