//! Checks of the isolation at level `reduced` from inside the guest, before the first program of
//! the caller runs.
//!
//! The rule is the same as at level `full`: each forbidden operation is tried next to a comparable
//! one that succeeds, and the report contains observed facts only. The guest cannot open `/proc`
//! here, so the probes query the kernel by system calls.

use crate::error::{At, Failure, Step};
use crate::privileges::{OWN_PROCESSES, data_limit};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, getrlimit, test_kill_process};
use wp_codebox_contracts::{
    AxisReport, Enforcement, IsolationAxis, IsolationLevel, IsolationReport, LaunchMount,
    LaunchPlan, schema_id,
};

/// World-readable host files. The probes check that the guest can open none of those that exist.
const READABLE: [&str; 3] = ["/etc/passwd", "/etc/group", "/proc/version"];
/// Host directories that this user may list and in part write; the probes check that they cannot be
/// opened.
const LISTABLE: [&str; 5] = ["/", "/etc", "/proc", "/tmp", "/var"];
/// World-writable host directory; the probes check that no file can be created in it.
const PUBLIC: &str = "/tmp";

/// Processes and paths that this process could signal or open before the restrictions took effect.
/// The probes check that it no longer can.
pub(crate) struct Control {
    launcher: Pid,
    readable: Vec<&'static str>,
    listable: Vec<&'static str>,
}

/// Runs the positive controls of the probes: operations that must succeed now and fail later. Call
/// it before the restrictions take effect.
pub(crate) fn control(launcher: Pid) -> Result<Control, Failure> {
    test_kill_process(launcher).at(Step::Probe, "control: signalling the launcher")?;
    let opens = |flags: OFlags| move |path: &&str| open(path, flags).is_ok();
    let readable: Vec<_> = READABLE.into_iter().filter(opens(OFlags::RDONLY)).collect();
    let listable: Vec<_> = LISTABLE
        .into_iter()
        .filter(opens(OFlags::RDONLY | OFlags::DIRECTORY))
        .collect();
    let public = open(PUBLIC, OFlags::TMPFILE | OFlags::WRONLY);
    if readable.is_empty() || listable.is_empty() || public.is_err() {
        return Err(wrong("control: no host file can be opened unrestricted"));
    }
    if socket(libc::AF_UNIX, libc::SOCK_STREAM) != 0 {
        return Err(wrong("control: no socket can be created unrestricted"));
    }
    Ok(Control {
        launcher,
        readable,
        listable,
    })
}

/// Runs every probe of a guest at level `reduced`.
pub(crate) fn run(
    plan: &LaunchPlan,
    control: &Control,
    landlock_abi: u32,
) -> Result<IsolationReport, Failure> {
    let axes = vec![
        files(plan, control)?,
        processes(control)?,
        network()?,
        syscalls(control)?,
        privileges()?,
        memory(plan)?,
        best_effort(
            IsolationAxis::Cpu,
            "wall clock deadline with a kill",
            "no CPU quota; the runner ends the guest at its deadline".to_owned(),
        ),
        pids(plan)?,
        disk(plan)?,
        best_effort(
            IsolationAxis::Identity,
            "nothing",
            "without mounts of its own a guest runs as the runner's user".to_owned(),
        ),
    ];
    let kernel = rustix::system::uname();
    Ok(IsolationReport {
        schema: schema_id::ISOLATION_REPORT.to_owned(),
        level: IsolationLevel::Reduced,
        kernel: kernel.release().to_string_lossy().into_owned(),
        landlock_abi,
        axes,
    })
}

fn wrong(what: impl Into<String>) -> Failure {
    Failure::rule(Step::Probe, what)
}

fn enforced(axis: IsolationAxis, by: &str, evidence: String) -> AxisReport {
    AxisReport {
        axis,
        requested: IsolationLevel::Reduced.requested(axis),
        enforced: Enforcement::Enforced,
        by: by.to_owned(),
        evidence,
    }
}

fn best_effort(axis: IsolationAxis, by: &str, evidence: String) -> AxisReport {
    AxisReport {
        enforced: Enforcement::BestEffort,
        ..enforced(axis, by, evidence)
    }
}

