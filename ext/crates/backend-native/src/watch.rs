//! Watching a guest from outside: total memory, scratch use, and the kill.
//!
//! A thread looks every 100 ms, records the peaks and ends a guest that is over its memory
//! limit with its processes and what the kernel holds for them, or of which the kernel ended
//! one for want of memory. It stops by itself when the guest's pid 1 is gone. Numbers come
//! from the run's cgroup where there is one, else from the host's `/proc`, and from `fstatfs`; never from the guest.

use crate::cgroup::Meter;
use crate::channel::timespec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wp_codebox_contracts::Limits;
use wp_codebox_runtime::host_oom_kills;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// Time between two requests to give caches back: they cost the guest its caches.
const RECLAIM: Duration = Duration::from_secs(1);
/// Kernel memory of a tmpfs inode and its name, bytes: 958 on Linux 6.18, 1,100 with an attribute.
const INODE: u64 = 1024;
/// Free scratch bytes below which the disk limit counts as reached.
const DISK_FLOOR: u64 = 64 * 1024;
/// Most processes looked at in one round; more than any `processes` limit.
const PROCESSES: usize = 8192;

/// Why a guest was ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum KillCause {
    /// Nobody ended it early.
    None = 0,
    /// The deadline passed.
    Deadline = 1,
    /// The caller cancelled.
    Cancelled = 2,
    /// It used more memory than allowed.
    Memory = 3,
    /// The run is over.
    Finished = 4,
    /// It wrote more than allowed, where no file system of its own bounds it.
    Disk = 5,
}

/// What a guest used, as seen from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Largest memory of all guest processes together, as polled, bytes; with a group also what
    /// the kernel held for them, files on the scratch excepted.
    pub peak_memory_bytes: u64,
    /// Most bytes in use on the scratch file system, as polled.
    pub peak_disk_bytes: u64,
    /// Whether the scratch file system was seen full.
    pub disk_full: bool,
}

