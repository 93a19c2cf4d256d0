//! User, mount, pid, net, ipc, uts and cgroup namespaces, and the loopback interface.
//!
//! The user namespace is created first: in it this process has the capabilities that creating the
//! other namespaces needs. The only mapped id is the launcher's own, which is not host uid 0.

use crate::error::{At, Failure, Step};
use crate::shortfall::Shortfalls;
use rustix::fd::AsRawFd;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs;

/// Enters a new user namespace in which this process has the uid and gid `guest_id`.
pub(crate) fn enter_user(guest_id: u32) -> Result<(), Failure> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    unshare(UnshareFlags::NEWUSER, "user namespace")?;
    // The kernel requires this before an unprivileged gid_map write: otherwise a process could
    // leave a group and so get access to files whose mode denies access to that group.
    fs::write("/proc/self/setgroups", "deny").at(Step::SetGroups, "deny")?;
    fs::write("/proc/self/uid_map", format!("{guest_id} {uid} 1")).at(Step::UidMap, "one id")?;
    fs::write("/proc/self/gid_map", format!("{guest_id} {gid} 1")).at(Step::GidMap, "one id")
}

/// Enters new mount, pid, network, ipc, uts and cgroup namespaces. The new pid namespace applies to
/// the caller's children, not to the caller.
///
/// A failure to create the mount or pid namespace is always an error. A failure to create one of
/// the other four is an error for the guest of a run; a self-test records it as a shortfall (a
/// missing mechanism) and continues.
pub(crate) fn enter_others(shortfalls: &mut Shortfalls) -> Result<(), Failure> {
    unshare_mounts(UnshareFlags::empty(), "mount namespace")?;
    unshare(UnshareFlags::NEWPID, "pid namespace")?;
    for (flag, name) in [
        (UnshareFlags::NEWNET, "network namespace"),
        (UnshareFlags::NEWIPC, "ipc namespace"),
        (UnshareFlags::NEWUTS, "uts namespace"),
        (UnshareFlags::NEWCGROUP, "cgroup namespace"),
    ] {
        shortfalls.tolerate(unshare(flag, name))?;
    }
    Ok(())
}

/// Moves this process into a new mount namespace, together with new namespaces of the kinds in
/// `others`, and takes all its mounts out of the host's peer groups. So nothing that is mounted
/// from then on appears on the host, where systemd makes `/` shared.
pub(crate) fn unshare_mounts(others: UnshareFlags, name: &str) -> Result<(), Failure> {
    unshare(UnshareFlags::NEWNS | others, name)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).at(Step::Propagation, "private")
}

/// Moves this process into new namespaces of the kinds in `flag`; not for mount namespaces, see
/// [`unshare_mounts`].
pub(crate) fn unshare(flag: UnshareFlags, name: &str) -> Result<(), Failure> {
    // SAFETY: none of the flags used here shares or unshares the descriptor table, and this
    // process has a single thread.
    unsafe { unshare_unsafe(flag) }.at(Step::Unshare, name)
}

/// Brings the loopback interface up, so that programs in the guest can use servers on localhost.
pub(crate) fn loopback_up() -> Result<(), Failure> {
    let socket =
        socket(AddressFamily::INET, SocketType::DGRAM, None).at(Step::Loopback, "socket")?;
    // SAFETY: an all-zero ifreq is a valid value; the name is NUL-terminated by the zeros after it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    // SAFETY: both requests read and write one ifreq, which `request` is.
    unsafe {
        ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request)?;
        let up = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
        request.ifr_ifru.ifru_flags |= up;
        ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &mut request)
    }
}

/// Bounds the memory behind TCP sockets of this network namespace that the kernel charges to no
/// memory cgroup. Tries each setting and returns the first error.
///
/// - Receive buffers: cgroups of version 1 do not count waiting data, and no cgroup counts reports
///   of sent packets (SO_TIMESTAMPING).
/// - Closed connections that wait for late packets (TIME_WAIT): above the limit the kernel forgets
///   them at once.
pub(crate) fn bound_tcp_memory() -> std::io::Result<()> {
    let set = |name: &str, value| fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
    let received = set("tcp_rmem", "4096 65536 131072");
    received.and(set("tcp_max_tw_buckets", "1024"))
}

/// # Safety
/// `request` must be one that reads and writes a single `ifreq`.
unsafe fn ioctl(fd: i32, request: libc::Ioctl, argument: &mut libc::ifreq) -> Result<(), Failure> {
    // SAFETY: by this function's contract; the pointer is valid for the call.
    let result = unsafe { libc::ioctl(fd, request, std::ptr::from_mut(argument)) };
    if result < 0 {
        Err(std::io::Error::last_os_error()).at(Step::Loopback, "lo")
    } else {
        Ok(())
    }
}
