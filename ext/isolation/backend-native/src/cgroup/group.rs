//! The cgroup of one run: creation, limits, membership, counters and removal.

use super::intent::{PREFIX, remove_cgroups};
use super::meter::{self, Meter};
use super::parents::{CgroupError, CgroupParents, Hierarchy, membership, vacate};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wp_codebox_contracts::{GroupUse, Limits, RunId};

/// Number of processes and threads that `pids.max` of the cgroup permits in addition to the guest's
/// programs. Launcher, pid 1 and process wrapper need fewer. A generous value does no harm, because
/// RLIMIT_NPROC limits the programs exactly.
const OWN_PROCESSES: u64 = 64;

/// Period of the CPU limit in microseconds, the kernel's default.
const PERIOD: u64 = 100_000;
/// CPU weight of a run, half of the default: where processors are short, a web server or another
/// service beside it gets twice the time.
const WEIGHT: (&str, &str) = ("50", "512");

/// What the kernel reports of a cgroup's limits: clauses for the isolation report.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// The memory limit.
    pub memory: String,
    /// The limit on processes, if one was set.
    pub pids: Option<u64>,
    /// The limit of CPU time, or why it is not in force; `None` if the run has none.
    pub cpu: Option<Result<String, &'static str>>,
}

/// Cgroup of one run, with one directory per cgroup hierarchy.
#[derive(Debug)]
pub struct RunCgroup {
    name: String,
    groups: Vec<Hierarchy>,
    /// Open `cgroup.procs` files, one per hierarchy. Writing a pid to each moves that process into
    /// the cgroup. The creator of the cgroup opens them, because the kernel checks the move with
    /// the credentials of the process that opened the file.
    members: Vec<OwnedFd>,
    limit: u64,
    /// Limit of TCP buffers in bytes, a part of `limit`; cgroup v1 counts TCP buffers separately.
    tcp: Option<u64>,
    /// Descriptor of `memory.force_empty` (cgroup v1). A write makes the kernel free the caches
    /// that are charged to the cgroup.
    reclaim: Option<Arc<OwnedFd>>,
    pids: Option<u64>,
    /// Limit of CPU time per [`PERIOD`] in microseconds.
    quota: Option<u64>,
}

/// Minimum and maximum of the TCP buffer limit in bytes. The limit is an eighth of `memory_bytes`,
/// raised to the minimum or lowered to the maximum where necessary.
const TCP: (u64, u64) = (4 << 20, 64 << 20);

impl RunCgroup {
    /// Returns the directories that [`RunCgroup::make`] will create for this run.
    #[must_use]
    pub fn directories(place: &CgroupParents, run_id: &RunId) -> Vec<PathBuf> {
        place
            .parents
            .iter()
            .map(|parent| parent.directory().join(format!("{PREFIX}{run_id}")))
            .collect()
    }

    /// Creates the cgroup and sets its limits. Fails when the memory limit cannot be set. Succeeds
    /// even if the number of processes cannot be limited or CPU time cannot be counted.
    pub fn make(
        place: &CgroupParents,
        run_id: &RunId,
        limits: &Limits,
    ) -> Result<Self, CgroupError> {
        let mut group = Self {
            name: format!("{PREFIX}{run_id}"),
            groups: Vec::new(),
            members: Vec::new(),
            // The kernel rounds limits to whole pages.
            limit: limits.memory_bytes.saturating_add(limits.disk_bytes) / 4096 * 4096,
            tcp: None,
            reclaim: None,
            pids: None,
            quota: limits.cpu_milli.map(|milli| milli * PERIOD / 1000),
        };
        let tcp = (limits.memory_bytes / 8).clamp(TCP.0, TCP.1) / 4096 * 4096;
        let pids = limits.processes.saturating_add(OWN_PROCESSES);
        for (position, parent) in place.parents.iter().enumerate() {
            let made = group.make_in(parent, pids, tcp);
            if let Err(error) = made
                && position == 0
            {
                group.remove();
                return Err(error);
            }
        }
        Ok(group)
    }

