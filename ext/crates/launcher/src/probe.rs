//! What this guest looks like from inside, before the first foreign byte runs.
//!
//! Each axis is observed: forbidden things are tried, the kernel is asked. An
//! observation that contradicts the design fails the launch; nothing is reported that
//! was only configured. A denial is believed only where a comparable thing succeeds.

use crate::error::{At, Failure, Step};
use crate::privileges::{OWN_PROCESSES, data_limit};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeSet;
use std::fs;
use wp_codebox_contracts::{
    AxisReport, Enforcement, IsolationAxis, IsolationLevel, IsolationReport, LaunchMount,
    LaunchPlan, schema_id,
};

/// Device and inode of the host's root, taken before it went out of sight.
pub(crate) struct HostRoot {
    device: u64,
    inode: u64,
}

/// Looks at the host's root.
pub(crate) fn host_root() -> Result<HostRoot, Failure> {
    let stat = rustix::fs::stat("/").at(Step::Probe, "host root")?;
    Ok(HostRoot {
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

/// Runs every probe.
pub(crate) fn run(
    plan: &LaunchPlan,
    host: &HostRoot,
    landlock_abi: u32,
) -> Result<IsolationReport, Failure> {
    let axes = vec![
        files(plan, host)?,
        processes()?,
        network()?,
        syscalls()?,
        privileges(plan)?,
        memory(plan)?,
        cpu(),
        pids(plan)?,
        disk(plan)?,
    ];
    let enforced = |axis: &AxisReport| {
        axis.enforced == Enforcement::Enforced
            || matches!(axis.axis, IsolationAxis::Memory | IsolationAxis::Cpu)
    };
    let level = if axes.iter().all(enforced) && landlock_abi > 0 {
        IsolationLevel::Full
    } else {
        IsolationLevel::None
    };
    let kernel = rustix::system::uname();
    Ok(IsolationReport {
        schema: schema_id::ISOLATION_REPORT.to_owned(),
        level,
        kernel: kernel.release().to_string_lossy().into_owned(),
        landlock_abi,
        axes,
    })
}

fn wrong(what: impl Into<String>) -> Failure {
    Failure::rule(Step::Probe, what)
}

fn axis(axis: IsolationAxis, by: &str, evidence: String) -> AxisReport {
    AxisReport {
        axis,
        requested: Enforcement::Enforced,
        enforced: Enforcement::Enforced,
        by: by.to_owned(),
        evidence,
    }
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(path).at(Step::Probe, path)
}

/// The errno with which opening fails; `None` when it works.
fn open_errno(path: &str, flags: OFlags) -> Option<i32> {
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::open(path, flags | OFlags::CLOEXEC, mode)
        .err()
        .map(|errno| errno.raw_os_error())
}

/// What a plan puts at the top of the tree.
fn expected_entries(plan: &LaunchPlan) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["proc", "dev"].map(str::to_owned).into();
    for mount in &plan.mounts {
        let target = match mount {
            LaunchMount::Directory { target }
            | LaunchMount::Symlink { target, .. }
            | LaunchMount::Bind { target, .. }
            | LaunchMount::Scratch { target, .. }
            | LaunchMount::Overlay { target, .. } => target,
            LaunchMount::File(entry) => &entry.target,
            LaunchMount::Proc | LaunchMount::Dev => continue,
        };
        names.extend(target.as_str().split('/').nth(1).map(str::to_owned));
    }
    names
}

fn files(plan: &LaunchPlan, host: &HostRoot) -> Result<AxisReport, Failure> {
    let is_host = |path: &str| {
        rustix::fs::stat(path).is_ok_and(|s| s.st_dev == host.device && s.st_ino == host.inode)
    };
    let expected = expected_entries(plan);
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir("/").at(Step::Probe, "/")? {
        let name = entry.at(Step::Probe, "/")?.file_name();
        let name = name.to_string_lossy().into_owned();
        if !expected.contains(&name) || is_host(&format!("/{name}")) {
            return Err(wrong(format!("unexpected /{name}")));
        }
        seen.insert(name);
    }
    if is_host("/") || is_host("/..") || seen != expected {
        return Err(wrong("the root is not the planned one"));
    }
    if open_errno("/.probe", OFlags::CREATE | OFlags::WRONLY).is_none() {
        return Err(wrong("the root is writable"));
    }
    // The two nodes have the same mode and mount; only Landlock tells them apart.
    if open_errno("/dev/null", OFlags::WRONLY).is_some() {
        return Err(wrong("/dev/null is not writable"));
    }
    if open_errno("/dev/urandom", OFlags::WRONLY) != Some(libc::EACCES) {
        return Err(wrong("Landlock does not deny"));
    }
    let (mounts, writable) = writable_mounts(plan)?;
    Ok(axis(
        IsolationAxis::Files,
        "mount namespace, pivot_root, read-only binds, overlay, Landlock",
        format!(
            "root shows only {}; creating in it is denied; {mounts} mounts, {writable} writable, \
             all on the run's own tmpfs or planned; Landlock denies a write that file modes allow",
            seen.into_iter().collect::<Vec<_>>().join(" ")
        ),
    ))
}

/// All mounts, and the writable ones, which must be on private file systems or planned so.
fn writable_mounts(plan: &LaunchPlan) -> Result<(usize, usize), Failure> {
    let planned: BTreeSet<&str> = plan
        .mounts
        .iter()
        .filter_map(|mount| match mount {
            LaunchMount::Bind {
                target,
                writable: true,
                ..
            } => Some(target.as_str()),
            _ => None,
        })
        .collect();
    let text = read("/proc/self/mountinfo")?;
    let mut writable = 0;
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let kind = fields.iter().position(|field| *field == "-");
        let kind = kind.and_then(|at| fields.get(at + 1));
        let (Some(point), Some(options), Some(kind)) = (fields.get(4), fields.get(5), kind) else {
            return Err(wrong("a mount that cannot be read"));
        };
        if options.split(',').any(|option| option == "ro") {
            continue;
        }
        writable += 1;
        let private = matches!(*kind, "tmpfs" | "overlay" | "proc");
        if *point == "/" || !(private || planned.contains(point)) {
            return Err(wrong(format!("{point} is writable")));
        }
    }
    Ok((text.lines().count(), writable))
}

fn processes() -> Result<AxisReport, Failure> {
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
    Ok(axis(
        IsolationAxis::Processes,
        "pid namespace, proc with subset=pid and hidepid",
        "this process is pid 1; no other process and no host-wide file in /proc".to_owned(),
    ))
}

/// errno of a `socket` call; `None` when it works.
fn socket_errno(family: i32) -> Option<i32> {
    // SAFETY: takes three numbers; a descriptor it returns is closed at once.
    unsafe {
        let fd = libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return std::io::Error::last_os_error().raw_os_error();
        }
        libc::close(fd);
        None
    }
}

