//! What a browser's guest has beyond the calls of other programs. Data only.
//!
//! Its renderers are started by a process that gives up its capabilities first and does not go on
//! when it cannot. Everything else that a browser asks for and no guest has (netlink sockets,
//! `memfd_create`, user namespaces, its own seccomp filters) it does without.

/// Allowed with any arguments. Nothing here holds a capability, and `no_new_privs` and the
/// securebits see to it that nothing gains one: all that can be set is the empty set again.
pub(crate) const ADDED: &[i64] = &[libc::SYS_capset];