    fn make_in(&mut self, parent: &Hierarchy, pids: u64, tcp: u64) -> Result<(), CgroupError> {
        if let Hierarchy::Unified(above) = parent {
            delegate(above)?;
        }
        let path = parent.directory().join(&self.name);
        let io = |what| {
            let path = path.clone();
            move |source: io::Error| CgroupError::Io { what, path, source }
        };
        fs::create_dir(&path).map_err(io("creation"))?;
        let (limit, count) = (self.limit.to_string(), pids.to_string());
        let set = |file: &str, value: &str| fs::write(path.join(file), value);
        let limited = match parent {
            Hierarchy::Unified(_) => {
                // Both limits are optional: `memory.swap.max` is missing without swap,
                // `memory.oom.group` before Linux 4.19.
                let _ = set("memory.swap.max", "0");
                let _ = set("memory.oom.group", "1");
                if set("pids.max", &count).is_ok() {
                    self.pids = Some(pids);
                }
                // Whether the CPU limit is in force is read back later.
                let _ = set("cpu.weight", WEIGHT.0);
                if let Some(quota) = self.quota {
                    let _ = set("cpu.max", &format!("{quota} {PERIOD}"));
                }
                set("memory.max", &limit).map(|()| Hierarchy::Unified(path.clone()))
            }
            Hierarchy::Memory(_) => {
                // Cgroup v1 counts TCP buffers only when this limit is set, and does not add them
                // to the memory limit. The file is missing when the kernel lacks socket accounting
                // (CONFIG_MEMCG_V1).
                if set("memory.kmem.tcp.limit_in_bytes", &tcp.to_string()).is_ok() {
                    self.tcp = Some(tcp);
                }
                let rest = self.limit.saturating_sub(self.tcp.unwrap_or(0)).to_string();
                let flags = OFlags::WRONLY | OFlags::CLOEXEC;
                let reclaim = path.join("memory.force_empty");
                self.reclaim = rustix::fs::open(reclaim, flags, Mode::empty())
                    .ok()
                    .map(Arc::new);
                set("memory.limit_in_bytes", &rest).map(|()| {
                    let _ = set("memory.memsw.limit_in_bytes", &rest);
                    Hierarchy::Memory(path.clone())
                })
            }
            Hierarchy::Pids(_) => set("pids.max", &count).map(|()| {
                self.pids = Some(pids);
                Hierarchy::Pids(path.clone())
            }),
            Hierarchy::Cpuacct(_) | Hierarchy::Cpu(_) => {
                let _ = set("cpu.shares", WEIGHT.1);
                if let Some(quota) = self.quota {
                    let _ = set("cpu.cfs_period_us", &PERIOD.to_string());
                    let _ = set("cpu.cfs_quota_us", &quota.to_string());
                }
                Ok(match parent {
                    Hierarchy::Cpu(_) => Hierarchy::Cpu(path.clone()),
                    _ => Hierarchy::Cpuacct(path.clone()),
                })
            }
        };
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let ready = limited
            .map_err(io("setting a limit"))
            .and_then(|group| {
                // The process reads the limits back after it has given up root; the umask of the
                // units (0077) would deny that.
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                    .map_err(io("setting the mode"))?;
                Ok(group)
            })
            .and_then(|group| match shown_limit(&group, self.tcp) {
                Some(shown) if shown != self.limit => {
                    Err(CgroupError::Ignored { path: path.clone() })
                }
                Some(_) | None => Ok(group),
            })
            .and_then(|group| {
                let members = rustix::fs::open(path.join("cgroup.procs"), flags, Mode::empty())
                    .map_err(|e| io("opening cgroup.procs")(e.into()))?;
                Ok((group, members))
            });
        match ready {
            Ok((group, members)) => {
                self.groups.push(group);
                self.members.push(members);
                Ok(())
            }
            Err(error) => {
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// Moves the process `pid` into the cgroup of every hierarchy.
    pub(crate) fn join(&self, pid: i32) -> io::Result<()> {
        let text = pid.to_string();
        for members in &self.members {
            rustix::io::retry_on_intr(|| rustix::io::write(members, text.as_bytes()))?;
        }
        Ok(())
    }

    /// Returns the open `cgroup.procs` files. Writing a pid moves that process into the cgroup;
    /// writing 0 moves the writing process.
    pub(crate) fn members(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.members.iter().map(AsFd::as_fd)
    }

    /// Returns whether `/proc/<pid>/cgroup` names this run's cgroup, in the hierarchy with the
    /// memory controller.
    pub(crate) fn holds(&self, pid: i32) -> bool {
        let controller = match self.groups.first() {
            Some(Hierarchy::Unified(_)) => "",
            _ => "memory",
        };
        fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|text| {
            membership(&text, controller)
                .is_some_and(|path| path.rsplit('/').next() == Some(&self.name))
        })
    }

    /// Returns the limits that the kernel reports; `None` when the memory limit cannot be read.
    pub(crate) fn evidence(&self) -> Option<Evidence> {
        let group = self.groups.first()?;
        let shown = shown_limit(group, self.tcp)?;
        let version = self.kind();
        let tcp = match (self.tcp, version) {
            (Some(tcp), _) => format!(", {tcp} of them for TCP buffers"),
            (None, "version 1") => ", TCP buffers not included".to_owned(),
            (None, _) => String::new(),
        };
        Some(Evidence {
            memory: format!(
                "memory cgroup ({version}) limited to {shown} bytes, written files included{tcp}"
            ),
            pids: self.pids,
            cpu: self.quota.map(|quota| self.cpu_evidence(quota)),
        })
    }

    fn cpu_evidence(&self, quota: u64) -> Result<String, &'static str> {
        let shown = self.groups.iter().find_map(shown_quota);
        match shown {
            Some((shown, period)) if shown.checked_mul(PERIOD) == quota.checked_mul(period) => {
                Ok(format!(
                    "{shown} microseconds of CPU time in each {period}, read back from the cgroup of the run"
                ))
            }
            Some(_) => Err("the kernel did not apply the CPU limit to the cgroup of the run"),
            None => Err("the cgroup of the run has no CPU controller that could limit it"),
        }
    }

    /// Returns the cgroup version of the memory hierarchy: `version 1` or `version 2`.
    pub(crate) fn kind(&self) -> &'static str {
        match self.groups.first() {
            Some(Hierarchy::Unified(_)) => "version 2",
            _ => "version 1",
        }
    }