fn network() -> Result<AxisReport, Failure> {
    let devices = read("/proc/self/net/dev")?;
    let names: Vec<&str> = devices
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(str::trim)
        .collect();
    // Some kernels give every namespace tunnel stubs; without CAP_NET_ADMIN they stay down.
    if names.first() != Some(&"lo") {
        return Err(wrong("no loopback interface"));
    }
    if let Some(name) = names.iter().skip(1).find(|name| is_up(name)) {
        return Err(wrong(format!("interface {name}")));
    }
    let routes = read("/proc/self/net/route")?.lines().skip(1).count();
    if routes > 0 {
        return Err(wrong("a route out"));
    }
    if socket_errno(libc::AF_INET).is_some() {
        return Err(wrong("no loopback sockets"));
    }
    for family in [libc::AF_VSOCK, libc::AF_NETLINK, libc::AF_PACKET] {
        if socket_errno(family) != Some(libc::EPERM) {
            return Err(wrong(format!("socket family {family}")));
        }
    }
    Ok(axis(
        IsolationAxis::Network,
        "network namespace, seccomp on socket()",
        "only lo is up, no route; vsock, netlink and packet sockets are refused".to_owned(),
    ))
}

fn is_up(name: &str) -> bool {
    let Ok(socket) = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    ) else {
        return true;
    };
    // SAFETY: an all-zero ifreq is valid; the request reads and writes one ifreq.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().take(15).zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        let fd = rustix::fd::AsRawFd::as_raw_fd(&socket);
        if libc::ioctl(fd, libc::SIOCGIFFLAGS, &raw mut request) < 0 {
            return true;
        }
        i32::from(request.ifr_ifru.ifru_flags) & libc::IFF_UP != 0
    }
}

fn syscalls() -> Result<AxisReport, Failure> {
    let errno_of = |result: i64| {
        if result >= 0 {
            0
        } else {
            std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
        }
    };
    if namespace_clone_errno() != libc::EPERM {
        return Err(wrong("clone made a namespace"));
    }
    // SAFETY: every call is expected to be refused before it looks at its arguments, which are
    // zeros or null pointers and would be refused for that otherwise.
    let tried = unsafe {
        [
            (
                "unshare",
                libc::EPERM,
                errno_of(libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER)),
            ),
            (
                "clone3",
                libc::ENOSYS,
                errno_of(libc::syscall(libc::SYS_clone3, 0, 0)),
            ),
            (
                "keyctl",
                libc::EPERM,
                errno_of(libc::syscall(libc::SYS_keyctl, 0, 0, 0, 0, 0)),
            ),
            (
                "ptrace",
                libc::EPERM,
                errno_of(libc::syscall(
                    libc::SYS_ptrace,
                    libc::PTRACE_TRACEME,
                    0,
                    0,
                    0,
                )),
            ),
            (
                "bpf",
                libc::EPERM,
                errno_of(libc::syscall(libc::SYS_bpf, 0, 0, 0)),
            ),
            (
                "io_uring_setup",
                libc::ENOSYS,
                errno_of(libc::syscall(libc::SYS_io_uring_setup, 0, 0)),
            ),
            (
                "mount",
                libc::EPERM,
                errno_of(libc::syscall(libc::SYS_mount, 0, 0, 0, 0, 0)),
            ),
        ]
    };
    for (name, wanted, got) in tried {
        if got != wanted {
            return Err(wrong(format!("{name} gave errno {got}")));
        }
    }
    if status_field("Seccomp:")? != "2" {
        return Err(wrong("no seccomp filter"));
    }
    Ok(axis(
        IsolationAxis::Syscalls,
        "seccomp allow-list, two filters",
        "filter mode; clone into a namespace, unshare, keyctl, ptrace, bpf and mount give EPERM, clone3 and io_uring_setup ENOSYS"
            .to_owned(),
    ))
}

