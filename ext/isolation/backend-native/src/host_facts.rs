//! Host facts that decide whether guests can be isolated.
//!
//! The facts are read from `/proc` and `/sys`. When any of them changes, an earlier self-test is
//! outdated. Facts explain the result of a self-test; they never replace it.

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use wp_codebox_contracts::KernelVersion;

/// Sysctls that allow, forbid or limit namespaces, and the overcommit mode of memory.
const SYSCTLS: [&str; 10] = [
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "user/max_user_namespaces",
    "user/max_mnt_namespaces",
    "user/max_pid_namespaces",
    "user/max_net_namespaces",
    "user/max_ipc_namespaces",
    "user/max_uts_namespaces",
    "user/max_cgroup_namespaces",
    "vm/overcommit_memory",
];

/// Facts about a host, read by the process that starts launchers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostFacts {
    /// Release of the running kernel, for example `6.8.0-31-generic`.
    pub kernel: String,
    /// Kernel's boot id, which changes at every boot; empty when the host does not report one.
    pub boot_id: String,
    /// Uid of the process that starts launchers.
    pub uid: u32,
    /// Names of the active Linux security modules; empty when the host does not list them.
    pub lsm: Vec<String>,
    /// Values of the sysctls that affect isolation, by their path below `/proc/sys`; missing ones
    /// are left out.
    pub sysctls: BTreeMap<String, String>,
    /// `Seccomp` field of `/proc/self/status`; 2 when a seccomp filter is active already.
    pub seccomp: String,
    /// AppArmor label of the supervisor's process; empty when there is none.
    pub apparmor: String,
    /// User namespace of the supervisor's process as the kernel names it, for example
    /// `user:[4026531837]`.
    pub user_namespace: String,
    /// Paths below `/proc` over which something else is mounted; this can prevent mounting a new
    /// `/proc`.
    pub covered_proc: Vec<String>,
    /// Whether the supervisor runs in a container, as a systemd service, or neither.
    pub surroundings: Surroundings,
    /// Cgroup hierarchies mounted on this host, in the order of the mounts.
    pub cgroups: Vec<CgroupHierarchy>,
}

/// Kind of environment in which a process runs, as far as it can be detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Surroundings {
    /// Neither a container nor a service was detected.
    #[default]
    Plain,
    /// The process runs in a container.
    Container,
    /// The process belongs to a systemd service.
    Service,
}

/// A mounted cgroup hierarchy and whether guests can use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupHierarchy {
    /// Name of the hierarchy: `v2`, or the controllers of a v1 hierarchy, for example `memory`.
    pub name: String,
    /// Whether this process may create cgroups in the hierarchy.
    pub state: CgroupState,
}

/// Whether the process may create cgroups in a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupState {
    /// The process may write to its own cgroup, so it can create child cgroups.
    Writable,
    /// The cgroup file system is mounted read-only.
    ReadOnly,
    /// The cgroup belongs to another user.
    NotDelegated,
}

impl HostFacts {
    /// Reads the facts of this host from `/proc` and `/sys`.
    #[must_use]
    pub fn read() -> Self {
        let status = text("/proc/self/status");
        let mounts = text("/proc/self/mountinfo");
        let groups = text("/proc/self/cgroup");
        let mut facts = Self {
            kernel: text("/proc/sys/kernel/osrelease"),
            boot_id: text("/proc/sys/kernel/random/boot_id"),
            uid: rustix::process::geteuid().as_raw(),
            lsm: text("/sys/kernel/security/lsm")
                .split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            sysctls: SYSCTLS
                .iter()
                .filter_map(|name| {
                    let value = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
                    Some(((*name).to_owned(), value.trim().to_owned()))
                })
                .collect(),
            seccomp: field(&status, "Seccomp:"),
            apparmor: text("/proc/self/attr/apparmor/current"),
            user_namespace: fs::read_link("/proc/self/ns/user")
                .map(|link| link.to_string_lossy().into_owned())
                .unwrap_or_default(),
            covered_proc: covered_proc(&mounts),
            surroundings: surroundings(&groups, &mounts),
            cgroups: Vec::new(),
        };
        facts.cgroups = cgroups(&mounts, &groups, |path| {
            access(path, Access::WRITE_OK).is_ok()
        });
        facts
    }