fn open(path: &str, flags: OFlags) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::open(path, flags | OFlags::CLOEXEC, mode).map(drop)
}

fn denied(path: &str, flags: OFlags) -> Result<(), Failure> {
    match open(path, flags) {
        Err(Errno::ACCESS) => Ok(()),
        Err(errno) => Err(errno).at(Step::Probe, path),
        Ok(()) => Err(wrong(format!("{path}, which can still be opened"))),
    }
}

fn files(plan: &LaunchPlan, control: &Control) -> Result<AxisReport, Failure> {
    for path in &control.readable {
        denied(path, OFlags::RDONLY)?;
    }
    let directory = OFlags::RDONLY | OFlags::DIRECTORY;
    for path in &control.listable {
        denied(path, directory)?;
    }
    denied(PUBLIC, OFlags::TMPFILE | OFlags::WRONLY)?;
    denied("/dev/urandom", OFlags::WRONLY)?;
    open("/dev/null", OFlags::WRONLY).at(Step::Probe, "/dev/null")?;
    let (mut read, mut write) = (0, 0);
    for mount in &plan.mounts {
        let LaunchMount::Bind {
            target, writable, ..
        } = mount
        else {
            continue;
        };
        let path = target.as_str();
        if *writable {
            write += 1;
            let made = open(path, OFlags::TMPFILE | OFlags::WRONLY);
            // Some file systems lack O_TMPFILE. That counts as success here, because a named file
            // would have to be removed again.
            if !matches!(made, Ok(()) | Err(Errno::OPNOTSUPP)) {
                return Err(wrong("a writable directory, which cannot be written"));
            }
            // The parent directory belongs to the same user, but no Landlock rule allows it to the
            // guest.
            let above = path.rsplit_once('/').map_or("/", |(above, _)| above);
            denied(above, OFlags::TMPFILE | OFlags::WRONLY).or_else(|failure| {
                if inside(plan, above) {
                    Ok(())
                } else {
                    Err(failure)
                }
            })?;
        } else {
            read += 1;
            open(path, OFlags::RDONLY).at(Step::Probe, "a readable host path")?;
        }
    }
    if write == 0 || read == 0 {
        return Err(wrong("control: no host path is readable and writable"));
    }
    Ok(enforced(
        IsolationAxis::Files,
        "Landlock; no private view: paths of the host exist, their sizes and modes can be read",
        format!(
            "opening {} and listing {} worked before and is denied; creating in {PUBLIC} is denied; \
             {read} host paths can be read, {write} written; a write to /dev/urandom that its mode allows is denied",
            control.readable.join(" "),
            control.listable.join(" ")
        ),
    ))
}

