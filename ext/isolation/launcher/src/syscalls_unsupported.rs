//! Tables of the system calls that would make the kernel allocate memory that no limit counts, and
//! that programs can do without: an errno tells them to use something else.

use crate::syscalls::Argument;

/// `setxattrat` (Linux 6.13), which the libc crate does not name yet.
const SYS_SETXATTRAT: i64 = 463;

/// System calls answered with EOPNOTSUPP, as on a file system without extended attributes. An access
/// control list takes up to 128 KiB for each inode of a tmpfs and is charged to no cgroup. The name
/// of the attribute lies in memory, which a seccomp filter cannot read, so other attributes are
/// refused, too. `cp`, `tar`, `rsync` and `git` then copy files without attributes.
pub(crate) const UNSUPPORTED: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SYS_SETXATTRAT,
];

/// System calls answered with EINVAL, which the kernel itself answers for descriptors of a wrong
/// type; programs then use `read` and `write`.
///
/// Data of a TCP connection that is moved into a pipe is charged to no cgroup any more. `splice`
/// and `tee` move it; so does `sendfile` without an offset. With an offset the kernel refuses
/// `sendfile` from a socket, because sockets have none.
pub(crate) const INVALID: &[(i64, &[&[Argument]])] = &[
    (libc::SYS_splice, &[]),
    (libc::SYS_tee, &[]),
    (libc::SYS_sendfile, &[&[Argument::Null(2)]]),
];
