//! Polls the memory, scratch use and kernel objects of a guest from the host, and kills the guest above a limit.
//!
//! A thread polls every 100 ms and records the peaks, and the sums for the usage of the run. It kills the guest when the memory of its
//! processes plus the kernel memory charged to them exceeds the limit, or after the kernel has
//! OOM-killed one of its processes. The thread ends with the guest's pid 1. The numbers come from
//! the run's cgroup if it has one, otherwise from the host's `/proc`, and from `fstatfs`; never
//! from the guest.

use crate::cgroup::Meter;
use crate::channel::timespec;
use crate::kernel_objects::{Count, KernelObjects};
use crate::processes::{SHARE_OF_TIME, Survey, shared_once, survey};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::StatFs;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::process::{Signal, pidfd_send_signal};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{GuestObjects, Limits};
use wp_codebox_runtime::{SAMPLE_INTERVAL, UsageMeter, host_oom_kills};

/// Number of polls from one read of the CPU time to the next.
const POLLS_PER_CPU_SAMPLE: u64 = 10;
/// Minimum time between two requests to the kernel to free the caches of the guest's cgroup; each
/// request slows the guest down.
const RECLAIM: Duration = Duration::from_secs(1);
/// Estimated kernel memory of one tmpfs inode with its name, in bytes. It lies between the two
/// measured values: 958 on Linux 6.18, and 1,100 for an inode with an extended attribute.
const INODE: u64 = 1024;
/// Part of the kernel memory of a cgroup, as a divisor, that counts once more against the memory
/// limit: the kernel does not charge all of an object to the cgroup. The largest part is that of a
/// symbolic link on tmpfs: 188 of 1,148 bytes.
const UNCOUNTED_SHARE: u64 = 4;
/// Number of free bytes on the scratch below which the disk limit counts as reached.
const DISK_FLOOR: u64 = 64 * 1024;

/// Why the supervisor killed a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum KillCause {
    /// No cause was recorded: the guest ended by itself or still lives.
    None = 0,
    /// A deadline of the run or of an execution passed.
    Deadline = 1,
    /// A caller cancelled the run.
    Cancelled = 2,
    /// The guest exceeded its memory limit.
    Memory = 3,
    /// The guest is no longer needed.
    Finished = 4,
    /// The guest exceeded its disk limit at level `reduced`, where it has no file system of its
    /// own.
    Disk = 5,
    /// The guest had too many kernel objects of a kind.
    KernelObjects = 6,
}

/// Resource use of a guest, measured on the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Largest polled memory of all guest processes together in bytes. With a cgroup it includes
    /// kernel memory. Files on the scratch file system do not count.
    pub peak_memory_bytes: u64,
    /// Largest polled use of the scratch file system in bytes.
    pub peak_disk_bytes: u64,
    /// Whether a poll found the scratch file system full (level `full`) or over the limit
    /// (`reduced`).
    pub disk_full: bool,
}

