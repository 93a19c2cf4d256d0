//! Limits, capabilities, `no_new_privs` and the dumpable flag.
//!
//! Order matters: securebits and the bounding set need a capability, so they go before
//! the capability sets are emptied; limits on processes count per user namespace, so
//! they are set inside it.

use crate::error::{At, Failure, Step};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    clear_ambient_capability_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};
use wp_codebox_contracts::{FIXED_LIMITS, Limits};

/// Launcher and pid 1 live in the guest's user namespace and count there.
pub(crate) const OWN_PROCESSES: u64 = 2;
/// Limits of this process's user namespace, and where they are set.
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
/// Bytes of a core dump. 0 would stop files only: where `core_pattern` names a program, the
/// kernel still starts it, as the host's root, with what the guest left behind. It starts none at 1.
const CORE: u64 = 1;
/// Bytes of POSIX message queues: none are mounted.
const QUEUES: u64 = 0;

/// How much more than the memory limit a process may map. Programs map what they never
/// touch, PHP up to twice what it uses; the limit is on what is used, and the runner's
/// look at the sum decides.
const MAPPED: u64 = 2;

/// Bytes of private memory one process may map.
pub(crate) fn data_limit(limits: &Limits) -> u64 {
    limits.memory_bytes.saturating_mul(MAPPED)
}

/// Sets hard limits that everything in the guest inherits. `others` is how many processes
/// that are not the guest's count against the same number.
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
    // A hard limit cannot be raised: where the host allows less already, that stays.
    let value = getrlimit(resource)
        .maximum
        .map_or(value, |max| max.min(value));
    let both = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    setrlimit(resource, both)
}

/// Sets the limit on open files for the program that this process becomes. Pid 1 keeps the
/// runner's: it passes descriptors to the runner.
pub(crate) fn limit_descriptors() -> Result<(), Errno> {
    lower(Resource::Nofile, FIXED_LIMITS.open_files)
}

/// Lowers the limits that belong to this process's user namespace; needs the host's `/proc`.
pub(crate) fn limit_watches() -> Result<(), Failure> {
    for (path, most) in WATCHES {
        match std::fs::write(path, most.to_string()) {
            // `/proc/sys` is covered: no `/proc` can be mounted then, and that step names the cause
            // and its fix. Where it can, the probe misses the limit.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EROFS)) => {}
            other => other.at(Step::Limits, "inotify")?,
        }
    }
    Ok(())
}

/// Gives up every capability for good, also for programs that would gain some by `execve`.
pub(crate) fn drop_capabilities() -> Result<(), Failure> {
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
            // The first number the kernel does not know ends the list.
            if error.raw_os_error() == Some(libc::EINVAL) && number > 30 {
                break;
            }
            return Err(error).at(Step::Capabilities, "bounding set");
        }
    }
    clear_capabilities()
}

/// Empties the ambient set and the sets of this process.
fn clear_capabilities() -> Result<(), Failure> {
    clear_ambient_capability_set().at(Step::Capabilities, "ambient set")?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).at(Step::Capabilities, "capset")
}

/// Gives up what capabilities there are. The bounding set stays where this process may not
/// change it: nothing started under `no_new_privs` gains from it.
pub(crate) fn drop_any_capabilities() -> Result<(), Failure> {
    let held = capabilities(None).at(Step::Capabilities, "capget")?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        return drop_capabilities();
    }
    clear_capabilities()
}

/// No program started from here on gains anything by being set-uid.
pub(crate) fn no_new_privs() -> Result<(), Failure> {
    set_no_new_privs(true).at(Step::NoNewPrivs, "prctl")
}

/// No other process of the same user may look into this one.
pub(crate) fn not_dumpable() -> Result<(), Failure> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .at(Step::Dumpable, "prctl")
}