/// Returns whether a path lies below a writable directory of the plan.
fn inside(plan: &LaunchPlan, path: &str) -> bool {
    plan.mounts.iter().any(|mount| match mount {
        LaunchMount::Bind {
            target,
            writable: true,
            ..
        } => {
            let rest = path.strip_prefix(target.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        _ => false,
    })
}

fn processes(control: &Control) -> Result<AxisReport, Failure> {
    if test_kill_process(control.launcher) != Err(Errno::PERM) {
        return Err(wrong("the launcher, which can still be signalled"));
    }
    Ok(best_effort(
        IsolationAxis::Processes,
        "Landlock signal scope, no ptrace, a subreaper that kills its whole domain",
        "signalling the launcher worked before and is denied; ids of other processes can be \
         found by their paths in /proc; no pid namespace kills all processes when its first one ends"
            .to_owned(),
    ))
}

/// Returns the errno of a `socket` call; 0 on success.
fn socket(family: i32, kind: i32) -> i32 {
    // SAFETY: takes three numbers; a descriptor it returns is closed at once.
    unsafe {
        let fd = libc::socket(family, kind | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return errno();
        }
        libc::close(fd);
        0
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(-1)
}

/// Returns the errno of a `socketpair` call; 0 on success.
fn pair(kind: i32) -> i32 {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors, which are closed at once.
    unsafe {
        if libc::socketpair(
            libc::AF_UNIX,
            kind | libc::SOCK_CLOEXEC,
            0,
            ends.as_mut_ptr(),
        ) < 0
        {
            return errno();
        }
        libc::close(ends[0]);
        libc::close(ends[1]);
        0
    }
}

fn network() -> Result<AxisReport, Failure> {
    for family in [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
        libc::AF_VSOCK,
        libc::AF_PACKET,
    ] {
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
            if socket(family, kind) != libc::EPERM {
                return Err(wrong(format!(
                    "socket, which does not refuse family {family}"
                )));
            }
        }
    }
    if pair(libc::SOCK_STREAM) != 0 {
        return Err(wrong("control: socketpair refuses a stream pair"));
    }
    // One end of a datagram pair could be connected to any unix datagram socket of the host, so the
    // filter must refuse datagram pairs.
    if pair(libc::SOCK_DGRAM) != libc::EPERM {
        return Err(wrong("socketpair, which does not refuse a datagram pair"));
    }
    Ok(enforced(
        IsolationAxis::Network,
        "seccomp on socket(), connect() and socketpair()",
        "unix, inet, inet6, netlink, vsock and packet sockets are refused, a unix one could be made before the filter; \
         only connected pairs of one guest can be made"
            .to_owned(),
    ))
}

fn syscalls(control: &Control) -> Result<AxisReport, Failure> {
    let code = |result: i64| if result >= 0 { 0 } else { errno() };
    let launcher = control.launcher.as_raw_nonzero().get();
    let nowhere = c"/dev/null/nowhere".as_ptr();
    // SAFETY: the filters refuse every call before the kernel reads its arguments, which are
    // numbers, null pointers or a static string and would be refused anyway.
    let tried = unsafe {
        [
            (
                "unshare",
                libc::EPERM,
                code(libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER)),
            ),
            (
                "clone3",
                libc::ENOSYS,
                code(libc::syscall(libc::SYS_clone3, 0, 0)),
            ),
            (
                "ptrace",
                libc::EPERM,
                code(libc::syscall(
                    libc::SYS_ptrace,
                    libc::PTRACE_TRACEME,
                    0,
                    0,
                    0,
                )),
            ),
            (
                "keyctl",
                libc::EPERM,
                code(libc::syscall(libc::SYS_keyctl, 0, 0, 0, 0, 0)),
            ),
            (
                "bpf",
                libc::EPERM,
                code(libc::syscall(libc::SYS_bpf, 0, 0, 0)),
            ),
            (
                "mount",
                libc::EPERM,
                code(libc::syscall(libc::SYS_mount, 0, 0, 0, 0, 0)),
            ),
            (
                "io_uring_setup",
                libc::ENOSYS,
                code(libc::syscall(libc::SYS_io_uring_setup, 0, 0)),
            ),
            (
                "fchmodat",
                libc::EPERM,
                code(libc::syscall(
                    libc::SYS_fchmodat,
                    libc::AT_FDCWD,
                    nowhere,
                    0o600,
                )),
            ),
            (
                "fchownat",
                libc::EPERM,
                code(libc::syscall(
                    libc::SYS_fchownat,
                    libc::AT_FDCWD,
                    nowhere,
                    0,
                    0,
                    0,
                )),
            ),
            (
                "setxattr",
                libc::EOPNOTSUPP,
                code(libc::syscall(libc::SYS_setxattr, nowhere, nowhere, 0, 0, 0)),
            ),
            (
                "utimensat",
                libc::EPERM,
                code(libc::syscall(
                    libc::SYS_utimensat,
                    libc::AT_FDCWD,
                    nowhere,
                    0,
                    0,
                )),
            ),
            (
                "prlimit64",
                libc::EPERM,
                code(libc::syscall(
                    libc::SYS_prlimit64,
                    launcher,
                    libc::RLIMIT_NOFILE,
                    0,
                    0,
                )),
            ),
            (
                "inotify_add_watch",
                libc::EPERM,
                code(libc::syscall(libc::SYS_inotify_add_watch, -1, nowhere, 1)),
            ),
            (
                "F_SETLEASE",
                libc::EPERM,
                code(libc::syscall(libc::SYS_fcntl, -1, libc::F_SETLEASE, 0)),
            ),
            // The descriptor is invalid, so the kernel would return EBADF; a success comes from the
            // filter.
            ("fsync", 0, code(libc::syscall(libc::SYS_fsync, -1))),
        ]
    };
    for (name, wanted, got) in tried {
        if got != wanted {
            return Err(wrong(format!(
                "{name}, which gave errno {got} instead of {wanted}"
            )));
        }
    }
    // SAFETY: both calls take numbers only.
    let (own, mode) = unsafe {
        (
            libc::syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_NOFILE, 0, 0),
            libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0),
        )
    };
    if own != 0 {
        return Err(wrong("control: prlimit64 refuses its own limits"));
    }
    if mode != 2 {
        return Err(wrong("the seccomp mode, which is not filter mode"));
    }
    Ok(enforced(
        IsolationAxis::Syscalls,
        "seccomp allow-list for this level, five filters",
        "filter mode; unshare, ptrace, keyctl, bpf, mount, changes of mode, owner and times by path, \
         limits of another process, watches and leases give EPERM, clone3 and io_uring_setup ENOSYS, \
         setxattr EOPNOTSUPP; fsync succeeds and does nothing"
            .to_owned(),
    ))
}

