//! Table of the system calls that only a guest with a browser may use.
//!
//! The zygote process that starts a browser's renderers drops its capabilities first and aborts if
//! that fails. The browser also tries calls that no guest may use (netlink sockets, `memfd_create`,
//! user namespaces, its own seccomp filters), and works without them.

/// Additional system calls, allowed with any arguments. No process of a browser guest holds a
/// capability, and `no_new_privs` and the securebits prevent gaining one. So `capset` can only set
/// the empty set.
pub(crate) const ADDED: &[i64] = &[libc::SYS_capset];
