//! One run's group: made, limited, joined, read and removed.

use super::place::{CgroupError, CgroupPlace, Hierarchy, membership};
use super::{PREFIX, remove_cgroups};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{Limits, RunId};

/// Processes and threads in the group that are not the guest's: launcher, pid 1, and what
/// an outer sandbox needs. The guest's own number is limited exactly by RLIMIT_NPROC.
const OWN_PROCESSES: u64 = 64;

/// The group of one run, in one or several hierarchies.
#[derive(Debug)]
pub struct RunCgroup {
    name: String,
    groups: Vec<Hierarchy>,
    /// For writing pids, opened by whoever made the group.
    members: Vec<OwnedFd>,
    limit: u64,
    pids: Option<u64>,
}

impl RunCgroup {
    /// Directories that [`RunCgroup::make`] will make for this run.
    #[must_use]
    pub fn directories(place: &CgroupPlace, run_id: &RunId) -> Vec<PathBuf> {
        place
            .parents
            .iter()
            .map(|parent| parent.directory().join(format!("{PREFIX}{run_id}")))
            .collect()
    }

    /// Makes and limits the group. Without a limit on memory there is none; the number of
    /// processes and CPU accounting are taken where they can be had.
    pub fn make(place: &CgroupPlace, run_id: &RunId, limits: &Limits) -> Result<Self, CgroupError> {
        let mut group = Self {
            name: format!("{PREFIX}{run_id}"),
            groups: Vec::new(),
            members: Vec::new(),
            // The kernel counts whole pages.
            limit: limits.memory_bytes.saturating_add(limits.disk_bytes) / 4096 * 4096,
            pids: None,
        };
        let pids = limits.processes.saturating_add(OWN_PROCESSES);
        for (position, parent) in place.parents.iter().enumerate() {
            let made = group.make_in(parent, pids);
            if let Err(error) = made
                && position == 0
            {
                group.remove();
                return Err(error);
            }
        }
        Ok(group)
    }