/// State of one guest that several threads of the supervisor share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// Socket to the launcher, which kills the guest when this end is closed or shut down.
    lifetime: OwnedFd,
    meter: Option<Meter>,
    /// Result of [`host_oom_kills`] when the guest started.
    oom_kills: u64,
    /// Counters of all guests of the run, to which this guest adds its use.
    used: Arc<UsageMeter>,
    cause: AtomicU8,
    memory: AtomicU64,
    disk: AtomicU64,
    /// Estimated memory in bytes of kernel objects that no cgroup counts, at the last count.
    uncounted: AtomicU64,
    /// Size of the guest's writable file system at the last poll, in bytes.
    disk_before: Mutex<Option<u64>>,
    full: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        pid: i32,
        pidfd: OwnedFd,
        lifetime: OwnedFd,
        meter: Option<Meter>,
        used: Arc<UsageMeter>,
    ) -> Arc<Self> {
        Arc::new(Self {
            pid,
            pidfd,
            lifetime,
            meter,
            oom_kills: host_oom_kills(),
            used,
            cause: AtomicU8::new(KillCause::None as u8),
            memory: AtomicU64::new(0),
            disk: AtomicU64::new(0),
            uncounted: AtomicU64::new(0),
            disk_before: Mutex::new(None),
            full: AtomicBool::new(false),
        })
    }

    /// Kills the guest. Only the cause of the first call is recorded.
    pub(crate) fn kill(&self, cause: KillCause) {
        let _ = self.cause.compare_exchange(
            KillCause::None as u8,
            cause as u8,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        // Ignore errors: ESRCH means that the guest has ended. EPERM means that it has a different
        // kernel uid; its launcher kills it when the socket is shut down.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = shutdown(&self.lifetime, Shutdown::Both);
    }

    /// Asks the launcher to count objects of the guest, memory areas up to `areas`.
    fn ask_launcher(&self, areas: u64) {
        // The socket is full only if the launcher has not answered for a long time.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = send(&self.lifetime, &areas.to_le_bytes(), flags);
    }

    /// Reads the launcher's answer without blocking; `None` when the launcher has ended.
    fn answer_of_launcher(&self) -> Result<Option<GuestObjects>, Errno> {
        let mut bytes = [0_u8; GuestObjects::SIZE];
        let (length, _) = recv(&self.lifetime, &mut bytes, RecvFlags::DONTWAIT)?;
        Ok((length == bytes.len()).then(|| GuestObjects::from_bytes(bytes)))
    }

    pub(crate) fn cause(&self) -> KillCause {
        match self.cause.load(Ordering::SeqCst) {
            1 => KillCause::Deadline,
            2 => KillCause::Cancelled,
            3 => KillCause::Memory,
            4 => KillCause::Finished,
            5 => KillCause::Disk,
            6 => KillCause::KernelObjects,
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

    /// Returns whether the kernel OOM-killed a process of the guest; always false without a cgroup.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        self.meter.as_ref().is_some_and(Meter::was_out_of_memory)
    }

    /// Returns how many processes of the whole host the kernel has OOM-killed since the guest
    /// started.
    pub(crate) fn oom_kills(&self) -> u64 {
        host_oom_kills().saturating_sub(self.oom_kills)
    }

    /// Returns user and system CPU time of all processes of the guest in microseconds; `None`
    /// without a cgroup.
    pub(crate) fn cpu(&self) -> Option<(u64, u64)> {
        self.meter.as_ref()?.cpu()
    }

    /// Returns the memory that all processes of the guest use now, and their CPU time. Without a
    /// cgroup the memory is an upper bound, because pages that several processes share count once
    /// for each of them, and the CPU time is only that of living processes.
    fn now(&self, layer: Option<&OwnedFd>) -> Survey {
        let memory = self.meter.as_ref().and_then(|meter| {
            let shared = layer.map_or(0, |layer| shared_anonymous(meter, layer));
            Some(meter.processes()?.saturating_add(shared))
        });
        if let (Some(memory), Some((user, system))) = (memory, self.cpu()) {
            let cpu = user.saturating_add(system);
            return Survey { memory, cpu };
        }
        let seen = survey(self.pid);
        let memory = memory.unwrap_or(seen.memory);
        Survey { memory, ..seen }
    }

    /// Returns the kernel memory in bytes of the guest's processes now: what is charged to the cgroup,
    /// and an estimate of what the kernel charges to none. Inodes of the scratch tmpfs are left
    /// out, because they count against the disk limit.
    fn kernel_now(&self, layer: Option<&OwnedFd>) -> u64 {
        let kernel = self.meter.as_ref().and_then(Meter::kernel).unwrap_or(0);
        kernel
            .saturating_sub(layer.map_or(0, inodes))
            .saturating_add(kernel / UNCOUNTED_SHARE)
            .saturating_add(self.uncounted.load(Ordering::Relaxed))
    }

    /// Polls the guest, and adds its memory, and its CPU time at every tenth call, to the counters
    /// of the run. Returns the memory and CPU time of the processes, and the kernel memory.
    fn sample(&self, layer: Option<&OwnedFd>, last: &mut Sample) -> (Survey, u64) {
        let processes = self.now(layer);
        let kernel = self.kernel_now(layer);
        let now = Instant::now();
        if last.polls > 0 {
            self.used.add_memory(last.memory, now - last.at);
        }
        if last.polls.is_multiple_of(POLLS_PER_CPU_SAMPLE) {
            self.sample_cpu(last);
        }
        last.polls += 1;
        (last.memory, last.at) = (processes.memory.saturating_add(kernel), now);
        (processes, kernel)
    }

    fn sample_cpu(&self, last: &mut Sample) {
        if let Some((user, system)) = self.cpu() {
            let cpu = user.saturating_add(system);
            self.used.add_cpu(cpu.saturating_sub(last.cpu));
            last.cpu = cpu;
        }
    }

    /// Adds what the guest used between the last poll and its end.
    fn sample_end(&self, mut last: Sample) {
        self.used.add_memory(last.memory, last.at.elapsed());
        self.sample_cpu(&mut last);
    }

    /// Returns whether the guest uses more than `limit` bytes now: `processes` and `kernel` are what
    /// [`Shared::sample`] found. Kernel caches do not count, and shared pages count once. If a
    /// cheap measurement cannot exclude that only these exceed the limit, this function measures
    /// again without them. Until `pause` it then returns false.
    fn is_over(
        &self,
        limit: u64,
        (processes, kernel): (u64, u64),
        layer: Option<&OwnedFd>,
        pause: &mut Option<Instant>,
    ) -> bool {
        let memory = processes.saturating_add(kernel);
        let sure = self.meter.is_some() && processes > limit;
        if sure || memory <= limit {
            self.record_memory(memory);
            return sure;
        }
        let start = Instant::now();
        if pause.is_some_and(|until| start < until) {
            return false;
        }
        let (memory, next) = match &self.meter {
            Some(meter) => {
                let _ = meter.reclaim();
                let kernel = self.kernel_now(layer);
                (self.now(layer).memory.saturating_add(kernel), RECLAIM)
            }
            None => {
                let memory = shared_once(self.pid).saturating_add(self.kernel_now(layer));
                (memory, start.elapsed().saturating_mul(SHARE_OF_TIME))
            }
        };
        *pause = Some(start + next);
        self.record_memory(memory);
        memory > limit
    }

    /// Records the kernel's own peak of kernel memory, which may have occurred between two polls.
    pub(crate) fn record_kernel_peak(&self, layer: Option<&OwnedFd>) {
        if let Some(peak) = self.meter.as_ref().and_then(Meter::peak_kernel) {
            self.record_memory(peak.saturating_sub(layer.map_or(0, inodes)));
        }
    }

    pub(crate) fn record_memory(&self, bytes: u64) {
        self.memory.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Records the size of the guest's directories in bytes and whether it exceeds the disk limit.
    pub(crate) fn record_disk(&self, bytes: u64, over: bool) {
        self.disk.fetch_max(bytes, Ordering::Relaxed);
        self.record_growth(bytes);
        if over {
            self.full.store(true, Ordering::Relaxed);
        }
    }

    /// Adds the growth of the guest's writable file system since the last call. The first call only
    /// sets the size from which growth counts: what the launcher wrote is not the guest's.
    fn record_growth(&self, bytes: u64) {
        let before = self.disk_before.lock();
        let mut before = before.unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = *before {
            self.used.add_written(bytes.saturating_sub(before));
        }
        *before = Some(bytes);
    }

    /// Records how many bytes of the scratch file system are used and whether it is full; `layer`
    /// is a directory on it.
    pub(crate) fn measure_disk(&self, layer: &OwnedFd) {
        let Ok(stat) = rustix::fs::fstatfs(layer) else {
            return;
        };
        let block = block_size(&stat);
        let used = used_bytes(&stat);
        self.disk.fetch_max(used, Ordering::Relaxed);
        self.record_growth(used);
        let full = stat.f_bfree.saturating_mul(block) < DISK_FLOOR || stat.f_ffree == 0;
        if full && stat.f_blocks > 0 {
            self.full.store(true, Ordering::Relaxed);
        }
    }
}

/// What one poll found.
#[derive(Debug)]
struct Sample {
    polls: u64,
    memory: u64,
    /// CPU time in microseconds.
    cpu: u64,
    at: Instant,
}

/// Where the use of the guest's disk limit is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measured {
    /// From the scratch file system, which holds nothing but the guest's files.
    FileSystem,
    /// Another thread polls the guest's files.
    Apart,
}

/// Starts the polling thread. `layer` is any descriptor on the scratch file system. `spawner`
/// becomes readable when the process that started the launcher ends. The guest is then killed:
/// without that process the supervisor could not read the guest's files. `own_network`: whether the
/// guest has a network namespace of its own.
pub(crate) fn start(
    shared: Arc<Shared>,
    limits: Limits,
    (layer, measured): (Option<OwnedFd>, Measured),
    spawner: Option<OwnedFd>,
    own_network: bool,
) -> std::io::Result<JoinHandle<()>> {
    // No program of the caller has run yet: whatever is written from here on counts as the guest's.
    if let (Some(layer), Measured::FileSystem) = (&layer, measured) {
        shared.measure_disk(layer);
    }
    std::thread::Builder::new()
        .name("guest-watch".to_owned())
        .stack_size(128 * 1024)
        .spawn(move || {
            let mut pause = None;
            let mut launcher_lives = true;
            let mut launcher_must_count = false;
            let in_group = shared.meter.is_some();
            let mut objects = KernelObjects::new(shared.pid, own_network, in_group, &limits);
            let mut last = Sample {
                polls: 0,
                memory: 0,
                cpu: 0,
                at: Instant::now(),
            };
            loop {
                let layer = layer.as_ref();
                let (found, kernel) = shared.sample(layer, &mut last);
                let polled = (found.memory, kernel);
                let over = shared.is_over(limits.memory_bytes, polled, layer, &mut pause);
                if over || shared.was_out_of_memory() {
                    shared.kill(KillCause::Memory);
                }
                match objects.count(found.cpu) {
                    Count::NotDue => {}
                    Count::Few => launcher_must_count = own_network,
                    Count::TooMany => shared.kill(KillCause::KernelObjects),
                }
                // The launcher does not answer if its last count was too short ago.
                if launcher_must_count {
                    shared.ask_launcher(objects.areas_to_count(kernel));
                }
                if let (Some(layer), Measured::FileSystem) = (layer, measured) {
                    shared.measure_disk(layer);
                }
                let ends = std::iter::once(&shared.pidfd).chain(&spawner);
                let answers = launcher_lives.then_some(&shared.lifetime);
                let mut fds: Vec<_> = ends
                    .chain(answers)
                    .map(|fd| PollFd::new(fd, PollFlags::IN))
                    .collect();
                let polled = poll(&mut fds, Some(&timespec(SAMPLE_INTERVAL)));
                let ends = fds.iter().take(1 + spawner.iter().count());
                let ended = ends.map(PollFd::revents).any(|events| !events.is_empty());
                if polled.is_ok() && ended {
                    shared.kill(KillCause::None);
                    shared.sample_end(last);
                    return;
                }
                match shared.answer_of_launcher() {
                    Ok(None) => launcher_lives = false,
                    Ok(Some(found)) => {
                        launcher_must_count = false;
                        if objects.add(found) {
                            shared.kill(KillCause::KernelObjects);
                        }
                    }
                    Err(_) => {}
                }
                let uncounted = objects.uncounted();
                shared.uncounted.store(uncounted, Ordering::Relaxed);
            }
        })
}

fn block_size(stat: &StatFs) -> u64 {
    u64::try_from(stat.f_bsize).unwrap_or(4096)
}

fn used_bytes(stat: &StatFs) -> u64 {
    let blocks = stat.f_blocks.saturating_sub(stat.f_bfree);
    blocks.saturating_mul(block_size(stat))
}

/// Returns the shared anonymous memory of the guest in bytes, also of pages that no process has in its
/// page tables: what the cgroup counts as shared memory, without the files of the scratch tmpfs.
fn shared_anonymous(meter: &Meter, layer: &OwnedFd) -> u64 {
    let files = match rustix::fs::fstatfs(layer) {
        Ok(stat) if stat.f_type == libc::TMPFS_MAGIC => used_bytes(&stat),
        // No file of another file system counts as shared memory.
        Ok(_) => 0,
        Err(_) => u64::MAX,
    };
    meter.shared().unwrap_or(0).saturating_sub(files)
}

/// Returns an estimate of the kernel memory of all inodes on a scratch tmpfs, in bytes. The kernel
/// frees inodes of other file systems when it needs the memory.
fn inodes(layer: &OwnedFd) -> u64 {
    let stat = rustix::fs::fstatfs(layer).ok();
    let tmpfs = stat.filter(|stat| stat.f_type == libc::TMPFS_MAGIC);
    tmpfs.map_or(0, |stat| {
        stat.f_files
            .saturating_sub(stat.f_ffree)
            .saturating_mul(INODE)
    })
}