/// What the runner's threads share about one guest.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// While it is open, the launcher keeps the guest alive.
    lifetime: Mutex<Option<OwnedFd>>,
    meter: Option<Meter>,
    /// What [`host_oom_kills`] was when the guest began.
    oom_kills: u64,
    cause: AtomicU8,
    memory: AtomicU64,
    disk: AtomicU64,
    full: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        pid: i32,
        pidfd: OwnedFd,
        lifetime: OwnedFd,
        meter: Option<Meter>,
    ) -> Arc<Self> {
        Arc::new(Self {
            pid,
            pidfd,
            lifetime: Mutex::new(Some(lifetime)),
            meter,
            oom_kills: host_oom_kills(),
            cause: AtomicU8::new(KillCause::None as u8),
            memory: AtomicU64::new(0),
            disk: AtomicU64::new(0),
            full: AtomicBool::new(false),
        })
    }

    /// Ends the guest; the first cause stays.
    pub(crate) fn kill(&self, cause: KillCause) {
        let _ = self.cause.compare_exchange(
            KillCause::None as u8,
            cause as u8,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        // A guest that is already gone is what we want. One with another kernel uid cannot be
        // signalled from here: its launcher ends it when the lifetime pipe closes.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let lifetime = self.lifetime.lock();
        *lifetime.unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn cause(&self) -> KillCause {
        match self.cause.load(Ordering::SeqCst) {
            1 => KillCause::Deadline,
            2 => KillCause::Cancelled,
            3 => KillCause::Memory,
            4 => KillCause::Finished,
            5 => KillCause::Disk,
            _ => KillCause::None,
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            peak_memory_bytes: self.memory.load(Ordering::Relaxed),
            peak_disk_bytes: self.disk.load(Ordering::Relaxed),
            disk_full: self.full.load(Ordering::Relaxed),
        }
    }

    /// Whether the kernel ended a process of the guest for want of memory.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        self.meter.as_ref().is_some_and(Meter::was_out_of_memory)
    }

    /// Processes of the host that the kernel ended for want of memory since the guest began.
    pub(crate) fn oom_kills(&self) -> u64 {
        host_oom_kills().saturating_sub(self.oom_kills)
    }

    /// User and system CPU time of all of the guest, microseconds; only a group knows it.
    pub(crate) fn cpu(&self) -> Option<(u64, u64)> {
        self.meter.as_ref()?.cpu()
    }

    /// Memory of all processes now, bytes.
    fn processes_now(&self) -> u64 {
        self.meter
            .as_ref()
            .and_then(Meter::processes)
            .unwrap_or_else(|| survey(self.pid).memory)
    }

    /// Memory that the kernel holds for them now, bytes; only a group knows it. Inodes of the
    /// scratch belong to the disk's budget.
    fn kernel_now(&self, layer: Option<&OwnedFd>) -> u64 {
        let kernel = self.meter.as_ref().and_then(Meter::kernel).unwrap_or(0);
        kernel.saturating_sub(layer.map_or(0, inodes))
    }

    /// Whether the guest holds more than `limit`, now. What the kernel only caches for it does
    /// not count: it is given back first, at most once in [`RECLAIM`].
    fn is_over(
        &self,
        limit: u64,
        layer: Option<&OwnedFd>,
        reclaimed: &mut Option<Instant>,
    ) -> bool {
        let processes = self.processes_now();
        let memory = processes.saturating_add(self.kernel_now(layer));
        self.saw_memory(memory);
        if processes > limit || memory <= limit {
            return processes > limit;
        }
        if reclaimed.is_some_and(|at| at.elapsed() < RECLAIM) {
            return false;
        }
        *reclaimed = Some(Instant::now());
        let _ = self.meter.as_ref().is_some_and(Meter::reclaim);
        self.processes_now().saturating_add(self.kernel_now(layer)) > limit
    }

    /// Records the kernel's own peak, which may lie between two looks.
    pub(crate) fn saw_kernel_peak(&self, layer: Option<&OwnedFd>) {
        if let Some(peak) = self.meter.as_ref().and_then(Meter::peak_kernel) {
            self.saw_memory(peak.saturating_sub(layer.map_or(0, inodes)));
        }
    }

    pub(crate) fn saw_memory(&self, bytes: u64) {
        self.memory.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Records what the guest's directories hold, and whether that is over the limit.
    pub(crate) fn saw_disk(&self, bytes: u64, over: bool) {
        self.disk.fetch_max(bytes, Ordering::Relaxed);
        if over {
            self.full.store(true, Ordering::Relaxed);
        }
    }

    /// Looks at the scratch file system through a descriptor of a layer on it.
    pub(crate) fn look_at_disk(&self, layer: &OwnedFd) {
        let Ok(stat) = rustix::fs::fstatfs(layer) else {
            return;
        };
        let block = u64::try_from(stat.f_bsize).unwrap_or(4096);
        let used = stat
            .f_blocks
            .saturating_sub(stat.f_bfree)
            .saturating_mul(block);
        self.disk.fetch_max(used, Ordering::Relaxed);
        let full = stat.f_bfree.saturating_mul(block) < DISK_FLOOR || stat.f_ffree == 0;
        if full && stat.f_blocks > 0 {
            self.full.store(true, Ordering::Relaxed);
        }
    }
}

/// Starts the watching thread; `layer` is any descriptor on the scratch file system, `spawner`
/// is readable when the process that started the launcher is gone, without which nothing could
/// be read of what the guest leaves.
pub(crate) fn start(
    shared: Arc<Shared>,
    limits: Limits,
    layer: Option<OwnedFd>,
    spawner: Option<OwnedFd>,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("guest-watch".to_owned())
        .stack_size(128 * 1024)
        .spawn(move || {
            let mut reclaimed = None;
            loop {
                let over = shared.is_over(limits.memory_bytes, layer.as_ref(), &mut reclaimed);
                if over || shared.was_out_of_memory() {
                    shared.kill(KillCause::Memory);
                }
                if let Some(layer) = &layer {
                    shared.look_at_disk(layer);
                }
                let ends = std::iter::once(&shared.pidfd).chain(&spawner);
                let mut fds: Vec<_> = ends.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
                if matches!(poll(&mut fds, Some(&timespec(INTERVAL))), Ok(ready) if ready > 0) {
                    shared.kill(KillCause::None);
                    return;
                }
            }
        })
}

/// Kernel memory of the files on a scratch file system, bytes, about.
fn inodes(layer: &OwnedFd) -> u64 {
    rustix::fs::fstatfs(layer).map_or(0, |stat| {
        stat.f_files
            .saturating_sub(stat.f_ffree)
            .saturating_mul(INODE)
    })
}

/// One look at all processes of a guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Anonymous and shared memory of all, and the largest file-backed part once, bytes.
    pub(crate) memory: u64,
    /// CPU time of the processes below pid 1 that are alive, clock ticks.
    pub(crate) ticks: u64,
}

