//! Parent directories in which this process may create cgroups: the directory that the operator
//! configured, otherwise this process's own cgroup of the unified hierarchy (v2), otherwise its own
//! cgroups of the v1 hierarchies.
//!
//! A cgroup is created only below its creator's own cgroup or in the operator's directory, so a
//! limit that the operator sets on that cgroup or directory also applies to the guests. Where
//! systemd manages the unified hierarchy, only a cgroup that systemd delegated is used.

use rustix::fd::AsFd;
use rustix::fs::{fstatfs, statfs};
use std::fs;
use std::path::{Path, PathBuf};

const CGROUP1_MAGIC: u64 = 0x0027_e0eb;
const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// Name of the subgroup for the processes of a delegated cgroup, which may have either processes or
/// controllers for child cgroups.
const SUBGROUP: &str = "wp-codebox-supervisor";
/// Exists if systemd is the service manager, see sd_booted(3).
const SYSTEMD: &str = "/run/systemd/system";
/// Extended attributes with which systemd marks a delegated cgroup: for everybody (since version
/// 251), and for root.
const DELEGATED: [&str; 2] = ["user.delegate", "trusted.delegate"];
/// Attempts to move the processes of a delegated cgroup into its subgroup; a process may fork
/// between two of them.
const MOVES: usize = 16;

/// Reason why no cgroup can be created for a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// The configured directory is not a cgroup directory with a memory controller.
    #[error(
        "the configured path {path:?} is not a cgroup directory with a memory controller; correct --cgroup or wp_codebox.cgroup"
    )]
    NotMemory {
        /// Directory as configured.
        path: PathBuf,
    },
    /// This process has no visible cgroup in a hierarchy with a memory controller.
    #[error(
        "this process has no visible cgroup with a memory controller; name one with --cgroup or wp_codebox.cgroup"
    )]
    Invisible,
    /// This process's cgroup belongs to systemd.
    #[error("systemd has not delegated the cgroup of this process, {path:?}")]
    OfSystemd {
        /// The cgroup.
        path: PathBuf,
    },
    /// The memory controller cannot be enabled for child cgroups.
    #[error(
        "the memory controller of the cgroup {path:?} cannot be enabled for child cgroups: {source}; delegate that cgroup to this user"
    )]
    NotDelegated {
        /// Cgroup whose children cannot get the memory controller.
        path: PathBuf,
        /// Error of the write to `cgroup.subtree_control`.
        source: std::io::Error,
    },
    /// A cgroup cannot be created or limited.
    #[error("the cgroup {path:?} of the run could not be used: {what} failed: {source}")]
    Io {
        /// Failed operation: `creation`, `setting the mode`, `setting a limit` or `opening cgroup.procs`.
        what: &'static str,
        /// Directory of the cgroup that could not be created or limited.
        path: PathBuf,
        /// Error of the failed operation.
        source: std::io::Error,
    },
    /// The kernel accepted the memory limit but reports a different one.
    #[error(
        "the kernel did not apply the memory limit that was set for the cgroup {path:?} of the run"
    )]
    Ignored {
        /// Directory of the cgroup with the unexpected limit.
        path: PathBuf,
    },
}

/// A cgroup directory, with the version and the controller of its hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// Cgroup v2, with the controllers memory, pids and cpu.
    Unified(PathBuf),
    /// Cgroup v1, memory controller.
    Memory(PathBuf),
    /// Cgroup v1, pids controller.
    Pids(PathBuf),
    /// Cgroup v1, cpuacct controller, and the cpu controller if both are mounted together.
    Cpuacct(PathBuf),
    /// Cgroup v1, cpu controller.
    Cpu(PathBuf),
}

impl Hierarchy {
    pub(super) fn directory(&self) -> &Path {
        match self {
            Self::Unified(path)
            | Self::Memory(path)
            | Self::Pids(path)
            | Self::Cpuacct(path)
            | Self::Cpu(path) => path,
        }
    }
}

/// Directories below which the cgroups of runs are created, one per hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupParents {
    /// Parent directories, the one with the memory controller first.
    pub(super) parents: Vec<Hierarchy>,
}

impl CgroupParents {
    /// Uses the directory `path` that the operator configured.
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

    /// Uses the cgroups that this process is a member of.
    pub fn own() -> Result<Self, CgroupError> {
        let read = |path| fs::read_to_string(path).map_err(|_| CgroupError::Invisible);
        let memberships = read("/proc/self/cgroup")?;
        let mounts = read("/proc/self/mountinfo")?;
        let parents = parents(&memberships, &mounts, has_memory);
        match parents.first() {
            None => Err(CgroupError::Invisible),
            Some(Hierarchy::Unified(path)) if Path::new(SYSTEMD).is_dir() && !delegated(path) => {
                Err(CgroupError::OfSystemd { path: path.clone() })
            }
            Some(_) => Ok(Self { parents }),
        }
    }
}

/// Returns whether an open directory lies on a cgroup file system, v1 or v2.
pub(super) fn is_cgroup(directory: impl AsFd) -> bool {
    fstatfs(directory).is_ok_and(|found| {
        u64::try_from(found.f_type).is_ok_and(|kind| matches!(kind, CGROUP1_MAGIC | CGROUP2_MAGIC))
    })
}