    fn make_in(&mut self, parent: &Hierarchy, pids: u64) -> Result<(), CgroupError> {
        if let Hierarchy::Unified(above) = parent {
            delegate(above)?;
        }
        let path = parent.directory().join(&self.name);
        let io = |what| {
            let path = path.clone();
            move |source: io::Error| CgroupError::Io { what, path, source }
        };
        fs::create_dir(&path).map_err(io("making"))?;
        let (limit, count) = (self.limit.to_string(), pids.to_string());
        let set = |file: &str, value: &str| fs::write(path.join(file), value);
        let limited = match parent {
            Hierarchy::Unified(_) => {
                // Absent where there is no swap, or on old kernels.
                let _ = set("memory.swap.max", "0");
                let _ = set("memory.oom.group", "1");
                if set("pids.max", &count).is_ok() {
                    self.pids = Some(pids);
                }
                set("memory.max", &limit).map(|()| Hierarchy::Unified(path.clone()))
            }
            Hierarchy::Memory(_) => set("memory.limit_in_bytes", &limit).map(|()| {
                let _ = set("memory.memsw.limit_in_bytes", &limit);
                Hierarchy::Memory(path.clone())
            }),
            Hierarchy::Pids(_) => set("pids.max", &count).map(|()| {
                self.pids = Some(pids);
                Hierarchy::Pids(path.clone())
            }),
            Hierarchy::Cpuacct(_) => Ok(Hierarchy::Cpuacct(path.clone())),
        };
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let ready = limited
            .map_err(io("limiting"))
            .and_then(|group| match shown_limit(&group) {
                Some(shown) if shown != self.limit => {
                    Err(CgroupError::Ignored { path: path.clone() })
                }
                Some(_) | None => Ok(group),
            })
            .and_then(|group| {
                let members = rustix::fs::open(path.join("cgroup.procs"), flags, Mode::empty())
                    .map_err(|e| io("opening the members")(e.into()))?;
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

    /// Puts a process into the group, in every hierarchy.
    pub(crate) fn join(&self, pid: i32) -> io::Result<()> {
        let text = pid.to_string();
        for members in &self.members {
            rustix::io::retry_on_intr(|| rustix::io::write(members, text.as_bytes()))?;
        }
        Ok(())
    }

    /// Whether the kernel says that a process is in the group, by its memory hierarchy.
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

    /// What the limit files show now, for the report.
    pub(crate) fn evidence(&self) -> Option<(String, Option<u64>)> {
        let group = self.groups.first()?;
        let shown = shown_limit(group)?;
        let version = self.kind();
        Some((
            format!("memory cgroup ({version}) limited to {shown} bytes, written files included"),
            self.pids,
        ))
    }

    /// `version 1` or `version 2`.
    pub(crate) fn kind(&self) -> &'static str {
        match self.groups.first() {
            Some(Hierarchy::Unified(_)) => "version 2",
            _ => "version 1",
        }
    }

    /// What reads this group's counters, from now on.
    pub(crate) fn meter(&self) -> Meter {
        let mut meter = Meter {
            groups: self.groups.clone(),
            ooms: 0,
            cpu: (0, 0),
        };
        meter.ooms = meter.ooms().unwrap_or_default();
        meter.cpu = meter.cpu_us().unwrap_or_default();
        meter
    }

    /// Whether any part of it is still there.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.groups.iter().any(|group| group.directory().exists())
    }

    /// Removes the group and ends what is in it, which is nothing when its guests were
    /// killed. Version 1 has no such kill; there a guest ends with its launcher.
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

/// Gives the controllers to groups below; they may be there already.
fn delegate(above: &Path) -> Result<(), CgroupError> {
    let control = above.join("cgroup.subtree_control");
    let has = || {
        fs::read_to_string(&control)
            .is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
    };
    if !has() {
        fs::write(&control, "+memory").map_err(|source| CgroupError::NotDelegated {
            path: above.to_owned(),
            source,
        })?;
    }
    // Without it, RLIMIT_NPROC is the limit.
    let _ = fs::write(&control, "+pids");
    Ok(())
}

fn shown_limit(group: &Hierarchy) -> Option<u64> {
    let file = match group {
        Hierarchy::Unified(path) => path.join("memory.max"),
        Hierarchy::Memory(path) => path.join("memory.limit_in_bytes"),
        Hierarchy::Pids(_) | Hierarchy::Cpuacct(_) => return None,
    };
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Reads the counters of a group, counted from when it was taken.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    groups: Vec<Hierarchy>,
    ooms: u64,
    cpu: (u64, u64),
}

impl Meter {
    /// Memory of the processes now, files on the scratch not counted, bytes.
    pub(crate) fn processes(&self) -> Option<u64> {
        self.groups.iter().find_map(|group| match group {
            Hierarchy::Unified(path) => field(&path.join("memory.stat"), "anon"),
            Hierarchy::Memory(path) => field(&path.join("memory.stat"), "total_rss")
                .or_else(|| field(&path.join("memory.stat"), "rss")),
            Hierarchy::Pids(_) | Hierarchy::Cpuacct(_) => None,
        })
    }

    /// Whether the kernel has ended one of its processes for want of memory.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        self.ooms().is_some_and(|now| now > self.ooms)
    }

    fn ooms(&self) -> Option<u64> {
        self.groups.iter().find_map(|group| match group {
            Hierarchy::Unified(path) => field(&path.join("memory.events"), "oom_kill"),
            Hierarchy::Memory(path) => field(&path.join("memory.oom_control"), "oom_kill"),
            Hierarchy::Pids(_) | Hierarchy::Cpuacct(_) => None,
        })
    }

    /// User and system CPU time of everything that was ever in it, microseconds.
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
            Hierarchy::Memory(_) | Hierarchy::Pids(_) => None,
        })
    }
}

/// The number after `name` in a file of `name number` lines.
fn field(path: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(path)
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .and_then(|number| number.trim().parse().ok())
}

#[cfg(test)]
mod tests;
