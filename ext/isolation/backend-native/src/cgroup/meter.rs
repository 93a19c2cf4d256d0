//! Counters of a cgroup: memory of its processes, kernel memory charged to them, CPU time and OOM
//! kills.

use super::parents::Hierarchy;
use rustix::fd::OwnedFd;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use wp_codebox_contracts::GroupUse;

/// Reads counters of a cgroup. OOM kills and CPU time are those since the creation of the meter;
/// memory values are current totals.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    groups: Vec<Hierarchy>,
    reclaim: Option<Arc<OwnedFd>>,
    ooms: u64,
    cpu: (u64, u64),
    peak: u64,
}

impl Meter {
    pub(super) fn new(groups: Vec<Hierarchy>, reclaim: Option<Arc<OwnedFd>>) -> Self {
        let mut meter = Self {
            groups,
            reclaim,
            ooms: 0,
            cpu: (0, 0),
            peak: 0,
        };
        meter.ooms = meter.ooms().unwrap_or_default();
        meter.cpu = meter.cpu_us().unwrap_or_default();
        meter.peak = meter.highest().unwrap_or_default();
        meter
    }

    /// Returns the memory in bytes that processes of the cgroup use now, without the files on the
    /// guest's scratch tmpfs.
    pub(crate) fn processes(&self) -> Option<u64> {
        self.groups.iter().find_map(|group| match group {
            Hierarchy::Unified(path) => field(&path.join("memory.stat"), "anon"),
            Hierarchy::Memory(path) => field(&path.join("memory.stat"), "total_rss")
                .or_else(|| field(&path.join("memory.stat"), "rss")),
            Hierarchy::Pids(_) | Hierarchy::Cpuacct(_) | Hierarchy::Cpu(_) => None,
        })
    }

    /// Returns the shared memory in bytes that is charged to the cgroup now, files on tmpfs included.
    pub(crate) fn shared(&self) -> Option<u64> {
        self.groups.iter().find_map(|group| match group {
            Hierarchy::Unified(path) => field(&path.join("memory.stat"), "shmem"),
            Hierarchy::Memory(path) => field(&path.join("memory.stat"), "total_shmem")
                .or_else(|| field(&path.join("memory.stat"), "shmem")),
            Hierarchy::Pids(_) | Hierarchy::Cpuacct(_) | Hierarchy::Cpu(_) => None,
        })
    }

    /// Returns the kernel memory in bytes that is charged to the cgroup now: sockets, pipes,
    /// descriptors. On cgroup v1 the number includes the dentry and inode caches; see
    /// [`Meter::reclaim`].
    pub(crate) fn kernel(&self) -> Option<u64> {
        self.groups.iter().find_map(|group| match group {
            Hierarchy::Unified(path) => {
                let read = |name| field(&path.join("memory.stat"), name);
                // `kernel` exists since Linux 5.18; it includes all kernel memory except socket
                // buffers.
                let kernel = read("kernel")?.saturating_sub(read("slab_reclaimable")?);
                Some(kernel.saturating_add(read("sock")?))
            }
            Hierarchy::Memory(path) => {
                let kernel = number(&path.join("memory.kmem.usage_in_bytes"))?;
                let tcp = number(&path.join("memory.kmem.tcp.usage_in_bytes"));
                Some(kernel.saturating_add(tcp.unwrap_or(0)))
            }
            Hierarchy::Pids(_) | Hierarchy::Cpuacct(_) | Hierarchy::Cpu(_) => None,
        })
    }

    /// Makes the kernel free the caches that are charged to the cgroup, so that [`Meter::kernel`]
    /// then counts only memory in use. Takes milliseconds. Returns false on cgroup v2, where the
    /// caches are not counted, and when the write to `memory.force_empty` fails.
    pub(crate) fn reclaim(&self) -> bool {
        self.reclaim
            .as_ref()
            .is_some_and(|fd| rustix::io::write(fd, b"0").is_ok())
    }

