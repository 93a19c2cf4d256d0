//! Where this process may make groups: a directory the operator named, else its own group
//! of the unified hierarchy, else its own groups of the version 1 hierarchies.
//!
//! A group is only ever made below the group its maker is in, or where the operator said:
//! limits that hold for the maker hold for its guests.

use rustix::fs::statfs;
use std::fs;
use std::path::{Path, PathBuf};

const CGROUP1_MAGIC: u64 = 0x0027_e0eb;
const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// `DelegateSubgroup` of our service unit.
const SUBGROUP: &str = "wp-codebox-supervisor";

/// Why there is no group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// The named directory is none of a cgroup file system with a memory controller.
    #[error("{path:?} is no cgroup directory with a memory controller")]
    NotMemory {
        /// As given.
        path: PathBuf,
    },
    /// No hierarchy with a memory controller has this process in a visible group.
    #[error("this process sees no memory cgroup of its own")]
    Invisible,
    /// The memory controller cannot be given to groups below.
    #[error("the memory controller of {path:?} cannot be delegated: {source}")]
    NotDelegated {
        /// Which group.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A group cannot be made or limited.
    #[error("{what} of {path:?} failed: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Which group.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The kernel took the limit and shows another one.
    #[error("{path:?} shows another memory limit than was set")]
    Ignored {
        /// Which group.
        path: PathBuf,
    },
}

/// A directory below which groups can be made, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// Version 2: memory, pids and accounting in one.
    Unified(PathBuf),
    /// Version 1, memory.
    Memory(PathBuf),
    /// Version 1, number of processes.
    Pids(PathBuf),
    /// Version 1, CPU accounting.
    Cpuacct(PathBuf),
}

impl Hierarchy {
    pub(super) fn directory(&self) -> &Path {
        match self {
            Self::Unified(path) | Self::Memory(path) | Self::Pids(path) | Self::Cpuacct(path) => {
                path
            }
        }
    }
}

/// Where the group of a run goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupPlace {
    /// The one with memory comes first.
    pub(super) parents: Vec<Hierarchy>,
}

impl CgroupPlace {
    /// The place named by the operator.
    pub fn named(path: &Path) -> Result<Self, CgroupError> {
        let wrong = || CgroupError::NotMemory {
            path: path.to_owned(),
        };
        let path = fs::canonicalize(path).map_err(|_| wrong())?;
        let parent = match filesystem(&path) {
            Some(CGROUP2_MAGIC) if has_memory(&path) => Hierarchy::Unified(path),
            Some(CGROUP1_MAGIC) if path.join("memory.limit_in_bytes").exists() => {
                Hierarchy::Memory(path)
            }
            _ => return Err(wrong()),
        };
        Ok(Self {
            parents: vec![parent],
        })
    }

    /// Below the groups this process is in.
    pub fn own() -> Result<Self, CgroupError> {
        let read = |path| fs::read_to_string(path).map_err(|_| CgroupError::Invisible);
        let memberships = read("/proc/self/cgroup")?;
        let mounts = read("/proc/self/mountinfo")?;
        let parents = parents(&memberships, &mounts, has_memory);
        if parents.is_empty() {
            return Err(CgroupError::Invisible);
        }
        Ok(Self { parents })
    }
}

/// Whether a path lies on a cgroup file system of either version.
pub(super) fn is_cgroup(path: &Path) -> bool {
    matches!(filesystem(path), Some(CGROUP1_MAGIC | CGROUP2_MAGIC))
}

fn filesystem(path: &Path) -> Option<u64> {
    u64::try_from(statfs(path).ok()?.f_type).ok()
}

fn has_memory(unified: &Path) -> bool {
    fs::read_to_string(unified.join("cgroup.controllers"))
        .is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
}

/// The unified group when it has memory, else the version 1 groups when one of them has.
fn parents(memberships: &str, mounts: &str, has_memory: impl Fn(&Path) -> bool) -> Vec<Hierarchy> {
    let own = |controller: &str| own_directory(memberships, mounts, controller);
    let unified = own("").map(outside_subgroup);
    if let Some(unified) = unified.filter(|path| has_memory(path)) {
        return vec![Hierarchy::Unified(unified)];
    }
    let Some(memory) = own("memory") else {
        return Vec::new();
    };
    let mut all = vec![Hierarchy::Memory(memory)];
    all.extend(own("pids").map(Hierarchy::Pids));
    all.extend(own("cpuacct").map(Hierarchy::Cpuacct));
    all
}