/// Returns whether systemd has delegated a cgroup: the manager of a user does not mark it, so the
/// names of this project's own units count as well.
fn delegated(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let scope = name.starts_with("wp-codebox-run_") && name.ends_with(".scope");
    let service = name.starts_with("wp-codebox@") && name.ends_with(".service");
    scope || service || is_marked(path)
}

/// Returns whether a cgroup has one of the attributes [`DELEGATED`].
fn is_marked(path: &Path) -> bool {
    DELEGATED.iter().any(|name| {
        let mut value = [0_u8; 2];
        let read = rustix::fs::getxattr(path, *name, &mut value);
        read.is_ok_and(|length| value.get(..length) == Some(b"1".as_slice()))
    })
}

/// Moves all processes of the unified cgroup `above` into its subgroup, because the kernel enables
/// controllers only for the children of a cgroup without processes.
pub(super) fn vacate(above: &Path) -> std::io::Result<()> {
    let subgroup = above.join(SUBGROUP);
    match fs::create_dir(&subgroup) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for _ in 0..MOVES {
        let processes = fs::read_to_string(above.join("cgroup.procs"))?;
        if processes.is_empty() {
            return Ok(());
        }
        for pid in processes.lines() {
            match fs::write(subgroup.join("cgroup.procs"), pid) {
                // The process has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                moved => moved?,
            }
        }
    }
    Err(rustix::io::Errno::BUSY.into())
}

fn filesystem(path: &Path) -> Option<u64> {
    u64::try_from(statfs(path).ok()?.f_type).ok()
}

fn has_memory(unified: &Path) -> bool {
    fs::read_to_string(unified.join("cgroup.controllers"))
        .is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
}

/// Returns this process's unified cgroup (v2) if it has a memory controller, otherwise its v1
/// cgroups if one of them has a memory controller, otherwise an empty list.
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
    let (counted, limited) = (own("cpuacct"), own("cpu"));
    all.extend(
        limited
            .filter(|path| counted.as_ref() != Some(path))
            .map(Hierarchy::Cpu),
    );
    all.extend(counted.map(Hierarchy::Cpuacct));
    all
}

/// Returns the path of a process's cgroup for the v1 controller `controller`, or of its unified
/// cgroup (v2) if `controller` is empty, from the text of `/proc/<pid>/cgroup`.
pub(super) fn membership<'t>(text: &'t str, controller: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?;
        // The line of the unified hierarchy has an empty controller list, which splits into one
        // empty name.
        let wanted = controllers.split(',').any(|name| name == controller);
        wanted.then_some(path)
    })
}

/// Returns the cgroup that systemd delegated to the unit of a process in the cgroup `own`: if that
/// process was moved into the subgroup, by systemd (`DelegateSubgroup=`) or by [`vacate`], it is the
/// parent.
fn outside_subgroup(own: PathBuf) -> PathBuf {
    match own.parent() {
        Some(above) if own.ends_with(SUBGROUP) => above.to_owned(),
        Some(_) | None => own,
    }
}

/// Returns the directory of this process's cgroup for the v1 controller `controller`, or of its
/// unified cgroup (v2) if `controller` is empty.
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
        // If `path` is not below `root` or contains `..`, the cgroup lies outside the mounted part
        // of the hierarchy or outside this cgroup namespace, and this process cannot use it.
        let below = Path::new(path).strip_prefix(&root).ok()?;
        let climbs = path.split('/').any(|part| part == "..");
        (fits && !climbs).then(|| Path::new(&point).join(below))
    })
}

/// Decodes the octal escapes of mountinfo: space, tab, line feed and backslash.
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
    fn systemd_service_in_its_delegate_subgroup_uses_the_parent_cgroup() {
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
    fn only_units_of_this_project_count_as_delegated_without_a_mark_of_systemd() {
        let app = "/none/user.slice/user-1000.slice/user@1000.service/app.slice";
        for (name, is) in [
            (
                "wp-codebox-run_0123456789abcdef0123456789abcdef.scope",
                true,
            ),
            ("wp-codebox@4-77-1000.service", true),
            ("wp-codebox-serve.service", false),
            ("session-2.scope", false),
            ("php8.2-fpm.service", false),
        ] {
            assert_eq!(delegated(&Path::new(app).join(name)), is, "{name}");
        }
    }

    #[test]
    fn unified_hierarchy_is_preferred_when_it_has_the_memory_controller() {
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
        // Two controllers of version 1 that are mounted together are one hierarchy.
        assert_eq!(
            parents("4:memory:/\n3:cpu,cpuacct:/a\n", MOUNTS, |_| false)[1..],
            [Hierarchy::Cpuacct("/sys/fs/cgroup/cpu,cpuacct/a".into())]
        );
    }

    #[test]
    fn cgroup_path_is_relative_to_the_mount_root_and_paths_outside_it_are_refused() {
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
    fn configured_path_that_is_no_cgroup_directory_is_refused() {
        assert!(CgroupParents::named(Path::new("/tmp")).is_err());
        assert!(CgroupParents::named(Path::new("/does/not/exist")).is_err());
    }
}
