//! Probe of the isolation axis `network`: interfaces, routes and socket families.

use super::findings::Observation;
use super::observe::{Before, read, wrong};
use crate::egress;
use crate::error::Failure;
use wp_codebox_contracts::LaunchPlan;

/// Checks that the only active interface is the namespace's own loopback, and that `socket` refuses
/// address families that reach outside the network namespace.
pub(super) fn network(plan: &LaunchPlan, before: &Before) -> Result<Observation, Failure> {
    let devices = read("/proc/self/net/dev")?;
    let names: Vec<&str> = devices
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(str::trim)
        .collect();
    // Some kernels create tunnel devices in every network namespace; without CAP_NET_ADMIN they
    // stay down.
    if names.first() != Some(&"lo") {
        return Err(wrong("the loopback interface, which is missing"));
    }
    if let Some(name) = names.iter().skip(1).find(|name| is_up(name)) {
        return Err(wrong(format!("interface {name}, which is up")));
    }
    let routes = read("/proc/self/net/route")?.lines().skip(1).count();
    if routes > 0 {
        return Err(wrong("the routing table, which is not empty"));
    }
    if socket_errno(libc::AF_INET, libc::SOCK_STREAM).is_some() {
        return Err(wrong("socket, which refuses TCP"));
    }
    refused_families()?;
    Ok(Observation::enforced(
        "network namespace, seccomp on socket()",
        format!(
            "only lo is up, no route; vsock, netlink, packet and UDP sockets are refused; {}",
            egress::observe(plan, &before.sockets)?
        ),
    ))
}

/// Checks that `socket` refuses UDP, and the families that network namespaces do not isolate or that
/// expose kernel interfaces.
fn refused_families() -> Result<(), Failure> {
    for family in [
        libc::AF_VSOCK,
        libc::AF_NETLINK,
        libc::AF_PACKET,
        libc::AF_INET,
    ] {
        if socket_errno(family, libc::SOCK_DGRAM) != Some(libc::EPERM) {
            return Err(wrong(format!(
                "socket, which does not refuse datagrams of family {family}"
            )));
        }
    }
    Ok(())
}

/// Returns the errno of a `socket` call, or `None` when it succeeds.
pub(super) fn socket_errno(family: i32, kind: i32) -> Option<i32> {
    // SAFETY: takes three numbers; a descriptor it returns is closed at once.
    unsafe {
        let fd = libc::socket(family, kind | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return std::io::Error::last_os_error().raw_os_error();
        }
        libc::close(fd);
        None
    }
}

fn is_up(name: &str) -> bool {
    let Ok(socket) = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
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