fn privileges() -> Result<AxisReport, Failure> {
    let held = rustix::thread::capabilities(None).at(Step::Probe, "capget")?;
    if !(held.effective | held.permitted | held.inheritable).is_empty() {
        return Err(wrong("the capability sets, which are not empty"));
    }
    // SAFETY: takes numbers only.
    if unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } != 1 {
        return Err(wrong("no_new_privs, which is not set"));
    }
    if rustix::process::getuid().is_root() || rustix::process::geteuid().is_root() {
        return Err(wrong("the guest's user, which is root"));
    }
    Ok(enforced(
        IsolationAxis::Privileges,
        "an unprivileged user of the host, no_new_privs",
        "not root; no effective, permitted or inheritable capability; no new privileges; \
         the same user as the runner"
            .to_owned(),
    ))
}

fn limit_of(resource: Resource, name: &str) -> Result<u64, Failure> {
    let limit = getrlimit(resource);
    match (limit.current, limit.maximum) {
        (Some(soft), Some(hard)) if soft == hard => Ok(soft),
        _ => Err(wrong(format!(
            "the limit on {name}, which is missing or not a hard limit"
        ))),
    }
}

fn at_most(resource: Resource, most: u64, name: &str) -> Result<u64, Failure> {
    let limit = limit_of(resource, name)?;
    if limit <= most {
        Ok(limit)
    } else {
        Err(wrong(format!("the limit on {name}, which is too high")))
    }
}

fn memory(plan: &LaunchPlan) -> Result<AxisReport, Failure> {
    let data = at_most(Resource::Data, data_limit(&plan.limits), "data")?;
    Ok(best_effort(
        IsolationAxis::Memory,
        "RLIMIT_DATA of twice the limit per process, polled sum with a kill",
        format!("data limit {data} bytes per process; the sandbox has no memory cgroup of its own"),
    ))
}

fn pids(plan: &LaunchPlan) -> Result<AxisReport, Failure> {
    let limit = limit_of(Resource::Nproc, "processes")?;
    let own = plan.limits.processes.saturating_add(OWN_PROCESSES);
    Ok(best_effort(
        IsolationAxis::Pids,
        "RLIMIT_NPROC, which counts every process of this user on the host",
        format!(
            "at most {limit} processes and threads of this user, {own} of them meant for this guest"
        ),
    ))
}

fn disk(plan: &LaunchPlan) -> Result<AxisReport, Failure> {
    let file = at_most(Resource::Fsize, plan.limits.disk_bytes, "file size")?;
    Ok(best_effort(
        IsolationAxis::Disk,
        "RLIMIT_FSIZE, polled use of the writable places with a kill",
        format!("files up to {file} bytes; the writable places lie on a file system of the host"),
    ))
}