/// errno of a `clone` into a new user namespace; a child that should not exist ends at once.
fn namespace_clone_errno() -> i32 {
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: without a stack the child runs on a copy of this one, like after fork, and only exits.
    unsafe {
        match libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) {
            0 => libc::_exit(0),
            result if result > 0 => 0,
            _ => std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
        }
    }
}

fn status_field(name: &str) -> Result<String, Failure> {
    read("/proc/self/status")?
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(|value| value.trim().to_owned())
        .ok_or_else(|| wrong(format!("no {name} in status")))
}

fn privileges(plan: &LaunchPlan) -> Result<AxisReport, Failure> {
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        if status_field(set)?.bytes().any(|b| b != b'0') {
            return Err(wrong(format!("{set} is not empty")));
        }
    }
    if status_field("NoNewPrivs:")? != "1" {
        return Err(wrong("new privileges are possible"));
    }
    let map = read("/proc/self/uid_map")?;
    let fields: Vec<&str> = map.split_whitespace().collect();
    let guest = plan.guest_id.to_string();
    let [inside, outside, "1"] = fields.as_slice() else {
        return Err(wrong("uid map"));
    };
    if *inside != guest || *outside == "0" || rustix::process::geteuid().as_raw() != plan.guest_id {
        return Err(wrong("uid map"));
    }
    Ok(axis(
        IsolationAxis::Privileges,
        "user namespace, empty capability sets, no_new_privs",
        format!(
            "uid {inside} inside, not root outside; all five capability sets empty; NoNewPrivs 1"
        ),
    ))
}

fn limit_of(resource: Resource, at_most: u64, name: &str) -> Result<u64, Failure> {
    let limit = getrlimit(resource);
    match (limit.current, limit.maximum) {
        (Some(soft), Some(hard)) if soft <= at_most && hard <= at_most => Ok(soft),
        _ => Err(wrong(format!("limit on {name}"))),
    }
}

fn memory(plan: &LaunchPlan) -> Result<AxisReport, Failure> {
    let data = limit_of(Resource::Data, data_limit(&plan.limits), "data")?;
    Ok(AxisReport {
        enforced: Enforcement::BestEffort,
        ..axis(
            IsolationAxis::Memory,
            "RLIMIT_DATA of twice the limit per process, polled sum with a kill",
            format!("data limit {data} bytes per process"),
        )
    })
}

fn cpu() -> AxisReport {
    AxisReport {
        requested: Enforcement::BestEffort,
        enforced: Enforcement::BestEffort,
        ..axis(
            IsolationAxis::Cpu,
            "wall clock deadline with a kill",
            "no CPU quota; the runner ends the guest at its deadline".to_owned(),
        )
    }
}

fn pids(plan: &LaunchPlan) -> Result<AxisReport, Failure> {
    let most = plan.limits.processes.saturating_add(OWN_PROCESSES);
    let limit = limit_of(Resource::Nproc, most, "processes")?;
    Ok(axis(
        IsolationAxis::Pids,
        "RLIMIT_NPROC within the user namespace",
        format!("at most {limit} processes and threads, two of them the sandbox's own"),
    ))
}

fn disk(plan: &LaunchPlan) -> Result<AxisReport, Failure> {
    let by = "size of the scratch tmpfs, RLIMIT_FSIZE";
    let file = limit_of(Resource::Fsize, plan.limits.disk_bytes, "file size")?;
    let mut size = None;
    for mount in &plan.mounts {
        let (LaunchMount::Scratch { target, .. } | LaunchMount::Overlay { target, .. }) = mount
        else {
            continue;
        };
        let stat = rustix::fs::statfs(target.as_str()).at(Step::Probe, target.as_str())?;
        let block = u64::try_from(stat.f_bsize).unwrap_or(0);
        let bytes = stat.f_blocks.saturating_mul(block);
        // The kernel rounds the size up to whole pages.
        if bytes == 0 || bytes > plan.limits.disk_bytes.saturating_add(65_536) {
            return Err(wrong(format!("{target} has {bytes} bytes")));
        }
        size = Some(bytes);
    }
    let evidence = match size {
        Some(size) => format!("everything writable shares {size} bytes; files up to {file} bytes"),
        None => "nothing is writable".to_owned(),
    };
    Ok(axis(IsolationAxis::Disk, by, evidence))
}