    /// Returns whether the kernel is at least this version; an unreadable release counts as new
    /// enough.
    #[must_use]
    pub fn kernel_at_least(&self, version: KernelVersion) -> bool {
        release_at_least(&self.kernel, version)
    }

    /// Returns the same for the running kernel, without reading the other facts.
    #[must_use]
    pub fn running_kernel_at_least(version: KernelVersion) -> bool {
        release_at_least(&text("/proc/sys/kernel/osrelease"), version)
    }

    /// Returns the value of the sysctl `name`, classified as zero or positive.
    #[must_use]
    pub fn sysctl(&self, name: &str) -> SettingValue {
        match self.sysctls.get(name).map(|value| value.parse::<u64>()) {
            Some(Ok(0)) => SettingValue::Zero,
            Some(Ok(_)) => SettingValue::Positive,
            Some(Err(_)) | None => SettingValue::Unknown,
        }
    }
}

fn release_at_least(release: &str, version: KernelVersion) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().unwrap_or(u32::MAX));
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) >= version,
        _ => true,
    }
}

/// Whether a sysctl is zero or positive; the diagnosis needs no exact value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingValue {
    /// The value is 0.
    Zero,
    /// The value is above 0.
    Positive,
    /// This kernel lacks the sysctl, or its value is not a number.
    Unknown,
}

/// Reads a small file without its trailing newline; empty when it cannot be read.
fn text(path: &str) -> String {
    fs::read_to_string(path)
        .map(|text| text.trim_end_matches(['\n', '\0']).to_owned())
        .unwrap_or_default()
}

fn field(status: &str, name: &str) -> String {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(|value| value.trim().to_owned())
        .unwrap_or_default()
}

/// Returns mount point, mount options, file system type and super options of each line of a
/// `mountinfo` text.
fn mounts(text: &str) -> impl Iterator<Item = (&str, &str, &str, &str)> {
    text.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(4);
        let mut after = after.split(' ');
        let (point, options) = (before.next()?, before.next()?);
        let kind = after.next()?;
        Some((point, options, kind, after.nth(1).unwrap_or_default()))
    })
}

fn covered_proc(mountinfo: &str) -> Vec<String> {
    mounts(mountinfo)
        .map(|(point, ..)| point)
        // The kernel automounts this path on demand, so a mount there hides no part of /proc.
        .filter(|point| point.starts_with("/proc/") && *point != "/proc/sys/fs/binfmt_misc")
        .map(str::to_owned)
        .collect()
}

fn surroundings(groups: &str, mountinfo: &str) -> Surroundings {
    let marks = ["docker", "kubepods", "libpod", "lxc", "containerd"];
    let rooted = mounts(mountinfo).any(|(point, _, kind, _)| point == "/" && kind == "overlay");
    let marked = groups
        .lines()
        .any(|line| marks.iter().any(|m| line.contains(m)));
    let files = ["/.dockerenv", "/run/.containerenv"];
    if marked || rooted || files.iter().any(|file| Path::new(file).exists()) {
        return Surroundings::Container;
    }
    let service = |line: &str| line.split('/').any(|part| part.ends_with(".service"));
    if groups.lines().any(service) {
        return Surroundings::Service;
    }
    Surroundings::Plain
}

fn cgroups(
    mountinfo: &str,
    groups: &str,
    writable: impl Fn(&Path) -> bool,
) -> Vec<CgroupHierarchy> {
    mounts(mountinfo)
        .filter_map(|(point, options, kind, own)| {
            let name = match kind {
                "cgroup2" => "v2".to_owned(),
                "cgroup" => own.strip_prefix("rw,").unwrap_or(own).to_owned(),
                _ => return None,
            };
            let read_only = |options: &str| options.split(',').any(|option| option == "ro");
            let state = if read_only(options) || read_only(own) {
                CgroupState::ReadOnly
            } else if writable(&own_group(point, &name, groups)) {
                CgroupState::Writable
            } else {
                CgroupState::NotDelegated
            };
            Some(CgroupHierarchy { name, state })
        })
        .collect()
}

