//! Limits, descriptors, capabilities, `no_new_privs` and the dumpable flag.
//!
//! The order matters. Changing the securebits and the bounding set needs a capability, so they are
//! changed before the capability sets are emptied. The kernel counts processes per user namespace,
//! so the process limit is set inside the guest's user namespace.

use crate::error::{At, Failure, Step};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    clear_ambient_capability_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};
use wp_codebox_contracts::{FIXED_LIMITS, Limits};

/// Number of processes besides the guest's programs that count against the process limit of the
/// guest's user namespace: the launcher and pid 1.
pub(crate) const OWN_PROCESSES: u64 = 2;
/// inotify limits that the guest's user namespace gets: sysctl path and value.
pub(crate) const WATCHES: [(&str, u64); 2] = [
    (
        "/proc/sys/user/max_inotify_instances",
        FIXED_LIMITS.inotify_instances,
    ),
    (
        "/proc/sys/user/max_inotify_watches",
        FIXED_LIMITS.inotify_watches,
    ),
];
/// Limit of a core dump in bytes. A limit of 0 prevents files only: if `core_pattern` names a
/// program, the kernel still runs that program as host root with the guest's memory as input. With
/// a limit of 1 the kernel does not start it.
const CORE: u64 = 1;
/// Limit on the memory of POSIX message queues in bytes. With 0 no queue can be created.
const QUEUES: u64 = 0;

/// Factor between a process's limit on mapped memory (RLIMIT_DATA) and the memory limit of the
/// guest. Programs map memory that they never touch (PHP up to twice what it uses), while the
/// memory limit counts used memory. The supervisor polls the memory used by all processes together and
/// enforces the memory limit.
const MAPPED: u64 = 2;

/// Returns the value of RLIMIT_DATA for each process in bytes.
pub(crate) fn data_limit(limits: &Limits) -> u64 {
    limits.memory_bytes.saturating_mul(MAPPED)
}

/// Sets hard resource limits, which every process in the guest inherits. `others` is the number of
/// processes outside the guest that count against the same RLIMIT_NPROC.
pub(crate) fn limit(limits: &Limits, others: u64) -> Result<(), Failure> {
    let processes = limits
        .processes
        .saturating_add(OWN_PROCESSES)
        .saturating_add(others);
    for (resource, value, name) in [
        (Resource::Nproc, processes, "processes"),
        (Resource::Data, data_limit(limits), "data"),
        (Resource::Fsize, limits.disk_bytes, "file size"),
        (
            Resource::Sigpending,
            FIXED_LIMITS.queued_signals,
            "queued signals",
        ),
        (
            Resource::Memlock,
            FIXED_LIMITS.locked_bytes,
            "locked memory",
        ),
        (Resource::Core, CORE, "core"),
        (Resource::Msgqueue, QUEUES, "message queues"),
        (Resource::Rtprio, 0, "real-time priority"),
    ] {
        lower(resource, value).at(Step::Limits, name)?;
    }
    Ok(())
}

fn lower(resource: Resource, value: u64) -> Result<(), Errno> {
    // An unprivileged process cannot raise a hard limit, so an inherited lower limit is kept.
    let value = getrlimit(resource)
        .maximum
        .map_or(value, |max| max.min(value));
    let both = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    setrlimit(resource, both)
}

/// Closes the descriptors from `first` on, or applies `flags` to them. A plain system call: the C
/// library of Debian 11 (2.31), which links the tarball's launcher, has no function for it.
///
/// # Safety
/// If the descriptors are closed, no code uses them afterwards.
pub(crate) unsafe fn close_range(first: libc::c_uint, flags: libc::c_uint) -> std::io::Result<()> {
    // SAFETY: the call gets numbers only; the caller vouches for the descriptors.
    match unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Lowers RLIMIT_NOFILE for the program that this process is about to execute. Pid 1 keeps the
/// supervisor's limit, because it passes file descriptors to the supervisor.
pub(crate) fn limit_descriptors() -> Result<(), Errno> {
    lower(Resource::Nofile, FIXED_LIMITS.open_files)
}

/// Lowers the inotify limits of the guest's user namespace; needs the host's `/proc` mount.
pub(crate) fn limit_watches() -> Result<(), Failure> {
    for (path, most) in WATCHES {
        match std::fs::write(path, most.to_string()) {
            // If `/proc/sys` is covered, the kernel also refuses to mount `/proc`, and that later
            // step reports the cause and its fix. If `/proc` can be mounted, the probe reports the
            // missing limit.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EROFS)) => {}
            other => other.at(Step::Limits, "inotify")?,
        }
    }
    Ok(())
}

/// Drops every capability permanently, including those that executing a set-uid program or a
/// program with file capabilities would grant.
pub(crate) fn drop_capabilities() -> Result<(), Failure> {
    drop_capabilities_except(CapabilitySet::empty())
}

/// Does the same, but keeps the capabilities in `kept` for this process; programs that it executes
/// do not get them.
pub(crate) fn drop_capabilities_except(kept: CapabilitySet) -> Result<(), Failure> {
    let locked = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(locked).at(Step::Capabilities, "securebits")?;
    for number in 0..64_u64 {
        // SAFETY: PR_CAPBSET_DROP takes one number and touches no memory.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
        if result < 0 {
            let error = std::io::Error::last_os_error();
            // The first capability number unknown to the kernel ends the list.
            if error.raw_os_error() == Some(libc::EINVAL) && number > 30 {
                break;
            }
            return Err(error).at(Step::Capabilities, "bounding set");
        }
    }
    clear_capabilities_except(kept)
}

/// Empties the ambient and inheritable capability sets of this process, and leaves only `kept` in
/// the effective and permitted ones.
fn clear_capabilities_except(kept: CapabilitySet) -> Result<(), Failure> {
    clear_ambient_capability_set().at(Step::Capabilities, "ambient set")?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).at(Step::Capabilities, "capset")
}

/// Drops all capabilities that the process holds. If it may not change the bounding set, that set
/// stays: with `no_new_privs`, no child gains a capability from it.
pub(crate) fn drop_any_capabilities() -> Result<(), Failure> {
    let held = capabilities(None).at(Step::Capabilities, "capget")?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        return drop_capabilities();
    }
    clear_capabilities_except(CapabilitySet::empty())
}

/// Sets `no_new_privs`: set-uid bits and file capabilities have no effect from here on.
pub(crate) fn no_new_privs() -> Result<(), Failure> {
    set_no_new_privs(true).at(Step::NoNewPrivs, "prctl")
}

/// Clears the dumpable flag: no other process of the same user may trace this one or read its
/// `/proc` files.
pub(crate) fn not_dumpable() -> Result<(), Failure> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .at(Step::Dumpable, "prctl")
}
