//! Tables of the sockets that a guest may make, and of their settings.

use crate::syscalls::{Argument, option};

/// Bits of the `type` argument of `socket` and `socketpair` that contain the socket type
/// (SOCK_STREAM, …).
pub(crate) const SOCKET_KIND: u64 = 0xf;

/// Rows for [`crate::syscalls::CHECKED`].
pub(crate) const CHECKED: &[(i64, &[&[Argument]])] = &[
    (libc::SYS_socket, ALLOWED),
    (libc::SYS_setsockopt, SETTINGS),
];

/// Arguments of `socket`: unix sockets and TCP.
///
/// No vsock, netlink, packet or bluetooth sockets: a network namespace does not confine them, or
/// they expose a part of the kernel that no program here needs. No UDP: memory cgroups of version 1
/// do not count waiting datagrams, and their limit (net.ipv4.udp_mem) is one of the whole host.
const ALLOWED: &[&[Argument]] = &[
    &[option(libc::AF_UNIX)],
    &tcp(libc::AF_INET, 0),
    &tcp(libc::AF_INET, libc::IPPROTO_TCP),
    &tcp(libc::AF_INET6, 0),
    &tcp(libc::AF_INET6, libc::IPPROTO_TCP),
];

/// Arguments of `setsockopt`.
///
/// No socket filters: their compiled code counts against a limit of the whole host
/// (net.core.bpf_jit_limit), above which no program without privileges gets a seccomp filter.
/// No sending without a copy (SO_ZEROCOPY): its notifications take up to 128 KiB for each socket
/// (net.core.optmem_max) and are charged to no cgroup. The kernel ignores MSG_ZEROCOPY without it.
/// Of the options of internet protocols, only those for which the kernel stores a number: other
/// values, such as keys, take up to 128 KiB for each socket and are charged to no cgroup.
const SETTINGS: &[&[Argument]] = &[
    &[
        Argument::Is(1, libc::SOL_SOCKET as u64),
        Argument::IsNot(2, libc::SO_ATTACH_FILTER as u64),
        Argument::IsNot(2, libc::SO_ATTACH_REUSEPORT_CBPF as u64),
        Argument::IsNot(2, libc::SO_ZEROCOPY as u64),
    ],
    &setting(libc::IPPROTO_TCP, libc::TCP_NODELAY),
    &setting(libc::IPPROTO_TCP, libc::TCP_MAXSEG),
    &setting(libc::IPPROTO_TCP, libc::TCP_CORK),
    &setting(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    &setting(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    &setting(libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    &setting(libc::IPPROTO_TCP, libc::TCP_SYNCNT),
    &setting(libc::IPPROTO_TCP, libc::TCP_LINGER2),
    &setting(libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
    &setting(libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP),
    &setting(libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    &setting(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    &setting(libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
    &setting(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    &setting(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
    &setting(libc::IPPROTO_IP, libc::IP_TOS),
    &setting(libc::IPPROTO_IP, libc::IP_TTL),
    &setting(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    &setting(libc::IPPROTO_IP, libc::IP_RECVERR),
    &setting(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT),
    &setting(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    &setting(libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    &setting(libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
    &setting(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
    &setting(libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
];

/// Arguments of `socket` for a stream of an address family.
const fn tcp(family: i32, protocol: i32) -> [Argument; 3] {
    [
        option(family),
        Argument::Masked(1, SOCKET_KIND, libc::SOCK_STREAM as u64),
        Argument::Is(2, protocol as u64),
    ]
}

/// Arguments of `setsockopt` for an option of a protocol.
const fn setting(level: i32, name: i32) -> [Argument; 2] {
    [Argument::Is(1, level as u64), Argument::Is(2, name as u64)]
}