    /// Returns the counters of the whole run that its result reports.
    pub(crate) fn used(&self) -> GroupUse {
        meter::used(&self.groups)
    }

    /// Returns a meter of this cgroup that counts OOM kills and CPU time from now on.
    pub(crate) fn meter(&self) -> Meter {
        Meter::new(self.groups.clone(), self.reclaim.clone())
    }

    /// Returns whether at least one directory of the cgroup still exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.groups.iter().any(|group| group.directory().exists())
    }

    /// Removes the cgroup directories. On cgroup v2, first kills processes that are still members,
    /// in case the run has not killed its guests. Cgroup v1 has no `cgroup.kill`; there the guest
    /// ends when its launcher ends.
    pub fn remove(&self) {
        for group in &self.groups {
            if let Hierarchy::Unified(path) = group {
                let kill = path.join("cgroup.kill");
                let _ = fs::OpenOptions::new()
                    .write(true)
                    .open(kill)
                    .and_then(|mut file| file.write_all(b"1"));
            }
        }
        let paths: Vec<PathBuf> = self
            .groups
            .iter()
            .map(|group| group.directory().to_owned())
            .collect();
        remove_cgroups(&paths);
    }
}

/// Enables the memory controller, and the controllers pids and cpu if possible, for child cgroups of
/// `above`. Succeeds when they are enabled already.
fn delegate(above: &Path) -> Result<(), CgroupError> {
    let control = above.join("cgroup.subtree_control");
    let has = || {
        fs::read_to_string(&control)
            .is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
    };
    if !has() {
        let enable = || fs::write(&control, "+memory");
        let enabled = enable().or_else(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => vacate(above).and_then(|()| enable()),
            _ => Err(error),
        });
        enabled.map_err(|source| CgroupError::NotDelegated {
            path: above.to_owned(),
            source,
        })?;
    }
    // Without pids only RLIMIT_NPROC limits the number of processes; without cpu runs compete as
    // their processes do.
    for controller in ["+pids", "+cpu"] {
        let _ = fs::write(&control, controller);
    }
    Ok(())
}

/// Returns the memory limit that the kernel reports, plus the TCP buffer limit where one was set.
fn shown_limit(group: &Hierarchy, tcp: Option<u64>) -> Option<u64> {
    let read =
        |file: PathBuf| -> Option<u64> { fs::read_to_string(file).ok()?.trim().parse().ok() };
    match group {
        Hierarchy::Unified(path) => read(path.join("memory.max")),
        Hierarchy::Memory(path) => {
            let shown = read(path.join("memory.limit_in_bytes"))?;
            let apart = match tcp {
                Some(_) => read(path.join("memory.kmem.tcp.limit_in_bytes"))?,
                None => 0,
            };
            shown.checked_add(apart)
        }
        Hierarchy::Pids(_) | Hierarchy::Cpuacct(_) | Hierarchy::Cpu(_) => None,
    }
}

/// Returns the limit of CPU time that the kernel reports, and its period, both in microseconds.
/// `None` without a CPU controller or a limit.
fn shown_quota(group: &Hierarchy) -> Option<(u64, u64)> {
    let read = |path: &Path, name: &str| fs::read_to_string(path.join(name)).ok();
    match group {
        Hierarchy::Unified(path) => {
            let text = read(path, "cpu.max")?;
            let (quota, period) = text.trim().split_once(' ')?;
            Some((quota.parse().ok()?, period.parse().ok()?))
        }
        Hierarchy::Cpuacct(path) | Hierarchy::Cpu(path) => {
            let number = |name| read(path, name)?.trim().parse().ok();
            Some((number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?))
        }
        Hierarchy::Memory(_) | Hierarchy::Pids(_) => None,
    }
}

#[cfg(test)]
mod tests;