/// `pid` and every process below it.
pub(crate) fn tree(pid: i32) -> Vec<i32> {
    let mut all = vec![pid];
    let mut parents = None;
    let mut next = 0;
    while next < all.len() && next < PROCESSES {
        let parent = all[next];
        children(parent, &mut all, &mut parents);
        next += 1;
    }
    all
}

/// Looks at `pid` and everything below it.
pub(crate) fn survey(pid: i32) -> Survey {
    let mut seen = Survey::default();
    let mut files = 0;
    let mut queue = vec![pid];
    let mut done = 0;
    let mut parents = None;
    while let Some(process) = queue.pop() {
        done += 1;
        if done > PROCESSES {
            break;
        }
        let (anonymous, file) = resident(process);
        seen.memory = seen.memory.saturating_add(anonymous);
        files = files.max(file);
        if process != pid {
            seen.ticks = seen.ticks.saturating_add(ticks(process));
        }
        children(process, &mut queue, &mut parents);
    }
    seen.memory = seen.memory.saturating_add(files);
    seen
}

/// Anonymous plus shared, and file-backed resident bytes.
fn resident(pid: i32) -> (u64, u64) {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return (0, 0);
    };
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|rest| rest.trim().strip_suffix(" kB"))
            .and_then(|number| number.trim().parse::<u64>().ok())
            .unwrap_or_default()
            .saturating_mul(1024)
    };
    (field("RssAnon:") + field("RssShmem:"), field("RssFile:"))
}

fn ticks(pid: i32) -> u64 {
    stat_fields(pid).map_or(0, |fields| {
        [11, 12]
            .into_iter()
            .filter_map(|i| fields.get(i)?.parse::<u64>().ok())
            .sum()
    })
}

/// The fields of `/proc/<pid>/stat` after the program's name, which may hold anything.
fn stat_fields(pid: i32) -> Option<Vec<String>> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// Appends the children of `pid`. Kernels without the `children` file are read through parent numbers.
fn children(pid: i32, queue: &mut Vec<i32>, parents: &mut Option<HashMap<i32, Vec<i32>>>) {
    let mut listed = false;
    if let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) {
        for task in tasks.flatten() {
            if let Ok(text) = fs::read_to_string(task.path().join("children")) {
                listed = true;
                queue.extend(
                    text.split_whitespace()
                        .filter_map(|n| n.parse::<i32>().ok()),
                );
            }
        }
        if !listed {
            let map = parents.get_or_insert_with(parent_map);
            queue.extend(map.get(&pid).into_iter().flatten());
        }
    }
}

fn parent_map() -> HashMap<i32, Vec<i32>> {
    let mut map: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let parent = stat_fields(pid).and_then(|fields| fields.get(1)?.parse().ok());
        if let Some(parent) = parent {
            map.entry(parent).or_default().push(pid);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_and_its_memory_are_seen() {
        let me = i32::try_from(std::process::id()).unwrap();
        let before = survey(me);
        assert!(before.memory > 0);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let child_pid = i32::try_from(child.id()).unwrap();
        let mut queue = Vec::new();
        children(me, &mut queue, &mut None);
        assert!(queue.contains(&child_pid));
        assert!(parent_map()[&me].contains(&child_pid));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut queue = Vec::new();
        children(me, &mut queue, &mut None);
        assert!(!queue.contains(&child_pid));
    }

    #[test]
    fn a_process_that_is_gone_uses_nothing() {
        assert_eq!(survey(i32::MAX), Survey::default());
    }
}
