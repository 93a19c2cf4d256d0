//! System calls that a browser guest may use in addition. Data only.
//!
//! The zygote process that starts a browser's renderers drops its capabilities first and aborts if
//! that fails. The browser works without the other calls that it tries and no guest may use
//! (netlink sockets, `memfd_create`, user namespaces, its own seccomp filters).

/// Allowed with any arguments. No process here holds a capability, and `no_new_privs` and the
/// securebits prevent gaining one, so the only set that can be set is the empty one.
pub(crate) const ADDED: &[i64] = &[libc::SYS_capset];