/// Path of a process's group for a version 1 controller, or unified for the empty name, from
/// the text of its `/proc/<pid>/cgroup`.
pub(super) fn membership<'t>(text: &'t str, controller: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?;
        // The unified hierarchy's line names no controller: its only name is empty.
        let wanted = controllers.split(',').any(|name| name == controller);
        wanted.then_some(path)
    })
}

/// A service manager puts a service with delegated groups into a subgroup, because a group of
/// the unified hierarchy has members or groups below it, never both: the group above it is
/// what was delegated. The name says that it was made for this.
fn outside_subgroup(own: PathBuf) -> PathBuf {
    match own.parent() {
        Some(above) if own.ends_with(SUBGROUP) => above.to_owned(),
        Some(_) | None => own,
    }
}

/// Directory of this process's group for a version 1 controller, or unified for the empty name.
fn own_directory(memberships: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let path = membership(memberships, controller)?;
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let front: Vec<&str> = front.split(' ').collect();
        let mut back = back.split(' ');
        let (kind, options) = (back.next()?, back.nth(1)?);
        let fits = if controller.is_empty() {
            kind == "cgroup2"
        } else {
            kind == "cgroup" && options.split(',').any(|name| name == controller)
        };
        let (root, point) = (unescaped(front.get(3)?), unescaped(front.get(4)?));
        // Outside of what is mounted, or of this cgroup namespace: not ours to use.
        let below = Path::new(path).strip_prefix(&root).ok()?;
        let climbs = path.split('/').any(|part| part == "..");
        (fits && !climbs).then(|| Path::new(&point).join(below))
    })
}

/// Space, tab, line feed and backslash are octal in mountinfo.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
25 20 0:22 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
26 20 0:23 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
27 20 0:24 /docker/abc /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
28 20 0:25 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
29 20 0:26 / /mnt/with\\040space rw - cgroup cgroup rw,devices
";

    #[test]
    fn a_service_uses_what_was_delegated_around_its_subgroup() {
        let service = "/system.slice/wp-codebox@1.service";
        let own = |group: &str| parents(&format!("0::{group}\n"), MOUNTS, |_| true);
        let delegated = Hierarchy::Unified(format!("/sys/fs/cgroup/unified{service}").into());
        assert_eq!(
            own(&format!("{service}/wp-codebox-supervisor")),
            std::slice::from_ref(&delegated)
        );
        assert_eq!(own(service), [delegated]);
        let other = Hierarchy::Unified(format!("/sys/fs/cgroup/unified{service}/x").into());
        assert_eq!(own(&format!("{service}/x")), [other]);
    }

    #[test]
    fn the_unified_hierarchy_comes_first_when_it_has_memory() {
        let memberships = "4:memory:/a/b\n0::/c/d\n";
        let unified = "/sys/fs/cgroup/unified/c/d";
        assert_eq!(
            parents(memberships, MOUNTS, |path| path == Path::new(unified)),
            [Hierarchy::Unified(unified.into())]
        );
        assert_eq!(
            parents(memberships, MOUNTS, |_| false),
            [Hierarchy::Memory("/sys/fs/cgroup/memory/a/b".into())]
        );
        assert!(parents("0::/c/d\n", MOUNTS, |_| false).is_empty());
    }

    #[test]
    fn roots_of_mounts_are_taken_off_and_foreign_paths_refused() {
        let directory =
            |path: &str, name: &str| own_directory(&format!("7:{name}:{path}\n"), MOUNTS, name);
        let pids = directory("/docker/abc/x", "pids").unwrap();
        assert_eq!(pids, Path::new("/sys/fs/cgroup/pids/x"));
        assert_eq!(directory("/elsewhere", "pids"), None);
        assert_eq!(directory("/../outside", "memory"), None);
        assert_eq!(
            directory("/", "cpuacct").unwrap(),
            Path::new("/sys/fs/cgroup/cpu,cpuacct/")
        );
        assert_eq!(
            directory("/", "devices").unwrap(),
            Path::new("/mnt/with space/")
        );
    }

    #[test]
    fn a_directory_without_memory_is_refused() {
        assert!(CgroupPlace::named(Path::new("/tmp")).is_err());
        assert!(CgroupPlace::named(Path::new("/does/not/exist")).is_err());
    }
}