/// Returns the directory of this process's own cgroup in the hierarchy mounted at `point`.
fn own_group(point: &str, name: &str, groups: &str) -> std::path::PathBuf {
    let path = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let fits = if name == "v2" {
            controllers.is_empty()
        } else {
            controllers == name
        };
        fits.then_some(path)
    });
    let below = path.unwrap_or("/").trim_start_matches('/');
    let whole = Path::new(point).join(below);
    // In a container the path may be relative to the host's cgroup root, so that it does not exist
    // here. Then the mount point is this process's own cgroup.
    if whole.is_dir() { whole } else { point.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::MINIMUM_KERNEL;

    const MOUNTS: &str = "\
20 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
23 20 0:5 / /proc rw - proc proc rw
24 23 0:6 / /proc/sys ro,nosuid - proc proc rw
25 23 0:7 / /proc/sys/fs/binfmt_misc rw - binfmt_misc none rw
35 20 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 20 0:38 / /sys/fs/cgroup/unified ro,relatime - cgroup2 cgroup2 rw";

    #[test]
    fn host_facts_are_complete_and_equal_on_a_second_read() {
        let facts = HostFacts::read();
        assert!(!facts.kernel.is_empty() && !facts.boot_id.is_empty());
        assert!(facts.sysctls.contains_key("user/max_user_namespaces"));
        assert!(facts.user_namespace.starts_with("user:["));
        assert_eq!(facts, HostFacts::read());
    }

    #[test]
    fn mounts_below_proc_are_listed_without_binfmt_misc() {
        assert_eq!(covered_proc(MOUNTS), ["/proc/sys"]);
    }

    #[test]
    fn cgroup_state_distinguishes_writable_read_only_and_not_delegated() {
        let states = |writable: bool| {
            cgroups(MOUNTS, "4:memory:/a\n0::/\n", |_| writable)
                .into_iter()
                .map(|group| (group.name, group.state))
                .collect::<Vec<_>>()
        };
        let (memory, unified) = ("memory".to_owned(), "v2".to_owned());
        let (unified, read_only) = (unified, CgroupState::ReadOnly);
        assert_eq!(
            states(true),
            [
                (memory.clone(), CgroupState::Writable),
                (unified.clone(), read_only)
            ]
        );
        assert_eq!(
            states(false),
            [(memory, CgroupState::NotDelegated), (unified, read_only)]
        );
    }

    #[test]
    fn container_and_systemd_service_are_detected_from_cgroup_and_root_mount() {
        let of = |groups: &str, mounts: &str| surroundings(groups, mounts);
        let plain = "20 1 8:1 / / rw - ext4 /dev/sda1 rw";
        if !Path::new("/.dockerenv").exists() && !Path::new("/run/.containerenv").exists() {
            assert_eq!(of("0::/user.slice", plain), Surroundings::Plain);
            let service = "0::/system.slice/php8.2-fpm.service";
            assert_eq!(of(service, plain), Surroundings::Service);
        }
        assert_eq!(of("0::/docker/abc", plain), Surroundings::Container);
        let overlay = "20 1 0:9 / / rw - overlay overlay rw";
        assert_eq!(of("0::/", overlay), Surroundings::Container);
    }

    #[test]
    fn kernel_versions_are_compared_numerically() {
        let kernel = |release: &str| HostFacts {
            kernel: release.to_owned(),
            ..HostFacts::default()
        };
        for new in ["6.1.0-57-amd64", "6.18.5-amd64", "7.0-rc1", "odd"] {
            assert!(kernel(new).kernel_at_least(MINIMUM_KERNEL), "{new}");
        }
        for old in ["6.0.13", "5.15.0-91-generic"] {
            assert!(!kernel(old).kernel_at_least(MINIMUM_KERNEL), "{old}");
        }
    }
}