    /// Returns the peak in bytes of the cgroup's kernel memory; `None` when it was reached before
    /// the meter was created or the kernel keeps no peak (cgroup v2).
    pub(crate) fn peak_kernel(&self) -> Option<u64> {
        self.highest().filter(|now| *now > self.peak)
    }

    fn highest(&self) -> Option<u64> {
        self.groups.iter().find_map(|group| match group {
            Hierarchy::Memory(path) => {
                let kernel = number(&path.join("memory.kmem.max_usage_in_bytes"))?;
                let tcp = number(&path.join("memory.kmem.tcp.max_usage_in_bytes"));
                Some(kernel.saturating_add(tcp.unwrap_or(0)))
            }
            Hierarchy::Unified(_)
            | Hierarchy::Pids(_)
            | Hierarchy::Cpuacct(_)
            | Hierarchy::Cpu(_) => None,
        })
    }

    /// Returns whether the kernel has OOM-killed a process of the cgroup since the meter was
    /// created.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        self.ooms().is_some_and(|now| now > self.ooms)
    }

    fn ooms(&self) -> Option<u64> {
        self.groups.iter().find_map(|group| match group {
            Hierarchy::Unified(path) => field(&path.join("memory.events"), "oom_kill"),
            Hierarchy::Memory(path) => field(&path.join("memory.oom_control"), "oom_kill"),
            Hierarchy::Pids(_) | Hierarchy::Cpuacct(_) | Hierarchy::Cpu(_) => None,
        })
    }

    /// Returns user and system CPU time in microseconds that processes of the cgroup, including
    /// ended ones, have used since the meter was created.
    pub(crate) fn cpu(&self) -> Option<(u64, u64)> {
        let (user, system) = self.cpu_us()?;
        Some((
            user.saturating_sub(self.cpu.0),
            system.saturating_sub(self.cpu.1),
        ))
    }

    fn cpu_us(&self) -> Option<(u64, u64)> {
        self.groups.iter().find_map(|group| match group {
            Hierarchy::Unified(path) => {
                let read = |name| field(&path.join("cpu.stat"), name);
                Some((read("user_usec")?, read("system_usec")?))
            }
            Hierarchy::Cpuacct(path) => {
                let read = |name: &str| -> Option<u64> {
                    let text = fs::read_to_string(path.join(name)).ok()?;
                    Some(text.trim().parse::<u64>().ok()? / 1000)
                };
                Some((read("cpuacct.usage_user")?, read("cpuacct.usage_sys")?))
            }
            Hierarchy::Memory(_) | Hierarchy::Pids(_) | Hierarchy::Cpu(_) => None,
        })
    }
}

/// Returns the counters of a run's cgroup since its creation.
pub(super) fn used(groups: &[Hierarchy]) -> GroupUse {
    let mut used = GroupUse::default();
    for group in groups {
        match group {
            Hierarchy::Unified(path) => {
                let stat = path.join("cpu.stat");
                used.memory_peak_bytes = number(&path.join("memory.peak"));
                used.throttled_ms = field(&stat, "throttled_usec").map(|us| us / 1000);
                used.cpu_wait_ms = waited(&path.join("cpu.pressure"));
                used.memory_wait_ms = waited(&path.join("memory.pressure"));
                used.io_wait_ms = waited(&path.join("io.pressure"));
            }
            Hierarchy::Memory(path) => {
                used.memory_peak_bytes = number(&path.join("memory.max_usage_in_bytes"));
            }
            Hierarchy::Cpu(path) | Hierarchy::Cpuacct(path) => {
                let throttled = field(&path.join("cpu.stat"), "throttled_time");
                used.throttled_ms = used.throttled_ms.or(throttled.map(|ns| ns / 1_000_000));
            }
            Hierarchy::Pids(_) => {}
        }
    }
    used
}

/// Returns the milliseconds after `total=` in the line `some` of a file with pressure stall
/// information.
fn waited(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some
        .split(' ')
        .find_map(|word| word.strip_prefix("total="))?;
    Some(total.parse::<u64>().ok()? / 1000)
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the number after `name` in a kernel file with lines of the form `name number`.
fn field(path: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(path)
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .and_then(|number| number.trim().parse().ok())
}
